//! Captures of machines: a machine is read as the checks read it, and what is read is recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::capture::form::{CaptureEntry, CaptureRecorder, escape};
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
        let mut entries = for_plans(root);
        entries.extend(recorder.entries());
        Self { origin: root.origin(), about: vec![about], entries }
    }
}

/// What only a plan looks for: which CPUs can be taken offline, and what is not there. A plan of
/// the capture says the same then. Files of boot loaders stay out, as they may hold passwords.
fn for_plans(root: &Root) -> BTreeMap<String, CaptureEntry> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let recorder = Arc::new(CaptureRecorder::default());
    let root = root.recorded(Arc::clone(&recorder));
    for cpu in root.list_numbered(CPUS, "cpu").value().into_iter().flatten() {
        let _ = root.read_text(&format!("{CPUS}/cpu{cpu}/online"));
    }
    // An error tells of a file that is there.
    let _ = crate::boot::detect(&root);
    for (folder, _) in crate::tune::kinds::CPU_GROUPS {
        let _ = root.list_dir(folder);
    }
    let mut entries = recorder.entries();
    entries.retain(|path, entry| path.starts_with(CPUS) || *entry == CaptureEntry::Absent);
    entries
}
