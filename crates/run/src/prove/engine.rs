//! The run itself, from the first calibration to the last wake-up, on the housekeeping side.
//!
//! One thread, awake once a second and at the edges of load phases: it empties the slots of the
//! measuring threads, reads the host's counters, looks after the loads, and hands a tick to the
//! thread that writes the record. Where kernel events are recorded it wakes more often, to have
//! spikes explained before their events are forgotten.

use std::{
    path::Path,
    sync::mpsc::{self, Receiver, Sender},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::Context;
use rustix::thread::ClockId;

use rtproof_host::{Facts, HostSampler, Root, idle};
use rtproof_judge::{Integrity, Report, units};
use rtproof_measure::{
    Session, SessionPlan, calibrate,
    thread::{become_ordinary, pin_all},
    workloads,
};
use rtproof_record::{
    ClockOrigin, Finished, Judgement, Options, Run, RunHead, RunTail, Start, Tick, WriteError,
    Writer,
    run::{Meta, RunEnd},
};

use super::collect::{CollectedRun, Collector, SampleFile};
use super::spikes::Explainer;
use super::{Job, Observer, Output, Signals, Switcher, clock_ns, notes, snapshot};

/// How long after each whole second the collector wakes: the slots of that second are full then.
const AFTER_NS: u64 = 50_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// How long after the last wake-up was due the threads may still be running.
const OVERDUE_NS: u64 = 5 * SECOND_NS;

/// Measures while `switcher` may change the machine. What it returns is complete on disk but not
/// judged.
///
/// # Errors
/// When the record cannot be written or the threads cannot run. Nothing is left behind but, once it
/// was begun, the record.
pub fn measure(
    root: &Root,
    facts: Facts,
    options: &Options,
    load_dir: Option<&Path>,
    output: &Output,
    switcher: &mut dyn Switcher,
    observer: &mut dyn Observer,
) -> anyhow::Result<Finishing> {
    let signals = Signals::catch(root).context("cannot catch signals")?;
    let job = Job {
        options,
        output,
        load_dir,
        workloads: vec![workloads::timer_wakeup()],
        signals: &signals,
    };
    run(root, facts, &job, switcher, observer)
}

/// Measures a job that is prepared already.
///
/// # Errors
/// Those of [`measure`].
pub fn run(
    root: &Root,
    facts: Facts,
    job: &Job<'_>,
    switcher: &mut dyn Switcher,
    observer: &mut dyn Observer,
) -> anyhow::Result<Finishing> {
    let Job { options, output, signals, .. } = *job;
    // Housekeeping, record and loads are ordinary, however rtproof was started.
    let was_real_time = become_ordinary().context("cannot become an ordinary thread")?;
    let mut plan = SessionPlan {
        cpus: options.cpus.as_slice().to_vec(),
        policy: options.policy,
        priority: options.priority,
        period_ns: options.period_ns,
        duration_ns: options.duration_ns,
        staggered: options.start == Start::Staggered,
        budget_ns: options.requirement.budget_ns,
        spike_ns: None,
        slot_ns: switcher.slot_ns(),
        keeps_samples: output.samples.is_some(),
        clock: options.clock,
        workloads: job.workloads.clone(),
    };
    let first_cpu = plan.cpus[0];
    let cost = calibrate::calibrate(first_cpu, plan.policy, plan.priority, plan.clock)
        .with_context(|| cannot_run(first_cpu, &facts))?;
    let mut early_notes = notes::of_cost(options, &cost);
    if was_real_time {
        early_notes.push(notes::was_real_time());
    }
    if !options.housekeeping.intersection(&options.cpus).is_empty() {
        early_notes.push(notes::no_housekeeping());
    }
    let sampler = HostSampler::new(root, &facts, &options.cpus);
    early_notes.extend(sampler.skipped().iter().map(|what| notes::not_sampled(what)));
    // Kept until the end of the run: the kernel forgets the limit when the file is closed.
    let dma_latency = options.dma_latency_us.map(|us| idle::hold(root, us));
    if let Some(Err(error)) = &dma_latency {
        early_notes.push(notes::no_dma_latency(&error.to_string()));
    }
    let meta = Meta {
        run_id: run_id()?,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        command: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        started_realtime_ns: clock_ns(ClockId::Realtime),
        started_monotonic_ns: 0,
        ended: None,
    };
    let floor_ns = cost.floor_ns;
    let head = RunHead { meta, options: options.clone(), facts: snapshot(&facts), cost };
    // From here on this thread and what it starts stay off the measured CPUs. A refusal changes
    // where the tool's own work runs, not what is measured.
    let _ = pin_all(options.housekeeping.as_slice());
    // Before the record, which is to hold a run from its first second on; and before the threads,
    // which must not be disturbed by measuring what it costs.
    let explainer = Explainer::start(root, &facts, options, floor_ns, &mut plan);
    let samples = output.samples.as_deref().map(SampleFile::create).transpose()?;
    let writer = Writer::create(&output.record, &head)?;
    let writer = match WriterThread::start(writer) {
        Ok(writer) => writer,
        Err(error) => {
            let error = anyhow::Error::new(error).context("cannot start the writing thread");
            return Err(discard(output, error));
        }
    };
    let session = match Session::start(&plan) {
        Ok(session) => session,
        Err(error) => return Err(discard(output, error.into())),
    };
    let origin_ns = session.origin_ns();
    let realtime_ns = clock_ns(ClockId::Realtime) + origin_ns - clock_ns(ClockId::Monotonic);
    early_notes.extend(notes::of_start(options, session.started()));
    early_notes.extend(notes::of_workloads(&plan, session.started()));
    let mut collector = Collector::new(job, sampler, root, &facts, explainer, early_notes);
    collector.keep_samples(samples);
    collector.slots_are(plan.slot_ns);
    collector.announce(
        session.started(),
        &plan,
        ClockOrigin { realtime_ns, monotonic_ns: origin_ns },
    );
    observer.started(&collector.threads());
    switcher.started(session.started());
    let mut rig = Rig { session, collector, writer, switcher, observer };
    let ended = rig.run(signals, options);
    // The facts of the end are those of the machine, not of the run: our limit is no change of it.
    drop(dma_latency);
    rig.finish(root, ended, output)
}

/// What runs during a measurement.
struct Rig<'a> {
    session: Session,
    collector: Collector,
    writer: WriterThread,
    switcher: &'a mut dyn Switcher,
    observer: &'a mut dyn Observer,
}

