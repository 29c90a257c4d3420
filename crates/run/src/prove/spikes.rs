//! Why wake-ups were late, while it is measured: spikes go from the measuring threads to the
//! recorder, windows come back, are explained, and go into the record.
//!
//! All of it is done by the housekeeping thread, which wakes every 50 ms for it where kernel events
//! are recorded: a spike must be asked for before its events are overwritten, seconds later at the
//! earliest. Without the recorder spikes are taken with the slots, once a second. The recorder has
//! a thread of its own for the rings, on the housekeeping CPUs as well.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use rtproof_host::{Facts, Root, door::Invalid};
use rtproof_judge::causes::{self, CauseTable, Explanation};
use rtproof_measure::{
    LateWakeUp, Session, SessionPlan, Slot, StartedThread,
    recorder::{Recorder, RecorderSettings, counters},
};
use rtproof_record::{
    Options, SpikeTick,
    run::Note,
    spikes::{self, EVENTS_MAX, MainCause, SPIKES_MAX, SpikeSummary},
};
use rtproof_stats::{Histogram, Layout, SlotCounts};
use rtproof_trace::{WakeUp, WakeUpBasis, Window};

use super::notes::{self, Unexamined};

/// How often spikes are asked for while kernel events are recorded.
const POLL_NS: u64 = 50_000_000;

/// After so long explaining waits for the next poll: a thread with full slots ends its run.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Longest wait for answers after the last wake-up.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Explains the spikes of a run.
#[derive(Debug)]
pub(crate) struct Explainer {
    recording: Recording,
    threshold: Threshold,
    sums: Sums,
    /// Windows that are still to be explained.
    ready: VecDeque<(WakeUp, Window)>,
    notes: Vec<Note>,
}

impl Explainer {
    /// Starts the recorder and decides from when on a wake-up is a spike. `plan` gets that
    /// threshold.
    pub(super) fn start(
        root: &Root,
        facts: &Facts,
        options: &Options,
        floor_ns: u64,
        plan: &mut SessionPlan,
    ) -> Self {
        let (recording, notes) = Recording::start(root, facts, options, plan);
        let threshold = Threshold::new(options.spike_ns, floor_ns, options.cpus.len());
        plan.spike_ns = Some(threshold.ns());
        Self { recording, threshold, sums: Sums::default(), ready: VecDeque::new(), notes }
    }

    pub(super) fn begin(&mut self, plan: &SessionPlan, started: &[StartedThread], origin_ns: u64) {
        self.sums.begin(plan, started, origin_ns);
    }

    /// When to poll next; `None`: with the slots.
    pub(super) fn next_poll_ns(&self, now_ns: u64) -> Option<u64> {
        self.recording.is_on().then_some(now_ns + POLL_NS)
    }

    /// Asks for what came and explains what was answered. `now_ns`: after the start.
    pub(super) fn poll(&mut self, session: &mut Session, now_ns: u64) {
        let threshold_ns = self.threshold.ns();
        session.spikes(|thread, spike| {
            self.sums.spike_arrived(thread, spike, threshold_ns, |wake| self.recording.ask(wake));
        });
        self.answers(now_ns, AT_ONCE);
    }

    /// Explains what was answered, for so long. More is taken only when all is explained: the
    /// recorder holds so many answers and no more, which bounds the memory.
    fn answers(&mut self, now_ns: u64, longest: Duration) {
        let start = Instant::now();
        while start.elapsed() < longest {
            if self.ready.is_empty() {
                self.ready.extend(self.recording.take());
            }
            let Some((wake, window)) = self.ready.pop_front() else { return };
            self.answer(&wake, window, now_ns);
        }
    }

    fn answer(&mut self, wake: &WakeUp, window: Window, now_ns: u64) {
        let Some(explanation) = self.sums.answered(wake, window) else { return };
        if !explanation.wants_stacks() {
            return;
        }
        match self.recording.arm_stacks(now_ns) {
            Ok(true) => self.notes.push(notes::stacks(now_ns)),
            Ok(false) => {}
            Err(error) => self.notes.push(notes::no_stacks(now_ns, &error)),
        }
    }

