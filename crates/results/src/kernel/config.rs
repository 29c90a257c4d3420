//! A kernel's configuration: what was asked for, and what the source's own kconfig made of it.

use schemars::JsonSchema;
use serde::Serialize;

pub const SCHEMA: &str = "rtproof/kernel-config/1";

/// The fragment and its resolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Configured {
    /// Version of this form: `rtproof/kernel-config/1`.
    pub schema: &'static str,
    /// Where it began: a file, a target of the source, the running kernel.
    pub base: String,
    /// The source; `None`: no source was given, so that nothing is resolved.
    pub kernel_source: Option<String>,
    /// What the source says that it is, e.g. `6.12.8`.
    pub version: Option<String>,
    pub fragment: String,
    /// The resolved configuration; `None` without a source.
    pub config: Option<String>,
    pub options: Vec<OptionRow>,
    /// Other options that have another value than the base as this source resolves it.
    pub changed: Vec<ChangedOption>,
    /// Options that a profile leaves open, as they are.
    pub open: Vec<OptionRow>,
    /// What else the user has to know.
    pub notes: Vec<String>,
}

impl Configured {
    /// Options that are not as they were asked for.
    pub fn dropped(&self) -> impl Iterator<Item = &OptionRow> {
        self.options.iter().filter(|row| row.fate == Fate::Dropped)
    }
}

/// What became of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The resolved configuration has it.
    Survived,
    /// It has another value.
    Dropped,
    /// There is no source to resolve it with.
    Unresolved,
    /// Nothing was asked.
    Open,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OptionRow {
    /// Without `CONFIG_`.
    pub name: String,
    /// Value asked for; `n`: not set; empty: none.
    pub wanted: String,
    /// Value in the base.
    pub before: String,
    /// Value in the resolved configuration; `None`: not resolved.
    pub after: Option<String>,
    pub fate: Fate,
    /// Why it was dropped.
    pub because: Vec<String>,
    /// The check that asks for it, or `guest`, `core-sched`.
    pub check: String,
    pub why: String,
    /// Where that is known from.
    pub source: String,
    /// Latency that the other value costs, as a rule, in words.
    pub costs: Option<String>,
}

/// An option that changed with the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedOption {
    /// Without `CONFIG_`.
    pub name: String,
    /// Value in the base as this source resolves it; `n`: not set.
    pub before: String,
    /// Value in the resolved configuration.
    pub after: String,
}