impl Rig<'_> {
    /// Ticks until the threads have ended or must end.
    fn run(&mut self, signals: &Signals, options: &Options) -> RunEnd {
        let origin_ns = self.session.origin_ns();
        let mut next_tick_ns = SECOND_NS + AFTER_NS;
        let ended = loop {
            let now_ns = clock_ns(ClockId::Monotonic).saturating_sub(origin_ns);
            if now_ns >= next_tick_ns {
                let tick = self.collector.tick(&mut self.session, now_ns, self.switcher);
                self.collector.show(&tick, self.observer);
                self.observer.tick(&tick);
                self.writer.tick(tick);
                self.observer.progress(&self.collector.progress(now_ns));
                next_tick_ns = (now_ns - AFTER_NS) / SECOND_NS * SECOND_NS + SECOND_NS + AFTER_NS;
            }
            let poll_ns = self.collector.take_spikes(&mut self.session, now_ns);
            self.collector.enter_phase(now_ns);
            self.collector.request(self.observer.requested(), now_ns);
            let conduct_ns = self.conduct(origin_ns);
            if self.session.is_finished() {
                break RunEnd::Complete;
            }
            if let Some(signal) = signals.received() {
                break RunEnd::Interrupted { signal: signal.into() };
            }
            if self.switcher.is_over() && self.switcher.trouble().is_none() {
                break RunEnd::Complete;
            }
            if let Some(why) = self.switcher.trouble() {
                break RunEnd::Aborted { why };
            }
            if now_ns > options.duration_ns + options.period_ns + OVERDUE_NS {
                let why = "a measuring thread did not come to its end: something outranks it on \
                           its CPU; see `rtproof check`";
                break RunEnd::Aborted { why: why.into() };
            }
            if let Some(error) = self.writer.failure() {
                let why = format!("the record could not be written: {error}");
                self.collector.record_failed(error);
                break RunEnd::Aborted { why };
            }
            let edge_ns = self.collector.next_edge_ns(now_ns).unwrap_or(u64::MAX);
            let end_ns = now_ns.max(options.duration_ns) + AFTER_NS;
            let poll_ns = poll_ns.unwrap_or(u64::MAX);
            sleep_until(
                origin_ns + next_tick_ns.min(edge_ns).min(end_ns).min(poll_ns).min(conduct_ns),
            );
        };
        self.observer.done();
        ended
    }

    /// Lets the switcher do what is due; returns when it wants to come again.
    fn conduct(&mut self, origin_ns: u64) -> u64 {
        self.collector.take_slots(&mut self.session, self.switcher);
        self.switcher.due(&|| clock_ns(ClockId::Monotonic).saturating_sub(origin_ns))
    }

    /// Ends everything and closes the record.
    fn finish(self, root: &Root, ended: RunEnd, output: &Output) -> anyhow::Result<Finishing> {
        let origin_ns = self.session.origin_ns();
        let now_ns = || clock_ns(ClockId::Monotonic).saturating_sub(origin_ns);
        // First of all: what follows takes time.
        self.switcher.finish(now_ns());
        let collected = self.collector.finish(self.session, self.switcher, self.observer, now_ns);
        close(root, collected, self.writer, ended, output)
    }
}

