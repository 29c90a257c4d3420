//! `rtproof measure` on real kernels: the experiments of the sources, in one command each.

use crate::case::Case;

mod s2;
mod s3;

pub(super) fn cases() -> Vec<Case> {
    vec![s2::case(), s3::case()]
}
