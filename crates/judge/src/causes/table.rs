//! What the spikes of a run were caused by, as they come: sums for each cause and culprit and CPU,
//! and which spikes are worth keeping with their windows. Bounded, however long the run is.

use std::{cmp::Reverse, collections::BTreeMap};

use rtproof_model::{CauseCpu, CauseRow, RecorderSummary, Span, Structure};
use rtproof_record::spikes::{self, CAUSES_MAX, CauseEntry, WINDOWS_MAX};
use rtproof_trace::WakeUp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::title;
use crate::proof::Share;

/// The spikes of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spikes {
    /// Wake-ups later than this are spikes.
    pub threshold_ns: u64,
    /// Whether the threshold followed the machine, because none was given.
    pub adaptive: bool,
    pub seen: u64,
    pub explained: u64,
    /// Of the explained: with lost events or missing ones, so that the shares may be wrong.
    pub incomplete: u64,
    /// Not explained: too many at once, or nothing was recorded of them.
    pub unexamined: u64,
    /// Sum of the latencies of the explained spikes.
    pub sum_ns: u64,
    pub certain_ns: u64,
    /// How kernel events were recorded.
    pub recorder: RecorderSummary,
    /// What caused them: the largest sum first.
    pub causes: Vec<CauseRow>,
    /// The worst spikes of each cause, worst first.
    pub worst: Vec<ExplainedSpike>,
    /// Periods and coincidences of the spikes, as sentences.
    pub structure: Vec<Structure>,
}

/// One spike of which the window is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedSpike {
    /// Number among the kept ones: `rtproof explain RUN --spike N`.
    pub number: u32,
    /// When it was due, nanoseconds after the first wake-up of the run.
    pub at_ns: u64,
    pub phase: String,
    /// Why it was late.
    pub explanation: Explanation,
}

/// Why a wake-up was late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The wake-up. Times are those of its trace.
    pub wake: WakeUp,
    /// The late task with policy and priority, e.g. `rtproof/1 [FIFO 80]`.
    pub task: String,
    /// When the interrupt began that woke it; `None`: not seen.
    pub irq_ns: Option<u64>,
    /// When it was woken (sched_waking); `None`: not seen.
    pub woken_ns: Option<u64>,
    /// When it was switched to; `None`: not recorded, or it never left the CPU.
    pub switched_ns: Option<u64>,
    /// What each nanosecond from `due_ns` to `ran_ns` went into: in order, without gaps.
    pub spans: Vec<Span>,
    /// The same, summed by cause and culprit: largest first. Sums to the latency exactly.
    pub shares: Vec<Share>,
    /// Why the shares may be wrong: events were lost or were not recorded. Empty: complete.
    pub incomplete: Vec<String>,
    /// Its waker, and the wakers of the waker, nearest first: e.g. `IRQ 24 eth0-rx`.
    pub wakers: Vec<String>,
}

impl Explanation {
    /// The cause with the largest share.
    pub fn top(&self) -> Option<&Share> {
        self.shares.first()
    }

    /// Nanoseconds that can be nothing else.
    pub fn certain_ns(&self) -> u64 {
        self.shares.iter().filter(|share| share.is_certain()).map(|share| share.ns).sum()
    }

    /// Whether it is mostly one of several causes that a stack at the timer interrupt would tell
    /// apart.
    pub fn wants_stacks(&self) -> bool {
        let several = self.shares.iter().filter(|share| !share.alternatives.is_empty());
        several.map(|share| share.ns).sum::<u64>() > self.wake.latency_ns() / 2
    }
}

/// From so many rows on, new culprits of a cause share a row. Leaves one for each cause there is.
const NAMED_MAX: usize = CAUSES_MAX - 56;

/// Culprit of such a row, and cause of what finds no row at all.
pub const OTHERS: &str = "others";

/// Spikes of one cause and culprit that are kept.
pub const KEPT_EACH: usize = 8;

/// Causes of the spikes so far.
#[derive(Debug, Default)]
pub struct CauseTable {
    rows: Vec<Row>,
    places: BTreeMap<(String, String), usize>,
    kept: Vec<Kept>,
    last_number: u32,
    explained: u64,
    incomplete: u64,
    sum_ns: u64,
    certain_ns: u64,
}

#[derive(Debug)]
struct Row {
    number: u32,
    row: CauseRow,
    changed: bool,
}

/// A spike that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    number: u32,
    place: usize,
    latency_ns: u64,
    due_ns: u64,
    tid: i32,
}

