//! What is applied now: of each open journal each change, as applied, changed since, or gone.

use rtproof_host::tune::{Change, drift::Suspect};
use schemars::JsonSchema;
use serde::Serialize;

use super::outcome::Unusable;

pub const SCHEMA: &str = "rtproof/tune-status/1";

/// What is applied now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Status {
    /// Version of this form: `rtproof/tune-status/1`.
    pub schema: &'static str,
    /// Open journals, the oldest first.
    pub journals: Vec<JournalStands>,
    /// Journals that cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<Unusable>,
    pub boot: Option<BootStands>,
}

/// An open journal and where its changes stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JournalStands {
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
    pub changes: Vec<Stands>,
}

/// One change of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stands {
    /// Number of its journal.
    pub journal: u32,
    pub change: Change,
    /// What was applied, in one line.
    pub ours: String,
    /// What is there now, in one line.
    pub now: String,
    /// Whether that is what was there before it was applied.
    pub is_old: bool,
    pub standing: StandsNow,
    /// Why it cannot be read, or was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Who may have changed it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<Suspect>,
}

/// How a change stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StandsNow {
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
pub struct BootStands {
    pub loader: String,
    /// What it has beside the default entry.
    pub words: Vec<String>,
    /// How far it is.
    pub standing: EntryStands,
    /// Its kernel, where that is not the default entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<EntryKernel>,
    /// Whether the running boot has every word, and that kernel.
    pub is_running: bool,
}

/// The kernel of the boot entry beside the one that runs.
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
pub enum EntryStands {
    /// There is none.
    Absent,
    /// It boots when it is chosen in the menu.
    Written,
    /// It boots with the next boot, once.
    Armed,
    /// It is the default.
    Default,
}

impl From<rtproof_host::boot::Standing> for EntryStands {
    fn from(standing: rtproof_host::boot::Standing) -> Self {
        use rtproof_host::boot::Standing;
        match standing {
            Standing::Absent => Self::Absent,
            Standing::Written => Self::Written,
            Standing::Armed => Self::Armed,
            Standing::Default => Self::Default,
        }
    }
}

impl StandsNow {
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

impl Stands {
    /// Whether it is not as it was applied.
    pub fn is_bad(&self) -> bool {
        matches!(self.standing, StandsNow::Changed | StandsNow::Gone)
    }

    /// Whether it is unknown.
    pub fn is_unknown(&self) -> bool {
        self.standing == StandsNow::Unreadable
    }
}

impl Stands {
    /// Whether it was changed.
    pub fn is_changed(&self) -> bool {
        self.standing == StandsNow::Changed
    }
}
