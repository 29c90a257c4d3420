//! Ctrl-C, TERM and HUP end a run in order: the record is closed and everything put back.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Signals that end a run.
const SIGNALS: [(i32, &str); 3] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP")];

/// The signals that came.
#[derive(Debug)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Catches them from now on.
    pub(crate) fn catch() -> io::Result<Self> {
        let came = Arc::new(AtomicUsize::new(0));
        for (i, (signal, _)) in SIGNALS.iter().enumerate() {
            signal_hook::flag::register_usize(*signal, Arc::clone(&came), i + 1)?;
        }
        Ok(Self(came))
    }

    /// Name of the signal that came last.
    pub(crate) fn came(&self) -> Option<&'static str> {
        self.0.load(Ordering::Relaxed).checked_sub(1).map(|i| SIGNALS[i].1)
    }
}
