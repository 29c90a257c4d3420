//! What the housekeeping thread does once a second: slots, host counters, loads, placement.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context;

use rtproof_host::{HostSampler, Root};
use rtproof_judge::units;
use rtproof_measure::{
    EndReason, Session, SessionPlan, Slot, StartedThread, ThreadReport,
    clock::Steps,
    loads::{LoadOutcome, LoadSettings, LoadSpec, Runner, RunningLoad},
};
use rtproof_record::{
    ClockOrigin, Options, Start, ThreadTick, Tick, WriteError,
    run::{Note, RecordedLoad, Sample, Second, ThreadEnd, ThreadInfo},
};

use super::spikes::Explainer;
use super::watch::{IdleReader, StepWatch, ThreadWatch};
use super::{Job, LiveRequest, Observer, Output, RunProgress, Switcher, notes};

/// Shortest interval that makes a row of host counters.
const ROW_MIN_NS: u64 = 500_000_000;

/// A load that runs.
struct Live {
    running: RunningLoad,
    from_ns: u64,
    failure_noted: bool,
}

/// The collector of a run.
pub(crate) struct Collector {
    options: Options,
    sampler: HostSampler,
    settings: LoadSettings,
    explainer: Explainer,
    idle: IdleReader,
    watch: ThreadWatch,
    loads: Vec<Live>,
    phase: Option<usize>,
    /// Whether the user switched the loads; the phases no longer do.
    by_hand: bool,
    pending: Tick,
    seconds: Seconds,
    steps: StepWatch,
    samples: Option<SampleFile>,
    worst: Option<(u64, u32)>,
    missed: u64,
    late: u64,
    sampled_ns: u64,
    failure: Option<WriteError>,
}

pub fn load_settings(
    options: &Options,
    load_dir: Option<&Path>,
    output: &Output,
    facts: &rtproof_host::Facts,
) -> LoadSettings {
    let cache = |cpu: &rtproof_host::facts::cpu::Cpu| cpu.last_level_cache_bytes.value().copied();
    LoadSettings {
        cpus: options.load_cpus.clone(),
        dir: load_dir.unwrap_or_else(|| output.folder()).to_owned(),
        memory_available: facts.memory.available_bytes.value().copied().unwrap_or(256 << 20),
        llc_bytes: facts.cpus.cpus.iter().filter_map(cache).max().unwrap_or(0),
        worker_command: (PathBuf::from("/proc/self/exe"), vec![crate::NAME.into()]),
    }
}

/// What is left when the threads have ended.
pub(crate) struct CollectedRun {
    pub(crate) tick: Tick,
    pub(crate) ends: Vec<(u32, ThreadEnd)>,
    pub failure: Option<WriteError>,
}

impl Collector {
    pub(crate) fn new(
        job: &Job<'_>,
        sampler: HostSampler,
        root: &Root,
        facts: &rtproof_host::Facts,
        explainer: Explainer,
        early: Vec<Note>,
    ) -> Self {
        let options = job.options;
        let settings = load_settings(options, job.load_dir, job.output, facts);
        Self {
            options: options.clone(),
            sampler,
            settings,
            explainer,
            watch: ThreadWatch::default(),
            idle: IdleReader::new(root, options),
            loads: Vec::new(),
            phase: None,
            by_hand: false,
            pending: Tick { notes: early, ..Tick::default() },
            seconds: Seconds::default(),
            steps: StepWatch::of(options.clock),
            samples: None,
            worst: None,
            missed: 0,
            late: 0,
            sampled_ns: 0,
            failure: None,
        }
    }

    /// How long slots are.
    pub(crate) fn slots_are(&mut self, slot_ns: u64) {
        self.seconds = Seconds::of(slot_ns);
    }

    /// Single samples go to a file.
    pub(crate) fn keep_samples(&mut self, samples: Option<SampleFile>) {
        self.samples = samples;
    }

