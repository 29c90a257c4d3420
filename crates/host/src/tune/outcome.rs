//! What became of a change that was to be undone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::state::State;

/// What became of a change that was to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "became")]
pub enum Outcome {
    /// It is as before, and that was read back.
    Restored,
    /// It was as before already.
    WasBefore,
    /// There is nothing left that could be undone.
    Gone { why: Gone },
    /// Another program has changed it since: its value stays.
    LeftAlone { found: State },
    /// It could not be undone; another undo tries again.
    Failed { why: String },
}

/// Why there is nothing left to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gone {
    /// A value of the running kernel, and the machine has been started anew.
    Reboot,
    /// The task has ended, or the interrupt was given back.
    Ended,
    /// The kernel has no such file any more: a device or module that was taken away.
    Removed,
}
