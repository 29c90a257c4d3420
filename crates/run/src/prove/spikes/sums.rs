//! Spikes of a run as they come and are explained: what is asked, what is summed, what goes into
//! the record.

use std::collections::BTreeMap;

use crate::prove::notes::Unexamined;
use rtproof_judge::causes::{self, Explanation, Table};
use rtproof_measure::{Plan, Slot, Spike, Started};
use rtproof_record::{
    SpikeTick,
    spikes::{self, EVENTS_MAX, SPIKES_MAX, Summary, Why},
};
use rtproof_trace::{How, WakeUp, Window};

/// Spikes explained in a second, at most; others are counted.
const ASKED_MAX: u32 = 2000;
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
    table: Table,
    /// Came out of the measuring threads.
    came: u64,
    lost: Unexamined,
    listed: usize,
    /// Asked for and not answered yet, by thread id and due time, with the thread's number.
    waiting: BTreeMap<(i32, u64), (u32, Spike)>,
    /// Asked for in a second, and which one it is.
    asked: (u64, u32),
    tick: SpikeTick,
    /// Of the spike that was explained last.
    last: Option<Why>,
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

    /// Who is measured, and since when.
    pub(super) fn begin(&mut self, plan: &Plan, started: &[Started], origin_ns: u64) {
        let wakes = |s: &Started| plan.workload_of(s.number).wakes();
        let of = |s| wakes(s).then_some((s.tid.cast_signed(), s.cpu));
        self.threads = started.iter().map(of).collect();
        self.origin_ns = origin_ns;
    }

    /// Spikes that a thread could not hand over.
    pub(super) fn learn(&mut self, slot: &Slot) {
        self.lost.dropped += slot.spikes_dropped;
    }

    /// A spike came: `ask` for its window, unless there are too many. It says whether there will be
    /// an answer. `threshold_ns`: what makes a spike.
    pub(crate) fn came(
        &mut self,
        thread: u32,
        spike: Spike,
        threshold_ns: u64,
        ask: impl FnOnce(WakeUp) -> bool,
    ) {
        self.came += 1;
        let second = spike.due_ns / SECOND_NS;
        if self.asked.0 != second {
            self.asked = (second, 0);
        }
        let doublings = (self.waiting.len() / CROWD).min(32);
        let is_worth = spike.latency_ns >> doublings >= threshold_ns || doublings == 0;
        let wake = self.wake_up(thread, spike);
        if let Some(wake) = wake.filter(|_| is_worth && self.asked.1 < ASKED_MAX) {
            self.asked.1 += 1;
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

    fn wake_up(&self, thread: u32, spike: Spike) -> Option<WakeUp> {
        let (tid, cpu) = (*self.threads.get(thread as usize)?)?;
        let ran_ns = spike.due_ns.saturating_add(spike.latency_ns);
        Some(WakeUp { tid, cpu, due_ns: spike.due_ns, ran_ns, how: How::Measured })
    }

    fn list(&mut self, thread: u32, spike: Spike, why: Option<Why>) {
        if self.listed >= SPIKES_MAX {
            return;
        }
        self.listed += 1;
        let due_ns = spike.due_ns.saturating_sub(self.origin_ns);
        let latency_ns = spike.latency_ns;
        self.tick.list.push(spikes::Spike { thread, due_ns, latency_ns, why });
    }

    /// An answer came. Returns the explanation; `None`: nobody had asked.
    pub(crate) fn answered(&mut self, wake: &WakeUp, mut window: Window) -> Option<Explanation> {
        let (thread, spike) = self.waiting.remove(&(wake.tid, wake.due_ns))?;
        if window.events.len() > EVENTS_MAX {
            // What a record cannot hold is left out before it is explained: explained anew it says
            // the same. The last events are those nearest to the spike's end.
            window.events.drain(..window.events.len() - EVENTS_MAX);
            window.cut = true;
        }
        let explanation = causes::explain(wake, &window);
        let why = explanation.top().map(|top| Why {
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
            self.tick.kept.push(spikes::Kept { number, thread, due_ns, latency_ns, window });
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
    pub(super) fn is_waiting(&self) -> bool {
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
    pub(super) fn last_cause(&self) -> Option<(&str, &str)> {
        let why = self.last.as_ref()?;
        Some((causes::title(&why.cause), why.culprit.as_str()))
    }

    /// Those that are not explained.
    pub(super) const fn lost(&self) -> Unexamined {
        self.lost
    }

    /// What came since the last call, with the numbers as they are now.
    pub(crate) fn take(&mut self, mut summary: Summary) -> SpikeTick {
        summary.seen = self.came + self.lost.dropped;
        summary.dropped = self.lost.dropped;
        self.table.fill(&mut summary);
        self.tick.causes = self.table.take_changed();
        self.tick.summary = Some(summary);
        std::mem::take(&mut self.tick)
    }
}

#[cfg(test)]
mod tests {
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
    fn spike(at_ns: u64, latency_ns: u64) -> Spike {
        Spike { due_ns: ORIGIN_NS + at_ns, latency_ns }
    }

    fn ask(sums: &mut Sums, thread: u32, spike: Spike) -> Option<WakeUp> {
        let mut asked = None;
        sums.came(thread, spike, 1000, |wake| {
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
        assert_eq!((wake.ran_ns, wake.how), (ORIGIN_NS + 9070, How::Measured));
        assert!(sums.is_waiting());
        let first = sums.take(Summary::default()).summary.expect("a summary");
        assert_eq!((first.seen, first.explained, first.unexamined), (1, 0, 1), "not yet");
        let explanation = answer(&mut sums, &wake);
        assert_eq!(explanation.wake.latency_ns(), 9000);
        assert!(!sums.is_waiting());
        assert!(sums.answered(&wake, Window::default()).is_none(), "once");
        let tick = sums.take(Summary::default());
        let summary = tick.summary.expect("a summary");
        assert_eq!((summary.seen, summary.explained, summary.unexamined), (1, 1, 0));
        assert_eq!((tick.list.len(), tick.kept.len()), (1, 1));
        assert_eq!((tick.list[0].thread, tick.list[0].due_ns), (1, 70));
        assert!(tick.list[0].why.is_some() && !tick.causes.is_empty());
        assert_eq!((tick.kept[0].number, tick.kept[0].due_ns), (1, 70));
        let rest = sums.take(Summary::default());
        assert!(rest.list.is_empty() && rest.kept.is_empty() && rest.causes.is_empty());
    }

    #[test]
    fn nothing_is_lost_silently() {
        let mut sums = sums();
        sums.learn(&Slot { spikes_dropped: 5, ..Slot::default() });
        // Refused by the recorder, of a thread that is not known, and never answered.
        sums.came(0, spike(1, 9000), 1000, |_| false);
        assert_eq!(ask(&mut sums, 7, spike(2, 9000)), None);
        ask(&mut sums, 0, spike(3, 9000)).expect("asked");
        assert_eq!(ask(&mut sums, 2, spike(4, 9000)), None, "no wake-up");
        sums.give_up();
        let expected = Unexamined { dropped: 5, too_many: 2, unanswered: 1, no_wake_up: 1 };
        assert_eq!(sums.lost(), expected);
        let tick = sums.take(Summary::default());
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
        assert_eq!(sums.waiting.len(), ASKED_MAX as usize);
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
                let tick = sums.take(Summary::default());
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
        let tick = sums.take(Summary::default());
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
            what: rtproof_trace::What::IdleExit,
        };
        let events = (0..EVENTS_MAX as u64 + 5).map(event).collect();
        let window = Window { cpu: 2, events, ..Window::default() };
        let explanation = sums.answered(&wake, window).expect("asked");
        let tick = sums.take(Summary::default());
        assert_eq!(tick.kept[0].window.events.len(), EVENTS_MAX);
        assert_eq!(tick.kept[0].window.events[0].at_ns, 5);
        assert_eq!(causes::explain(&wake, &tick.kept[0].window), explanation);
        assert!(!explanation.incomplete.is_empty());
    }
}
