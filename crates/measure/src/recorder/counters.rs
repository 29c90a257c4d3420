//! Counters next to the events: what the hypervisor, the firmware and quotas took. They are read at
//! every look at the rings, so that what went by over a spike is known.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use rtproof_host::{
    CpuList, Facts, Root,
    facts::kernel::Preemption,
    idle,
    symbols::KernelSymbols,
    task::{self, throttle_file, throttled},
};
use rtproof_stats::{Histogram, Layout};
use rtproof_trace::{
    Decoder, Pages, RingPage, WakeUp, WindowIdleState, WindowSurroundings,
    merge::Merge,
    scan::{self, Scanner, Subjects, ThreadTotals},
};

use super::{Recorder, RecorderError};
use crate::session::{Session, SessionError, SessionPlan};
use crate::slot::Slot;

/// Samples that are kept: five seconds of them.
const SAMPLES_MAX: usize = 256;

/// Groups whose quota is watched.
const GROUPS_MAX: usize = 16;

/// Share of a CPU that reading may take, one part in so many: /proc/stat of a large machine takes
/// milliseconds.
const COST_PARTS: u64 = 400;

#[derive(Debug)]
struct Sample {
    /// When its reading began and ended: a spike in between is in some of the counts.
    from_ns: u64,
    to_ns: u64,
    /// CPU and stolen milliseconds since boot.
    steal_ms: Vec<(u32, u64)>,
    smi: Option<u64>,
    /// As `groups`, which only grows.
    throttled: Vec<Option<u64>>,
}

/// Reads them and keeps some.
#[derive(Debug)]
pub(super) struct CounterReader {
    root: Root,
    cpus: CpuList,
    /// The CPU that is asked for its count of system management interrupts, which all CPUs take
    /// together. Asking interrupts it, so it is no measured one.
    smi_cpu: Option<u32>,
    /// Group and its file.
    groups: Vec<(String, String)>,
    samples: VecDeque<Sample>,
    next_ns: u64,
    /// What never changes, and the idle states of each CPU.
    fixed: WindowSurroundings,
    idle_states: Vec<(u32, Vec<rtproof_host::facts::cpu::IdleState>)>,
}

impl CounterReader {
    pub(super) fn new(root: &Root, facts: &Facts, measured: &CpuList) -> Self {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        // Reading another CPU's register interrupts that; the only CPU reads its own.
        let only = if online.len() == 1 { online.iter().next() } else { None };
        let smi_cpu = online.difference(measured).iter().next().or(only);
        let smi_cpu =
            smi_cpu.filter(|cpu| idle::read_msr(root, *cpu, idle::SMI_COUNT).value().is_some());
        let servers = &facts.sched.fair_server;
        let is_served =
            servers.value().map(|servers| servers.iter().any(|server| server.runtime_ns > 0));
        let fixed = WindowSurroundings {
            // Kernels before 6.12 have none.
            fair_server: is_served.or(servers.is_absent().then_some(false)),
            rt_runtime_us: facts.sched.rt_runtime_us.value().copied(),
            rt_period_us: facts.sched.rt_period_us.value().copied(),
            preempt_rt: facts.kernel.preemption.value().map(|model| *model == Preemption::Rt),
            guest: facts.virt.hypervisor.value().map(Option::is_some),
            ..WindowSurroundings::default()
        };
        let states =
            |cpu: &rtproof_host::facts::cpu::Cpu| Some((cpu.id, cpu.idle_states.value()?.clone()));
        Self {
            root: root.clone(),
            cpus: measured.clone(),
            smi_cpu,
            groups: Vec::new(),
            samples: VecDeque::new(),
            next_ns: 0,
            fixed,
            idle_states: facts.cpus.cpus.iter().filter_map(states).collect(),
        }
    }

    /// Takes a sample, unless the last ones were so dear that it would take too much of a CPU.
    pub(super) fn sample(&mut self, clock: impl Fn() -> u64) {
        let from_ns = clock();
        if from_ns >= self.next_ns {
            let to_ns = self.take(from_ns, &clock);
            self.next_ns = from_ns + to_ns.saturating_sub(from_ns) * COST_PARTS;
        }
    }

