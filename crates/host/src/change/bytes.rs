//! Bytes of values and files, as JSON keeps them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::hex;

/// Bytes that are text as a rule: JSON shows text as a string, other bytes as `{"hex": "..."}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written")]
pub struct Bytes(pub Vec<u8>);

/// How bytes are written.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    Text(String),
    Hex { hex: String },
}

impl TryFrom<Written> for Bytes {
    type Error = HexError;

    fn try_from(written: Written) -> Result<Self, HexError> {
        match written {
            Written::Text(text) => Ok(Self(text.into_bytes())),
            Written::Hex { hex } => {
                let pair = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
                let bytes = (0..hex.len()).step_by(2).map(pair);
                bytes.collect::<Option<_>>().map(Self).ok_or(HexError)
            }
        }
    }
}

impl From<Bytes> for Written {
    fn from(bytes: Bytes) -> Self {
        match String::from_utf8(bytes.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex { hex: hex(error.as_bytes()) },
        }
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Bytes {
    /// As text, bytes that are not UTF-8 replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

/// Digits that are no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not pairs of hexadecimal digits")]
pub struct HexError;

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn bytes_are_kept_whatever_they_are() {
        for bytes in [&b"performance\n"[..], b"", b"\xff\x00\x80", b"{\"hex\":\"00\"}"] {
            let bytes = Bytes(bytes.to_vec());
            let json = serde_json::to_string(&bytes).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), bytes, "{json}");
        }
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"0g\"}").is_err());
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"000\"}").is_err());
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"é0\"}").is_err());
    }
}