    /// What a thread measured in a second.
    pub(super) fn learn(&mut self, slot: &Slot) {
        self.sums.learn(slot);
        self.threshold.learn(&slot.wake);
    }

    /// What a second brought; moves the threshold.
    pub(super) fn tick(&mut self, session: &Session) -> SpikeTick {
        if let Some(moved_ns) = self.threshold.tick() {
            session.set_spike_ns(moved_ns);
        }
        self.take()
    }

    fn take(&mut self) -> SpikeTick {
        self.sums.take(SpikeSummary {
            threshold_ns: self.threshold.ns(),
            adaptive: self.threshold.is_adaptive(),
            recorder: self.recording.info().clone(),
            ..SpikeSummary::default()
        })
    }

    /// Cause and culprit of the spike that was explained last.
    pub(super) fn last_cause(&self) -> Option<(&str, &str)> {
        self.sums.last_cause()
    }

    /// What the user must know since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// A spike that came out of a thread that has ended.
    pub(super) fn last(&mut self, thread: u32, spike: LateWakeUp) {
        let threshold_ns = self.threshold.ns();
        self.sums.spike_arrived(thread, spike, threshold_ns, |wake| self.recording.ask(wake));
    }

    /// All threads have ended: waits for the answers that are still to come, ends the recorder, and
    /// hands out the rest.
    pub(super) fn finish(mut self, now_ns: u64) -> (SpikeTick, Vec<Note>) {
        let start = Instant::now();
        while self.sums.is_waiting() && start.elapsed() < LAST_ANSWERS {
            std::thread::sleep(Duration::from_millis(5));
            self.answers(now_ns, AT_ONCE);
        }
        self.notes.extend(self.recording.stop(now_ns));
        self.answers(now_ns, Duration::MAX);
        self.sums.give_up();
        let tick = self.take();
        if let (Some(summary), true) = (&tick.summary, self.recording.is_on()) {
            self.notes.extend(notes::of_spikes(
                now_ns,
                summary,
                self.sums.lost(),
                self.recording.info(),
            ));
        }
        (tick, self.notes)
    }
}

// The recorder of kernel events beside a run: started, its cost measured, asked; or left out, with
// the reason. A run never fails for want of it.

/// A run must be as long for the cost to be measured before it.
const COST_FROM_NS: u64 = 5_000_000_000;

/// Pairs of slices and length of each: less than two seconds with starts and ends of the threads.
const COST_PAIRS: u32 = 6;

const COST_SLICE_NS: u64 = 100_000_000;

/// Longest period at which the cost is measured: a slice must hold some wake-ups.
const COST_PERIOD_NS: u64 = 1_000_000;

/// The PID namespace whose numbers kernel events have (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const FIRST_PIDS: &str = "pid:[4026531836]";

/// The recorder of a run, or why there is none.
#[derive(Debug)]
struct Recording {
    recorder: Option<Recorder>,
    info: causes::RecorderSummary,
    arming_failed: bool,
}

impl Recording {
    fn off(why: String) -> Self {
        let info = causes::RecorderSummary { off: Some(why), ..causes::RecorderSummary::default() };
        Self { recorder: None, info, arming_failed: false }
    }

