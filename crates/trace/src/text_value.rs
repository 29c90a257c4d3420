//! Short texts without allocation: names of tasks and interrupts inside events.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text of at most `N` bytes, as the kernel's fixed arrays hold them. Longer ones are cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// The text up to the first NUL.
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = Self { bytes: [0; N] };
        // Most are a few bytes: a loop is faster than to look for the end and copy up to there.
        for (to, &from) in text.bytes.iter_mut().zip(bytes) {
            if from == 0 {
                break;
            }
            *to = from;
        }
        text
    }

    pub fn as_bytes(&self) -> &[u8] {
        let end = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(N);
        &self.bytes[..end]
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes.first().is_none_or(|&byte| byte == 0)
    }
}

impl<const N: usize> From<&str> for Text<N> {
    fn from(text: &str) -> Self {
        Self::of(text.as_bytes())
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self { bytes: [0; N] }
    }
}

impl<const N: usize> PartialEq<&str> for Text<N> {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), to)
    }
}

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(from)?.as_str()))
    }
}

impl<const N: usize> schemars::JsonSchema for Text<N> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_nul_and_at_its_size() {
        assert_eq!(Text::<4>::of(b"ab\0cd"), "ab");
        assert_eq!(Text::<4>::from("abcdef"), "abcd");
        assert!(Text::<4>::of(b"\0x").is_empty());
        let json = serde_json::to_string(&Text::<8>::from("x\"y")).expect("a string");
        assert_eq!(serde_json::from_str::<Text<8>>(&json).expect("a text"), "x\"y");
    }
}
