//! A fact's value in one of four states, always with the path that was read.
//!
//! Unknown is never a number and never a pass: an absent file, a refused read and a file with
//! unexpected bytes are three different things, and none of them has a default.

use std::io;

use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeStruct};

/// What was read, and from where.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
pub struct Reading<T> {
    /// The path or call, e.g. `/proc/swaps` or `getrlimit(RLIMIT_RTPRIO)`. Several are
    /// joined by `, `.
    pub path: String,
    #[schemars(flatten)]
    pub state: ReadingState<T>,
}

/// The four states of a [`Reading`].
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case", tag = "state")]
pub enum ReadingState<T> {
    Known {
        value: T,
    },
    /// There is no such file: the kernel, the architecture or the capture does not have it.
    Absent,
    /// The file is there or may be, but reading it was refused.
    Denied {
        /// Why: the error, and lockdown or a container where that is known.
        why: String,
    },
    /// The file was read and does not hold what it should.
    Malformed {
        /// What it holds, shortened.
        found: String,
        expected: String,
    },
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::not_recorded()
    }
}

impl Reading<String> {
    /// The text as a value; malformed where `parse` finds none in it.
    pub fn parsed<T>(self, expected: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        self.and_then(|path, text| match parse(&text) {
            Some(value) => Reading::known(path, value),
            None => Reading::malformed(path, &text, expected),
        })
    }
}

impl<T> Reading<T> {
    /// A value that was read from a path.
    pub fn known(path: impl Into<String>, value: T) -> Self {
        Self { path: path.into(), state: ReadingState::Known { value } }
    }

    /// A path that does not exist.
    pub fn absent(path: impl Into<String>) -> Self {
        Self { path: path.into(), state: ReadingState::Absent }
    }

    /// What a record of an earlier rtproof does not hold.
    pub fn not_recorded() -> Self {
        Self::denied("record", "the rtproof that wrote the record did not ask")
    }

    /// A path that may not be read, and why.
    pub fn denied(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), state: ReadingState::Denied { why: why.into() } }
    }

    /// Not what was expected; `found` is shortened to 80 characters.
    pub fn malformed(path: impl Into<String>, found: &str, expected: impl Into<String>) -> Self {
        let found = found.trim_end().chars().take(80).collect();
        let state = ReadingState::Malformed { found, expected: expected.into() };
        Self { path: path.into(), state }
    }

    /// The value, if it is known.
    pub const fn value(&self) -> Option<&T> {
        match &self.state {
            ReadingState::Known { value } => Some(value),
            _ => None,
        }
    }

    /// Whether the file is not there.
    pub const fn is_absent(&self) -> bool {
        matches!(self.state, ReadingState::Absent)
    }

    /// Applies `f` to a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|path, value| Reading::known(path, f(value)))
    }

    /// Applies `f`, which may find the value malformed, to the path and the known value.
    pub fn and_then<U>(self, f: impl FnOnce(String, T) -> Reading<U>) -> Reading<U> {
        let path = self.path;
        match self.state {
            ReadingState::Known { value } => f(path, value),
            ReadingState::Absent => Reading { path, state: ReadingState::Absent },
            ReadingState::Denied { why } => Reading { path, state: ReadingState::Denied { why } },
            ReadingState::Malformed { found, expected } => {
                Reading { path, state: ReadingState::Malformed { found, expected } }
            }
        }
    }

    /// This value where it is known, else the one that `other` reads. Where neither is known, the
    /// path names both and a refusal or a malformed file says more than an absent one.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self.value().is_some() {
            return self;
        }
        let other = other();
        if other.value().is_some() {
            return other;
        }
        let path = format!("{}, {}", self.path, other.path);
        let state = if self.is_absent() { other.state } else { self.state };
        Self { path, state }
    }

    /// The same state under another path: for a value that took several files.
    /// The values of all; as the first one that is unknown, if there is one.
    pub fn all(path: String, readings: impl Iterator<Item = Self>) -> Reading<Vec<T>> {
        let mut values = Vec::new();
        for Self { path, state } in readings {
            match state {
                ReadingState::Known { value } => values.push(value),
                state => return Self { path, state }.map(|_| Vec::new()),
            }
        }
        Reading::known(path, values)
    }

    /// The value itself; `None` when it is unknown.
    pub fn into_value(self) -> Option<T> {
        match self.state {
            ReadingState::Known { value } => Some(value),
            _ => None,
        }
    }

    /// The same under another path.
    #[must_use]
    pub fn with_path(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), state: self.state }
    }

    /// A reading of the reference.
    pub fn as_ref(&self) -> Reading<&T> {
        let state = match &self.state {
            ReadingState::Known { value } => ReadingState::Known { value },
            ReadingState::Absent => ReadingState::Absent,
            ReadingState::Denied { why } => ReadingState::Denied { why: why.clone() },
            ReadingState::Malformed { found, expected } => {
                ReadingState::Malformed { found: found.clone(), expected: expected.clone() }
            }
        };
        Reading { path: self.path.clone(), state }
    }

    /// Why the value is unknown, as a phrase without the path; `None` when it is known.
    pub fn why_unknown(&self) -> Option<String> {
        match &self.state {
            ReadingState::Known { .. } => None,
            ReadingState::Absent => Some("not there".into()),
            // A copy refuses nothing: it lacks it.
            ReadingState::Denied { why } if is_of_copy(why) => Some(why.clone()),
            ReadingState::Denied { why } => Some(format!("refused: {why}")),
            ReadingState::Malformed { found, expected } => {
                Some(format!("holds \"{found}\", expected {expected}"))
            }
        }
    }
}

