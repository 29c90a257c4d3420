//! The facts as lines: every one with the path that was asked, known or not.

use std::fmt::Write;

use rtproof_host::{
    Facts,
    flatten::{FactRow, RowState},
};

/// Text shown at most, in bytes; the record holds the rest.
const TEXT_MAX: usize = 120_000;

/// The facts, a line each: `kernel.release = 6.12.57-rt14  (/proc/sys/kernel/osrelease)`.
pub(super) fn lines(facts: &Facts) -> String {
    let rows = facts.rows();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        if text.len() > TEXT_MAX {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "... {} more are in the record", rows.len() - i);
            break;
        }
        let _ = writeln!(text, "{} = {}  ({})", row.key, value(row), row.path);
    }
    text
}

fn value(row: &FactRow) -> String {
    match row.state {
        RowState::Known => row.value.clone(),
        RowState::Absent => "unknown: not there".into(),
        RowState::Denied => format!("unknown: refused: {}", row.value),
        RowState::Malformed => format!("unknown: holds {}", row.value),
    }
}
