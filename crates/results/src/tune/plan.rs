//! A plan with what the machine holds now: what `tune plan` shows, what `--json` prints and what
//! `tune apply --plan FILE` takes to the letter.

use rtproof_host::tune::State;
use rtproof_judge::{
    plan::{BootWord, Conflict, Instruction, LeftOut, Step},
    report,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::intent::IntentShown;

pub const SCHEMA: &str = "rtproof/plan/1";

/// The JSON form of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Document {
    /// Version of this form: `rtproof/plan/1`.
    pub schema: String,
    pub machine: report::Machine,
    /// What the plan was made for.
    pub intent: IntentShown,
    /// Changes that can be made now, in the order in which they are made.
    pub steps: Vec<Previewed>,
    /// Changes of the plan that the machine has already.
    pub done: usize,
    /// The words of the kernel's command line, and the entry that would have them.
    pub boot: BootPreview,
    /// What only a human can do.
    pub instructions: Vec<Instruction>,
    /// Findings of which nothing is done, and why.
    pub left_out: Vec<LeftOut>,
    /// Findings that want different things of one target. Nothing is applied while there are any.
    pub conflicts: Vec<Conflict>,
}

/// A step, and what is there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Previewed {
    /// The change and its reason.
    #[serde(flatten)]
    pub step: Step,
    /// What is there now; `null`: it cannot be read.
    pub before: Option<State>,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// The boot part of a plan, and where it would go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootPreview {
    pub words: Vec<BootWord>,
    /// Command line of the entry that boots now; of the running kernel where that is not known.
    pub now: Option<String>,
    /// The same with the words.
    pub then: Option<String>,
    #[serde(default)]
    pub loader: Option<String>,
    /// Name of the entry that would be made.
    #[serde(default)]
    pub entry: Option<String>,
    /// Why no entry can be made here, or none that is safe to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What a human has to do where no entry can be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
}
