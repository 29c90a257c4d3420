//! Two runs, one after the other: what may be said of their difference, and no more.
//!
//! Drift between them is not excluded, whatever is computed: this never decides. Seconds of a run
//! depend on each other, so whole stretches of seconds are drawn again (stationary bootstrap,
//! Politis and Romano 1994), with a mean length of max(2 s, 4 correlation times). That helps, and
//! does not cure (a fifth of the comparisons of nothing still found something where iid tests found
//! four fifths); pairs of slices in random order do (`paired`).

mod blocks;
mod ordinal;
mod shift;

pub use blocks::block_rows;
pub use ordinal::{Ordinal, hodges_lehmann, ordinal};
pub use shift::{Ask, Rows, Shift, shift};
