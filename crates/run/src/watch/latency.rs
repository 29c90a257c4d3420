//! Latencies as they come, from a run of our own or from the record of another: worst of the last
//! second, of the last minute and since the reset, and the spikes with their causes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::JoinHandle,
};

use anyhow::Context;

use rtproof_host::{Facts, Root};
use rtproof_judge::{
    Report,
    causes::{self, Explanation},
};
use rtproof_measure::{
    loads::{LoadSet, LoadSpec},
    workloads,
};
use rtproof_record::{
    ClockOrigin, News, Options, Tick,
    run::{Note as RunNote, Second, ThreadInfo},
    spikes::{self, CauseEntry, KeptSpike},
};
use rtproof_results::watch::{ThreadLatency, WatchBin, WatchFrame, WatchNote, WatchSpike};
use rtproof_stats::{Histogram, Layout, Moments};
use rtproof_trace::{WakeUp, WakeUpBasis, Window};

use crate::prove::{self, Job, LiveRequest, NoSwitcher, Observer, Output, Signals};

/// Seconds that are shown one by one.
const HISTORY: usize = 120;

/// Seconds of "the last minute".
const MINUTE: usize = 60;

/// Spikes that are kept for the list.
const SPIKES: usize = 200;

/// Notes that are kept.
const NOTES: usize = 100;

/// What was measured so far.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    threads: BTreeMap<u32, Thread>,
    origin: Option<ClockOrigin>,
    has_budget: bool,
    budget_ns: Option<u64>,
    summary: Option<spikes::SpikeSummary>,
    causes: BTreeMap<(String, String), CauseEntry>,
    spikes: VecDeque<spikes::Spike>,
    kept: BTreeSet<(u32, u64)>,
    /// Windows of a run of our own; those of a record stay there.
    windows: BTreeMap<u32, KeptSpike>,
    notes: VecDeque<WatchNote>,
}

#[derive(Debug)]
struct Thread {
    info: ThreadInfo,
    n: u64,
    missed: u64,
    late: u64,
    now_ns: Option<u64>,
    max_ns: Option<u64>,
    history_ns: VecDeque<Option<u64>>,
    histogram: Histogram,
}

impl Latencies {
    /// Of a run with or without a budget.
    pub(super) fn new(budget_ns: Option<u64>) -> Self {
        Self { has_budget: budget_ns.is_some(), budget_ns, ..Self::default() }
    }

    /// A second of a run of our own.
    pub(super) fn tick(&mut self, tick: Tick) {
        self.origin = tick.origin.or(self.origin);
        self.started(tick.started);
        for row in &tick.threads {
            self.second(row.number, &row.second);
        }
        let spikes = tick.spikes;
        self.summary = spikes.summary.or(self.summary.take());
        self.learn(spikes.causes);
        self.add_spikes(spikes.list);
        for number in spikes.dropped {
            if let Some(kept) = self.windows.remove(&number) {
                self.kept.remove(&(kept.thread, kept.due_ns));
            }
        }
        for kept in spikes.kept {
            self.kept.insert((kept.thread, kept.due_ns));
            self.windows.insert(kept.number, kept);
        }
        self.add_notes(tick.notes);
    }

    /// What is new in a record.
    pub(super) fn news(&mut self, news: News) {
        self.origin = news.origin.or(self.origin);
        self.started(news.started);
        for (number, past) in &news.earlier {
            let Some(thread) = self.threads.get_mut(number) else { continue };
            thread.add(past);
        }
        for (number, second) in &news.recent {
            let Some(thread) = self.threads.get_mut(number) else { continue };
            thread.remember(second);
        }
        for (number, second) in &news.seconds {
            self.second(*number, second);
        }
        self.summary = news.summary.or(self.summary.take());
        self.learn(news.causes.unwrap_or_default());
        self.add_spikes(news.spikes);
        self.kept = news.kept.into_iter().collect();
        self.add_notes(news.notes);
    }

    /// Counts anew from now on.
    pub(super) fn reset(&mut self) {
        for thread in self.threads.values_mut() {
            (thread.n, thread.missed, thread.late, thread.max_ns) = (0, 0, 0, None);
            thread.histogram.clear();
        }
    }

