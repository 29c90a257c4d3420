//! The wake-ups of the program's threads while it runs, by the engine of `explain --pid`.

use std::{
    thread,
    time::{Duration, Instant},
};

use rtproof_host::{CpuList, Facts, Root};
use rtproof_measure::{
    recorder::{Recorder, Settings},
    thread::pin_all,
};
use rtproof_trace::scan::Subjects;

use crate::explain::live::{Closed, Watch, settings};

/// Longest wait for the addresses of the kernel's timers.
const WATCHING_MAX: Duration = Duration::from_secs(15);

/// Records while a program runs.
pub(super) struct Recording {
    watch: Watch,
    begin_ns: u64,
}

impl Recording {
    /// Begins, before the program does.
    ///
    /// # Errors
    /// Why the kernel's events are not available, as a sentence.
    pub(super) fn begin(facts: &Facts, own: Option<&CpuList>) -> Result<Self, String> {
        let cannot = |why: &str| format!("Wake-ups were not recorded: {why}.");
        let root = Root::live();
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let Settings { housekeeping, .. } = settings(facts, &online);
        let rest = own.map_or_else(|| housekeeping.clone(), |own| housekeeping.difference(own));
        let settings = Settings { housekeeping: rest.clone(), ..settings(facts, &online) };
        let recorder = Recorder::start(&root, facts, settings);
        let recorder = recorder.map_err(|error| cannot(&error.to_string()))?;
        // The threads of this process stay away from the program.
        let _ = pin_all(rest.as_slice());
        Ok(Self { watch: Watch::new(recorder), begin_ns: 0 })
    }

    /// Follows a process that is to become the program; `None`: what [`Self::follow`] names later.
    pub(super) fn watch(&mut self, pid: Option<u32>, over_ns: u64) -> Result<(), String> {
        let subjects = Subjects {
            tids: pid.map(u32::cast_signed).into_iter().collect(),
            ..Subjects::default()
        };
        let recorder = &self.watch.recorder;
        recorder.watch(Some((subjects, over_ns))).map_err(|error| error.to_string())?;
        let end = Instant::now() + WATCHING_MAX;
        while !recorder.is_watching() {
            if Instant::now() > end {
                return Err("the kernel's symbols could not be read in time".into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.begin_ns = super::now_ns();
        Ok(())
    }

    /// Follows more threads.
    pub(super) fn follow(&self, tids: Vec<u32>) {
        if !tids.is_empty() {
            // A recorder that has stopped counts no more: `close` says what it lost.
            let _ = self.watch.recorder.follow(tids.into_iter().map(u32::cast_signed).collect());
        }
    }

    /// Explains what has come since.
    pub(super) fn take(&mut self) {
        self.watch.take(self.begin_ns);
    }

    /// Ends.
    pub(super) fn close(self) -> Closed {
        self.watch.close(self.begin_ns)
    }
}
