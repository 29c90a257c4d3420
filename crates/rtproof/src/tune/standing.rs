//! What is applied now: of each open journal each change, as applied, changed since, or gone.

use rtproof_host::tune::{self, Change, Journal, Machine, drift::Suspect, mark};
use serde::Serialize;

use super::boot;
use crate::render::text::{after, before};

/// Version of the JSON form.
pub const SCHEMA: &str = "rtproof/tune-status/1";

/// What is applied now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// Version of this form: `rtproof/tune-status/1`.
    pub schema: &'static str,
    /// Open journals, the oldest first.
    pub journals: Vec<JournalStands>,
    /// The boot entry.
    pub boot: Option<BootStands>,
}

/// One open journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JournalStands {
    /// Its number.
    pub journal: u32,
    /// Its file.
    pub path: String,
    /// What it was for.
    pub title: String,
    /// When it was begun, in UTC.
    pub begun: String,
    /// Whether it was made by the boot that runs.
    pub is_of_this_boot: bool,
    /// Whether somebody has to confirm it, or it is taken back.
    pub unconfirmed: bool,
    /// Its changes, in the order in which they were made.
    pub changes: Vec<Stands>,
}

/// One change of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stands {
    /// Number of its journal.
    pub journal: u32,
    /// The change.
    pub change: Change,
    /// What was applied, in one line.
    pub ours: String,
    /// What is there now, in one line.
    pub now: String,
    /// How it stands.
    pub standing: StandsNow,
    /// Why it cannot be read, or was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Who may have changed it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<Suspect>,
}

/// How a change stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StandsNow {
    /// As it was applied.
    AsApplied,
    /// Somebody has changed it since.
    Changed,
    /// A later journal of rtproof has changed it again.
    Superseded,
    /// The boot loader took the choice of one boot and forgot it, as it should.
    UsedUp,
    /// Gone: with the reboot, or because its task ended.
    Gone,
    /// It could not be made, and nothing of it is left.
    NotMade,
    /// It cannot be read, or what was made of it before it failed could not be taken back.
    Unreadable,
}

/// The boot entry of rtproof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootStands {
    /// The boot loader.
    pub loader: String,
    /// What it has beside the default entry.
    pub words: Vec<String>,
    /// How far it is.
    pub standing: EntryStands,
    /// Whether the running boot has every word.
    pub is_running: bool,
}

/// How far the boot entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// In words.
    #[must_use]
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
    #[must_use]
    pub fn is_bad(&self) -> bool {
        matches!(self.standing, StandsNow::Changed | StandsNow::Gone)
    }

    /// Whether it cannot be told.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.standing == StandsNow::Unreadable
    }
}

impl Stands {
    /// Whether somebody has changed it.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.standing == StandsNow::Changed
    }
}

/// What is applied now.
///
/// # Errors
/// Journals that cannot be read.
pub fn status(machine: &Machine<'_>) -> anyhow::Result<Status> {
    let mut journals = Vec::new();
    for summary in Journal::list(machine)? {
        anyhow::ensure!(summary.problem.is_none(), summary.problem.unwrap_or_default());
        if summary.closed {
            continue;
        }
        let journal = Journal::open_number(machine, summary.number)?;
        let number = summary.number;
        journals.push(JournalStands {
            journal: number,
            path: summary.path,
            title: summary.what,
            begun: begun(summary.started_ns),
            is_of_this_boot: !summary.earlier_boot,
            unconfirmed: mark::of(machine.root(), number).is_some(),
            changes: changes(machine, number, &journal, summary.earlier_boot),
        });
    }
    superseded(&mut journals);
    let boot = boot::stands(machine)?;
    Ok(Status { schema: SCHEMA, journals, boot })
}

/// What a later journal has made of a target is no drift.
fn superseded(journals: &mut [JournalStands]) {
    let mut later: Vec<String> = Vec::new();
    for journal in journals.iter_mut().rev() {
        for it in &mut journal.changes {
            if it.standing == StandsNow::Changed && later.contains(&it.change.target()) {
                it.standing = StandsNow::Superseded;
                it.by.clear();
            }
        }
        later.extend(journal.changes.iter().map(|it| it.change.target()));
    }
}

/// The changes of the open journals.
///
/// # Errors
/// Journals that cannot be read.
pub fn of_open(machine: &Machine<'_>) -> anyhow::Result<Vec<Stands>> {
    Ok(status(machine)?.journals.into_iter().flat_map(|journal| journal.changes).collect())
}

/// Whether it chooses what boots next, once.
fn is_for_one_boot(change: &Change) -> bool {
    match change {
        Change::GrubEnv { key, .. } => key == "next_entry",
        Change::EfiVariable { name, .. } => name.contains("OneShot"),
        _ => false,
    }
}

fn begun(ns: i64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn changes(
    machine: &Machine<'_>,
    number: u32,
    journal: &Journal,
    earlier_boot: bool,
) -> Vec<Stands> {
    let stands = |standing: tune::Standing| {
        let change = standing.change;
        let ours = after(&change);
        let (standing, now, why) = match standing.stands {
            tune::Stands::AsApplied | tune::Stands::Changed { .. }
                if earlier_boot && is_for_one_boot(&change) =>
            {
                (StandsNow::UsedUp, String::new(), None)
            }
            tune::Stands::AsApplied => (StandsNow::AsApplied, ours.clone(), None),
            tune::Stands::Changed { found } => (StandsNow::Changed, before(&change, &found), None),
            tune::Stands::Gone => (StandsNow::Gone, String::new(), None),
            tune::Stands::NotMade { why } => (StandsNow::NotMade, String::new(), Some(why)),
            tune::Stands::Unreadable { why } => (StandsNow::Unreadable, String::new(), Some(why)),
        };
        let by = match standing {
            StandsNow::Changed => tune::drift::suspects(machine.root(), &change),
            _ => Vec::new(),
        };
        Stands { journal: number, change, ours, now, standing, why, by }
    };
    tune::status(machine, journal).into_iter().map(stands).collect()
}