/// The next step if a CPU is not available.
fn cannot_run(cpu: u32, facts: &Facts) -> String {
    match facts.cpus.allowed.value() {
        Some(allowed) if !allowed.contains(cpu) => format!(
            "cannot run on CPU {cpu}; this process may use {} (cpuset, affinity): name other CPUs \
             with --cpus",
            units::cpus(allowed)
        ),
        _ => format!("cannot run on CPU {cpu}; name other CPUs with --cpus"),
    }
}

/// Sleeps; returns early when a signal comes.
fn sleep_until(at_ns: u64) {
    let at = rustix::time::Timespec {
        tv_sec: (at_ns / SECOND_NS).cast_signed(),
        tv_nsec: (at_ns % SECOND_NS).cast_signed(),
    };
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &at);
}

/// 128 random bits as hex.
pub(crate) fn run_id() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .context("no random bits for the identity of the run")?;
    anyhow::ensure!(filled == bytes.len(), "too few random bits for the identity of the run");
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Removes a record that holds no run.
fn discard(output: &Output, error: anyhow::Error) -> anyhow::Error {
    match std::fs::remove_file(&output.record) {
        Ok(()) => error,
        Err(left) => error.context(format!(
            "{}: this empty record could not be removed ({left})",
            output.record.display()
        )),
    }
}

// The end of a run: the record is closed, read back, judged and sealed.

/// A measured run whose record is not sealed yet.
#[derive(Debug)]
pub struct Finishing {
    /// The run, as read back from its record.
    pub run: Run,
    /// `None`: the record is torn.
    finished: Option<Finished>,
    failure: Option<WriteError>,
}

/// A run whose record is as good as it gets.
#[derive(Debug)]
pub struct Sealed {
    pub run: Run,
    /// Why the record is torn.
    pub failure: Option<anyhow::Error>,
}

/// Writes what is left, closes the record and reads it back.
///
/// # Errors
/// When not even what was written before can be read.
fn close(
    root: &Root,
    collected: CollectedRun,
    writer: WriterThread,
    ended: RunEnd,
    output: &Output,
) -> anyhow::Result<Finishing> {
    let facts = Facts::read(root);
    writer.tick(collected.tick);
    let facts = Some(snapshot(&facts));
    let tail = RunTail { ended, facts, threads: collected.ends, options: None };
    finish_record(tail, collected.failure, writer, output)
}

/// Closes the record and reads it back. `failure`: why it could not be written before.
///
/// # Errors
/// As [`close`].
pub(crate) fn finish_record(
    tail: RunTail,
    failed: Option<WriteError>,
    writer: WriterThread,
    output: &Output,
) -> anyhow::Result<Finishing> {
    let (finished, failure) = match writer.finish(tail) {
        (Some(finished), _) => (Some(finished), None),
        (None, failure) => (None, failed.or(failure)),
    };
    let opened = rtproof_record::read_shown(&output.record).with_context(|| {
        failure.as_ref().map_or("the record cannot be read back".into(), ToString::to_string)
    })?;
    Ok(Finishing { run: opened.run, finished, failure })
}

