//! Captures of machines: a machine is read as the checks read it, and what is read is recorded.

use std::sync::Arc;

use crate::capture::form::{CaptureRecorder, escape};
use crate::facts::app::{App, AppError, Target};
use crate::{Capture, Facts, Root};

impl Capture {
    /// Reads a machine as the checks do, and keeps what was read and answered.
    pub fn take(root: &Root) -> Self {
        let recorder = Arc::new(CaptureRecorder::default());
        Self::taken(root, &recorder)
    }

    /// The same, with one application.
    ///
    /// # Errors
    /// There is no such application.
    pub fn take_with(root: &Root, target: &Target) -> Result<Self, AppError> {
        let recorder = Arc::new(CaptureRecorder::default());
        App::read(&root.recorded(Arc::clone(&recorder)), target)?;
        Ok(Self::taken(root, &recorder))
    }

    fn taken(root: &Root, recorder: &Arc<CaptureRecorder>) -> Self {
        let facts = Facts::read(&root.recorded(Arc::clone(recorder)));
        let known = |reading: &crate::Reading<String>| {
            reading.value().map_or_else(|| "?".into(), |value| escape(value.as_bytes()))
        };
        let (kernel, cpus) = (&facts.kernel, facts.cpus.cpus.len());
        let about = format!(
            " Linux {} {}, CPUs online: {cpus}, captured by rtproof {}",
            known(&kernel.release),
            known(&kernel.arch),
            env!("CARGO_PKG_VERSION")
        );
        Self { origin: root.origin(), about: vec![about], entries: recorder.entries() }
    }
}