    /// Puts the threads into the record.
    pub(crate) fn announce(
        &mut self,
        started: &[StartedThread],
        plan: &SessionPlan,
        origin: ClockOrigin,
    ) {
        self.explainer.begin(plan, started, origin.monotonic_ns);
        self.pending.origin = Some(origin);
        let (n, period_ns) = (started.len() as u64, self.options.period_ns);
        for started in started {
            let first_due_ns = match self.options.start {
                Start::Staggered => u64::from(started.number) * period_ns / n,
                Start::Aligned => 0,
            };
            let workload = plan.workload_of(started.number).spec();
            let info = info_of(started, period_ns, first_due_ns, &workload);
            self.pending.started.push(info.clone());
            self.watch.add(&self.sampler, info, started.is_pinned);
        }
        self.pending.surroundings.states = self.idle.states();
    }

    /// The threads that measure.
    pub(crate) fn threads(&self) -> Vec<ThreadInfo> {
        self.watch.threads().cloned().collect()
    }

    /// Shows what a second brought.
    pub(crate) fn show(&self, tick: &Tick, observer: &mut dyn Observer) {
        self.watch.show(tick, observer);
    }

    /// Remembers that nothing can be written any more.
    pub(crate) fn record_failed(&mut self, error: WriteError) {
        self.failure = Some(error);
    }

    /// What the last second brought.
    pub(crate) fn tick(
        &mut self,
        session: &mut Session,
        now_ns: u64,
        switcher: &mut dyn Switcher,
    ) -> Tick {
        self.take_slots(session, switcher);
        self.take_effects(switcher);
        self.take_spikes(session, now_ns);
        self.pending.spikes = self.explainer.tick(session);
        self.pending.notes.extend(self.explainer.take_notes());
        self.watch_clock(now_ns, (0..).zip(session.steps()));
        self.sample_host(now_ns);
        self.watch_threads(session, now_ns);
        self.watch_loads(now_ns);
        std::mem::take(&mut self.pending)
    }

    fn watch_clock(&mut self, now_ns: u64, steps: impl Iterator<Item = (u32, Steps)>) {
        let cpu = |number| self.watch.thread(number).map_or(0, |info| info.cpu);
        self.pending.notes.extend(self.steps.poll(now_ns, steps, cpu));
    }

    fn sample_host(&mut self, now_ns: u64) {
        self.sampled_ns = now_ns;
        self.pending.host = Some(self.sampler.sample(now_ns));
        self.pending.surroundings.idle = self.idle.sample(now_ns);
    }

    /// Empties the slots; the switcher's are shorter than a second and are put together.
    pub(crate) fn take_slots(&mut self, session: &mut Session, switcher: &mut dyn Switcher) {
        let origin_ns = session.origin_ns();
        let mut taken = Vec::new();
        session.collect(|number, slot| {
            self.explainer.learn(slot);
            if let Some(samples) = &mut self.samples {
                samples.take(self.watch.thread(number).map_or(0, |info| info.cpu), slot, origin_ns);
            }
            switcher.take(number, slot, origin_ns);
            taken.extend(self.seconds.tick(number, slot, origin_ns));
        });
        taken.into_iter().for_each(|tick| self.take(tick));
    }

    fn take_effects(&mut self, switcher: &mut dyn Switcher) {
        let (effects, notes) = switcher.tick();
        self.pending.effects = effects;
        self.pending.notes.extend(notes);
    }

    /// Spikes to the recorder, and its answers back. Returns when to do it again; `None`: with the
    /// next tick.
    pub(crate) fn take_spikes(&mut self, session: &mut Session, now_ns: u64) -> Option<u64> {
        self.explainer.poll(session, now_ns);
        self.explainer.next_poll_ns(now_ns)
    }

    fn take(&mut self, tick: ThreadTick) {
        let totals = &tick.second.totals;
        self.missed += totals.missed;
        self.late += totals.late();
        let cpu = self.watch.thread(tick.number).map_or(0, |info| info.cpu);
        if let Some(max_ns) =
            totals.wake.max().filter(|&max| self.worst.is_none_or(|(w, _)| max > w))
        {
            self.worst = Some((max_ns, cpu));
        }
        self.pending.threads.push(tick);
    }

    /// Ends threads that are no longer where they were put, and notes changes made from outside.
    fn watch_threads(&mut self, session: &Session, now_ns: u64) {
        // Threads that have measured all they were to may be anywhere.
        if now_ns >= self.options.duration_ns {
            return;
        }
        let seen = self.watch.poll(&mut self.sampler, now_ns);
        seen.lost.into_iter().for_each(|number| session.stop_one(number));
        self.pending.notes.extend(seen.notes);
        self.pending.surroundings.marks.extend(seen.marks);
    }