    /// Takes one; when it was complete.
    fn take(&mut self, from_ns: u64, clock: impl Fn() -> u64) -> u64 {
        let times = task::times(&self.root, &self.cpus);
        let steal = times.value().into_iter().flatten();
        let mut sample = Sample {
            from_ns,
            to_ns: from_ns,
            steal_ms: steal.map(|times| (times.cpu, times.steal_ms)).collect(),
            smi: self
                .smi_cpu
                .and_then(|cpu| idle::read_msr(&self.root, cpu, idle::SMI_COUNT).value().copied()),
            throttled: self.groups.iter().map(|(_, file)| throttled(&self.root, file)).collect(),
        };
        sample.to_ns = clock();
        let to_ns = sample.to_ns;
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        to_ns
    }

    /// Watches the quota of a group from now on.
    pub(super) fn watch(&mut self, group: &str) {
        let is_known = self.groups.iter().any(|(known, _)| known == group);
        if !is_known && self.groups.len() < GROUPS_MAX {
            let file = throttle_file(&self.root, group);
            self.groups.extend(file.map(|file| (group.to_owned(), file)));
        }
    }

    /// Counters of a CPU between two times, for a task of a group.
    pub(super) fn surroundings(
        &mut self,
        cpu: u32,
        group: Option<&str>,
        from_ns: u64,
        to_ns: u64,
        clock: impl Fn() -> u64,
    ) -> WindowSurroundings {
        if self.samples.back().is_none_or(|last| last.from_ns < to_ns) {
            self.take(clock(), &clock);
        }
        let mut surroundings =
            WindowSurroundings { idle_states: self.idle_states(cpu), ..self.fixed.clone() };
        let after = self.samples.partition_point(|sample| sample.from_ns < to_ns);
        let before = self.samples.partition_point(|sample| sample.to_ns <= from_ns);
        let (Some(before), Some(after)) =
            (before.checked_sub(1).and_then(|at| self.samples.get(at)), self.samples.get(after))
        else {
            return surroundings;
        };
        surroundings.over_ns = after.to_ns.saturating_sub(before.from_ns);
        let steal = |sample: &Sample| {
            sample.steal_ms.iter().find(|(of, _)| *of == cpu).map(|(_, ms)| ms * 1_000_000)
        };
        surroundings.steal_ns = since(steal(before), steal(after));
        surroundings.smi = since(before.smi, after.smi);
        let group = self.groups.iter().position(|(known, _)| Some(known.as_str()) == group);
        let count = |sample: &Sample| *sample.throttled.get(group?)?;
        surroundings.throttled = since(count(before), count(after));
        surroundings
    }

    fn idle_states(&self, cpu: u32) -> BTreeMap<u32, WindowIdleState> {
        let states = self.idle_states.iter().find(|(of, _)| *of == cpu);
        let states = states.into_iter().flat_map(|(_, states)| states);
        let state = |state: &rtproof_host::facts::cpu::IdleState| WindowIdleState {
            name: state.name.clone(),
            exit_latency_ns: state.exit_latency_ns,
        };
        states.map(|known| (known.index, state(known))).collect()
    }
}

/// Counters may step back.
fn since(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

// What recording costs the measured threads, measured and not assumed: short measurements on one
// CPU in pairs, one with the recorder paused and one with it recording.
//
// The order changes from pair to pair, so that a machine that grows busier or calmer meanwhile
// does not look like a cost, and the median of the pairs' differences is reported, because a
// single slice may meet anything.

/// What recording adds to the median latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingCost {
    /// Median over the pairs of p50 with recording less p50 without, nanoseconds.
    pub delta_ns: i64,
    /// Pairs in which both slices had samples.
    pub pairs: u32,
    /// Those differences, nanoseconds, ascending.
    pub deltas_ns: Vec<i64>,
}

/// Why the cost is not known.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The recorder could not be paused.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The threads could not be started.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// No slice had a sample.
    #[error("no wake-up was measured; make the slices longer than the period")]
    Nothing,
}

/// Pairs and length of a slice, nanoseconds, that tell the cost to some tens of nanoseconds on a
/// quiet machine, in about three seconds.
pub const USUAL: (u32, u64) = (8, 100_000_000);

/// Measures the cost with short sessions like `plan`, of `slice_ns` each, on its first CPU. The
/// recorder records afterwards.
///
/// # Errors
/// The recorder or a session cannot be used.
pub fn cost(
    recorder: &Recorder,
    plan: &SessionPlan,
    pairs: u32,
    slice_ns: u64,
) -> Result<RecordingCost, CostError> {
    let cpus = plan.cpus.iter().take(1).copied().collect();
    let plan = SessionPlan { cpus, duration_ns: slice_ns, keeps_samples: false, ..plan.clone() };
    let measured = deltas(recorder, &plan, pairs);
    // Whatever came between: it records afterwards.
    recorder.resume()?;
    let mut deltas_ns = measured?;
    deltas_ns.sort_unstable();
    let delta_ns = median(&deltas_ns).ok_or(CostError::Nothing)?;
    let pairs = u32::try_from(deltas_ns.len()).unwrap_or(u32::MAX);
    Ok(RecordingCost { delta_ns, pairs, deltas_ns })
}

