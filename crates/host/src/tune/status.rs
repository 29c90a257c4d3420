//! What became of changes that are in force: nothing is written.

use super::{
    compare::is_partition,
    error::ChangeError,
    journal::{
        Journal,
        script::{Entry, Stage},
    },
    machine::Machine,
    state::State,
    three::{Side, Three},
};
use crate::change::Change;

/// The status of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub change: Change,
    /// Checks that request it.
    pub checks: Vec<String>,
    pub stands: Stands,
}

/// The status of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// As it was applied.
    AsApplied,
    /// Another program has changed it since.
    Changed {
        found: State,
        /// Whether that is what was there before it was applied.
        is_old: bool,
    },
    /// Undone, lost with a reboot, or what it was about has ended.
    Gone,
    /// It could not be made, and nothing of it is left.
    NotMade { why: String },
    /// It cannot be read; or it could not be made, nor the part that was made be undone.
    Unreadable { why: String },
}

/// Of a change that was planned, is there, and is not in the journal.
pub const UNNOTED: &str = "as planned, and the journal does not say what was there \
                           before: it was cut short, or another program set it";

/// The status of each change of a journal, in the order in which they were made. Those that were
/// found done already are among them.
pub fn status(machine: &Machine<'_>, journal: &Journal) -> Vec<Standing> {
    let is_earlier_boot = journal.is_of_earlier_boot(machine);
    let standing = |entry: &Entry| Standing {
        change: entry.item.change.clone(),
        checks: entry.item.checks.clone(),
        stands: stands(machine, entry, is_earlier_boot),
    };
    let unnoted = |change| Standing {
        change,
        checks: Vec::new(),
        stands: Stands::Unreadable { why: UNNOTED.into() },
    };
    let unnoted = journal.unnoted(machine).into_iter().map(unnoted);
    journal.entries().iter().map(standing).chain(unnoted).collect()
}

fn stands(machine: &Machine<'_>, entry: &Entry, is_earlier_boot: bool) -> Stands {
    let change = &entry.item.change;
    let failed = match &entry.stage {
        Stage::Refused(why) | Stage::Failed(why) => Some(why.clone()),
        Stage::WasSo | Stage::Begun | Stage::Done => None,
    };
    let is_undone = entry.undone.is_some() && entry.is_settled();
    match failed {
        Some(why) if entry.is_settled() => return Stands::NotMade { why },
        _ if is_undone || (is_earlier_boot && !change.nature().is_durable) => return Stands::Gone,
        Some(why) => return Stands::Unreadable { why },
        None => {}
    }
    let found = match machine.state(change) {
        Ok(found) => found,
        Err(ChangeError::Gone { .. } | ChangeError::Missing { .. }) => return Stands::Gone,
        Err(error) => return Stands::Unreadable { why: error.to_string() },
    };
    let is_ours = entry.before.as_ref().is_some_and(|before| {
        let after = entry.after.as_ref();
        let three = Three { before, after, current: &found, undoing: entry.undoing };
        entry.stage != Stage::WasSo && machine.side(change, three) == Side::Ours
    });
    // A partition that has turned invalid is still ours, and isolates nothing.
    let holds = match change {
        Change::Value { path, .. } if is_partition(path) => machine.is_done(change, &found),
        _ => is_ours || machine.is_done(change, &found),
    };
    let is_old = entry.before.as_ref() == Some(&found);
    if holds { Stands::AsApplied } else { Stands::Changed { found, is_old } }
}
