//! What is asked of a bisection.

use std::{path::PathBuf, time::Duration};

use rtproof_host::Root;

use super::criterion::Criterion;
use crate::{kernel::boot::BootRequest, tune::kernel::InitrdChoice};

/// What lies between the ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// Commits of a git tree, all with one configuration.
    Commits {
        /// A commit that is good.
        good: String,
        /// One that is bad.
        bad: String,
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
    pub range: Range,
    /// What makes a kernel bad.
    pub criterion: Criterion,
    pub prove: String,
    /// The guest; kernel, configuration and folder are set for each step.
    pub boot: BootRequest,
    /// How this machine boots each kernel once; `None`: the guest does.
    pub trial: Option<TrialBoots>,
    pub variables: Vec<String>,
    /// Commands that make runs at once.
    pub jobs: usize,
}

/// How a machine boots the kernels.
#[derive(Clone, Debug)]
pub struct TrialBoots {
    /// The machine whose boot loader boots them.
    pub root: Root,
    pub initrd: InitrdChoice,
    /// Parameters for the kernel's command line.
    pub words: Vec<String>,
    /// Time from the start of the machine to the test: what starts with it has settled.
    pub settle: Duration,
}