    /// Starts it if it is requested and available, and measures its cost.
    fn start(
        root: &Root,
        facts: &Facts,
        options: &Options,
        plan: &SessionPlan,
    ) -> (Self, Vec<Note>) {
        if !options.trace {
            return (Self::off("--no-trace".into()), vec![notes::trace_left_out()]);
        }
        let workloads = || (0..).zip(&plan.cpus).map(|(number, _)| plan.workload_of(number));
        if !workloads().any(|workload| workload.wakes()) {
            let mut names: Vec<&str> = workloads().map(|workload| workload.name()).collect();
            names.dedup();
            let is_application = workloads().any(|it| it.application_cpus().is_some());
            let why = format!(
                "{} measures no wake-ups by a timer, the only samples whose causes are looked \
                 for{}",
                names.join(", "),
                if is_application {
                    "; for those of the application: rtproof explain --pid"
                } else {
                    ""
                }
            );
            let note = notes::no_wake_ups(&why);
            return (Self::off(why), vec![note]);
        }
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let others = online.difference(&options.cpus);
        let settings =
            RecorderSettings::new(options.cpus.clone(), others, options.housekeeping.clone());
        let recorder = match Recorder::start(root, facts, settings) {
            Ok(recorder) => recorder,
            Err(error) => {
                let why = error.to_string();
                return (Self::off(why.clone()), vec![notes::no_trace(&why)]);
            }
        };
        let mut notes = Vec::new();
        if !recorder.removed().is_empty() {
            notes.push(notes::instances_removed(recorder.removed()));
        }
        if root.read_link("/proc/self/ns/pid").value().is_some_and(|ns| ns != FIRST_PIDS) {
            notes.push(notes::other_pids());
            return (Self::off(notes::OTHER_PIDS.into()), notes);
        }
        let info = causes::RecorderSummary {
            missing: recorder.missing().to_vec(),
            ..causes::RecorderSummary::default()
        };
        if !recorder.missing().is_empty() {
            notes.push(notes::events_missing(recorder.missing()));
        }
        let mut recording = Self { recorder: Some(recorder), info, arming_failed: false };
        notes.push(recording.measure_cost(options, plan));
        (recording, notes)
    }

    /// What it adds to the median, as a note.
    fn measure_cost(&mut self, options: &Options, plan: &SessionPlan) -> Note {
        let Some(recorder) = self.recorder.as_ref().filter(|_| options.duration_ns >= COST_FROM_NS)
        else {
            return notes::trace_cost_unknown("the run is shorter than 5 s");
        };
        let plan = SessionPlan { period_ns: plan.period_ns.min(COST_PERIOD_NS), ..plan.clone() };
        match counters::cost(recorder, &plan, COST_PAIRS, COST_SLICE_NS) {
            Ok(cost) => {
                self.info.cost_p50_ns = Some(cost.delta_ns);
                self.info.cost_pairs = cost.pairs;
                notes::trace_cost(cost.delta_ns, cost.pairs)
            }
            Err(error) => notes::trace_cost_unknown(&error.to_string()),
        }
    }

    /// Whether kernel events are recorded.
    const fn is_on(&self) -> bool {
        self.recorder.is_some()
    }

    /// Asks for a window; whether there will be one.
    fn ask(&self, wake: WakeUp) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.ask(wake))
    }

    /// The windows that are ready.
    fn take(&self) -> Vec<(WakeUp, Window)> {
        self.recorder.as_ref().map_or_else(Vec::new, Recorder::take)
    }

    /// Takes stacks at the timer interrupt from now on, once; `at_ns`: after the start. Returns
    /// whether that is new.
    fn arm_stacks(&mut self, at_ns: u64) -> Result<bool, Invalid> {
        if self.info.stacks_from_ns.is_some() || self.arming_failed {
            return Ok(false);
        }
        let Some(recorder) = &self.recorder else { return Ok(false) };
        match recorder.arm_stack(true) {
            Ok(()) => {
                self.info.stacks_from_ns = Some(at_ns);
                Ok(true)
            }
            Err(error) => {
                self.arming_failed = true;
                Err(error.to_string().into())
            }
        }
    }

    /// Its summary so far.
    fn info(&mut self) -> &causes::RecorderSummary {
        if let Some(recorder) = &self.recorder {
            let stats = recorder.stats();
            self.info.lost_events = stats.lost_events;
            self.info.blind_ns = stats.blind_ns;
        }
        &self.info
    }

    /// Ends it; what was asked for is answered as far as its events are there. Returns what the
    /// user must know of that.
    fn stop(&mut self, now_ns: u64) -> Option<Note> {
        let left = self.recorder.as_mut()?.stop()?;
        Some(notes::instance_left(now_ns, &rtproof_host::tracefs::shown_path(left)))
    }
}

