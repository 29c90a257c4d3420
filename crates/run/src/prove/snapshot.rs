//! The machine and the clocks now.

use rtproof_host::Facts;
use rtproof_record::Snapshot;
use rustix::thread::ClockId;

const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn clock_ns(clock: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.unsigned_abs() * SECOND_NS + now.tv_nsec.unsigned_abs()
}

/// The machine now, as document and as rows.
pub(crate) fn snapshot(facts: &Facts) -> Snapshot {
    let rows = facts.rows();
    let condition_id = Some(rtproof_host::flatten::condition_id(&rows));
    Snapshot { facts: facts.clone(), rows, condition_id }
}