    /// Starts and stops loads when a phase begins.
    pub(crate) fn enter_phase(&mut self, now_ns: u64) {
        let at = self.options.phases.iter().position(|p| (p.from_ns..p.to_ns).contains(&now_ns));
        if self.by_hand || at.is_none() || at == self.phase {
            return;
        }
        self.stop_loads(now_ns);
        self.phase = at;
        let specs = at.map(|i| self.options.phases[i].loads.clone()).unwrap_or_default();
        self.start_loads(specs, now_ns);
    }

    /// Does what the user wants, and leaves it in the record.
    pub(crate) fn request(&mut self, requested: LiveRequest, now_ns: u64) {
        let marks = requested.marks.iter().map(|text| notes::marked(now_ns, text));
        self.pending.notes.extend(marks);
        let Some(specs) = requested.loads else { return };
        self.stop_loads(now_ns);
        self.by_hand = true;
        self.pending.notes.push(notes::manual_load_note(now_ns, &specs));
        self.start_loads(specs, now_ns);
    }

    fn start_loads(&mut self, specs: Vec<String>, now_ns: u64) {
        for text in specs {
            let started =
                text.parse::<LoadSpec>().map_err(|error| error.to_string()).and_then(|spec| {
                    Runner::start(&spec, &self.settings).map_err(|error| error.to_string())
                });
            match started {
                Ok(running) => {
                    self.loads.push(Live { running, from_ns: now_ns, failure_noted: false });
                }
                Err(error) => {
                    self.pending.notes.push(notes::load(now_ns, &text, &error));
                }
            }
        }
    }

    /// The next time at which a phase begins.
    pub(crate) fn next_edge_ns(&self, now_ns: u64) -> Option<u64> {
        self.options.phases.iter().map(|phase| phase.from_ns).filter(|&from| from > now_ns).min()
    }

    fn watch_loads(&mut self, now_ns: u64) {
        for live in &mut self.loads {
            if let Some(error) = live.running.poll() {
                let name = live.running.spec().to_string();
                live.failure_noted = true;
                self.pending.notes.push(notes::load(now_ns, &name, &error.to_string()));
            }
            self.pending.loads.push(load_so_far(live, now_ns));
        }
    }

    fn stop_loads(&mut self, now_ns: u64) {
        let (running, rest): (Vec<_>, Vec<_>) = self
            .loads
            .drain(..)
            .map(|live| (live.running, (live.from_ns, live.failure_noted)))
            .unzip();
        for (outcome, (from_ns, noted)) in Runner::stop_all(running).into_iter().zip(rest) {
            if let Some(error) = outcome.error.as_ref().filter(|_| !noted) {
                self.pending.notes.push(notes::load(now_ns, &outcome.name, error));
            }
            self.pending.loads.push(load_at_end(outcome, from_ns, now_ns));
        }
    }

