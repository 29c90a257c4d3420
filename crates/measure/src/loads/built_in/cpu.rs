//! Keeps every load CPU busy with integer and floating-point work. Brings out what depends on a
//! busy machine: preemption of a running task, floating-point state to save, shared execution units
//! of a sibling thread, clock and power limits of the package. Touches next to no memory.

use std::hint::black_box;

use super::super::load::{Context, Load};
use crate::failure::Failure;

/// Operations between two looks at the stop flag: some tens of microseconds.
const BATCH: u64 = 10_000;

/// One spinning thread on each load CPU.
pub(super) const LOAD: Load = Load {
    name: "cpu",
    about: "One thread on each load CPU spins on integer and floating-point arithmetic",
    unit: "operations",
    parameter: None,
    prepare: None,
    work,
};

fn work(ctx: &Context) -> Result<(), Failure> {
    let plural = if ctx.before.cpus.len() == 1 { "" } else { "s" };
    (ctx.detail)(&format!("{} spinning thread{plural}", ctx.before.cpus.len()));
    ctx.on_each_cpu(|cpu| {
        let (mut integer, mut real) = (u64::from(cpu), 1.0);
        while !ctx.stopped() {
            (integer, real) = black_box(spin(integer, real));
            ctx.counter.add(BATCH);
        }
        Ok(())
    })
}

/// One batch. Each operation is one multiply-rotate on integers and one square root on reals; both
/// chains depend on themselves only, so that a CPU overlaps them. `real` tends to 2.
fn spin(mut integer: u64, mut real: f64) -> (u64, f64) {
    for _ in 0..BATCH {
        integer = (integer ^ 0x9e37_79b9).wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(23);
        real = (real * 1.5 + 1.0).sqrt();
    }
    (integer, real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_stay_finite_and_normal() {
        let (mut integer, mut real) = (0, 1.0);
        for _ in 0..10 {
            (integer, real) = spin(integer, real);
            assert!(real > 1.0 && real < 3.0, "{real}");
        }
        assert_ne!(integer, 0);
    }
}