// Spikes of a run as they come and are explained: what is asked, what is summed, what goes into
// the record.

/// Spikes explained in a second, at most; others are counted.
const REQUESTS_MAX: u32 = 2000;

/// With every so many that wait for an answer, a spike must be twice as late to be asked for: where
/// not all can be explained, the worst are.
const CROWD: usize = 256;

const SECOND_NS: u64 = 1_000_000_000;

/// Spikes of a run.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// (thread id, CPU) by number; `None`: its samples are no wake-ups.
    threads: Vec<Option<(i32, u32)>>,
    origin_ns: u64,
    table: CauseTable,
    /// Came out of the measuring threads.
    arrived: u64,
    lost: Unexamined,
    listed: usize,
    /// Asked for and not answered yet, by thread id and due time, with the thread's number.
    waiting: BTreeMap<(i32, u64), (u32, LateWakeUp)>,
    /// Asked for in a second, and which one it is.
    requests_in: (u64, u32),
    tick: SpikeTick,
    /// Of the spike that was explained last.
    last: Option<MainCause>,
}

impl Sums {
    /// Of threads that come later; times count from `origin_ns`.
    pub(crate) fn since(origin_ns: u64) -> Self {
        Self { origin_ns, ..Self::default() }
    }

    /// The next thread, by number.
    pub(crate) fn add(&mut self, tid: i32, cpu: u32) {
        self.threads.push(Some((tid, cpu)));
    }

    /// The measured threads, and since when.
    fn begin(&mut self, plan: &SessionPlan, started: &[StartedThread], origin_ns: u64) {
        let wakes = |s: &StartedThread| plan.workload_of(s.number).wakes();
        let of = |s| wakes(s).then_some((s.tid.cast_signed(), s.cpu));
        self.threads = started.iter().map(of).collect();
        self.origin_ns = origin_ns;
    }

    /// Spikes that a thread could not hand over.
    fn learn(&mut self, slot: &Slot) {
        self.lost.dropped += slot.spikes_dropped;
    }

    /// A spike came: `ask` for its window, unless there are too many. It says whether there will be
    /// an answer. `threshold_ns`: what makes a spike.
    pub(crate) fn spike_arrived(
        &mut self,
        thread: u32,
        spike: LateWakeUp,
        threshold_ns: u64,
        ask: impl FnOnce(WakeUp) -> bool,
    ) {
        self.arrived += 1;
        let second = spike.due_ns / SECOND_NS;
        if self.requests_in.0 != second {
            self.requests_in = (second, 0);
        }
        let doublings = (self.waiting.len() / CROWD).min(32);
        let is_worth = spike.latency_ns >> doublings >= threshold_ns || doublings == 0;
        let wake = self.wake_up(thread, spike);
        if let Some(wake) = wake.filter(|_| is_worth && self.requests_in.1 < REQUESTS_MAX) {
            self.requests_in.1 += 1;
            if ask(wake) {
                self.waiting.insert((wake.tid, wake.due_ns), (thread, spike));
                return;
            }
        }
        match self.threads.get(thread as usize) {
            Some(None) => self.lost.no_wake_up += 1,
            _ => self.lost.too_many += 1,
        }
        self.list(thread, spike, None);
    }

    fn wake_up(&self, thread: u32, spike: LateWakeUp) -> Option<WakeUp> {
        let (tid, cpu) = (*self.threads.get(thread as usize)?)?;
        let ran_ns = spike.due_ns.saturating_add(spike.latency_ns);
        Some(WakeUp { tid, cpu, due_ns: spike.due_ns, ran_ns, how: WakeUpBasis::Measured })
    }