    /// The state that the progress line shows.
    pub(crate) fn progress(&self, now_ns: u64) -> RunProgress<'_> {
        RunProgress {
            at_ns: now_ns,
            phase: self.phase.map_or("", |i| &self.options.phases[i].name),
            worst: self.worst,
            missed: self.missed,
            late: self.options.requirement.budget_ns.map(|_| self.late),
            last_cause: self.explainer.last_cause(),
        }
    }

    /// Ends the threads if they still run, then the loads, and hands out what is left.
    pub(crate) fn finish(
        mut self,
        mut session: Session,
        switcher: &mut dyn Switcher,
        observer: &mut dyn Observer,
        now_ns: impl Fn() -> u64,
    ) -> CollectedRun {
        session.stop();
        let origin_ns = session.origin_ns();
        self.take_slots(&mut session, switcher);
        self.take_effects(switcher);
        let (mut last, mut spikes) = (Vec::new(), Vec::new());
        let (explainer, seconds) = (&mut self.explainer, &mut self.seconds);
        let (watch, mut samples) = (&self.watch, self.samples.take());
        let reports = session.finish(
            |number, slot| {
                explainer.learn(slot);
                if let Some(samples) = &mut samples {
                    samples.take(watch.thread(number).map_or(0, |info| info.cpu), slot, origin_ns);
                }
                last.extend(seconds.tick(number, slot, origin_ns));
            },
            |number, spike| spikes.push((number, spike)),
        );
        last.extend(seconds.rest(origin_ns));
        spikes.into_iter().for_each(|(number, spike)| self.explainer.last(number, spike));
        last.into_iter()
            .filter(|tick| tick.second.totals.accounted() > 0)
            .for_each(|tick| self.take(tick));
        let at_ns = now_ns();
        self.pending.notes.extend(samples.map(|samples| samples.finish(at_ns)));
        self.stop_loads(at_ns);
        // A row represents a second: what is left of one after the last tick would look like a dip.
        if at_ns.saturating_sub(self.sampled_ns) >= ROW_MIN_NS {
            self.sample_host(at_ns);
        }
        self.watch_clock(at_ns, reports.iter().map(|report| (report.number, report.steps)));
        self.pending.notes.extend(self.steps.rest(at_ns));
        let (spikes, notes) = self.explainer.finish(at_ns);
        self.pending.spikes = spikes;
        self.pending.notes.extend(notes);
        for report in &reports {
            let cpu = self.watch.thread(report.number).map_or(0, |info| info.cpu);
            self.pending.notes.extend(notes::of_ending(at_ns, cpu, &report.ending));
        }
        self.watch.show(&self.pending, observer);
        observer.tick(&self.pending);
        let lost = |number: u32| self.watch.is_lost(number);
        let ends = reports.iter().map(|r| (r.number, end_of(r, lost(r.number)))).collect();
        CollectedRun { tick: self.pending, ends, failure: self.failure }
    }
}

fn load_so_far(live: &Live, now_ns: u64) -> RecordedLoad {
    let (work, unit) = live.running.work();
    RecordedLoad {
        name: live.running.spec().to_string(),
        detail: live.running.detail().into(),
        unit: unit.into(),
        work,
        from_ns: live.from_ns,
        to_ns: now_ns,
        error: None,
    }
}

fn load_at_end(outcome: LoadOutcome, from_ns: u64, to_ns: u64) -> RecordedLoad {
    let LoadOutcome { name, detail, unit, work, error } = outcome;
    RecordedLoad { name, detail, unit, work, from_ns, to_ns, error }
}

/// What a thread got, as the record holds it.
fn info_of(
    started: &StartedThread,
    period_ns: u64,
    first_due_ns: u64,
    workload: &str,
) -> ThreadInfo {
    ThreadInfo {
        number: started.number,
        cpu: started.cpu,
        tid: started.tid,
        workload: workload.into(),
        policy: started.policy,
        priority: started.priority,
        locked: started.lock_error.is_none(),
        period_ns,
        first_due_ns,
    }
}

/// How a thread ended. `lost`: it was stopped because it was no longer on its CPU.
fn end_of(report: &ThreadReport, lost: bool) -> ThreadEnd {
    let reason = match report.reason {
        EndReason::Stopped if lost => EndReason::CpuLost,
        reason => reason,
    };
    ThreadEnd {
        reason,
        scheduled: report.scheduled,
        faults_minor: report.faults_minor,
        faults_major: report.faults_major,
        cpu_time_ns: report.cpu_time_ns,
        preemptions: report.preemptions,
    }
}

// Each single sample in a file beside the record, for analyses that histograms are too coarse for.
//
// `cpu,due_ns,latency_ns`, a line a sample: when it was due, after the first wake-up, and how late
// the thread ran (of a workload that times a piece of work: how long that took). Of one thread
// they are in the order of time. Missed wake-ups have none: `scheduled = lines + missed`.

/// The file while it is written.
#[derive(Debug)]
pub(crate) struct SampleFile {
    path: PathBuf,
    to: BufWriter<File>,
    lines: u64,
    unkept: u64,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
}