    /// Fills in what was measured.
    pub(super) fn fill(&self, frame: &mut WatchFrame) {
        let has_budget = self.has_budget;
        frame.latencies = self.threads.values().map(|thread| thread.shown(has_budget)).collect();
        frame.budget_ns = self.budget_ns;
        frame.threshold_ns = self.summary.as_ref().map(|summary| summary.threshold_ns);
        frame.spikes_seen = self.summary.as_ref().map(|summary| summary.seen);
        let mut all = Histogram::new(Layout::COARSE);
        self.threads.values().for_each(|thread| all.merge(&thread.histogram));
        let bin = |(bucket, n)| WatchBin {
            low_ns: Layout::COARSE.lower(bucket),
            high_ns: Layout::COARSE.upper(bucket),
            n,
        };
        frame.histogram = all.buckets().map(bin).collect();
        frame.spikes = self.spikes.iter().map(|spike| self.shown(spike)).collect();
        frame.notes.extend(self.notes.iter().cloned());
        if let Some(why) = self.summary.as_ref().and_then(|summary| summary.recorder.off.as_ref()) {
            frame.unknown.push(format!("Causes of spikes: kernel events are not recorded: {why}."));
        }
    }

    /// The window of a spike of a run of our own.
    pub(super) fn window(&self, thread: u32, due_ns: u64) -> Option<Window> {
        let is = |kept: &&KeptSpike| kept.thread == thread && kept.due_ns == due_ns;
        self.windows.values().find(is).map(|kept| kept.window.clone())
    }

    /// A spike explained from its window.
    pub(super) fn explain(&self, kept: (u32, u64), window: &Window) -> Option<Explanation> {
        let (thread, due_ns) = kept;
        let is = |spike: &&spikes::Spike| spike.thread == thread && spike.due_ns == due_ns;
        let spike = self.spikes.iter().find(is)?;
        let info = &self.threads.get(&thread)?.info;
        let due_ns = self.origin?.monotonic_ns.saturating_add(spike.due_ns);
        let wake = WakeUp {
            tid: info.tid.cast_signed(),
            cpu: info.cpu,
            due_ns,
            ran_ns: due_ns.saturating_add(spike.latency_ns),
            how: WakeUpBasis::Measured,
        };
        Some(causes::explain(&wake, window))
    }

    /// CPUs that are measured.
    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> {
        self.threads.values().map(|thread| thread.info.cpu)
    }

    fn started(&mut self, threads: Vec<ThreadInfo>) {
        for info in threads {
            self.threads.entry(info.number).or_insert_with(|| Thread::new(info));
        }
    }

    fn second(&mut self, number: u32, second: &Second) {
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.add(second);
            thread.remember(second);
        }
    }

    fn learn(&mut self, causes: Vec<CauseEntry>) {
        for entry in causes {
            let key = (entry.row.cause.clone(), entry.row.culprit.clone());
            self.causes.insert(key, entry);
        }
    }

    fn add_spikes(&mut self, mut new: Vec<spikes::Spike>) {
        new.sort_by_key(|spike| spike.due_ns);
        for spike in new {
            // An explanation may come late: still newest first.
            let at = self.spikes.iter().position(|older| older.due_ns <= spike.due_ns);
            self.spikes.insert(at.unwrap_or(self.spikes.len()), spike);
        }
        self.spikes.truncate(SPIKES);
    }

    fn add_notes(&mut self, notes: Vec<RunNote>) {
        for note in notes {
            let at_realtime_ns = self.realtime_ns(note.at_ns);
            self.notes.push_front(WatchNote { at_realtime_ns, text: note.text });
        }
        self.notes.truncate(NOTES);
    }

    fn realtime_ns(&self, at_ns: u64) -> u64 {
        self.origin.map_or(0, |origin| origin.realtime_ns.saturating_add(at_ns))
    }

    fn shown(&self, spike: &spikes::Spike) -> WatchSpike {
        let why = spike.why.as_ref();
        let row = why.and_then(|why| self.causes.get(&(why.cause.clone(), why.culprit.clone())));
        let row = row.map(|entry| &entry.row);
        let check = |id: &String| format!("rtproof check explain {id}");
        let knob = row.and_then(|row| {
            let remedy = row.remedies.first().map(ToString::to_string);
            remedy.or_else(|| row.checks.first().map(check))
        });
        WatchSpike {
            at_realtime_ns: self.realtime_ns(spike.due_ns),
            thread: spike.thread,
            due_ns: spike.due_ns,
            cpu: self.threads.get(&spike.thread).map_or(0, |thread| thread.info.cpu),
            latency_ns: spike.latency_ns,
            cause: why.map(|why| why.cause.clone()),
            title: why.map_or("not explained", |why| causes::title(&why.cause)).into(),
            culprit: why.map(|why| why.culprit.clone()).unwrap_or_default(),
            complete: why.is_some_and(|why| why.complete),
            knob,
            has_picture: self.kept.contains(&(spike.thread, spike.due_ns)),
        }
    }
}