    fn list(&mut self, thread: u32, spike: LateWakeUp, why: Option<MainCause>) {
        if self.listed >= SPIKES_MAX {
            return;
        }
        self.listed += 1;
        let due_ns = spike.due_ns.saturating_sub(self.origin_ns);
        let latency_ns = spike.latency_ns;
        self.tick.list.push(spikes::Spike { thread, due_ns, latency_ns, why });
    }

    /// An answer came. Returns the explanation; `None`: not requested.
    pub(crate) fn answered(&mut self, wake: &WakeUp, mut window: Window) -> Option<Explanation> {
        let (thread, spike) = self.waiting.remove(&(wake.tid, wake.due_ns))?;
        if window.events.len() > EVENTS_MAX {
            // What a record cannot hold is left out before it is explained: explained anew it says
            // the same. The last events are those nearest to the spike's end.
            window.events.drain(..window.events.len() - EVENTS_MAX);
            window.cut = true;
        }
        let explanation = causes::explain(wake, &window);
        let why = explanation.top().map(|top| MainCause {
            cause: top.cause.clone(),
            culprit: top.culprit.clone(),
            complete: explanation.incomplete.is_empty(),
        });
        self.last = why.clone().or(self.last.take());
        self.list(thread, spike, why);
        let added = self.table.add(&explanation);
        if let Some(number) = added.drop {
            self.forget(number);
        }
        if let Some(number) = added.keep {
            let due_ns = spike.due_ns.saturating_sub(self.origin_ns);
            let latency_ns = spike.latency_ns;
            self.tick.kept.push(spikes::KeptSpike { number, thread, due_ns, latency_ns, window });
        }
        Some(explanation)
    }

    /// A window that is no longer kept: it may not have been written yet.
    fn forget(&mut self, number: u32) {
        let before = self.tick.kept.len();
        self.tick.kept.retain(|kept| kept.number != number);
        if self.tick.kept.len() == before {
            self.tick.dropped.push(number);
        }
    }

    /// Whether answers are still to come.
    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// No more answers will come.
    pub(crate) fn give_up(&mut self) {
        self.lost.unanswered += self.waiting.len() as u64;
        for (thread, spike) in std::mem::take(&mut self.waiting).into_values() {
            self.list(thread, spike, None);
        }
    }

    /// Cause and culprit of the spike that was explained last.
    fn last_cause(&self) -> Option<(&str, &str)> {
        let why = self.last.as_ref()?;
        Some((causes::title(&why.cause), why.culprit.as_str()))
    }

    /// Those that are not explained.
    const fn lost(&self) -> Unexamined {
        self.lost
    }

    /// What came since the last call, with the numbers as they are now.
    pub(crate) fn take(&mut self, mut summary: SpikeSummary) -> SpikeTick {
        summary.seen = self.arrived + self.lost.dropped;
        summary.dropped = self.lost.dropped;
        self.table.fill(&mut summary);
        self.tick.causes = self.table.take_changed();
        self.tick.summary = Some(summary);
        std::mem::take(&mut self.tick)
    }
}

// The threshold of spikes if none is given: it follows the machine.
//
// It begins at four times what the machine needs to turn round, 20 µs at least, and is looked at
// once a second: where more than about twenty wake-ups a second and CPU are beyond it, or fewer
// than one, it moves to where ten, or five, of the last second were. It takes more than one quiet
// second to go far down, and it never goes to where wake-ups are ordinary.

/// It never begins below this.
const FIRST_MIN_NS: u64 = 20_000;

/// It never goes below this.
const MIN_NS: u64 = 5_000;

/// Spikes a second and CPU that are too many, and the number then aimed at.
const TOO_MANY: u64 = 20;

const FROM_MANY: u64 = 10;

/// Fewer than one in a second is too few; the number then aimed at.
const FROM_FEW: u64 = 5;

/// The threshold of a run.
#[derive(Debug)]
struct Threshold {
    ns: u64,
    adaptive: bool,
    cpus: u64,
    second: Histogram,
}