impl Kept {
    /// Largest is first to go: the least late; of those alike the one that came last.
    fn rank(&self) -> (Reverse<u64>, u64, i32) {
        (Reverse(self.latency_ns), self.due_ns, self.tid)
    }
}

/// What adding an explanation did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Number under which its window is to be kept; `None`: it is not.
    pub keep: Option<u32>,
    /// Number of the window that no longer is.
    pub drop: Option<u32>,
}

impl CauseTable {
    /// Adds a spike, and says whether its window is to be kept.
    pub fn add(&mut self, explanation: &Explanation) -> Added {
        let latency_ns = explanation.wake.latency_ns();
        self.explained += 1;
        self.incomplete += u64::from(!explanation.incomplete.is_empty());
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
        self.certain_ns = self.certain_ns.saturating_add(explanation.certain_ns());
        let cpu = explanation.wake.cpu;
        // Several shares may go into one row: they are one spike of it.
        let mut sums: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut top = None;
        for share in &explanation.shares {
            let place = self.place(share);
            top = top.or(Some(place));
            let (ns, ambiguous_ns) = sums.entry(place).or_default();
            *ns = ns.saturating_add(share.ns);
            *ambiguous_ns += if share.is_certain() { 0 } else { share.ns };
            self.rows[place].learn(share);
        }
        for (place, (ns, ambiguous_ns)) in sums {
            self.rows[place].add(cpu, ns, ambiguous_ns);
        }
        let Some(top) = top else { return Added::default() };
        self.rows[top].row.top += 1;
        self.offer(top, explanation)
    }

    /// The row of a share; a new one while there is room.
    fn place(&mut self, share: &Share) -> usize {
        let named = (share.cause.clone(), share.culprit.clone());
        let of_cause = (share.cause.clone(), OTHERS.into());
        let any = (OTHERS.into(), OTHERS.into());
        for (key, most) in [(named, NAMED_MAX), (of_cause, CAUSES_MAX - 1), (any, CAUSES_MAX)] {
            if let Some(&place) = self.places.get(&key) {
                return place;
            }
            if self.rows.len() < most {
                let place = self.rows.len();
                self.rows.push(Row::new(place as u32, &key.0, &key.1));
                self.places.insert(key, place);
                return place;
            }
        }
        // The last key has the last place.
        self.rows.len() - 1
    }

    /// Keeps the spike if it is among the worst of its kind, and of all.
    fn offer(&mut self, place: usize, explanation: &Explanation) -> Added {
        let wake = &explanation.wake;
        let new = Kept {
            number: self.last_number + 1,
            place,
            latency_ns: wake.latency_ns(),
            due_ns: wake.due_ns,
            tid: wake.tid,
        };
        self.kept.push(new.clone());
        let of_kind = |kind: usize| move |kept: &&Kept| kept.place == kind;
        let crowd = |kind: usize| self.kept.iter().filter(of_kind(kind)).count();
        // Beyond the bound of all, the kind with the most goes back: every kind keeps its worst.
        let kind = if crowd(place) > KEPT_EACH {
            Some(place)
        } else if self.kept.len() > WINDOWS_MAX {
            (0..self.rows.len()).max_by_key(|&kind| (crowd(kind), kind))
        } else {
            None
        };
        let out = kind.and_then(|kind| {
            let of_it = self.kept.iter().enumerate().filter(|(_, kept)| kept.place == kind);
            of_it.max_by_key(|(_, kept)| kept.rank()).map(|(i, _)| i)
        });
        let out = out.map(|i| self.kept.remove(i).number);
        if out == Some(new.number) {
            return Added::default();
        }
        self.last_number = new.number;
        Added { keep: Some(new.number), drop: out }
    }

    /// The rows that are new or have changed since the last call, as a record holds them.
    pub fn take_changed(&mut self) -> Vec<CauseEntry> {
        let entry = |row: &mut Row| {
            let changed = std::mem::take(&mut row.changed);
            changed.then(|| CauseEntry { number: row.number, row: row.row.clone() })
        };
        self.rows.iter_mut().filter_map(entry).collect()
    }

    /// Puts the sums into the numbers of a run.
    pub fn fill(&self, summary: &mut spikes::SpikeSummary) {
        summary.explained = self.explained;
        summary.incomplete = self.incomplete;
        summary.sum_ns = self.sum_ns;
        summary.certain_ns = self.certain_ns;
        summary.unexamined = summary.seen.saturating_sub(self.explained);
    }
}

