//! What an export of a plan wrote.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: &str = "rtproof/tune-exported/1";

/// What was written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Written {
    /// Version of this form: `rtproof/tune-exported/1`.
    pub schema: &'static str,
    /// The folder.
    pub folder: String,
    /// Files in it.
    pub files: Vec<String>,
    /// What of the plan is not in them, and why.
    pub missed: Vec<(String, String)>,
}