impl Threshold {
    /// As asked, or following the machine. `floor_ns`: what it needs to turn round.
    fn new(asked_ns: Option<u64>, floor_ns: u64, cpus: usize) -> Self {
        Self {
            ns: asked_ns.unwrap_or_else(|| first_ns(floor_ns)),
            adaptive: asked_ns.is_none(),
            cpus: cpus as u64,
            second: Histogram::new(Layout::FINE),
        }
    }

    const fn ns(&self) -> u64 {
        self.ns
    }

    const fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// What a thread measured in a second.
    fn learn(&mut self, wake: &SlotCounts) {
        if self.adaptive {
            wake.add_to(&mut self.second);
        }
    }

    /// A second is over. Returns the threshold if it has moved.
    fn tick(&mut self) -> Option<u64> {
        let moved_ns = self.moved_ns();
        self.second.clear();
        if moved_ns == self.ns {
            return None;
        }
        self.ns = moved_ns;
        Some(moved_ns)
    }

    fn moved_ns(&self) -> u64 {
        let n = self.second.total();
        // At long periods a second has few wake-ups: at most one in fifty of them is a spike.
        let rank = |spikes: u64| n - (spikes * self.cpus).min(n / 50);
        let beyond = |spikes: u64| self.second.value_at_rank(rank(spikes));
        let (Some(many), Some(few), Some(median)) =
            (beyond(TOO_MANY), beyond(1), self.second.value_at_rank(n.div_ceil(2)))
        else {
            return self.ns;
        };
        if many > self.ns {
            return beyond(FROM_MANY).map_or(self.ns, |ns| ns.max(self.ns));
        }
        if few <= self.ns {
            let lowest_ns = MIN_NS.max(2 * median).max(self.ns / 2);
            return beyond(FROM_FEW).map_or(self.ns, |ns| ns.max(lowest_ns).min(self.ns));
        }
        self.ns
    }
}

fn first_ns(floor_ns: u64) -> u64 {
    FIRST_MIN_NS.max(floor_ns.saturating_mul(4))
}

#[cfg(test)]
mod sums_tests {
    use std::collections::BTreeMap;

    use super::*;

    const ORIGIN_NS: u64 = 5_000_000_000;

    fn sums() -> Sums {
        Sums {
            threads: vec![Some((100, 2)), Some((101, 3)), None],
            origin_ns: ORIGIN_NS,
            ..Sums::default()
        }
    }

    /// A spike of a thread, due so long after the start.
    fn spike(at_ns: u64, latency_ns: u64) -> LateWakeUp {
        LateWakeUp { due_ns: ORIGIN_NS + at_ns, latency_ns }
    }

    fn ask(sums: &mut Sums, thread: u32, spike: LateWakeUp) -> Option<WakeUp> {
        let mut asked = None;
        sums.spike_arrived(thread, spike, 1000, |wake| {
            asked = Some(wake);
            true
        });
        asked
    }

    fn answer(sums: &mut Sums, wake: &WakeUp) -> Explanation {
        let window = Window { cpu: wake.cpu, ..Window::default() };
        sums.answered(wake, window).expect("it was asked for")
    }