fn deltas(recorder: &Recorder, plan: &SessionPlan, pairs: u32) -> Result<Vec<i64>, CostError> {
    let slice = |records: bool| -> Result<Option<u64>, CostError> {
        if records {
            recorder.resume()?
        } else {
            recorder.pause()?
        }
        Ok(p50_ns(plan)?)
    };
    let mut deltas = Vec::new();
    for pair in 0..pairs {
        let is_first = pair % 2 == 0;
        let (first, second) = (slice(is_first)?, slice(!is_first)?);
        let (with, without) = if is_first { (first, second) } else { (second, first) };
        if let (Some(with), Some(without)) = (with, without) {
            deltas.push(with.cast_signed().saturating_sub(without.cast_signed()));
        }
    }
    Ok(deltas)
}

/// Median latency of one session, of its wake-up view.
fn p50_ns(plan: &SessionPlan) -> Result<Option<u64>, SessionError> {
    let mut wake = Histogram::new(Layout::FINE);
    let mut session = Session::start(plan)?;
    let mut take = |_: u32, slot: &Slot| slot.wake.add_to(&mut wake);
    while !session.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        session.collect(&mut take);
    }
    session.finish(&mut take, |_, _| {});
    let rank = wake.total().div_ceil(2);
    Ok(wake.value_at_rank(rank).filter(|_| !wake.is_empty()))
}

/// Of ascending values; half way between the two in the middle.
fn median(sorted: &[i64]) -> Option<i64> {
    let last = sorted.len().checked_sub(1)?;
    let (low, high) = (sorted.get(last / 2)?, sorted.get(last.div_ceil(2))?);
    Some(low.midpoint(*high))
}

// Late wake-ups of threads that are not measured, found in the events themselves as they come.
//
// The records of all CPUs are needed in order of time, and the rings are read one after the
// other: what is later than the beginning of a look may not be all there yet and waits for the
// next one.

/// Functions of timers that threads sleep on: nanosleep and waits with a timeout, timer_create,
/// timerfd_create.
const SLEEPS: &[&str] = &["hrtimer_wakeup", "posix_timer_fn", "timerfd_tmrproc"];

/// Sub-buffers that may wait to be merged. More come at once only where the reader was kept from
/// running: then finding begins anew.
const BYTES_MAX: usize = 64 << 20;

/// A record is there for the reader when it is written to its end: that of a virtual CPU which the
/// hypervisor stops in the middle comes late. So long is waited for it.
const LATE_NS: u64 = 5_000_000;

#[derive(Debug)]
pub(super) struct WakeUpWatch {
    scanner: Scanner,
    fresh: Fresh,
    /// Records up to here were seen.
    scanned_ns: u64,
}

impl WakeUpWatch {
    pub(super) fn new(
        subjects: &Subjects,
        threshold_ns: u64,
        symbols: Option<&KernelSymbols>,
        decoder: &Decoder,
    ) -> Self {
        let layout = decoder.layout();
        let addresses = symbols.map(|symbols| symbols.addresses_of(SLEEPS)).unwrap_or_default();
        Self {
            scanner: Scanner::new(subjects, threshold_ns, true).with_sleep_functions(addresses),
            fresh: Fresh::new(layout.data_at + layout.data_bytes),
            scanned_ns: 0,
        }
    }

    /// The next sub-buffer of a CPU.
    pub(super) fn push(&mut self, decoder: &Decoder, cpu: u32, page: &[u8]) {
        if self.fresh.bytes > BYTES_MAX {
            self.lost();
        }
        let Ok(parsed) = RingPage::parse(decoder.layout(), page) else {
            self.scanner.lost(cpu);
            return;
        };
        let used = parsed.used_bytes(decoder.layout());
        if !parsed.is_empty() {
            self.fresh.push(cpu, parsed.at_ns(), &page[..used.min(page.len())]);
        }
    }

    /// Earlier events are unknown.
    pub(super) fn lost(&mut self) {
        let cpus = std::mem::take(&mut self.fresh.numbers);
        // Those of which no window can come are counted.
        cpus.iter().for_each(|cpu| drop(self.scanner.lost(*cpu)));
        self.fresh = Fresh::new(self.fresh.page_bytes);
    }

