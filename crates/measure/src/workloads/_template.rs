//! NAME: what it measures, and for which use.
//!
//! Copy this into the file of its subject, fill it in, add one line to `WORKLOADS` in `mod.rs`.

use std::sync::atomic::AtomicBool;

use super::workload::{self, Description, Plain};
use crate::cycle::Cycle;
use crate::{EndReason, Quantity, sys};

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "template",
        "What it measures. What it does not.",
        Quantity::Latency,
    ),
    // What one thread needs of its own: buffers, timers. It is given to `run`.
    arm: |_, setting| workload::armed(setting.period_ns / 100, run),
};

/// The hot path as one function: wait until `due_ns`, return the time.
#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, early_ns: &u64) -> EndReason {
    cycle.run(stop, |due_ns| {
        workload::sleep_until(due_ns - early_ns);
        while sys::now_ns() < due_ns {
            std::hint::spin_loop();
        }
        sys::now_ns()
    })
}