    #[test]
    fn what_is_answered_is_listed_summed_and_kept() {
        let mut sums = sums();
        let wake = ask(&mut sums, 1, spike(70, 9000)).expect("asked");
        assert_eq!((wake.tid, wake.cpu, wake.due_ns), (101, 3, ORIGIN_NS + 70));
        assert_eq!((wake.ran_ns, wake.how), (ORIGIN_NS + 9070, WakeUpBasis::Measured));
        assert!(sums.is_waiting());
        let first = sums.take(SpikeSummary::default()).summary.expect("a summary");
        assert_eq!((first.seen, first.explained, first.unexamined), (1, 0, 1), "not yet");
        let explanation = answer(&mut sums, &wake);
        assert_eq!(explanation.wake.latency_ns(), 9000);
        assert!(!sums.is_waiting());
        assert!(sums.answered(&wake, Window::default()).is_none(), "once");
        let tick = sums.take(SpikeSummary::default());
        let summary = tick.summary.expect("a summary");
        assert_eq!((summary.seen, summary.explained, summary.unexamined), (1, 1, 0));
        assert_eq!((tick.list.len(), tick.kept.len()), (1, 1));
        assert_eq!((tick.list[0].thread, tick.list[0].due_ns), (1, 70));
        assert!(tick.list[0].why.is_some() && !tick.causes.is_empty());
        assert_eq!((tick.kept[0].number, tick.kept[0].due_ns), (1, 70));
        let rest = sums.take(SpikeSummary::default());
        assert!(rest.list.is_empty() && rest.kept.is_empty() && rest.causes.is_empty());
    }

    #[test]
    fn nothing_is_lost_silently() {
        let mut sums = sums();
        sums.learn(&Slot { spikes_dropped: 5, ..Slot::default() });
        // Refused by the recorder, of a thread that is not known, and never answered.
        sums.spike_arrived(0, spike(1, 9000), 1000, |_| false);
        assert_eq!(ask(&mut sums, 7, spike(2, 9000)), None);
        ask(&mut sums, 0, spike(3, 9000)).expect("asked");
        assert_eq!(ask(&mut sums, 2, spike(4, 9000)), None, "no wake-up");
        sums.give_up();
        let expected = Unexamined { dropped: 5, too_many: 2, unanswered: 1, no_wake_up: 1 };
        assert_eq!(sums.lost(), expected);
        let tick = sums.take(SpikeSummary::default());
        let summary = tick.summary.expect("a summary");
        assert_eq!((summary.seen, summary.unexamined, summary.dropped), (9, 9, 5));
        assert_eq!(tick.list.len(), 4);
        assert!(tick.list.iter().all(|spike| spike.why.is_none()));
    }

    #[test]
    fn of_too_many_the_worst_are_asked_for() {
        let mut sums = sums();
        let asked = |sums: &mut Sums, at: u64, ns: u64| ask(sums, 0, spike(at, ns)).is_some();
        for at in 0..256 {
            assert!(asked(&mut sums, at, 1001));
        }
        assert!(!asked(&mut sums, 300, 1999));
        for at in 1000..1256 {
            assert!(asked(&mut sums, at, 2000));
        }
        assert!(!asked(&mut sums, 2000, 3999) && asked(&mut sums, 2001, 4000));
        // A second has its bound, however late they are.
        for at in 10_000..20_000 {
            let _ = asked(&mut sums, at, u64::MAX / 2);
        }
        assert_eq!(sums.waiting.len(), REQUESTS_MAX as usize);
        assert!(asked(&mut sums, SECOND_NS, u64::MAX / 2), "a new second");
    }

    #[test]
    fn the_list_and_the_windows_are_bounded_and_agree_with_the_record() {
        let mut sums = sums();
        let mut kept = BTreeMap::new();
        let mut listed = 0;
        for at in 0..SPIKES_MAX as u64 + 10 {
            let spike = spike(at * 1_000_000, 2000 + at);
            let wake = ask(&mut sums, 0, spike).expect("asked");
            answer(&mut sums, &wake);
            if at % 100 == 0 {
                let tick = sums.take(SpikeSummary::default());
                listed += tick.list.len();
                for number in tick.dropped {
                    kept.remove(&number).expect("it was written");
                }
                for new in tick.kept {
                    assert!(kept.insert(new.number, new.latency_ns).is_none());
                }
                assert!(kept.len() <= spikes::WINDOWS_MAX);
            }
        }
        assert_eq!(listed + sums.tick.list.len(), SPIKES_MAX);
        let tick = sums.take(SpikeSummary::default());
        assert_eq!(tick.summary.map(|s| s.explained), Some(SPIKES_MAX as u64 + 10));
    }

