//! Which journals are open.

use rtproof_host::tune::{Journal, Machine, Summary};

/// Numbers of the journals that are open as far as they can be read, ascending; a damaged one may
/// be.
///
/// # Errors
/// They cannot be listed.
pub(super) fn not_closed(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    Ok(open_of(&Journal::list(machine)?))
}

/// Numbers of the journals that have something to undo, ascending.
///
/// # Errors
/// They cannot be read, or one of them is damaged.
pub(crate) fn open(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    let list = Journal::list(machine)?;
    match list.iter().find_map(|journal| journal.problem.clone()) {
        Some(problem) => anyhow::bail!(problem),
        None => Ok(open_of(&list)),
    }
}

fn open_of(list: &[Summary]) -> Vec<u32> {
    list.iter().filter(|journal| !journal.closed).map(|journal| journal.number).collect()
}
