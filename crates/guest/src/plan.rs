//! What init does in a guest of `rtproof kernel boot`, and what it says of it afterwards.

use serde::{Deserialize, Serialize};

/// Where init finds its plan.
pub const PATH: &str = "/plan.json";
/// Folder of what goes back to the host.
pub const OUT: &str = "/out";
/// The file there with a [`Ran`] for each step.
pub const RAN: &str = "steps.json";
/// The file there with the kernel's log.
pub const LOG: &str = "dmesg.txt";
/// The file there with the configuration that the kernel itself holds.
pub const CONFIG: &str = "config.gz";
/// The command of the binary that is init in a guest.
pub const COMMAND: &str = "guest-init";

/// What `init` does in the guest: loads modules, then runs commands in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Modules in /modules, in the order in which they are loaded.
    pub modules: Vec<String>,
    /// Commands, one after the other.
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its output goes to `NAME.out` and `NAME.err`.
    pub name: String,
    pub command: Vec<String>,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    pub name: String,
    /// Exit code; `None`: not started, or ended by a signal.
    pub exit: Option<i32>,
    /// Why there is no exit code.
    pub why: Option<String>,
    /// Time of the guest that it took.
    pub seconds: f64,
}
