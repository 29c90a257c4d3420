//! Two kernels that were booted in the same made-up machine and measured by counted instructions.

use rtproof_model::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::boot::Guest;

pub const SCHEMA: &str = "rtproof/kernel-compare/1";

/// What tells two kernels apart.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelsCompared {
    /// Version of this form: `rtproof/kernel-compare/1`.
    pub schema: &'static str,
    /// The guest of both; its command line is the first one's.
    pub guest: Guest,
    /// Arguments of `prove` in both guests.
    pub prove: Vec<String>,
    /// Length of one instruction in the guest's time, nanoseconds.
    pub instruction_ns: u64,
    /// The first kernel and the second one.
    pub kernels: [KernelSide; 2],
    /// Checks whose answer is not the same in both.
    pub checks: Vec<CheckPair>,
    /// Options of the configurations that are not the same; null: one of them is unknown.
    pub options: Option<Vec<OptionPair>>,
    pub notes: Vec<String>,
}

/// One of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSide {
    pub image: String,
    /// Release, as the guest reported it.
    pub release: String,
    /// Where the configuration is from; null: unknown.
    pub config: Option<String>,
    /// Folder of its record and logs.
    pub folder: String,
    /// Exit code of `prove`.
    pub exit: Option<i32>,
    /// Wake-ups that were due.
    pub scheduled: u64,
    pub missed: u64,
    /// From due to run.
    pub latency: WakeUpPath,
    /// Above this a wake-up was looked into, instructions; null: none was.
    pub threshold: Option<u64>,
    /// Wake-ups above it, those that are explained, and of these the ones with events missing.
    pub spikes: [u64; 3],
    /// What they waited for, longest sum first.
    pub causes: Vec<Stretches>,
}

/// Length of the way from due to run, instructions. Quantiles are at most 0.8 % too large; null:
/// too few wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeUpPath {
    pub min: Option<u64>,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
}

/// What a cause took of the explained wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretches {
    /// Cause, e.g. `irqs-off`.
    pub cause: String,
    pub title: String,
    pub count: u64,
    /// The longest one, instructions.
    pub longest: u64,
    /// All of them, instructions.
    pub sum: u64,
    /// Of that, what may have been another cause, instructions.
    pub uncertain: u64,
}

/// A check that answers differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckPair {
    pub check: String,
    /// Status under each kernel; null: not asked there.
    pub status: [Option<Status>; 2],
    pub summary: [Option<String>; 2],
}

/// An option with two values; `n`: not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionPair {
    /// Without `CONFIG_`.
    pub name: String,
    pub values: [String; 2],
}
