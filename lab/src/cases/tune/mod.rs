//! `rtproof tune` on real kernels: planned, applied, verified, undone; killed on the way.

use crate::case::Case;

mod beside;
mod bisect;
mod boot;
mod cut;
mod experiment;
mod kernel;
mod partition;
mod power;
mod refusals;
pub(super) mod tracking;
mod values;

#[cfg(test)]
pub(crate) use kernel::of_build;

pub(super) fn cases() -> Vec<Case> {
    [
        values::cases(),
        power::cases(),
        cut::cases(),
        partition::cases(),
        refusals::cases(),
        boot::cases(),
        kernel::cases(),
        bisect::cases(),
        experiment::cases(),
        beside::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