impl SampleFile {
    /// A new file with its heading.
    ///
    /// # Errors
    /// There is one, or none can be made.
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("{}: cannot be made", path.display());
        let file = rtproof_host::door::create_new(path, 0o644).with_context(failed)?;
        let mut to = BufWriter::new(file);
        writeln!(to, "cpu,due_ns,latency_ns").with_context(failed)?;
        Ok(Self { path: path.to_owned(), to, lines: 0, unkept: 0, failed: None })
    }

    /// Writes the samples of a slot.
    pub(super) fn take(&mut self, cpu: u32, slot: &Slot, origin_ns: u64) {
        self.unkept += slot.kept.lost;
        for sample in slot.kept.as_slice() {
            if self.failed.is_some() {
                self.unkept += 1;
                continue;
            }
            let due_ns = sample.due_ns.saturating_sub(origin_ns);
            match writeln!(self.to, "{cpu},{due_ns},{}", sample.latency_ns) {
                Ok(()) => self.lines += 1,
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// Closes it; what it holds, and what of the samples it lacks.
    pub(super) fn finish(mut self, at_ns: u64) -> Note {
        let flushed = self.to.flush().and_then(|()| self.to.get_ref().sync_all());
        let failed = self.failed.take().or(flushed.err());
        let (path, lines) = (self.path.display(), units::grouped(self.lines));
        let why = match (failed, self.unkept) {
            (None, 0) => {
                return notes::samples(at_ns, format!("{path} holds each of the {lines} samples."));
            }
            (None, _) => "the collector was late, and they found no room".to_owned(),
            (Some(error), _) => format!("{error}; its last lines may be missing as well"),
        };
        let unkept = units::grouped(self.unkept);
        let text = format!("{path} holds {lines} samples; {unkept} are not in it: {why}.");
        notes::samples(at_ns, text)
    }
}

// Slots that are shorter than a second, put together: a record is made of seconds.

const SECOND_NS: u64 = 1_000_000_000;

/// Slots of each thread until their second is over.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    short: bool,
    threads: Vec<Option<Box<Slot>>>,
}

impl Seconds {
    /// For slots of a length.
    pub(super) fn of(slot_ns: u64) -> Self {
        Self { short: slot_ns < SECOND_NS, threads: Vec::new() }
    }

    /// Takes a slot in; returns a second if one is complete.
    pub(super) fn tick(&mut self, thread: u32, slot: &Slot, origin_ns: u64) -> Option<ThreadTick> {
        if !self.short {
            return Some(second(thread, slot, origin_ns));
        }
        let whole = self.take(thread, slot, origin_ns)?;
        Some(second(thread, &whole, origin_ns))
    }

    /// Returns the second before a slot, if it begins another one.
    fn take(&mut self, thread: u32, slot: &Slot, origin_ns: u64) -> Option<Box<Slot>> {
        let at = thread as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || None);
        }
        let second = |slot: &Slot| slot.from_ns.saturating_sub(origin_ns) / SECOND_NS;
        match &mut self.threads[at] {
            Some(whole) if second(whole) == second(slot) => {
                merge(whole, slot);
                None
            }
            other => other.replace(Box::new(slot.clone())),
        }
    }

    pub(super) fn rest(&mut self, origin_ns: u64) -> impl Iterator<Item = ThreadTick> {
        let left = (0..).zip(std::mem::take(&mut self.threads));
        left.filter_map(move |(thread, slot)| Some(second(thread, &*slot?, origin_ns)))
    }
}

/// Adds a later slot.
fn merge(whole: &mut Slot, slot: &Slot) {
    if slot.totals.wake.max() > whole.totals.wake.max() {
        whole.max_at_ns = slot.max_at_ns;
    }
    whole.to_ns = slot.to_ns;
    whole.totals.merge(&slot.totals);
    whole.wake.merge(&slot.wake);
    whole.missed.merge(&slot.missed);
    whole.intervals.merge(&slot.intervals);
    slot.top.as_slice().iter().for_each(|&sample| whole.top.push(sample));
    whole.spikes += slot.spikes;
    whole.spikes_dropped += slot.spikes_dropped;
}

