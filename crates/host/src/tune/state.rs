//! What is there: the state of what a change is about, exact enough to be put back.

use serde::{Deserialize, Serialize};

use super::change::{IrqName, Scheduling, TaskName};
use crate::CpuList;

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
        /// The files that move with it, with their bytes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        couples: Vec<(String, Bytes)>,
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
        /// The folders that hold such links (`multi-user.target.wants`), whatever is in them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folders: Vec<String>,
    },
    /// A property of a unit.
    Property {
        /// Its value as `systemctl show` gives it.
        value: String,
        /// The drop-in that an earlier `set-property --runtime` left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drop_in: Option<Bytes>,
    },
    /// The switch of a CPU, and what the kernel moves when it is thrown.
    Hotplug {
        /// Bytes of the switch.
        bytes: Bytes,
        /// Affinity of every task that may use a CPU that goes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<(TaskName, CpuList)>,
        /// Affinity of every interrupt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        irqs: Vec<(IrqName, CpuList)>,
        /// CPUs of the groups (`cpuset.cpus`), and the tasks of those of version 1 that would be
        /// left without one (`tasks`).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<(String, Bytes)>,
    },
}

impl State {
    /// In a few words, for a line of text: the value itself, or what is there.
    #[must_use]
    pub fn brief(&self) -> String {
        let short = |bytes: &Bytes| {
            let text = bytes.text();
            let line = text.trim();
            match line.char_indices().nth(60) {
                Some((at, _)) => format!("\"{}...\"", &line[..at]),
                None => format!("\"{line}\""),
            }
        };
        match self {
            Self::Absent => "nothing".into(),
            Self::Value { bytes, .. } | Self::Hotplug { bytes, .. } => short(bytes),
            Self::File { bytes, mode, .. } => {
                format!("a file of {} bytes, mode {mode:04o}", bytes.0.len())
            }
            Self::Link { to } => format!("a link to {to}"),
            Self::Folder => "a folder".into(),
            Self::Task { scheduling } => scheduling.brief(),
            Self::Unit { active, links, .. } => {
                let runs = if *active { "running" } else { "not running" };
                let is_masked = links.iter().any(|(_, to)| to == "/dev/null");
                match (is_masked, links.len()) {
                    (true, _) => format!("{runs}, masked"),
                    (false, 0) => format!("{runs}, not enabled"),
                    (false, _) => format!("{runs}, enabled"),
                }
            }
            Self::Property { value, .. } => format!("\"{value}\""),
        }
    }
}

impl Scheduling {
    /// In a few words: `fifo 50 on CPU 2-3`.
    #[must_use]
    pub fn brief(&self) -> String {
        let mut words: Vec<String> = self.policy.clone().into_iter().collect();
        words.extend(self.priority.filter(|&priority| priority > 0).map(|p| p.to_string()));
        words.extend(self.nice.filter(|&nice| nice != 0).map(|nice| format!("nice {nice}")));
        words.extend(self.deadline_ns.map(|[runtime, deadline, period]| {
            format!("{runtime} of {period} ns within {deadline} ns")
        }));
        words.extend(self.cpus.as_ref().map(|cpus| format!("on CPU {cpus}")));
        words.join(" ")
    }
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
