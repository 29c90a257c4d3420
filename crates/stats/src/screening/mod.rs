//! Which of several changes matter: all of them are tried at once, in few slices of time.
//!
//! The unit is the pair of slices, as in [`crate::paired`]: some changes are on in one slice, all
//! the others in the other one (the first slice's row folded over), in random order. What drifts is
//! in both slices of a pair; folding keeps what two changes do together out of what each does by
//! itself (Box and Hunter 1961). Up to four changes are tried in every combination, up to eleven
//! after Plackett and Burman (1946), up to nineteen after their larger design. A screening only
//! says what to look at: what stands out is confirmed with new pairs.

mod design;
mod effects;
mod lenth;
#[cfg(test)]
mod simulation;

pub use design::{Design, FACTORS_MAX, Kind, design};
pub use effects::{Effect, Interaction, effects, interactions};
pub use lenth::{CONTRASTS_MIN, Lenth, lenth};
