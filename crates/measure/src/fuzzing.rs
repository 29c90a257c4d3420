//! Doors for the fuzz targets: what other programs and the kernel write, through all that reads it
//! up to the account of cycles, without a program, a tracer or a real-time thread.
//!
//! Public so that `fuzz/` can use it; not part of the interface.

use std::path::Path;

use crate::cycle::{Cycle, Schedule};
use crate::slot::Slot;
use crate::{Failure, cycle, slot, workloads};

const SECOND_NS: u64 = 1_000_000_000;

/// A cycle that takes what others measured, from the first second after the boot to the hundredth.
///
/// # Panics
/// When the account does not hold together.
fn account(take: impl FnOnce(&mut Cycle)) -> Box<Slot> {
    let (_give, empty) = rtrb::RingBuffer::new(1);
    let (full, _take) = rtrb::RingBuffer::new(1);
    let schedule = Schedule {
        first_ns: SECOND_NS,
        period_ns: 1_000_000,
        end_ns: 100 * SECOND_NS,
        origin_ns: SECOND_NS,
        slot_ns: cycle::SLOT_NS,
        budget_ns: 100_000,
    };
    let (outlet, _inlet) = slot::ring(200_000);
    let mut cycle = Cycle::new(schedule, Box::default(), empty, full, outlet);
    cycle.begin_counting();
    take(&mut cycle);
    let scheduled = cycle.scheduled();
    let slot = cycle.into_last_slot();
    assert_eq!(scheduled, slot.totals.accounted(), "scheduled = sampled + missed");
    assert_eq!(slot.wake.total(), slot.totals.wake.count());
    assert_eq!(slot.missed.total(), slot.totals.missed);
    slot
}

/// Lines of a program (`exec:`), so many bytes at a time; they come in the second second.
///
/// # Errors
/// The line that ends it, as a user reads it.
///
/// # Panics
/// When the account does not hold together.
pub fn exec(bytes: &[u8], piece: usize) -> Result<(), Failure> {
    let mut result = Ok(());
    account(|cycle| result = workloads::fuzz_exec(bytes, piece.max(1), 2 * SECOND_NS, cycle));
    result
}

/// Lines of the kernel's tracers, so many bytes at a time, read as those of timerlat's interrupt
/// (0) or thread (1), of osnoise (2), of hwlat (3), on CPU 3. Returns what was lost.
///
/// # Panics
/// When the account does not hold together.
pub fn tracer(which: u8, bytes: &[u8], piece: usize) -> u64 {
    let mut lost = 0;
    account(|cycle| lost = workloads::fuzz_tracer(which, bytes, piece.max(1), cycle));
    lost
}

/// A ring of marks in a file, read after each step of `change`, which returns whether to continue.
///
/// # Errors
/// Why it is no ring, or no longer.
///
/// # Panics
/// When the account does not hold together.
pub fn ring(path: &Path, change: &mut dyn FnMut() -> bool) -> Result<(), Failure> {
    let mut result = Ok(());
    account(|cycle| result = workloads::fuzz_ring(path, change, cycle));
    result
}
