//! What is asked of a bisection.

use std::path::PathBuf;

use super::criterion::Criterion;
use crate::kernel::boot::BootRequest;

/// What lies between the ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// Commits of a git tree, all with one configuration.
    Commits {
        /// A commit that is good.
        good: String,
        /// One that is bad.
        bad: String,
        /// Configuration.
        config: PathBuf,
    },
    /// Options of one source.
    Options {
        /// Configuration that is good.
        good: PathBuf,
        /// One that is bad.
        bad: PathBuf,
    },
}

/// What is to be found, and how.
#[derive(Clone, Debug)]
pub struct BisectRequest {
    /// The source: for commits a git tree, else as for a build.
    pub source: PathBuf,
    /// Folder of everything, as [`crate::kernel::place`] makes it.
    pub place: PathBuf,
    /// Both ends.
    pub range: Range,
    /// What makes a kernel bad.
    pub criterion: Criterion,
    /// Arguments of `prove`.
    pub prove: String,
    /// The guest; kernel, configuration and folder are set for each step.
    pub boot: BootRequest,
    /// Variables of make.
    pub variables: Vec<String>,
    /// Commands that make runs at once.
    pub jobs: usize,
}