    /// Late wake-ups up to shortly before a time up to which all CPUs are complete.
    pub(super) fn find(
        &mut self,
        decoder: &Decoder,
        complete_ns: u64,
        mut late: impl FnMut(WakeUp),
    ) {
        let until_ns = complete_ns.saturating_sub(LATE_NS);
        let mut merge = Merge::new(&mut self.fresh, decoder.layout());
        loop {
            match merge.next() {
                Ok(Some(merged)) if merged.raw.at_ns > until_ns => break,
                // The last sub-buffer of each CPU comes again: its end was not yet seen.
                Ok(Some(merged)) if merged.raw.at_ns <= self.scanned_ns => {}
                Ok(Some(merged)) => {
                    self.scanner.feed_merged(decoder, &merged).for_each(&mut late);
                }
                Ok(None) => break,
                Err(error) => self.scanner.lost(error.cpu).into_iter().for_each(&mut late),
            }
        }
        drop(merge);
        self.fresh.forget(until_ns);
        self.scanned_ns = self.scanned_ns.max(until_ns);
    }

    /// Wake-ups since the last call, where they are kept.
    pub(super) fn take_kept(&mut self) -> Vec<WakeUp> {
        self.scanner.take_kept()
    }

    /// Follows these threads as well.
    pub(super) fn follow(&mut self, tids: &[i32]) {
        tids.iter().for_each(|tid| self.scanner.follow(*tid));
    }

    /// Tasks that ran instead of the threads.
    pub(super) fn preemptions(&self) -> Vec<scan::PreemptedBy> {
        self.scanner.preemptions().copied().collect()
    }

    /// What was counted of each thread.
    pub(super) fn totals(&self) -> Vec<ThreadTotals> {
        self.scanner.totals().copied().collect()
    }
}

/// Time stamp and bytes of a sub-buffer.
type Stamped = (u64, Box<[u8]>);

/// Sub-buffers that are not yet merged to their end.
#[derive(Debug)]
struct Fresh {
    numbers: Vec<u32>,
    cpus: BTreeMap<u32, VecDeque<Stamped>>,
    bytes: usize,
    page_bytes: usize,
}

impl Fresh {
    const fn new(page_bytes: usize) -> Self {
        Self { numbers: Vec::new(), cpus: BTreeMap::new(), bytes: 0, page_bytes }
    }

    fn push(&mut self, cpu: u32, at_ns: u64, page: &[u8]) {
        if let Err(at) = self.numbers.binary_search(&cpu) {
            self.numbers.insert(at, cpu);
        }
        self.bytes += page.len();
        self.cpus.entry(cpu).or_default().push_back((at_ns, page.into()));
    }

    /// Drops sub-buffers that end before a time: those whose successor begins before it.
    fn forget(&mut self, until_ns: u64) {
        for pages in self.cpus.values_mut() {
            while pages.get(1).is_some_and(|(at_ns, _)| *at_ns <= until_ns) {
                let gone = pages.pop_front().map_or(0, |(_, page)| page.len());
                self.bytes -= gone;
            }
        }
    }
}

impl Pages for Fresh {
    fn cpus(&self) -> &[u32] {
        &self.numbers
    }

    fn count(&self, cpu: u32) -> usize {
        self.cpus.get(&cpu).map_or(0, VecDeque::len)
    }

    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let page = self.cpus.get(&cpu).and_then(|pages| pages.get(index));
        let (_, page) = page.ok_or(io::ErrorKind::InvalidInput)?;
        into.clear();
        into.extend_from_slice(page);
        into.resize(self.page_bytes.max(page.len()), 0);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the machines that they read")]
mod tests {
    use std::{cell::Cell, fs};

    use super::*;

    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::create_dir_all(dir.path().join("sys/fs/cgroup/plc")).unwrap();
        set(&dir, 5, 1);
        dir
    }

    /// Stolen ticks of 10 ms, and periods in which the group was throttled.
    fn set(dir: &tempfile::TempDir, steal: u64, throttled: u64) {
        let stat = format!("cpu  0 0 0 0 0 0 0 0 0 0\ncpu1 1 2 3 4 5 6 7 {steal} 0 0\n");
        fs::write(dir.path().join("proc/stat"), stat).unwrap();
        let stat = format!("nr_periods 9\nnr_throttled {throttled}\n");
        fs::write(dir.path().join("sys/fs/cgroup/plc/cpu.stat"), stat).unwrap();
    }

