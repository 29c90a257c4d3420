//! Ctrl-C, TERM and HUP end a run in order: the record is closed and everything put back.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use rtproof_host::Root;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    flag,
};

/// Signals that end a run.
const SIGNALS: [(i32, &str); 3] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP")];

/// Signals that this process ignores, as a mask (SigIgn of /proc/self/status).
fn ignored(root: &Root) -> u64 {
    let status = root.read_text("/proc/self/status");
    let line = status.value().and_then(|text| text.lines().find_map(|l| l.strip_prefix("SigIgn:")));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// The signals that came.
#[derive(Clone, Debug)]
pub struct Signals {
    came: Arc<AtomicUsize>,
    /// Of each signal: whether the next one ends the program where it is.
    ends: Vec<Arc<AtomicBool>>,
}

impl Signals {
    /// Catches them from now on. The first one ends the run in order, a second one of the same kind
    /// ends the program where it is. What the parent had ignored (nohup) stays ignored.
    pub fn catch(root: &Root) -> io::Result<Self> {
        let came = Arc::new(AtomicUsize::new(0));
        let ignored = ignored(root);
        let mut ends = Vec::new();
        for (i, (signal, _)) in SIGNALS.iter().enumerate() {
            if ignored & (1 << (signal - 1)) != 0 {
                continue;
            }
            let second = Arc::new(AtomicBool::new(false));
            flag::register_conditional_shutdown(*signal, 128 + signal, Arc::clone(&second))?;
            flag::register(*signal, Arc::clone(&second))?;
            ends.push(second);
            flag::register_usize(*signal, Arc::clone(&came), i + 1)?;
        }
        // A file that may not grow is a full disk, not a death.
        flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        Ok(Self { came, ends })
    }

    /// From now on any signal ends the program where it is: everything is put back, and what
    /// follows may take long.
    pub fn end_at_once(&self) {
        self.ends.iter().for_each(|ends| ends.store(true, Ordering::Relaxed));
    }

    /// Ends the run as a signal does: the user quits it.
    pub fn quit(&self) {
        self.came.store(SIGNALS.len() + 1, Ordering::Relaxed);
    }

    /// Name of the signal that came last; `quit`: the user ended it.
    pub fn came(&self) -> Option<&'static str> {
        let at = self.came.load(Ordering::Relaxed).checked_sub(1)?;
        Some(SIGNALS.get(at).map_or("quit", |(_, name)| name))
    }
}