impl Row {
    fn new(number: u32, cause: &str, culprit: &str) -> Self {
        let row = CauseRow {
            cause: cause.into(),
            title: title(cause).into(),
            culprit: culprit.into(),
            ..CauseRow::default()
        };
        Self { number, row, changed: true }
    }

    /// Takes over the words of a share: of all of them where they are the row's own.
    fn learn(&mut self, share: &Share) {
        let row = &mut self.row;
        if row.culprit == share.culprit {
            row.owner = row.owner.take().or_else(|| share.owner.clone());
            add_new(&mut row.remedies, &share.remedies);
        }
        if row.cause == share.cause {
            add_new(&mut row.checks, &share.checks);
        }
    }

    fn add(&mut self, cpu: u32, ns: u64, ambiguous_ns: u64) {
        self.changed = true;
        let row = &mut self.row;
        row.count += 1;
        row.worst_ns = row.worst_ns.max(ns);
        row.sum_ns = row.sum_ns.saturating_add(ns);
        row.ambiguous_ns = row.ambiguous_ns.saturating_add(ambiguous_ns);
        let at = row.cpus.partition_point(|of| of.cpu < cpu);
        if row.cpus.get(at).is_none_or(|of| of.cpu != cpu) {
            row.cpus.insert(at, CauseCpu { cpu, count: 0, worst_ns: 0, sum_ns: 0 });
        }
        let of = &mut row.cpus[at];
        of.count += 1;
        of.worst_ns = of.worst_ns.max(ns);
        of.sum_ns = of.sum_ns.saturating_add(ns);
    }
}

/// Remedies and checks of one row, at most.
const WORDS_MAX: usize = 8;

