//! What a plan is made of: steps and their reasons, words for the boot, what is left out.

use rtproof_host::tune::Change;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Impact;

/// One change, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub change: Change,
    #[serde(flatten)]
    pub reason: Reason,
}

/// Why something is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Checks whose findings ask for it.
    pub checks: Vec<String>,
    /// Why, in one line.
    pub why: String,
    /// How much latency it takes away, as a rule.
    pub impact: Impact,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trade_off: Option<String>,
    /// What can go wrong; such a change is made only when its check is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
}

impl Reason {
    /// One reason out of two.
    pub(super) fn merged(mut self, other: Self) -> Self {
        self.merge(other);
        self
    }

    pub(super) fn merge(&mut self, other: Self) {
        if other.checks.iter().all(|check| self.checks.contains(check)) {
            return;
        }
        self.checks.extend(other.checks);
        self.impact = self.impact.min(other.impact);
        join(&mut self.why, &other.why);
        for (text, more) in [(&mut self.trade_off, other.trade_off), (&mut self.risk, other.risk)] {
            match (text, more) {
                (Some(text), Some(more)) => join(text, &more),
                (text, more) => *text = text.take().or(more),
            }
        }
    }
}

/// Adds a text that is not there yet.
pub(super) fn join(text: &mut String, more: &str) {
    if !text.contains(more) {
        text.push_str("; ");
        text.push_str(more);
    }
}

/// A word of the kernel's command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootWord {
    /// Parameter with its value, e.g. `isolcpus=managed_irq,domain,2-3`.
    pub parameter: String,
    /// Whether it takes the place of every word with the same name, or (`isolcpus=` with a wrong
    /// value) removes them: then the parameter is the name alone and nothing is added.
    #[serde(default)]
    pub removes: bool,
    #[serde(flatten)]
    pub reason: Reason,
}

/// Something for a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Instruction {
    pub text: String,
    /// Options of the kernel's build that it is about, as `NAME=value` without `CONFIG_`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_options: Vec<String>,
    #[serde(flatten)]
    pub reason: Reason,
}

/// A finding of which nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    pub check: String,
    pub why: String,
    /// Whether it is unknown if something has to be done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
}

/// Two requests for one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    pub target: String,
    /// Checks, and what each wants.
    #[serde(rename = "wishes")]
    pub requests: Vec<(String, String)>,
}
