//! Which commit or which options a kernel's behaviour begins with, and how that was found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compare::{KernelSide, OptionPair};

pub const SCHEMA: &str = "rtproof/kernel-bisect/1";

/// What a bisection found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelBisected {
    /// Version of this form: `rtproof/kernel-bisect/1`.
    pub schema: &'static str,
    /// The folder of state, logs and page.
    pub folder: String,
    /// Where the kernels were booted. On the machine, lengths are nanoseconds, not instructions.
    pub booted_in: BisectedIn,
    pub over: BisectedOver,
    /// What makes a kernel bad, in words.
    pub test: String,
    /// Above this it is bad: instructions or stretches; null: the test has no number.
    pub threshold: Option<u64>,
    /// Arguments of `prove` in the guests; null: a command ran instead.
    pub prove: Option<String>,
    /// Whether `suspects` is the answer: the first bad commit, or a set of options of which none
    /// can be left out. Else it is among them, or some of them may not be needed.
    pub is_found: bool,
    /// Whether both sides of the answer were as before when they were booted a second time; null:
    /// they were not booted again, as nothing was found or a guest does the same each time.
    pub is_reproduced: Option<bool>,
    pub suspects: Vec<Suspect>,
    /// Options that kconfig changed along with the suspects; empty for commits.
    pub changed: Vec<OptionPair>,
    /// Numbers of the steps that stand for the good side and the bad one.
    pub evidence: [usize; 2],
    /// All steps, in order.
    pub steps: Vec<BisectStep>,
    pub notes: Vec<String>,
}

/// Version of the JSON form while a bisection over trial boots is under way.
pub const NEXT_SCHEMA: &str = "rtproof/kernel-bisect-next/1";

/// A bisection over trial boots that goes on after the next boot of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelBisectNext {
    /// Version of this form: `rtproof/kernel-bisect-next/1`.
    pub schema: &'static str,
    /// The folder of state, logs and page.
    pub folder: String,
    /// Number of the step whose kernel boots next; null: the machine's own kernel boots next.
    pub step: Option<usize>,
    /// Argument of reboot(2) with which it boots; null: none is needed.
    pub reboot: Option<String>,
    /// What comes after that reboot, in words.
    pub then: String,
    /// Steps that are done, in order.
    pub steps: Vec<BisectStep>,
}

/// Where the kernels were booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BisectedIn {
    /// In a guest whose time counts instructions.
    Guest,
    /// On the machine itself, each once.
    Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BisectedOver {
    /// Commits of a git tree.
    Commits,
    /// Options of two configurations.
    Options,
}

/// A culprit, or one of those that may be it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Suspect {
    Commit {
        /// Its id, 40 digits.
        commit: String,
        /// First line of its message.
        subject: String,
        author: String,
        /// Date of the author, ISO 8601.
        date: String,
        /// `git diff --stat` to its first parent.
        stat: Vec<String>,
        /// How its own test ended; null: it was not tested.
        outcome: Option<StepOutcome>,
    },
    /// An option that differs between the configurations.
    Option {
        /// Name and its values in the good configuration and the bad one.
        option: OptionPair,
        /// Its prompt in Kconfig; null: none was found.
        prompt: Option<String>,
        /// First lines of its help.
        help: Vec<String>,
        /// Whether the kernel is good without it; null: that could not be tested.
        is_needed: Option<bool>,
    },
}

/// How a step ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// It does not show what is looked for.
    Good,
    Bad,
    /// It could not be tested.
    #[default]
    Skipped,
}

impl StepOutcome {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skipped => "skipped",
        }
    }
}

/// One kernel: built, booted, tested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BisectStep {
    /// From 1; 1 is the good end, 2 the bad one.
    pub number: usize,
    /// The step whose kernel it tests a second time; null: it is the first test of this one.
    #[serde(default)]
    pub repeats: Option<usize>,
    /// Commit, or SHA-256 of the configuration.
    pub id: String,
    /// Subject of the commit, or the options that were taken from the bad side.
    pub title: String,
    pub outcome: StepOutcome,
    /// What was measured, or why it was skipped.
    pub why: String,
    pub objects: u64,
    /// Seconds of the build.
    pub build_s: u64,
    /// Seconds of the guest, of the host's time; on the machine: of the test alone.
    pub boot_s: f64,
    /// Folder of its logs.
    pub folder: String,
    /// What `prove` measured; null: it did not.
    pub measured: Option<KernelSide>,
    /// Status and finding of the check that is looked for.
    pub check: Option<(rtproof_model::Status, String)>,
    /// Exit code of the command; 255: the kernel panicked while it ran.
    pub exit: Option<i32>,
}
