//! The spikes of a record.

use std::path::Path;

use rtproof_judge::Report;
use rtproof_record::run::Note;

use super::Explained;
use crate::opened::{open_whole, standing};

/// Notes of records that were made from kernel events alone.
const LEAVE_OPEN: &[&str] = &["events-lost", "wake-ups-left-out", "wake-ups-unseen"];

/// Reads them.
///
/// # Errors
/// A file that is no record or was altered; a record without spikes, with the reason.
pub fn of_record(path: &Path) -> anyhow::Result<Explained> {
    let opened = open_whole(path)?;
    let report = Report::new(&opened.run, &standing(&opened.state));
    let run = opened.run;
    let Some(spikes) = report.spikes.clone() else {
        anyhow::bail!(
            "{}: this record has no spikes: it was made before they were recorded, or with \
             --no-trace; measure again with rtproof prove",
            path.display()
        );
    };
    let leaves_open = |note: &&Note| LEAVE_OPEN.contains(&&*note.id);
    let gaps = run.notes.iter().filter(leaves_open).map(|note| note.text.clone()).collect();
    let kept = run.spikes.map(|spikes| spikes.kept).unwrap_or_default();
    let windows = kept.into_iter().map(|kept| (kept.number, kept.window)).collect();
    let about = format!("{}: {}", path.display(), run.meta.command.join(" "));
    Ok(Explained {
        about,
        spikes,
        windows,
        notes: Vec::new(),
        saw_none: false,
        gaps,
        doubts: Vec::new(),
        locks: None,
        report: Some(Box::new(report)),
    })
}
