//! What differs between the ways of trying changes: which slice comes next, and what is said in the
//! end. The conduct of a trial (switching, measuring, undoing) is the same for all.

use rtproof_record::effects::{KnobResult as Reported, Part, Slice, Trial};

use super::{analyse::Untried, knobs::Candidate};

/// A slice to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it is for.
    pub part: Part,
    pub pair: u32,
    /// Knobs that are on.
    pub on: Vec<usize>,
}

/// The schedule of a trial.
pub trait Schedule {
    /// Length of a slice, whole slots.
    fn slice_ns(&self) -> u64;

    /// Time after a change before it is measured.
    fn settle_ns(&self) -> u64;

    /// The next slice, or nothing more. What there is no time for goes to `untried`.
    fn task(&mut self, slices: &[Slice], untried: &mut Untried, now_ns: u64) -> Option<Task>;

    /// Looks at what was measured before the next slice; a line to tell.
    fn look(&mut self, slices: &[Slice], trial: &mut Trial) -> Option<String>;

    /// Everything that is said of the knobs.
    fn analysis(&self, knobs: &[Candidate], slices: &[Slice], untried: &Untried) -> Vec<Reported>;

    /// Whether what helps stays in force.
    fn keeps(&self) -> bool;

    /// What is kept is in force: slices with it may follow.
    fn kept(&mut self, kept: &[usize]);
}
