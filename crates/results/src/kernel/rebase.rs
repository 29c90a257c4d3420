//! Commits that were carried over to another version.

use schemars::JsonSchema;
use serde::Serialize;

pub const SCHEMA: &str = "rtproof/kernel-rebase/1";

/// A git tree after a rebase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rebased {
    /// Version of this form: `rtproof/kernel-rebase/1`.
    pub schema: &'static str,
    pub tree: String,
    /// Onto what, where this call began it.
    pub onto: Option<String>,
    /// Commits on top of it, oldest first, where this call began it.
    pub commits: Option<Vec<String>>,
    /// Local commits before, where this call began it. git leaves out those that the new version
    /// has already, those that are empty then, and merges.
    pub local: Option<u64>,
    pub head: String,
    /// Whether the rebase was given up.
    pub aborted: bool,
}
