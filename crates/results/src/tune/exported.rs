//! What an export of a plan wrote.

use schemars::JsonSchema;
use serde::Serialize;

pub const SCHEMA: &str = "rtproof/tune-exported/1";

/// Files that `tune export` wrote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Written {
    /// Version of this form: `rtproof/tune-exported/1`.
    pub schema: &'static str,
    pub folder: String,
    pub files: Vec<String>,
    /// What of the plan is not in them, and why.
    pub missed: Vec<(String, String)>,
}
