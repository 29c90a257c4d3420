//! rtla: timerlat and osnoise, histogram and top, and what it tells when it stops.

pub(super) mod hist;
pub(super) mod stop;
pub(super) mod top;

use super::Imported;

/// Most lines of an analysis that are kept.
const REMARKS_MAX: usize = 400;

/// A line that rtla prints beside its table, for the remarks.
fn remark(imported: &mut Imported, line: &str) {
    if line.contains("events missed") {
        imported.doubt("samples-lost", line.trim());
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_rule = words.iter().all(|word| word.bytes().all(|b| matches!(b, b'-' | b'|')));
    if !words.is_empty() && !is_rule && imported.remarks.len() < REMARKS_MAX {
        imported.remarks.push(words.join(" "));
    }
}
