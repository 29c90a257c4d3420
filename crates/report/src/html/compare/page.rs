//! What the page of a comparison shows.

use rtproof_judge::compare::{Comparison, Group};
use rtproof_results::answer::Answer;

/// A picture of some of the groups, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Numbers of the groups.
    pub groups: Vec<usize>,
}

/// What the page shows.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    pub groups: &'a [Group],
    /// What was made of them.
    pub comparison: &'a Comparison,
    /// The same in short.
    pub answer: &'a Answer,
    /// What stands above all: records that were altered or are torn.
    pub banners: Vec<String>,
    /// Whether runs over time are aligned by their load phases; else they begin together.
    pub by_phase: bool,
    pub figures: Vec<Figure>,
}
