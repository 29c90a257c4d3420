//! A record to be shown or exported: its banner, and which records are refused.

use std::path::Path;

use anyhow::Context;

use rtproof_judge::Integrity;
use rtproof_record::{Opened, SealState};

/// Banner of a report of this record; an altered one is refused unless accepted.
///
/// # Errors
/// It was altered.
pub fn banner(
    path: &Path,
    opened: &Opened,
    accept_altered: bool,
) -> anyhow::Result<Option<String>> {
    match &opened.state {
        SealState::Torn => Ok(Some(
            "This record is torn: its end was not written, and it was never sealed. What follows \
             is what was written by then."
                .into(),
        )),
        SealState::Altered { why } if accept_altered => {
            Ok(Some(format!("This record was altered after it was sealed: {why}.")))
        }
        SealState::Altered { why } => anyhow::bail!(
            "{path}: altered after it was sealed: {why}. It proves nothing; to look at it all the \
             same: rtproof report --accept-altered {path}",
            path = path.display()
        ),
        SealState::Sealed { .. } => Ok(None),
    }
}

/// What the seal of a record says.
pub fn integrity(state: &SealState) -> Integrity {
    match state {
        SealState::Sealed { .. } => Integrity::Sealed,
        SealState::Torn => Integrity::Torn,
        SealState::Altered { why } => Integrity::Altered { why: why.clone() },
    }
}

/// Opens a record that must be whole.
///
/// # Errors
/// A file that is no record; one that was altered.
pub fn open_whole(path: &Path) -> anyhow::Result<Opened> {
    let opened = rtproof_record::read(path)?;
    banner(path, &opened, false).context("not exported")?;
    Ok(opened)
}

/// Opens a record for display, and returns its banner.
///
/// # Errors
/// A file that is no record; one that was altered.
pub fn open_shown(path: &Path, accept_altered: bool) -> anyhow::Result<(Opened, Option<String>)> {
    let opened = rtproof_record::read_shown(path)?;
    let banner = banner(path, &opened, accept_altered)?;
    Ok((opened, banner))
}
