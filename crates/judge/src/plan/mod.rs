//! From findings to a plan: the ordered list of changes, each with its reason, and what no program
//! can do.
//!
//! Pure: what the machine holds now, and what becomes of a change, is `rtproof_host::tune`'s.

pub mod units;

use rtproof_host::tune::Change;
use serde::{Deserialize, Serialize};

use crate::Impact;

/// What would be done to a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Changes that can be made now, in the order in which they have to be made.
    pub steps: Vec<Step>,
    /// Words for the kernel's command line, one entry of the boot menu for all of them.
    pub boot: Vec<BootWord>,
    /// What only a human can do.
    pub instructions: Vec<Instruction>,
    /// Findings of which nothing is done, and why.
    pub left_out: Vec<LeftOut>,
    /// Findings that want different things of one target. Nothing is applied while there are any.
    pub conflicts: Vec<Conflict>,
}

/// One change, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The change.
    pub change: Change,
    /// What it is about.
    #[serde(flatten)]
    pub reason: Reason,
}

/// Why something is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// Checks whose findings ask for it.
    pub checks: Vec<String>,
    /// Why, in one line.
    pub why: String,
    /// How much latency it takes away, as a rule.
    pub impact: Impact,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trade_off: Option<String>,
    /// What can go wrong; such a change is made only when its check is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
}

/// A word of the kernel's command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootWord {
    /// Parameter with its value, e.g. `isolcpus=managed_irq,domain,2-3`.
    pub parameter: String,
    /// Whether it takes the place of every word with the same name, or (`isolcpus=` with a wrong
    /// value) removes them: then the parameter is the name alone and nothing is added.
    #[serde(default)]
    pub removes: bool,
    /// What it is about.
    #[serde(flatten)]
    pub reason: Reason,
}

/// Something for a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Instruction {
    /// What to do.
    pub text: String,
    /// Options of the kernel's build that it is about, as `NAME=value` without `CONFIG_`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_options: Vec<String>,
    /// What it is about.
    #[serde(flatten)]
    pub reason: Reason,
}

/// A finding of which nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Its check.
    pub check: String,
    /// Why.
    pub why: String,
}

/// Two wishes for one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conflict {
    /// The target.
    pub target: String,
    /// Checks, and what each wants.
    pub wishes: Vec<(String, String)>,
}