/// As JSON has it, flat. What serde derives of a flattened enum keeps every value twice on its way,
/// and is compiled for each of fifty types.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Flat<T> {
    path: String,
    state: Name,
    #[serde(default = "none", deserialize_with = "some")]
    value: Option<T>,
    why: Option<String>,
    found: Option<String>,
    expected: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Known,
    Absent,
    Denied,
    Malformed,
}

const fn none<T>() -> Option<T> {
    None
}

/// A value that is null is a value.
fn some<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reading<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Flat { path, state, value, why, found, expected } = Flat::deserialize(from)?;
        let lacks = D::Error::missing_field;
        let state = match state {
            Name::Known => ReadingState::Known { value: value.ok_or_else(|| lacks("value"))? },
            Name::Absent => ReadingState::Absent,
            Name::Denied => ReadingState::Denied { why: why.ok_or_else(|| lacks("why"))? },
            Name::Malformed => ReadingState::Malformed {
                found: found.ok_or_else(|| lacks("found"))?,
                expected: expected.ok_or_else(|| lacks("expected"))?,
            },
        };
        Ok(Self { path, state })
    }
}

impl<T: Serialize> Serialize for Reading<T> {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        let (name, texts) = match &self.state {
            ReadingState::Known { .. } => ("known", [None, None]),
            ReadingState::Absent => ("absent", [None, None]),
            ReadingState::Denied { why } => ("denied", [Some(("why", why)), None]),
            ReadingState::Malformed { found, expected } => {
                ("malformed", [Some(("found", found)), Some(("expected", expected))])
            }
        };
        let count = usize::from(self.value().is_some()) + texts.iter().flatten().count();
        let mut fields = into.serialize_struct("Reading", 2 + count)?;
        fields.serialize_field("path", &self.path)?;
        fields.serialize_field("state", name)?;
        if let Some(value) = self.value() {
            fields.serialize_field("value", value)?;
        }
        for (name, text) in texts.into_iter().flatten() {
            fields.serialize_field(name, text)?;
        }
        fields.end()
    }
}

// Why there is no answer, and which state of a reading that is.

/// Largest file read whole: /proc/interrupts of 1024 CPUs and 2000 interrupts is about 25 MB, any
/// other file far smaller.
pub(crate) const READ_BYTES_MAX: u64 = 32 << 20;

/// Symbolic links followed for one path, as in the kernel (MAXSYMLINKS).
pub(crate) const LINKS_MAX: u32 = 40;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadRefusal {
    /// The kernel's error number.
    Errno(i32),
    /// An error without a number.
    Text(String),
    /// It was not read when the machine was captured.
    NotCaptured,
    /// Left out of the capture.
    Redacted,
}

/// Why a file of a copy holds nothing.
pub const COPIED_EMPTY: &str = "copied empty: use rtproof capture";
/// Others of its folder are there.
pub const NOT_IN_COPY: &str = "not in the copy";
/// After the name of the folder.
pub const NOT_COPIED: &str = "was not copied";
/// Of single files that make a machine.
pub const NOT_GIVEN: &str = "not in what was given";
/// Of a capture by an rtproof that did not ask.
pub const NOT_CAPTURED: &str = "not in the capture: it was not read then; capture again";

fn is_of_copy(why: &str) -> bool {
    why.ends_with(NOT_COPIED) || [COPIED_EMPTY, NOT_IN_COPY, NOT_GIVEN, NOT_CAPTURED].contains(&why)
}

/// What explains a refused read.
#[derive(Clone, Debug)]
pub(crate) struct RefusalContext {
    /// Lockdown mode other than none.
    pub(crate) lockdown: Option<String>,
    pub(crate) container: bool,
    /// Not read by root: what root has to do to read it.
    pub(crate) unprivileged: Option<&'static str>,
}