    #[test]
    fn what_went_by_over_a_spike_is_between_the_samples_round_it() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = CounterReader::new(&root, &Facts::read(&root), &CpuList::new([1]));
        counters.watch("/plc");
        counters.watch("/nothing");
        counters.sample(|| 100);
        counters.sample(|| 200);
        set(&dir, 7, 4);
        counters.sample(|| 300);
        set(&dir, 9, 9);
        counters.sample(|| 400);
        let surroundings = counters.surroundings(1, Some("/plc"), 210, 290, || 500);
        assert_eq!((surroundings.over_ns, surroundings.steal_ns), (100, Some(20_000_000)));
        assert_eq!((surroundings.throttled, surroundings.smi), (Some(3), None));
        let other = counters.surroundings(2, Some("/nothing"), 150, 350, || 500);
        assert_eq!((other.over_ns, other.steal_ns, other.throttled), (300, None, None));
        // Nothing was counted before it: no delta.
        assert_eq!(counters.surroundings(1, None, 50, 150, || 500).over_ns, 0);
        // Nothing was counted after it: that is made up for.
        set(&dir, 10, 9);
        let last = counters.surroundings(1, None, 410, 450, || 500);
        assert_eq!((last.over_ns, last.steal_ns), (100, Some(10_000_000)));
    }

    #[test]
    fn a_sample_that_a_spike_came_into_bounds_it_on_no_side() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = CounterReader::new(&root, &Facts::read(&root), &CpuList::new([1]));
        counters.sample(|| 100);
        // Begun at 400 and complete at 900: what came at 500 is in some of its counts.
        let times = Cell::new(400);
        counters.next_ns = 0;
        counters.sample(|| times.replace(900));
        set(&dir, 7, 1);
        let surroundings = counters.surroundings(1, None, 500, 600, || 1_000);
        assert_eq!((surroundings.over_ns, surroundings.steal_ns), (900, Some(20_000_000)));
        // Nor does it end what began before it and lasted into it.
        let surroundings = counters.surroundings(1, None, 350, 450, || 1_000);
        assert_eq!((surroundings.over_ns, surroundings.steal_ns), (900, Some(20_000_000)));
    }

    #[test]
    fn a_file_that_takes_long_is_read_less_often() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = CounterReader::new(&root, &Facts::read(&root), &CpuList::new([1]));
        let now = Cell::new(0);
        // Each question takes 7 ns.
        let clock = || now.replace(now.get() + 7);
        counters.sample(clock);
        counters.sample(clock);
        assert_eq!(counters.samples.len(), 1, "not yet again");
        now.set(7 * COST_PARTS);
        counters.sample(clock);
        assert_eq!(counters.samples.len(), 2);
    }

    #[test]
    fn samples_are_bounded() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = CounterReader::new(&root, &Facts::read(&root), &CpuList::new([1]));
        (0..1_000).for_each(|at_ns| counters.sample(|| at_ns));
        assert_eq!(counters.samples.len(), SAMPLES_MAX);
        assert_eq!(counters.samples[0].from_ns, 1_000 - SAMPLES_MAX as u64);
    }
}

#[cfg(test)]
mod cost_tests {
    use super::*;

    #[test]
    fn the_median_of_pairs() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7]), Some(7));
        assert_eq!(median(&[-5, 3]), Some(-1));
        assert_eq!(median(&[-5, 3, 900]), Some(3));
    }
}

#[cfg(test)]
mod watch_tests {
    use super::*;

    #[test]
    fn sub_buffers_stay_until_the_next_one_begins_in_time() {
        let mut fresh = Fresh::new(8);
        for (cpu, at_ns) in [(1, 10), (0, 12), (1, 20), (1, 30)] {
            fresh.push(cpu, at_ns, &[7; 4]);
        }
        assert_eq!((fresh.cpus(), fresh.bytes), (&[0, 1][..], 16));
        fresh.forget(19);
        assert_eq!((fresh.count(0), fresh.count(1)), (1, 3), "the next begins later");
        fresh.forget(20);
        assert_eq!((fresh.count(0), fresh.count(1)), (1, 2));
        fresh.forget(1_000);
        assert_eq!((fresh.count(0), fresh.count(1), fresh.bytes), (1, 1, 8), "its end is unseen");
        let mut page = Vec::new();
        fresh.read(1, 0, &mut page).unwrap();
        assert_eq!(page, [7, 7, 7, 7, 0, 0, 0, 0]);
        assert!(fresh.read(1, 1, &mut page).is_err() && fresh.read(2, 0, &mut page).is_err());
    }
}
