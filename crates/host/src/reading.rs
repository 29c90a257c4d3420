//! A fact's value in one of four states, always with the path asked.
//!
//! Unknown is never a number and never a pass: an absent file, a refused read and a file with
//! unexpected bytes are three different things, and none of them has a default.

use serde::{Deserialize, Serialize};

/// What was read, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading<T> {
    /// The path or call asked, e.g. `/proc/swaps` or `getrlimit(RLIMIT_RTPRIO)`. Several are
    /// joined by `, `.
    pub path: String,
    /// What came back.
    #[serde(flatten)]
    pub state: State<T>,
}

/// The four states of a [`Reading`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum State<T> {
    /// The value.
    Known {
        /// The value read.
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
        /// What was expected.
        expected: String,
    },
}

impl<T> Reading<T> {
    /// A known value.
    pub fn known(path: impl Into<String>, value: T) -> Self {
        Self { path: path.into(), state: State::Known { value } }
    }

    /// No such file.
    pub fn absent(path: impl Into<String>) -> Self {
        Self { path: path.into(), state: State::Absent }
    }

    /// Refused.
    pub fn denied(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), state: State::Denied { why: why.into() } }
    }

    /// Not what was expected; `found` is shortened to 80 characters.
    pub fn malformed(path: impl Into<String>, found: &str, expected: impl Into<String>) -> Self {
        let found = found.trim_end().chars().take(80).collect();
        let state = State::Malformed { found, expected: expected.into() };
        Self { path: path.into(), state }
    }

    /// The value, if it is known.
    pub const fn value(&self) -> Option<&T> {
        match &self.state {
            State::Known { value } => Some(value),
            _ => None,
        }
    }

    /// Whether the file is not there.
    pub const fn is_absent(&self) -> bool {
        matches!(self.state, State::Absent)
    }

    /// Applies `f` to a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|path, value| Reading::known(path, f(value)))
    }

    /// Applies `f`, which may find the value malformed, to the path and the known value.
    pub fn and_then<U>(self, f: impl FnOnce(String, T) -> Reading<U>) -> Reading<U> {
        let path = self.path;
        match self.state {
            State::Known { value } => f(path, value),
            State::Absent => Reading { path, state: State::Absent },
            State::Denied { why } => Reading { path, state: State::Denied { why } },
            State::Malformed { found, expected } => {
                Reading { path, state: State::Malformed { found, expected } }
            }
        }
    }

    /// Why the value is unknown, as a phrase without the path; `None` when it is known.
    pub fn why_unknown(&self) -> Option<String> {
        match &self.state {
            State::Known { .. } => None,
            State::Absent => Some("not there".into()),
            State::Denied { why } => Some(format!("refused: {why}")),
            State::Malformed { found, expected } => {
                Some(format!("holds \"{found}\", expected {expected}"))
            }
        }
    }
}
