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

use super::{
    got::Threads,
    run_record::{Prepared, RunRecord},
};
use crate::explain::live::{Closed, Watch, settings};

/// Longest wait for the addresses of the kernel's timers.
const WATCHING_MAX: Duration = Duration::from_secs(15);

/// Records while a program runs.
pub(super) struct Recording {
    watch: Watch,
    begin_ns: u64,
    run_record: Option<RunRecord>,
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
        Ok(Self { watch: Watch::new(recorder), begin_ns: 0, run_record: None })
    }

    /// Follows a process that is to become the program; `None`: what [`Self::follow`] names later.
    /// With what was `prepared`, its wake-ups go into a record.
    pub(super) fn watch(
        &mut self,
        pid: Option<u32>,
        over_ns: u64,
        prepared: Option<Prepared>,
    ) -> Result<(), String> {
        let subjects = Subjects {
            tids: pid.map(u32::cast_signed).into_iter().collect(),
            keeps: prepared.is_some(),
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
        self.run_record = prepared.map(|of| RunRecord::begin(of, over_ns));
        Ok(())
    }

    pub(super) fn follow(&self, tids: Vec<u32>) {
        if !tids.is_empty() {
            // A recorder that has stopped counts no more: `close` says what it lost.
            let _ = self.watch.recorder.follow(tids.into_iter().map(u32::cast_signed).collect());
        }
    }

    /// Explains what has come since.
    pub(super) fn take(&mut self) {
        // Each of these is among the wake-ups that are kept by then.
        let late = self.watch.recorder.take();
        if let Some(run_record) = &mut self.run_record {
            run_record.woke(self.watch.recorder.take_kept());
        }
        for (wake, window) in late {
            let found = self.run_record.as_mut().and_then(|of| of.explained(&wake, &window));
            self.watch.explained(&wake, window, found, self.begin_ns);
        }
    }

    /// What there is to do once a second.
    pub(super) fn second(&mut self, threads: &Threads) {
        let info = self.watch.info();
        if let Some(run_record) = &mut self.run_record {
            run_record.tick(threads, info);
        }
    }

    /// Ends; with what goes into a record, where one is made.
    pub(super) fn close(mut self) -> (Closed, Option<RunRecord>, u64) {
        self.watch.recorder.stop();
        self.take();
        let lost = self.watch.recorder.stats().kept_lost;
        let run_record = self.run_record.take();
        (self.watch.close(self.begin_ns), run_record, lost)
    }
}