impl Thread {
    fn new(info: ThreadInfo) -> Self {
        Self {
            info,
            n: 0,
            missed: 0,
            late: 0,
            now_ns: None,
            max_ns: None,
            history_ns: VecDeque::with_capacity(HISTORY),
            histogram: Histogram::new(Layout::COARSE),
        }
    }

    /// Counts a stretch of time.
    fn add(&mut self, second: &Second) {
        let totals = &second.totals;
        self.n += totals.wake.count();
        self.missed += totals.missed;
        self.late += totals.late();
        self.max_ns = self.max_ns.max(totals.wake.max());
        for &(bucket, n) in &second.wake {
            // A bucket that the grid does not have was refused where it was read.
            let _ = self.histogram.add_bucket(usize::from(bucket), n);
        }
    }

    /// A second as the last one.
    fn remember(&mut self, second: &Second) {
        self.now_ns = median_ns(&second.wake, &second.totals.wake);
        self.history_ns.push_back(second.totals.wake.max());
        while self.history_ns.len() > HISTORY {
            self.history_ns.pop_front();
        }
    }

    fn shown(&self, has_budget: bool) -> ThreadLatency {
        let ThreadInfo { number, cpu, tid, ref workload, policy, priority, .. } = self.info;
        let name = policy.name();
        let scheduling = if priority > 0 { format!("{name} {priority}") } else { name.to_owned() };
        ThreadLatency {
            thread: number,
            cpu: Some(cpu),
            tid,
            what: workload.clone(),
            scheduling,
            n: self.n,
            missed: Some(self.missed),
            late: has_budget.then_some(self.late),
            now_ns: self.now_ns,
            second_ns: self.history_ns.back().copied().flatten(),
            minute_ns: self.history_ns.iter().rev().take(MINUTE).copied().max().flatten(),
            max_ns: self.max_ns,
            history_ns: self.history_ns.iter().copied().collect(),
        }
    }
}

/// Upper edge of the bucket that holds the median, never more than the largest sample.
fn median_ns(buckets: &[(u16, u64)], samples: &Moments) -> Option<u64> {
    let half = samples.count().div_ceil(2);
    let mut seen = 0;
    let at = buckets.iter().find(|(_, n)| {
        seen += n;
        seen >= half
    })?;
    Some(Layout::COARSE.upper(usize::from(at.0)).min(samples.max()?))
}

// A run of our own under the view: the engine of `prove` and `measure` in a thread, its seconds
// handed over as they go into the record.

/// What `l` switches on where no load was named.
const DEFAULT_LOAD: &str = "cpu+memory+net+disk";

/// A run to be measured and watched.
#[derive(Debug)]
pub struct MeasuringRun {
    pub options: Options,
    /// What the threads do: one for all, or one for each CPU.
    pub workloads: Vec<String>,
    /// Folder for the files of the disk load.
    pub load_dir: Option<PathBuf>,
    /// Where the record goes.
    pub output: Output,
}

/// How a run of our own ended.
#[derive(Debug)]
pub struct FinishedRun {
    pub record: PathBuf,
    /// Why the record is not sealed.
    pub failure: Option<anyhow::Error>,
}

/// The run that is measured.
#[derive(Debug)]
pub(super) struct Measuring {
    pub(super) latencies: Latencies,
    pub(super) about: String,
    pub(super) record: PathBuf,
    ticks: Receiver<Tick>,
    requested: Arc<Mutex<LiveRequest>>,
    signals: Signals,
    join: JoinHandle<anyhow::Result<FinishedRun>>,
    /// The load that is switched, and whether it runs.
    load: Vec<String>,
    is_loaded: bool,
}

/// Hands seconds over and takes requests back; never waits.
struct Between {
    to: Sender<Tick>,
    requested: Arc<Mutex<LiveRequest>>,
}

impl Observer for Between {
    fn tick(&mut self, tick: &Tick) {
        // A view that is gone needs no more seconds; the record has them.
        let _ = self.to.send(tick.clone());
    }

    fn requested(&mut self) -> LiveRequest {
        match self.requested.try_lock() {
            Ok(mut requested) => std::mem::take(&mut *requested),
            Err(_) => LiveRequest::default(),
        }
    }
}