impl Finishing {
    /// What the record will be when the run is over.
    pub fn integrity(&self) -> Integrity {
        if self.finished.is_some() { Integrity::Sealed } else { Integrity::Torn }
    }

    /// Stores what was judged and seals the record.
    ///
    /// # Errors
    /// When the judgement cannot be expressed; for a record that cannot be written see
    /// [`Sealed::failure`].
    pub fn seal(self, report: &Report) -> anyhow::Result<Sealed> {
        let judgement = judgement(report);
        let failure = match (self.finished, self.failure) {
            (Some(finished), None) => finished
                .store_judgement(&judgement)
                .and_then(|()| finished.seal())
                .err()
                .map(|error| anyhow::Error::new(error).context("the record is not sealed")),
            (_, Some(failure)) => Some(anyhow::Error::new(failure).context("the record is torn")),
            (None, None) => Some(anyhow::anyhow!("the record is torn: its writer is gone")),
        };
        Ok(Sealed { run: self.run, failure })
    }
}

/// What is stored of a judgement.
pub fn judgement(report: &Report) -> Judgement {
    Judgement {
        findings: report.findings.clone(),
        verdict: report.verdict.clone(),
        summary: format!("{} {}", report.verdict.answer.text(), report.verdict.sentence),
    }
}

// The thread that writes the record. A disk that stalls delays it and nothing else.

/// Each try waits some seconds by itself.
const BUSY_TRIES: u32 = 12;

/// Times that a full disk is tried again, [`FULL_WAIT`] apart: what fills it may go, as a log does.
const FULL_TRIES: u32 = 20;

const FULL_WAIT: Duration = Duration::from_secs(1);

enum Message {
    Tick(Box<Tick>),
    Finish(Box<RunTail>),
}

/// The other end of the writing thread.
pub(crate) struct WriterThread {
    to: Sender<Message>,
    failures: Receiver<WriteError>,
    join: JoinHandle<Option<Finished>>,
}

impl WriterThread {
    pub(crate) fn start(writer: Writer) -> std::io::Result<Self> {
        let (to, messages) = mpsc::channel();
        let (failed, failures) = mpsc::channel();
        let join = std::thread::Builder::new()
            .name("rtproof/record".into())
            .spawn(move || write(writer, &messages, &failed))?;
        Ok(Self { to, failures, join })
    }

    /// Hands a tick over. Never waits.
    pub(crate) fn tick(&self, tick: Tick) {
        // A writer that is gone has said why, or says so when it is joined.
        let _ = self.to.send(Message::Tick(Box::new(tick)));
    }

    /// Why writing failed, once.
    pub(crate) fn failure(&self) -> Option<WriteError> {
        self.failures.try_recv().ok()
    }

    /// Ends the record. Without a finished one, the reason, unless [`WriterThread::failure`]
    /// returned it.
    pub(crate) fn finish(self, tail: RunTail) -> (Option<Finished>, Option<WriteError>) {
        let _ = self.to.send(Message::Finish(Box::new(tail)));
        let finished = self.join.join().unwrap_or(None);
        (finished, self.failures.try_recv().ok())
    }
}

/// Writes until the end or the first failure; what was committed by then stays readable.
fn write(
    mut writer: Writer,
    messages: &Receiver<Message>,
    failed: &Sender<WriteError>,
) -> Option<Finished> {
    let outcome = loop {
        match messages.recv().ok()? {
            Message::Finish(tail) => break writer.finish(&tail).map(Some),
            Message::Tick(tick) => {
                if let Err(error) = append(&mut writer, &tick) {
                    break Err(error);
                }
            }
        }
    };
    outcome.unwrap_or_else(|error| {
        // The receiver goes only together with the run.
        let _ = failed.send(error);
        None
    })
}

/// Appends; waits a minute at most for another process that reads the record, and some seconds for
/// room on the disk. What comes meanwhile is kept in memory.
fn append(writer: &mut Writer, tick: &Tick) -> Result<(), WriteError> {
    let (mut busy, mut full) = (BUSY_TRIES, FULL_TRIES);
    loop {
        match writer.append(tick) {
            Err(WriteError::Busy { .. }) if busy > 0 => busy -= 1,
            Err(WriteError::Full { .. }) if full > 0 => {
                full -= 1;
                std::thread::sleep(FULL_WAIT);
            }
            outcome => return outcome,
        }
    }
}