fn add_new<T: Clone + PartialEq>(to: &mut Vec<T>, from: &[T]) {
    for item in from {
        if to.len() < WORDS_MAX && !to.contains(item) {
            to.push(item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_trace::WakeUpBasis;

    use super::*;
    use crate::Remedy;
    use rtproof_model::ShareRow;

    /// A spike with shares of (cause, culprit, nanoseconds, certain), largest first.
    fn spike(cpu: u32, due_ns: u64, shares: &[(&str, &str, u64, bool)]) -> Explanation {
        let share = |&(cause, culprit, ns, certain): &(&str, &str, u64, bool)| {
            let row = ShareRow {
                cause: cause.into(),
                culprit: culprit.into(),
                ns,
                owner: Some("x.service".into()),
                checks: vec!["rt-throttling".into()],
                remedies: vec![Remedy::Manual { text: format!("remove {culprit}") }],
                ..ShareRow::default()
            };
            if certain { Share::assumed(row) } else { row.into() }
        };
        let shares: Vec<Share> = shares.iter().map(share).collect();
        let ns: u64 = shares.iter().map(|share| share.ns).sum();
        let wake = WakeUp { tid: 7, cpu, due_ns, ran_ns: due_ns + ns, how: WakeUpBasis::Measured };
        Explanation {
            wake,
            task: "t".into(),
            irq_ns: None,
            woken_ns: None,
            switched_ns: None,
            spans: Vec::new(),
            shares,
            incomplete: Vec::new(),
            wakers: Vec::new(),
        }
    }

    fn simple(due_ns: u64, culprit: &str, ns: u64) -> Explanation {
        spike(1, due_ns, &[("preempted", culprit, ns, true)])
    }

    #[test]
    fn sums_by_cause_culprit_and_cpu() {
        let mut table = CauseTable::default();
        table.add(&spike(2, 10, &[("preempted", "a", 70, true), ("stall", "", 30, false)]));
        table.add(&spike(1, 20, &[("stall", "", 50, true), ("preempted", "a", 5, true)]));
        // Two shares of one row are one spike of it.
        let mut late = spike(2, 30, &[("stall", "", 40, true), ("stall", "", 20, false)]);
        late.incomplete.push("events were lost".into());
        table.add(&late);
        let rows = table.take_changed();
        let numbers = |CauseEntry { row, .. }: &CauseEntry| {
            (row.top, row.count, row.worst_ns, row.sum_ns, row.ambiguous_ns)
        };
        assert_eq!(rows.len(), 2);
        assert_eq!(numbers(&rows[0]), (1, 2, 70, 75, 0));
        assert_eq!(numbers(&rows[1]), (2, 3, 60, 140, 50));
        let cpus: Vec<_> =
            rows[1].row.cpus.iter().map(|c| (c.cpu, c.count, c.worst_ns, c.sum_ns)).collect();
        assert_eq!(cpus, [(1, 1, 50, 50), (2, 2, 60, 90)]);
        let words = &rows[0].row;
        assert_eq!(words.owner.as_deref(), Some("x.service"));
        assert_eq!((words.checks.len(), words.remedies.len()), (1, 1));
        assert!(table.take_changed().is_empty(), "nothing has changed since");
        table.add(&simple(40, "a", 1));
        assert_eq!(table.take_changed().len(), 1);
        let mut summary = spikes::SpikeSummary { seen: 6, ..spikes::SpikeSummary::default() };
        table.fill(&mut summary);
        let spikes::SpikeSummary { explained, incomplete, unexamined, sum_ns, certain_ns, .. } =
            summary;
        assert_eq!((explained, incomplete, unexamined, sum_ns, certain_ns), (4, 1, 2, 216, 166));
    }

    #[test]
    fn rows_are_bounded_and_nothing_is_left_out() {
        let mut table = CauseTable::default();
        for i in 0..1000 {
            table.add(&simple(i, &format!("task-{i}"), 10));
        }
        for i in 0..200 {
            table.add(&spike(0, 5000 + i, &[(&format!("cause-{i}"), "x", 10, true)]));
        }
        let rows = table.take_changed();
        assert_eq!(rows.len(), CAUSES_MAX);
        assert_eq!(rows.iter().map(|row| row.row.sum_ns).sum::<u64>(), 12_000);
        assert_eq!(rows.iter().map(|row| row.row.top).sum::<u64>(), 1200);
        let others =
            rows.iter().find(|row| row.row.cause == "preempted" && row.row.culprit == OTHERS);
        assert_eq!(others.map(|row| row.row.count), Some(1000 - NAMED_MAX as u64));
        let last = &rows.last().expect("rows").row;
        assert_eq!((last.cause.as_str(), last.culprit.as_str()), (OTHERS, OTHERS));
        // A known cause still finds its own row.
        table.add(&simple(9000, "task-3", 10));
        assert_eq!(table.take_changed()[0].row.culprit, "task-3");
    }

    /// Applies what adding says; returns (latency, number) of the kept ones, worst first.
    fn keep(
        table: &mut CauseTable,
        kept: &mut BTreeMap<u32, u64>,
        explanation: &Explanation,
    ) -> Vec<u64> {
        let added = table.add(explanation);
        if let Some(number) = added.drop {
            kept.remove(&number).expect("it was kept");
        }
        if let Some(number) = added.keep {
            assert_eq!(kept.insert(number, explanation.wake.latency_ns()), None);
        }
        let mut all: Vec<u64> = kept.values().copied().collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn the_worst_of_each_kind_are_kept() {
        let (mut table, mut kept) = (CauseTable::default(), BTreeMap::new());
        for (i, ns) in [5, 9, 1, 7, 3, 8, 2, 6, 4, 10].into_iter().enumerate() {
            keep(&mut table, &mut kept, &simple(i as u64, "a", ns));
        }
        let left = keep(&mut table, &mut kept, &simple(50, "b", 1));
        assert_eq!(left, [1, 3, 4, 5, 6, 7, 8, 9, 10], "eight of a, and the one of b");
        // Of two alike the earlier one stays.
        assert_eq!(table.add(&simple(60, "a", 3)), Added::default());
    }

    #[test]
    fn every_kind_keeps_one_where_there_are_many() {
        let (mut table, mut kept) = (CauseTable::default(), BTreeMap::new());
        for i in 0..16 {
            for n in 0..8 {
                keep(&mut table, &mut kept, &simple(100 * i + n, &format!("a{i}"), 1000 + n));
            }
        }
        assert_eq!(kept.len(), WINDOWS_MAX);
        // 100 rare kinds with a small spike each come in; the crowded ones make room.
        for i in 0..100 {
            let left = keep(&mut table, &mut kept, &simple(9000 + i, &format!("rare-{i}"), 10));
            assert_eq!(left.len(), WINDOWS_MAX);
        }
        assert_eq!(kept.values().filter(|&&ns| ns == 10).count(), 100);
        assert_eq!(kept.values().filter(|&&ns| ns == 1007).count(), 16, "the worst of each");
        let again = |spikes: &[Explanation]| {
            let (mut table, mut kept) = (CauseTable::default(), BTreeMap::new());
            spikes.iter().for_each(|spike| drop(keep(&mut table, &mut kept, spike)));
            kept
        };
        let all: Vec<_> =
            (0..500).map(|i| simple(i, &format!("k{}", i % 40), i * 7919 % 1000)).collect();
        assert_eq!(again(&all), again(&all));
    }
}
