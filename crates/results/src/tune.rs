//! What `tune` plans, does and finds, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::tune::{Change, State, drift::Suspect};
use rtproof_judge::{
    plan::{BootWord, Conflict, Instruction, LeftOut, Step},
    report,
    verify::Verified,
};

use crate::IntentShown;

// What is applied now: of each open journal each change, as applied, changed since, or gone.

pub const ACTIVE_SCHEMA: &str = "rtproof/tune-status/1";

/// What is applied now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TuneStatus {
    /// Version of this form: `rtproof/tune-status/1`.
    pub schema: &'static str,
    /// Open journals, the oldest first.
    pub journals: Vec<JournalStanding>,
    /// Journals that cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<Unusable>,
    pub boot: Option<BootStanding>,
}

/// An open journal and where its changes stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JournalStanding {
    pub journal: u32,
    pub path: String,
    /// What it was for.
    pub title: String,
    /// When it was begun, in UTC.
    pub begun: String,
    /// Whether it was made by the boot that runs.
    pub is_of_this_boot: bool,
    /// Whether it must be confirmed, or it is undone.
    pub unconfirmed: bool,
    /// Whether it is undone when a program of `rtproof run` ends.
    pub of_program: bool,
    /// Whether its rollback waits: a timer of systemd, or a process that lives.
    pub guarded: bool,
    /// Its changes, in the order in which they were made.
    pub changes: Vec<StandingChange>,
}

/// One change of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StandingChange {
    /// Number of its journal.
    pub journal: u32,
    pub change: Change,
    /// What was applied, in one line.
    pub ours: String,
    /// What is there now, in one line.
    pub now: String,
    /// Whether that is what was there before it was applied.
    pub is_old: bool,
    pub standing: StandingNow,
    /// Why it cannot be read, or was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Suspects that may have changed it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<Suspect>,
}

/// Status of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StandingNow {
    /// As it was applied.
    AsApplied,
    /// It was changed since.
    Changed,
    /// A later journal of rtproof has changed it again.
    Superseded,
    /// The boot loader took the choice of one boot and forgot it, as it should.
    UsedUp,
    /// Gone: with the reboot, or because its task ended.
    Gone,
    /// It could not be made, and nothing of it is left.
    NotMade,
    /// It cannot be read, or it failed half-way and could not be undone.
    Unreadable,
}

/// The boot entry of rtproof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BootStanding {
    pub loader: String,
    /// Words it has in addition to the default entry.
    pub words: Vec<String>,
    pub standing: EntryStanding,
    /// Its kernel, where that is not the default entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<EntryKernel>,
    /// Whether the running boot has every word, and that kernel.
    pub is_running: bool,
}

/// The kernel of the boot entry and the running one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EntryKernel {
    /// Its release; `null`: its name has none.
    pub release: Option<String>,
    /// Its file, as the boot loader has it.
    pub file: String,
    /// Release of the kernel that runs; `null`: unknown.
    pub running: Option<String>,
}

impl EntryKernel {
    /// Whether it is the kernel that runs; `None`: unknown.
    pub fn is_running(&self) -> Option<bool> {
        Some(self.release.as_ref()? == self.running.as_ref()?)
    }

    pub fn text(&self) -> String {
        let name = self.release.as_ref().unwrap_or(&self.file);
        let running = self.running.as_deref().unwrap_or("unknown");
        match self.is_running() {
            Some(true) => format!("{name}, which runs"),
            Some(false) => format!("{name}; {running} runs"),
            None => format!("{name}; whether it runs is unknown ({running} runs)"),
        }
    }
}

/// How far the boot entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntryStanding {
    Absent,
    /// It boots when it is chosen in the menu.
    Written,
    /// It boots with the next boot, once.
    Armed,
    /// It is the default.
    Default,
}

impl From<rtproof_host::boot::OwnEntryState> for EntryStanding {
    fn from(standing: rtproof_host::boot::OwnEntryState) -> Self {
        use rtproof_host::boot::OwnEntryState;
        match standing {
            OwnEntryState::Absent => Self::Absent,
            OwnEntryState::Written => Self::Written,
            OwnEntryState::Armed => Self::Armed,
            OwnEntryState::Default => Self::Default,
        }
    }
}

impl StandingNow {
    pub const fn text(self) -> &'static str {
        match self {
            Self::AsApplied => "as applied",
            Self::Changed => "CHANGED",
            Self::Superseded => "changed by us",
            Self::UsedUp => "used up",
            Self::Gone => "gone",
            Self::NotMade => "not made",
            Self::Unreadable => "UNREADABLE",
        }
    }
}

impl StandingChange {
    /// Whether it is not as it was applied.
    pub fn is_bad(&self) -> bool {
        matches!(self.standing, StandingNow::Changed | StandingNow::Gone)
    }

    /// Whether it is unknown.
    pub fn is_unknown(&self) -> bool {
        self.standing == StandingNow::Unreadable
    }
}

impl StandingChange {
    /// Whether it was changed.
    pub fn is_changed(&self) -> bool {
        self.standing == StandingNow::Changed
    }
}

pub const EXPORTED_SCHEMA: &str = "rtproof/tune-exported/1";

/// Files that `tune export` wrote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExportedDocument {
    /// Version of this form: `rtproof/tune-exported/1`.
    pub schema: &'static str,
    pub folder: String,
    pub files: Vec<String>,
    /// Parts of the plan that are not in them, and why.
    pub missed: Vec<(String, String)>,
}

// Outcomes of the changes of an `apply` or an `undo`, as shown and as JSON.

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

/// Outcome of one change.
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

/// Outcome of applying a change.
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
    /// Whether it is not there, though its mark in /run says that it is applied.
    pub missing: bool,
}

/// Undo of one journal.
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

/// Undo of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TakenBack {
    pub change: Change,
    /// The value that was applied, in one line.
    pub ours: String,
    /// What is there now, in one line.
    pub now: String,
    pub outcome: TakenBackOutcome,
    /// Why it could not be undone, or a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Outcome of the undo of a change.
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

// A plan with what the machine holds now: what `tune plan` shows, what `--json` prints and what
// `tune apply --plan FILE` takes to the letter.

pub const PLAN_SCHEMA: &str = "rtproof/plan/1";

/// The JSON form of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlanDocument {
    /// Version of this form: `rtproof/plan/1`.
    pub schema: String,
    pub machine: report::MachineSummary,
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

// Effects of a boot's parameters, and status of applied changes.

pub const VERIFIED_SCHEMA: &str = "rtproof/verify/1";

/// What `tune verify --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifiedDocument {
    /// Version of this form: `rtproof/verify/1`.
    pub schema: &'static str,
    pub machine: report::MachineSummary,
    /// The kernel of the boot entry, where that is not the default entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<EntryKernel>,
    /// What became of each parameter.
    pub parameters: Vec<Verified>,
    /// Status of each change of the open journals; empty for a capture, which holds no journals.
    pub changes: Vec<StandingChange>,
}