impl Measuring {
    pub(super) fn start(run: MeasuringRun, signals: &Signals) -> anyhow::Result<Self> {
        let named = run.options.phases.iter().flat_map(|phase| phase.loads.clone());
        let mut load: Vec<String> = named.collect();
        let is_loaded = !load.is_empty();
        if load.is_empty() {
            let set: LoadSet = DEFAULT_LOAD.parse()?;
            load = set.as_slice().iter().map(LoadSpec::to_string).collect();
        }
        let (to, ticks) = mpsc::channel();
        let requested = Arc::<Mutex<LiveRequest>>::default();
        let between = Between { to, requested: Arc::clone(&requested) };
        let latencies = Latencies::new(run.options.requirement.budget_ns);
        let about = about(&run.options, &run.workloads);
        let record = run.output.record.clone();
        let own = signals.clone();
        let join = std::thread::Builder::new()
            .name("rtproof/engine".into())
            .spawn(move || measure(&run, &own, between))
            .context("cannot start the thread of the run")?;
        let signals = signals.clone();
        Ok(Self { latencies, about, record, ticks, requested, signals, join, load, is_loaded })
    }

    /// Takes in what came.
    pub(super) fn take(&mut self) -> Vec<Tick> {
        let ticks: Vec<Tick> = self.ticks.try_iter().collect();
        ticks.iter().for_each(|tick| self.latencies.tick(tick.clone()));
        ticks
    }

    /// Whether nothing is measured any more.
    pub(super) fn is_over(&self) -> bool {
        self.join.is_finished()
    }

    /// The load that runs, as it is written; `idle`: none.
    pub(super) fn load(&self) -> String {
        if self.is_loaded { self.load.join("+") } else { "idle".into() }
    }

    /// Switches the load on or off.
    pub(super) fn switch_load(&mut self) {
        self.is_loaded = !self.is_loaded;
        let loads = if self.is_loaded { self.load.clone() } else { Vec::new() };
        self.request(|requested| requested.loads = Some(loads));
    }

    /// Leaves a mark in the record.
    pub(super) fn mark(&self, text: &str) {
        self.request(|requested| requested.marks.push(text.to_owned()));
    }