impl From<io::Error> for ReadRefusal {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::Errno(number),
            None => Self::Text(error.to_string()),
        }
    }
}

impl From<Errno> for ReadRefusal {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno.raw_os_error())
    }
}

impl ReadRefusal {
    fn errno(&self) -> Option<Errno> {
        match self {
            Self::Errno(number) => Some(Errno::from_raw_os_error(*number)),
            _ => None,
        }
    }

    /// Whether there is no such file. ESRCH: the task of a /proc/PID file is gone.
    pub(crate) fn is_absent(&self) -> bool {
        let absent = [Errno::NOENT, Errno::NOTDIR, Errno::NODEV, Errno::SRCH];
        self.errno().is_some_and(|errno| absent.contains(&errno))
    }

    /// readlink(2): there is something, and it is no link.
    pub(crate) fn is_no_link(&self) -> bool {
        self.errno() == Some(Errno::INVAL)
    }

    /// The state of a reading that it means.
    pub(crate) fn reading<'a, T>(
        &self,
        path: &str,
        surroundings: impl FnOnce() -> &'a RefusalContext,
    ) -> Reading<T> {
        if self.is_absent() {
            return Reading::absent(path);
        }
        let why = match self {
            Self::NotCaptured => NOT_CAPTURED.into(),
            Self::Redacted => "left out of the capture, it names the machine".into(),
            Self::Text(text) => text.clone(),
            Self::Errno(number) => {
                let error = io::Error::from_raw_os_error(*number);
                match Errno::from_raw_os_error(*number) {
                    refusal @ (Errno::ACCESS | Errno::PERM) => {
                        format!("{error}{}", why_refused(path, refusal, surroundings()))
                    }
                    _ => error.to_string(),
                }
            }
        };
        Reading::denied(path, why)
    }
}

/// The reason behind a refusal. Lockdown answers EPERM (security/lockdown/lockdown.c) and hides
/// debugfs; EACCES elsewhere is file permissions.
fn why_refused(path: &str, refusal: Errno, around: &RefusalContext) -> String {
    let hidden = ["/sys/kernel/debug", "/sys/kernel/tracing", "/dev/", "/proc/kcore"];
    let by_lockdown = refusal == Errno::PERM || hidden.iter().any(|dir| path.starts_with(dir));
    let mut why = String::new();
    if let (true, Some(mode)) = (by_lockdown, &around.lockdown) {
        why += &format!("; the kernel is locked down ({mode})");
    }
    if around.container {
        why += "; inside a container";
    }
    if let Some(next) = around.unprivileged {
        why += &format!("; {next} to read it");
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_its_value_or_reason_is_no_reading() {
        let refused = |json: &str| serde_json::from_str::<Reading<Option<u32>>>(json).is_err();
        assert!(refused(r#"{"path":"p","state":"known"}"#));
        assert!(refused(r#"{"path":"p","state":"denied","found":"x"}"#));
        assert!(refused(r#"{"path":"p","state":"malformed","found":"x"}"#));
        assert!(refused(r#"{"path":"p","state":"other"}"#));
        let null = r#"{"path":"p","state":"known","value":null}"#;
        let reading: Reading<Option<u32>> = serde_json::from_str(null).unwrap();
        assert_eq!(reading, Reading::known("p", None));
        assert_eq!(serde_json::to_string(&reading).unwrap(), null);
    }

    #[test]
    fn the_first_known_wins_and_a_refusal_outlasts_an_absence() {
        let absent = || Reading::<u32>::absent("a");
        let denied = || Reading::<u32>::denied("d", "no");
        assert_eq!(absent().or_else(|| Reading::known("k", 1)), Reading::known("k", 1));
        assert_eq!(Reading::known("k", 1).or_else(absent), Reading::known("k", 1));
        assert_eq!(denied().or_else(|| Reading::known("k", 1)), Reading::known("k", 1));
        assert_eq!(absent().or_else(denied), Reading::denied("a, d", "no"));
        assert_eq!(denied().or_else(absent), Reading::denied("d, a", "no"));
        assert_eq!(absent().or_else(absent), Reading::absent("a, a"));
    }

    #[test]
    fn every_state_survives_json() {
        let readings = [
            Reading::known("p", 1u32),
            Reading::absent("p"),
            Reading::denied("p", "why"),
            Reading::malformed("p", "found\n", "a number"),
        ];
        for reading in readings {
            let json = serde_json::to_string(&reading).unwrap();
            assert_eq!(serde_json::from_str::<Reading<u32>>(&json).unwrap(), reading, "{json}");
        }
    }
}
