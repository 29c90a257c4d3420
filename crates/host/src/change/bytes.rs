//! Bytes of values and files, as JSON keeps them.

use serde::{Deserialize, Serialize};

/// Bytes that are text as a rule: JSON shows text as a string, other bytes as `{"hex": "..."}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "Written"))]
pub struct Bytes(pub Vec<u8>);

/// How bytes are written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum Written {
    Text(String),
    Hex {
        #[serde(with = "hex")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        hex: Vec<u8>,
    },
}

impl From<Written> for Bytes {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => Self(text.into_bytes()),
            Written::Hex { hex } => Self(hex),
        }
    }
}

impl From<Bytes> for Written {
    fn from(bytes: Bytes) -> Self {
        match String::from_utf8(bytes.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex { hex: error.into_bytes() },
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
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

/// Bytes as hexadecimal digits.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&crate::text::hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(from)?;
        let pair = |at: usize| {
            let pair = digits.get(at..at + 2).ok_or_else(|| D::Error::custom("odd hex digits"))?;
            u8::from_str_radix(pair, 16).map_err(D::Error::custom)
        };
        (0..digits.len()).step_by(2).map(pair).collect()
    }
}

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
