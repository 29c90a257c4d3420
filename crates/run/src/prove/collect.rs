//! What the housekeeping thread does once a second: slots, host counters, loads, placement.

use std::path::{Path, PathBuf};

use rtproof_host::{HostSampler, Root};
use rtproof_measure::{
    EndReason, Plan, Report, Session, Started,
    clock::Steps,
    loads::{LoadSpec, Outcome, Runner, Running, Settings},
};
use rtproof_record::{
    Options, Origin, Start, Tick, WriteError,
    run::{Load, Note, ThreadEnd, ThreadInfo},
};

use super::{
    idle::Idle,
    job::Job,
    notes,
    observer::{Observer, Progress, Requested},
    output::Output,
    samples::SampleFile,
    seconds::Seconds,
    spikes::Explainer,
    steps::StepWatch,
    switcher::Switcher,
    watch::Watch,
};
use crate::load_worker;

/// Shortest interval that makes a row of host counters.
const ROW_MIN_NS: u64 = 500_000_000;

/// A load that runs.
struct Live {
    running: Running,
    from_ns: u64,
    failure_noted: bool,
}

/// The collector of a run.
pub(crate) struct Collector {
    options: Options,
    sampler: HostSampler,
    settings: Settings,
    explainer: Explainer,
    idle: Idle,
    watch: Watch,
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
) -> Settings {
    let cache = |cpu: &rtproof_host::facts::cpu::Cpu| cpu.last_level_cache_bytes.value().copied();
    Settings {
        cpus: options.load_cpus.clone(),
        dir: load_dir.unwrap_or_else(|| output.folder()).to_owned(),
        memory_available: facts.memory.available_bytes.value().copied().unwrap_or(256 << 20),
        llc_bytes: facts.cpus.cpus.iter().filter_map(cache).max().unwrap_or(0),
        worker_command: (PathBuf::from("/proc/self/exe"), vec![load_worker::NAME.into()]),
    }
}

/// What is left when the threads have ended.
pub(crate) struct Collected {
    pub(crate) tick: Tick,
    pub(crate) ends: Vec<(u32, ThreadEnd)>,
    pub(crate) failure: Option<WriteError>,
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
            watch: Watch::default(),
            idle: Idle::new(root, options),
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
    pub(crate) fn keeps(&mut self, samples: Option<SampleFile>) {
        self.samples = samples;
    }

    /// Puts the threads into the record.
    pub(crate) fn announce(&mut self, started: &[Started], plan: &Plan, origin: Origin) {
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
        self.pending.beside.states = self.idle.states();
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
        self.pending.notes.extend(self.steps.look(now_ns, steps, cpu));
    }

    fn sample_host(&mut self, now_ns: u64) {
        self.sampled_ns = now_ns;
        self.pending.host = Some(self.sampler.sample(now_ns));
        self.pending.beside.idle = self.idle.sample(now_ns);
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

    fn take(&mut self, tick: rtproof_record::ThreadTick) {
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
        let seen = self.watch.look(&mut self.sampler, now_ns);
        seen.lost.into_iter().for_each(|number| session.stop_one(number));
        self.pending.notes.extend(seen.notes);
        self.pending.beside.marks.extend(seen.marks);
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
    pub(crate) fn request(&mut self, requested: Requested, now_ns: u64) {
        let marks = requested.marks.iter().map(|text| notes::marked(now_ns, text));
        self.pending.notes.extend(marks);
        let Some(specs) = requested.loads else { return };
        self.stop_loads(now_ns);
        self.by_hand = true;
        self.pending.notes.push(notes::load_by_hand(now_ns, &specs));
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
    pub(crate) fn progress(&self, now_ns: u64) -> Progress<'_> {
        Progress {
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
    ) -> Collected {
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
        // A row stands for a second: what is left of one after the last tick would look like a dip.
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
        Collected { tick: self.pending, ends, failure: self.failure }
    }
}

fn load_so_far(live: &Live, now_ns: u64) -> Load {
    let (work, unit) = live.running.work();
    Load {
        name: live.running.spec().to_string(),
        detail: live.running.detail().into(),
        unit: unit.into(),
        work,
        from_ns: live.from_ns,
        to_ns: now_ns,
        error: None,
    }
}

fn load_at_end(outcome: Outcome, from_ns: u64, to_ns: u64) -> Load {
    let Outcome { name, detail, unit, work, error } = outcome;
    Load { name, detail, unit, work, from_ns, to_ns, error }
}

/// What a thread got, as the record holds it.
fn info_of(started: &Started, period_ns: u64, first_due_ns: u64, workload: &str) -> ThreadInfo {
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
fn end_of(report: &Report, lost: bool) -> ThreadEnd {
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
