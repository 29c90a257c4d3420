//! A program that `rtproof run` starts, on real kernels.

use crate::case::Case;

mod cut;
mod killed;
mod locks;
mod nodes;
mod partition;
mod rules;

pub(super) fn cases() -> Vec<Case> {
    let kernels = ["rt-6.1", "rt-6.12", "rt-7.2"];
    let both = kernels.iter().flat_map(|kernel| {
        [
            partition::case(kernel),
            rules::case(kernel),
            locks::case(kernel),
            killed::case(kernel),
            cut::case(kernel),
        ]
    });
    both.chain([nodes::case("rt-6.12")]).collect()
}