    fn request(&self, change: impl FnOnce(&mut LiveRequest)) {
        change(&mut self.requested.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends the run, where it has not ended, and waits for its record.
    pub(super) fn finish(self) -> anyhow::Result<FinishedRun> {
        if !self.join.is_finished() && self.signals.received().is_none() {
            self.signals.quit();
        }
        self.join.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the thread of the run panicked")))
    }
}

fn measure(
    run: &MeasuringRun,
    signals: &Signals,
    mut between: Between,
) -> anyhow::Result<FinishedRun> {
    let root = Root::live();
    let parsed = run.workloads.iter().map(|name| workloads::parse(name));
    let job = Job {
        options: &run.options,
        output: &run.output,
        load_dir: run.load_dir.as_deref(),
        workloads: parsed.collect::<Result<_, _>>()?,
        signals,
    };
    let finishing = prove::run(&root, Facts::read(&root), &job, &mut NoSwitcher, &mut between)?;
    let report = Report::new(&finishing.run, &finishing.integrity());
    let sealed = finishing.seal(&report)?;
    Ok(FinishedRun { record: run.output.record.clone(), failure: sealed.failure })
}

/// `timer-wakeup on CPUs 2-3, fifo 80, 1 ms`.
pub(super) fn about(options: &Options, workloads: &[String]) -> String {
    let what = match workloads {
        [one] => one.clone(),
        many => many.join(", "),
    };
    let priority = match options.priority {
        0 => String::new(),
        priority => format!(" {priority}"),
    };
    format!(
        "{what} on CPU{} {}, {}{priority}, {}",
        if options.cpus.len() == 1 { "" } else { "s" },
        options.cpus,
        options.policy.name(),
        rtproof_judge::units::ns(options.period_ns)
    )
}

#[cfg(test)]
mod tests {
    use rtproof_host::facts::tasks::Policy;
    use rtproof_model::{CauseRow, Remedy};
    use rtproof_record::{SpikeTick, ThreadTick};
    use rtproof_results::watch::{WatchSource, WatchSourceKind};

    use super::*;

    const ORIGIN: ClockOrigin = ClockOrigin { realtime_ns: 1_000_000_000_000, monotonic_ns: 5_000 };

    fn info() -> ThreadInfo {
        ThreadInfo {
            number: 0,
            cpu: 1,
            tid: 77,
            workload: "timer-wakeup".into(),
            policy: Policy::Fifo,
            priority: 80,
            locked: true,
            period_ns: 1_000_000,
            first_due_ns: 0,
        }
    }

    fn second(number: u64, latencies_ns: &[u64]) -> ThreadTick {
        let mut second = Second {
            from_ns: number * 1_000_000_000,
            to_ns: (number + 1) * 1_000_000_000,
            totals: rtproof_stats::Totals::default(),
            max_at_ns: 0,
            wake: Vec::new(),
            missed: Vec::new(),
            intervals: Moments::default(),
        };
        let mut wake = Histogram::new(Layout::FINE);
        for &ns in latencies_ns {
            second.totals.wake.push(ns);
            wake.record(ns);
        }
        second.totals.missed = 2;
        ThreadTick::new(0, second, &wake, &Histogram::new(Layout::FINE), Vec::new())
    }

    fn frame(latencies: &Latencies) -> WatchFrame {
        let source = WatchSource {
            kind: WatchSourceKind::Measuring,
            about: String::new(),
            load: None,
            ended: None,
            record: None,
        };
        let mut frame = WatchFrame::empty(source);
        latencies.fill(&mut frame);
        frame
    }

    fn spike(due_ns: u64, culprit: &str) -> spikes::Spike {
        let why = spikes::MainCause {
            cause: "preempted".into(),
            culprit: culprit.into(),
            complete: true,
        };
        spikes::Spike { thread: 0, due_ns, latency_ns: 9_000, why: Some(why) }
    }

    #[test]
    fn worst_of_the_second_of_the_minute_and_ever() {
        let mut latencies = Latencies::new(None);
        latencies.tick(Tick { started: vec![info()], origin: Some(ORIGIN), ..Tick::default() });
        assert_eq!(frame(&latencies).latencies[0].now_ns, None, "nothing measured yet, not 0");
        for (number, ns) in [(0, 90_000), (1, 7_000)].into_iter().chain((2..70).map(|n| (n, 5_000)))
        {
            let threads = vec![second(number, &[1_000, 2_000, ns])];
            latencies.tick(Tick { threads, ..Tick::default() });
        }
        let shown = frame(&latencies);
        let of = &shown.latencies[0];
        assert_eq!(
            (of.second_ns, of.minute_ns, of.max_ns),
            (Some(5_000), Some(5_000), Some(90_000))
        );
        assert!(of.now_ns.is_some_and(|ns| (2_000..2_100).contains(&ns)), "{of:?}");
        assert_eq!((of.n, of.missed, of.late), (210, Some(140), None));
        assert_eq!(shown.histogram.iter().map(|bin| bin.n).sum::<u64>(), 210);
        latencies.reset();
        let of = &frame(&latencies).latencies[0];
        assert_eq!((of.n, of.max_ns, of.second_ns), (0, None, Some(5_000)));
    }

    #[test]
    fn spikes_newest_first_with_cause_knob_and_picture() {
        let mut latencies = Latencies::new(Some(5_000));
        let row = CauseRow {
            cause: "preempted".into(),
            culprit: "multipathd [RR 99]".into(),
            remedies: vec![Remedy::Command { command: "chrt -o -p 0 4".into() }],
            ..CauseRow::default()
        };
        let kept = KeptSpike {
            number: 1,
            thread: 0,
            due_ns: 20,
            latency_ns: 9_000,
            window: Window { cpu: 1, ..Window::default() },
        };
        let spikes = SpikeTick {
            causes: vec![CauseEntry { number: 0, row }],
            list: vec![spike(30, "x"), spike(20, "multipathd [RR 99]")],
            kept: vec![kept],
            ..SpikeTick::default()
        };
        let started = vec![info()];
        latencies.tick(Tick { started, origin: Some(ORIGIN), spikes, ..Tick::default() });
        // One whose explanation came later.
        let spikes = SpikeTick { list: vec![spike(25, "x")], ..SpikeTick::default() };
        latencies.tick(Tick { spikes, ..Tick::default() });
        let shown = frame(&latencies).spikes;
        assert_eq!(shown.iter().map(|spike| spike.due_ns).collect::<Vec<_>>(), [30, 25, 20]);
        assert_eq!((shown[0].has_picture, &shown[0].knob), (false, &None));
        assert_eq!((shown[2].has_picture, shown[2].cpu), (true, 1));
        assert_eq!(shown[2].knob.as_deref(), Some("chrt -o -p 0 4"));
        assert_eq!(shown[2].at_realtime_ns, ORIGIN.realtime_ns + 20);
        let window = latencies.window(0, 20).expect("kept");
        let explanation = latencies.explain((0, 20), &window).expect("explained");
        assert_eq!((explanation.wake.due_ns, explanation.wake.latency_ns()), (5_020, 9_000));
        let dropped = SpikeTick { dropped: vec![1], ..SpikeTick::default() };
        latencies.tick(Tick { spikes: dropped, ..Tick::default() });
        assert!(frame(&latencies).spikes.iter().all(|spike| !spike.has_picture));
    }
}
