//! A run to be measured, once everything is decided.

use std::{path::Path, sync::Arc};

use rtproof_measure::workloads::Workload;
use rtproof_record::Options;

use super::{output::Output, signals::Signals};

/// A run to be measured.
#[derive(Debug)]
pub struct Job<'a> {
    pub options: &'a Options,
    /// Where the record goes.
    pub output: &'a Output,
    /// Folder for the files of loads; `None`: that of the record.
    pub load_dir: Option<&'a Path>,
    /// What the threads do: one for all, or one for each CPU.
    pub workloads: Vec<Arc<dyn Workload>>,
    pub signals: &'a Signals,
}
