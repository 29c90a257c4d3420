//! A word of the command line, what was observed of it, and whether it took effect.

use std::collections::BTreeMap;

use rtproof_host::Reading;
use schemars::JsonSchema;
use serde::Serialize;

/// What the kernel shows, by path.
pub type Shown = BTreeMap<String, Reading<String>>;

/// A word that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedWord {
    /// The word, e.g. `isolcpus=2-3`; the name alone where it is to be away.
    pub parameter: String,
    /// Whether it is to be away.
    pub removes: bool,
}

/// What became of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The kernel shows what was asked for; of a word that was to be away: it is.
    Effective,
    /// It is on the command line, and the kernel did not know it.
    Ignored,
    /// It is on the command line, and the kernel shows something else.
    NotEffective,
    /// It is not on the command line, or is still there.
    Missing,
    /// It is on the command line, and nothing shows its effect.
    NotShown,
    /// What would show it cannot be read.
    CannotTell,
}

impl Effect {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Effective => "effective",
            Self::Ignored => "ignored by the kernel",
            Self::NotEffective => "not effective",
            Self::Missing => "not as asked on the command line",
            Self::NotShown => "not shown by the kernel",
            Self::CannotTell => "cannot tell",
        }
    }

    /// Whether something is not as it was asked for.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Ignored | Self::NotEffective | Self::Missing)
    }
}

/// What one place says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    pub(super) effect: Effect,
    pub(super) path: Option<String>,
    pub(super) found: Option<String>,
}

impl Observation {
    pub(super) const NOWHERE: Self = Self { effect: Effect::NotShown, path: None, found: None };

    pub(super) fn at(path: &str, found: impl Into<String>, is_as_asked: bool) -> Self {
        let effect = if is_as_asked { Effect::Effective } else { Effect::NotEffective };
        Self { effect, path: Some(path.to_owned()), found: Some(found.into()) }
    }

    pub(super) fn blind<T>(reading: &Reading<T>) -> Self {
        let (path, found) = (Some(reading.path.clone()), reading.why_unknown());
        Self { effect: Effect::CannotTell, path, found }
    }
}
