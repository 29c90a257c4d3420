//! The parent side: starts a worker, looks after it, ends it and says what it did. Nothing here
//! waits but [`RunningLoad::stop`]: the caller is the housekeeping thread of a measurement.

use std::time::{Duration, Instant};

use rtproof_host::trusted;

use super::process::{LoadError, LoadProcess, Message};
use super::spec::{LoadKind, LoadSettings, LoadSpec};
use super::{spec, wrap};

/// Other programs report CPU time in ticks of 10 ms; one that used none for this long does nothing.
const NOTHING_DONE_MAX: Duration = Duration::from_secs(1);

/// What a load did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOutcome {
    /// The load as it was named, e.g. `memory`, `cmd:make -j4`.
    pub name: String,
    /// What it did, in its own words, e.g. `2 x 256 MiB blocks`.
    pub detail: String,
    /// Unit of `work`.
    pub unit: String,
    /// Work done in all.
    pub work: u64,
    /// What went wrong with it. A load that did no work is an error.
    pub error: Option<String>,
}

/// Starts loads as processes of their own.
pub struct Runner;

impl Runner {
    /// Starts a load and returns at once: [`RunningLoad::poll`] reports whether it works, because
    /// the first milliseconds of a process are not waited for. Call it from a thread with
    /// SCHED_OTHER or reset-on-fork, and from one that lives as long as the load: the kernel ends a
    /// built-in load with the thread that started it.
    ///
    /// # Errors
    /// No process was started: no CPUs, no stress-ng, the binary cannot be run.
    pub fn start(spec: &LoadSpec, settings: &LoadSettings) -> Result<RunningLoad, LoadError> {
        let load = spec.to_string();
        let mut running = RunningLoad {
            spec: spec.clone(),
            process: None,
            started: Instant::now(),
            detail: String::new(),
            unit: spec.built_in().map_or(wrap::UNIT, |load| load.unit).into(),
            work: 0,
            is_done: false,
            failure: None,
            is_reported: false,
        };
        if spec.is_idle() {
            running.detail = "nothing runs".into();
            return Ok(running);
        }
        if settings.cpus.is_empty() {
            return Err(LoadError::NoCpus { load });
        }
        if let LoadKind::StressNg(_) = spec.kind()
            && let Err(source) = trusted::find_program(spec::NAME)
        {
            return Err(LoadError::NoStressNg { load, source });
        }
        running.process = Some(LoadProcess::start(spec, settings)?);
        Ok(running)
    }

    /// Stops several loads in the time of one: all get the request before the first is waited for.
    pub fn stop_all(mut running: Vec<RunningLoad>) -> Vec<LoadOutcome> {
        running.iter_mut().for_each(RunningLoad::request_end);
        running.into_iter().map(RunningLoad::stop).collect()
    }
}

/// A load that was started. Ended and reaped when dropped.
pub struct RunningLoad {
    spec: LoadSpec,
    /// `None`: idle, or ended and reaped.
    process: Option<LoadProcess>,
    started: Instant,
    detail: String,
    unit: String,
    work: u64,
    /// The worker has said its last line.
    is_done: bool,
    failure: Option<String>,
    is_reported: bool,
}

impl RunningLoad {
    pub fn spec(&self) -> &LoadSpec {
        &self.spec
    }

    /// What it does in its own words, empty until [`poll`](Self::poll) has read them.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Process of the worker, which is also its process group: to tell its wake-ups in a trace from
    /// those of others. `None` when idle or ended.
    pub fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(LoadProcess::pid)
    }

    /// Work done and its unit, as of the worker's last line that [`poll`](Self::poll) has read: at
    /// most a second old.
    pub fn work(&self) -> (u64, &str) {
        (self.work, &self.unit)
    }

    /// Reads what the worker has said and whether it has ended, without waiting: some system calls,
    /// microseconds. An error is returned once; it is in the [`LoadOutcome`] too.
    pub fn poll(&mut self) -> Option<LoadError> {
        self.read();
        if self.process.as_ref().is_some_and(LoadProcess::has_ended) {
            self.reap();
        }
        let what = self.failure.clone().filter(|_| !self.is_reported)?;
        self.is_reported = true;
        Some(LoadError::Failed { load: self.spec.to_string(), what })
    }

    /// Requests its end, without waiting for it.
    pub fn request_end(&mut self) {
        if let Some(process) = &mut self.process {
            process.request_end();
        }
    }

    /// Ends the load and all its processes, reaps them and returns what it did. Waits for it:
    /// milliseconds for most, at most 2.7 s.
    #[must_use]
    pub fn stop(mut self) -> LoadOutcome {
        let ran = self.started.elapsed();
        self.poll();
        self.end();
        let error = self.failure.take().or_else(|| {
            let is_late = self.spec.built_in().is_some() || ran >= NOTHING_DONE_MAX;
            let is_nothing = self.work == 0 && is_late && !self.spec.is_idle();
            let seconds = ran.as_secs_f64();
            is_nothing.then(|| format!("did no work in {seconds:.1} s: 0 {}", self.unit))
        });
        LoadOutcome {
            name: self.spec.to_string(),
            detail: std::mem::take(&mut self.detail),
            unit: std::mem::take(&mut self.unit),
            work: self.work,
            error,
        }
    }

    fn end(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        let (has_ended, pid) = (process.end(), process.pid());
        self.read();
        if has_ended {
            return self.reap();
        }
        self.fail(format!(
            "process {pid} does not end after SIGKILL; it waits in the kernel: see its state in \
             /proc/{pid}/status, and the kernel's log for the device"
        ));
        // Not waited for any more; it is reaped when this program ends.
        self.process = None;
    }

    /// Takes an ended worker out, with whatever is left of its group.
    fn reap(&mut self) {
        self.read();
        let Some(mut process) = self.process.take() else {
            return;
        };
        let status = process.reap();
        if process.is_end_requested() && self.is_done {
            return;
        }
        if process.is_killed() {
            return self.fail(format!(
                "did not end when asked and was killed ({status}); its work is that of its last \
                 report"
            ));
        }
        let output = process.stderr.text();
        self.fail(format!("its process ended by itself ({status}); stderr: {output}"));
    }

    fn fail(&mut self, what: String) {
        // The first is the cause, the others follow from it.
        self.failure.get_or_insert(what);
    }

    fn read(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        process.stderr.read();
        let messages: Vec<_> =
            process.lines.read().iter().filter_map(|l| Message::parse(l)).collect();
        for message in messages {
            match message {
                Message::Detail(text) => self.detail = text,
                Message::Unit(text) => self.unit = text,
                Message::Work(work) => self.work = work,
                Message::Error(text) => self.fail(text),
                Message::Done(work) => {
                    self.work = work;
                    self.is_done = true;
                }
            }
        }
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        self.end();
    }
}
