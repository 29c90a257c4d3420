//! What is there: the state of what a change is about, exact enough to be put back.

use serde::{Deserialize, Serialize};

use super::change::Scheduling;

/// The state of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum State {
    /// Nothing is there.
    Absent,
    /// Bytes of a value of the running kernel, as read.
    Value {
        /// The bytes.
        bytes: Bytes,
    },
    /// A file.
    File {
        /// Its bytes.
        bytes: Bytes,
        /// Permissions.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Last modification, nanoseconds since 1970.
        modified_ns: i64,
        /// Extended attributes (security labels), by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<(String, Bytes)>,
    },
    /// A symbolic link, and where it leads.
    Link {
        /// Its text.
        to: String,
    },
    /// A folder.
    Folder,
    /// Scheduling of a task.
    Task {
        /// All of it.
        scheduling: Scheduling,
    },
    /// A unit.
    Unit {
        /// Whether it ran.
        active: bool,
        /// Links that enable or mask it (path, text), in the folders of systemd and of the boot
        /// scripts under /etc and /run.
        links: Vec<(String, String)>,
    },
    /// A property of a unit.
    Property {
        /// Its value as `systemctl show` gives it.
        value: String,
    },
}

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
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        to.serialize_str(&digits)
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
