//! What a boot made of its parameters, and how applied changes stand.

use rtproof_judge::{report, verify::Verified};
use schemars::JsonSchema;
use serde::Serialize;

use super::active::{EntryKernel, Stands};

pub const SCHEMA: &str = "rtproof/verify/1";

/// What `tune verify --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document {
    /// Version of this form: `rtproof/verify/1`.
    pub schema: &'static str,
    pub machine: report::Machine,
    /// The kernel of the boot entry, where that is not the default entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<EntryKernel>,
    /// What became of each parameter.
    pub parameters: Vec<Verified>,
    /// What became of each change of the open journals; none of a capture, which holds no journals.
    pub changes: Vec<Stands>,
}
