//! `rtproof measure` on real kernels: the experiments of the sources, in one command each.

use crate::case::Case;

mod clock;
mod conditions;
mod packet;
mod s2;
mod s3;
mod s4;
mod timerlat;

pub(super) fn cases() -> Vec<Case> {
    let mut cases =
        vec![s2::case(), s3::case(), s3::moved(), s4::case(), clock::case(), conditions::case()];
    cases.extend(timerlat::cases());
    cases.extend(packet::cases());
    cases
}
