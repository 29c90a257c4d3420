//! A suspect, and the evidence for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Root, facts::units::SLICES};

/// Someone who sets the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suspect {
    /// A program, a unit or a file.
    pub who: String,
    /// What it does, and how to keep it from doing so.
    pub why: String,
    /// What points at it; never empty.
    pub evidence: Vec<Clue>,
}

/// A line of a file that may explain who changed a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clue {
    pub path: String,
    /// Line in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub text: String,
}

impl std::fmt::Display for Clue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.text),
            None => write!(f, "{}: {}", self.path, self.text),
        }
    }
}

impl Clue {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, text: text.into() }
    }
}

impl Suspect {
    pub(super) fn new(who: &str, why: &str, evidence: Vec<Clue>) -> Option<Self> {
        let suspect = Self { who: who.into(), why: why.into(), evidence };
        (!suspect.evidence.is_empty()).then_some(suspect)
    }
}

/// Whether a service runs: it has a control group then.
pub(super) fn group_of(root: &Root, unit: &str) -> Option<String> {
    SLICES.iter().map(|slice| format!("{slice}/{unit}")).find(|path| root.exists(path))
}
