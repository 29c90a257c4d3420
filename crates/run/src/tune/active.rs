//! What is applied now: of each open journal each change, as applied, changed since, or gone.

use rtproof_host::tune::{self, Change, Journal, Machine, confirmation};
use rtproof_results::tune::{
    active::{JournalStands, SCHEMA, Stands, StandsNow, Status},
    outcome::Unusable,
};

use super::{boot, rollback};

/// What is applied now.
///
/// # Errors
/// Journals that cannot be read.
pub fn status(machine: &Machine<'_>) -> anyhow::Result<Status> {
    let (mut journals, mut unusable) = (Vec::new(), Vec::new());
    for summary in Journal::list(machine)? {
        if let Some(why) = summary.problem {
            unusable.push(Unusable { journal: summary.number, why });
            continue;
        }
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
            unconfirmed: confirmation::is_unconfirmed(machine.root(), number),
            of_program: confirmation::is_of_program(machine.root(), number),
            guarded: rollback::is_armed(machine.root(), number),
            changes: changes(machine, number, &journal, summary.earlier_boot),
        });
    }
    superseded(&mut journals);
    let boot = boot::stands(machine)?;
    Ok(Status { schema: SCHEMA, journals, unusable, boot })
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
        let ours = change.after();
        let is_old = matches!(standing.stands, tune::Stands::Changed { is_old: true, .. });
        let (standing, now, why) = match standing.stands {
            tune::Stands::AsApplied | tune::Stands::Changed { .. }
                if earlier_boot && is_for_one_boot(&change) =>
            {
                (StandsNow::UsedUp, String::new(), None)
            }
            tune::Stands::AsApplied => (StandsNow::AsApplied, ours.clone(), None),
            tune::Stands::Changed { found, .. } => {
                (StandsNow::Changed, change.before(&found), None)
            }
            tune::Stands::Gone => (StandsNow::Gone, String::new(), None),
            tune::Stands::NotMade { why } => (StandsNow::NotMade, String::new(), Some(why)),
            tune::Stands::Unreadable { why } => (StandsNow::Unreadable, String::new(), Some(why)),
        };
        let by = match standing {
            StandsNow::Changed => tune::drift::suspects(machine.root(), &change),
            _ => Vec::new(),
        };
        Stands { journal: number, change, ours, now, is_old, standing, why, by }
    };
    tune::status(machine, journal).into_iter().map(stands).collect()
}