/// A slot as a second of the record.
pub(crate) fn second(number: u32, slot: &Slot, origin_ns: u64) -> ThreadTick {
    let relative = |ns: u64| ns.saturating_sub(origin_ns);
    let second = Second {
        from_ns: relative(slot.from_ns),
        to_ns: relative(slot.to_ns),
        totals: slot.totals.clone(),
        max_at_ns: relative(slot.max_at_ns),
        wake: Vec::new(),
        missed: Vec::new(),
        intervals: slot.intervals.clone(),
    };
    let top = slot
        .top
        .as_slice()
        .iter()
        .map(|sample| Sample { due_ns: relative(sample.due_ns), latency_ns: sample.latency_ns });
    let (wake, missed) = (slot.wake.histogram(), slot.missed.histogram());
    ThreadTick::new(number, second, &wake, &missed, top.collect())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read the files that they made")]
mod samples_tests {
    use rtproof_measure::KeptSamples;

    use super::*;

    fn keeping(samples: usize) -> Slot {
        Slot { kept: KeptSamples::new(samples), ..Slot::default() }
    }

    #[test]
    fn one_line_a_sample_and_missing_ones_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.samples.csv");
        let mut file = SampleFile::create(&path).unwrap();
        assert!(SampleFile::create(&path).is_err(), "none is written over");
        let mut slot = keeping(2);
        slot.record_wake(1_000, 1_007);
        slot.record_wake(2_000, 2_009);
        file.take(3, &slot, 500);
        assert_eq!(file.lines, 2);
        slot.clear();
        for n in 3..=5 {
            slot.record_wake(n * 1_000, n * 1_000 + 1);
        }
        file.take(3, &slot, 500);
        let note = file.finish(9);
        assert!(note.text.contains("holds 4 samples; 1 are not in it"), "{}", note.text);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "cpu,due_ns,latency_ns\n3,500,7\n3,1500,9\n3,2500,1\n3,3500,1\n");
        let whole = SampleFile::create(&dir.path().join("b.samples.csv")).unwrap();
        assert!(whole.finish(9).text.ends_with("holds each of the 0 samples."));
    }

    #[test]
    fn a_full_disk_is_reported_and_ends_nothing() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (path, to) = (PathBuf::from("x.csv"), BufWriter::with_capacity(8, full));
        let mut file = SampleFile { path, to, lines: 0, unkept: 0, failed: None };
        let mut slot = keeping(9);
        for n in 0..9 {
            slot.record_wake(n, n + 1);
        }
        file.take(0, &slot, 0);
        let note = file.finish(9);
        assert!(note.text.contains("No space left"), "{}", note.text);
    }
}

#[cfg(test)]
mod seconds_tests {
    use super::*;

    fn slot(from_ms: u64, latency_ns: u64) -> Slot {
        let from_ns = from_ms * 1_000_000;
        let mut slot = Slot { from_ns, to_ns: from_ns + SECOND_NS / 4, ..Slot::default() };
        slot.record_wake(from_ns, from_ns + latency_ns);
        slot
    }

    #[test]
    fn four_quarters_are_a_second() {
        let (mut seconds, mut out) = (Seconds::of(SECOND_NS / 4), Vec::new());
        let origin_ns = 50_000_000;
        for (i, latency_ns) in [5, 9, 7, 1, 2, 4].into_iter().enumerate() {
            out.extend(seconds.tick(1, &slot(50 + 250 * i as u64, latency_ns), origin_ns));
        }
        assert_eq!(out.len(), 1);
        out.extend(seconds.rest(origin_ns));
        let [first, second] = &out[..] else { panic!("{} seconds", out.len()) };
        assert_eq!((first.number, second.number), (1, 1));
        let totals = &first.second.totals;
        assert_eq!((totals.wake.count(), totals.wake.max()), (4, Some(9)));
        assert_eq!((first.second.max_at_ns, first.top.len()), (250_000_000, 4));
        assert_eq!((first.second.from_ns, first.second.to_ns), (0, SECOND_NS));
        assert_eq!((second.second.from_ns, second.second.totals.wake.count()), (SECOND_NS, 2));
        assert_eq!(seconds.rest(origin_ns).count(), 0);
    }

    #[test]
    fn whole_seconds_pass() {
        let mut seconds = Seconds::of(SECOND_NS);
        assert!(seconds.tick(0, &slot(0, 1), 0).is_some());
        assert_eq!(seconds.rest(0).count(), 0);
    }
}
