//! NAME: what it does to the machine, and which latencies that brings out (cache misses, softirqs,
//! TLB shootdowns, disk interrupts ...). Say what bounds it.
//!
//! How to add a load: copy this file, fill it, add `mod` and one line to `LOADS` in `mod.rs`, and
//! run `cargo test -p rtproof-measure`: the cases of `tests/loads.rs` take every load of the list.

use super::{Load, LoadContext};
use crate::Failure;

/// Additions between two looks at the stop flag: well below a millisecond.
const BATCH: u64 = 10_000;

pub(super) const LOAD: Load = Load {
    name: "template",
    about: "Adds numbers on each load CPU",
    unit: "additions",
    parameter: None,
    prepare: None,
    work,
};

fn work(ctx: &LoadContext) -> Result<(), Failure> {
    // Say once what the record shall hold: sizes, tools, what was fallen back to.
    (ctx.detail)(&format!("{} threads", ctx.before.cpus.len()));
    ctx.on_each_cpu(|cpu| {
        let mut sum = u64::from(cpu);
        loop {
            for number in 0..BATCH {
                sum = std::hint::black_box(sum.wrapping_add(number));
            }
            // Work is counted in batches; a load that counted nothing is an error of the run.
            ctx.counter.add(BATCH);
            if ctx.stopped() {
                return Ok(());
            }
        }
    })
}
