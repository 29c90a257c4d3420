//! What became of the changes of an `apply` or an `undo`: what is shown, and its JSON form.

use rtproof_host::tune::{Change, State};
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON form of `tune apply` and `tune trial`.
pub const APPLIED: &str = "rtproof/tune-applied/1";
/// Version of the JSON form of `tune undo`.
pub const UNDONE: &str = "rtproof/tune-undone/1";

/// What `tune apply` or `tune trial` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Applied {
    /// Version of this form: `rtproof/tune-applied/1`.
    pub schema: &'static str,
    /// Number of the journal; `null`: nothing was to be done.
    pub journal: Option<u32>,
    pub path: Option<String>,
    /// What became of each change, in the order of the plan.
    pub changes: Vec<Made>,
    /// Whether everything was undone because one change failed.
    pub rolled_back: bool,
    /// Boot parameters of the plan, which `tune trial` would try.
    pub boot_parameters: Vec<String>,
    /// Time within which `tune confirm` has to come, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm_within_ns: Option<u64>,
    /// The kernel of the boot entry, where `tune trial --kernel` named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<TrialKernel>,
}

/// A kernel on trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialKernel {
    /// Its `uname -r`.
    pub release: String,
    /// Where it is from: an entry of the boot menu, a package, a build, an image.
    pub from: String,
    /// What is put in place, with how much it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, String)>,
    /// What to know before it boots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Made {
    pub change: Change,
    /// Checks that request it.
    pub checks: Vec<String>,
    /// What was there, in one line.
    pub old: String,
    /// What is to be there, in one line.
    pub new: String,
    pub outcome: MadeOutcome,
    /// Why, or what is not in force yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What became of a change that was to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MadeOutcome {
    /// Made, and read back.
    Applied,
    /// It was as wanted already.
    AsWanted,
    /// It could not be made.
    Failed,
    /// It could not be made and is no failure: its task has ended, or the kernel alone places its
    /// interrupt.
    LeftOut,
    /// Made, and undone because another one failed.
    RolledBack,
    /// Not reached: one before it failed.
    NotReached,
}

impl MadeOutcome {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::AsWanted => "as wanted already",
            Self::Failed => "FAILED",
            Self::LeftOut => "left out",
            Self::RolledBack => "taken back",
            Self::NotReached => "not reached",
        }
    }
}

impl Made {
    /// A change that was not reached yet.
    pub fn of(change: Change, checks: Vec<String>, found: Option<&State>) -> Self {
        let old = found.map_or_else(|| "?".into(), |state| change.before(state));
        let new = change.after();
        Self { change, checks, old, new, outcome: MadeOutcome::NotReached, why: None }
    }
}

/// What `tune undo` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Undone {
    /// Version of this form: `rtproof/tune-undone/1`.
    pub schema: &'static str,
    /// The journals, the newest first.
    pub journals: Vec<JournalUndone>,
    /// Journals that could not be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<Unusable>,
    /// Open journals that were not requested.
    pub still_open: Vec<u32>,
}

/// A journal that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unusable {
    pub journal: u32,
    /// Why, with its file and what it may have changed.
    pub why: String,
}

/// What became of one journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JournalUndone {
    pub journal: u32,
    pub path: String,
    /// What it was for.
    pub title: String,
    /// What became of each change, in the order of the undo.
    pub changes: Vec<TakenBack>,
    /// Why the journal does not say so; `null`: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<String>,
}

/// What became of one change that was to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TakenBack {
    pub change: Change,
    /// What we had made of it, in one line.
    pub ours: String,
    /// What is there now, in one line.
    pub now: String,
    pub outcome: TakenBackOutcome,
    /// Why it could not be undone, or a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What became of a change that was to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TakenBackOutcome {
    /// The old state is back.
    Restored,
    /// It was as before already.
    WasBefore,
    /// Gone with the reboot, or with the task.
    Gone,
    /// It was changed since by others.
    LeftAlone,
    /// It was planned, is there, and the journal does not say what was there before.
    Unnoted,
    /// It could not be put back.
    Failed,
}

impl TakenBackOutcome {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::WasBefore => "was as before",
            Self::Gone => "gone by itself",
            Self::LeftAlone => "LEFT ALONE",
            Self::Unnoted => "NOT NOTED",
            Self::Failed => "FAILED",
        }
    }
}