    #[test]
    fn a_window_too_large_for_the_record_is_cut_before_it_is_explained() {
        let mut sums = sums();
        let wake = ask(&mut sums, 0, spike(1, 9000)).expect("asked");
        let event = |at_ns| rtproof_trace::Event {
            at_ns,
            cpu: 2,
            pid: 0,
            flags: 0,
            preempt: 0,
            what: rtproof_trace::EventData::IdleExit,
        };
        let events = (0..EVENTS_MAX as u64 + 5).map(event).collect();
        let window = Window { cpu: 2, events, ..Window::default() };
        let explanation = sums.answered(&wake, window).expect("asked");
        let tick = sums.take(SpikeSummary::default());
        assert_eq!(tick.kept[0].window.events.len(), EVENTS_MAX);
        assert_eq!(tick.kept[0].window.events[0].at_ns, 5);
        assert_eq!(causes::explain(&wake, &tick.kept[0].window), explanation);
        assert!(!explanation.incomplete.is_empty());
    }
}

#[cfg(test)]
mod threshold_tests {
    use super::*;

    /// A second of a thousand wake-ups at 4 µs, but for so many at another latency.
    fn second(others: &[(u64, u64)]) -> SlotCounts {
        let mut wake = SlotCounts::default();
        let n: u64 = others.iter().map(|&(_, n)| n).sum();
        wake.record_n(4000, 1000 - n);
        others.iter().for_each(|&(ns, n)| wake.record_n(ns, n));
        wake
    }

    fn after(threshold: &mut Threshold, wake: &SlotCounts) -> u64 {
        threshold.learn(wake);
        threshold.tick();
        threshold.ns()
    }

    #[test]
    fn what_was_asked_stays() {
        let mut threshold = Threshold::new(Some(1000), 9000, 1);
        assert!(!threshold.is_adaptive());
        assert_eq!(after(&mut threshold, &second(&[(90_000, 500)])), 1000);
    }

    #[test]
    fn it_begins_above_what_the_machine_needs() {
        assert_eq!(Threshold::new(None, 2000, 1).ns(), 20_000);
        assert_eq!(Threshold::new(None, 50_000, 1).ns(), 200_000);
    }

    #[test]
    fn it_follows_the_machine_and_stays_where_it_fits() {
        let mut threshold = Threshold::new(None, 0, 1);
        // 100 of 30 µs and 10 of 70 µs: ten a second are left.
        let loud = second(&[(30_000, 100), (70_000, 10)]);
        let raised = after(&mut threshold, &loud);
        assert!((30_000..70_000).contains(&raised), "{raised}");
        assert_eq!(after(&mut threshold, &loud), raised, "ten are neither many nor few");
        // Nothing beyond: halfway down at most, and never to where wake-ups are ordinary.
        let quiet = second(&[]);
        assert_eq!(after(&mut threshold, &quiet), raised / 2);
        for _ in 0..20 {
            after(&mut threshold, &quiet);
        }
        let lowest = threshold.ns();
        assert!((8000..8100).contains(&lowest), "twice the median: {lowest}");
        // A second without a wake-up is ignored.
        assert_eq!(after(&mut threshold, &SlotCounts::default()), lowest);
    }

    #[test]
    fn it_counts_per_cpu_and_few_wake_ups_are_not_all_spikes() {
        let mut threshold = Threshold::new(None, 0, 4);
        // 60 of 4000 wake-ups on four CPUs: 15 each.
        for _ in 0..3 {
            threshold.learn(&second(&[]));
        }
        assert_eq!(after(&mut threshold, &second(&[(30_000, 60)])), 20_000);
        // At a period of 100 ms there are ten wake-ups a second, and all of them are 50 µs late.
        let mut threshold = Threshold::new(None, 0, 1);
        let mut slow = SlotCounts::default();
        slow.record_n(50_000, 10);
        assert!(after(&mut threshold, &slow) >= 50_000);
    }
}
