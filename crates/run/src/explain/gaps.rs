//! What leaves open whether more wake-ups were late than were found: clauses, for an answer that
//! none was.

use rtproof_judge::units;
use rtproof_trace::scan::Totals;

/// Wake-ups without an end.
pub(super) fn unseen<'a>(totals: impl Iterator<Item = &'a Totals>) -> Option<String> {
    let unseen: u64 = totals.map(|of| of.unseen).sum();
    (unseen > 0).then(|| {
        format!("when the thread ran was not recorded in {}", units::count(unseen, "wake-up"))
    })
}

/// Wake-ups that are counted with a bound as their end: a note.
pub(crate) fn inferred<'a>(totals: impl Iterator<Item = &'a Totals>) -> Option<String> {
    let inferred: u64 = totals.map(|of| of.inferred).sum();
    (inferred > 0).then(|| {
        format!(
            "{inferred} wake-ups are counted up to the thread's next event, as the switch to it \
             was not recorded: they were at most that late."
        )
    })
}

/// Events that the kernel could not keep.
pub(super) fn lost(events: u64) -> Option<String> {
    (events > 0).then(|| format!("lost: {}", units::count(events, "kernel event")))
}
