//! What the spikes of a run have in common: periods, CPUs, load phases, changes of frequency; and
//! what changes of its level do.
//!
//! Late wake-ups come in groups, so groups are counted, never single spikes; nothing is said on
//! fewer than five. All tests of one run are adjusted together (Holm), and a sentence is
//! written where the adjusted p is below 1 %. The same run gives the same sentences.

mod levels;
mod periods;
#[cfg(test)]
mod tests;

pub use levels::{SECONDS_MIN, has_level};

use rtproof_record::{
    Run,
    run::{HostSecond, Phase, Thread},
};
use rtproof_stats::{
    coincidence::{self, CoincidenceOptions},
    paired,
    period::Period,
};

use crate::causes::{Structure, StructureMoment};
use crate::quantity::{self, grouped};

/// What the spikes of a run have in common.
pub fn of_run(run: &Run) -> Vec<Structure> {
    // A record from before spikes were kept has levels all the same.
    let list = run.spikes.as_ref().map_or(&[][..], |recorded| &recorded.list);
    let thread = |number: u32| run.threads.iter().find(|thread| thread.info.number == number);
    let spikes: Vec<SpikeAt<'_>> = list
        .iter()
        .filter_map(|spike| {
            let why = spike.why.as_ref();
            Some(SpikeAt {
                cpu: thread(spike.thread)?.info.cpu,
                at_ns: spike.due_ns,
                latency_ns: spike.latency_ns,
                cause: why.map_or("", |why| &why.cause),
                culprit: why.map_or("", |why| &why.culprit),
            })
        })
        .collect();
    let end = run.threads.iter().map(Thread::written_to_ns).max().unwrap_or(0);
    // A list that is full ends before the run does.
    let seen = run.spikes.as_ref().map_or(0, |recorded| recorded.summary.seen);
    let full = (spikes.len() as u64) < seen;
    let last = spikes.iter().map(|spike| spike.at_ns).max().unwrap_or(0);
    structure(&StructureInput {
        spikes: &spikes,
        host: &run.host,
        phases: &run.options.phases,
        period_ns: run.options.period_ns,
        duration_ns: if full { last.saturating_add(1) } else { end },
        cpus: run.threads.len(),
        levels: &run.threads.iter().map(Levels::of).collect::<Vec<_>>(),
    })
}

/// What spikes have in common: the least likely by chance first.
pub fn structure(input: &StructureInput<'_>) -> Vec<Structure> {
    if input.period_ns == 0 || input.duration_ns == 0 {
        return Vec::new();
    }
    let mut spikes: Vec<SpikeAt<'_>> =
        input.spikes.iter().filter(|spike| spike.at_ns < input.duration_ns).copied().collect();
    spikes.sort_unstable_by_key(|spike| (spike.at_ns, spike.cpu));
    let spikes = SpikeTimes { all: &spikes, input };
    let mut hypotheses = periods::ask_periods(&spikes);
    hypotheses.extend(levels::ask_cpus(&spikes));
    hypotheses.extend(periods::ask_phases(&spikes));
    hypotheses.extend(ask_marks(&spikes));
    hypotheses.extend(levels::ask_levels(&spikes));
    let adjusted =
        paired::adjust(&hypotheses.iter().map(|hypotheses| hypotheses.p).collect::<Vec<_>>());
    let mut found: Vec<Structure> = hypotheses
        .into_iter()
        .zip(adjusted)
        .filter(|&(_, p)| p < LEVEL)
        .filter_map(|(hypotheses, p)| hypotheses.found.map(|found| (found, p)))
        .map(|(found, p)| {
            let text = found.text.replace("{p}", &probability(p));
            Structure { text, p, ..found }
        })
        .collect();
    found.sort_by(|a, b| a.p.total_cmp(&b.p));
    periods::without_echoes(found)
}

// Do spikes come with something that happened: a change of frequency, time taken by the
// hypervisor, the edge of a load phase?

/// Fewest moments for a test.
const MOMENTS_MIN: usize = 3;

/// Times as often as by chance that is spoken of.
const TIMES: f64 = 1.5;

/// Moments at which something happened.
struct Marks {
    kind: &'static str,
    what: &'static str,
    /// CPU number; `None` means all CPUs together.
    cpu: Option<u32>,
    at_ns: Vec<u64>,
    within_ns: u64,
    /// Largest shift for the null distribution.
    most_ns: u64,
}

/// Moments of the whole machine, known to a second.
const fn moments(kind: &'static str, what: &'static str, at_ns: Vec<u64>) -> Marks {
    Marks { kind, what, cpu: None, at_ns, within_ns: SECOND_NS, most_ns: u64::MAX }
}

/// One question for each CPU and kind of moment.
fn ask_marks(spikes: &SpikeTimes<'_>) -> Vec<Hypothesis> {
    let mut marks: Vec<Marks> = Vec::new();
    for cpu in spikes.cpus() {
        marks.push(frequency(spikes, cpu));
        marks.push(steal(spikes, cpu));
    }
    marks.push(edges(spikes));
    marks.iter().filter_map(|marks| of(spikes, marks)).collect()
}

fn of(spikes: &SpikeTimes<'_>, marks: &Marks) -> Option<Hypothesis> {
    let own = |cpu: u32| marks.cpu.is_none_or(|of| of == cpu);
    let groups = spikes.groups(|spike| own(spike.cpu));
    if groups.len() < EVENTS_MIN || marks.at_ns.len() < MOMENTS_MIN {
        return None;
    }
    let ask = CoincidenceOptions {
        window_ns: marks.within_ns,
        duration_ns: spikes.input.duration_ns,
        shifts: SHIFTS,
        least_ns: 3 * marks.within_ns,
        most_ns: marks.most_ns,
        step_ns: 1,
        seed: SEED,
    };
    let found = coincidence::pair(&groups, &marks.at_ns, &ask)?;
    // A bunch of spikes at one moment says as much as one spike, so the moments are tested, too.
    let moments = coincidence::pair(&marks.at_ns, &groups, &ask)?;
    let p = found.p.max(moments.p);
    let enough = found.hits >= EVENTS_MIN as u64 && found.hits as f64 >= TIMES * found.expected;
    let as_structure = || {
        let count = spikes.all.iter().filter(|spike| own(spike.cpu)).count();
        let of = spikes.of(found.hits, &groups, count);
        let cpu = marks.cpu.map_or_else(String::new, |cpu| format!(" of CPU {cpu}"));
        let (what, expected) = (marks.what, expected(found.expected));
        Structure {
            kind: marks.kind.into(),
            text: format!("{of}{cpu} came {what} ({expected} by chance, {{p}})"),
            period_ns: None,
            count: found.hits,
            of: groups.len() as u64,
            p,
            cpu: marks.cpu,
            moments: spikes.times(
                groups.iter().copied().filter(|&at| near(&marks.at_ns, at, marks.within_ns)),
            ),
        }
    };
    Some(Hypothesis { p, found: enough.then(as_structure) })
}

/// Between two rows the frequency changed: anywhere from one to the other.
fn frequency(spikes: &SpikeTimes<'_>, cpu: u32) -> Marks {
    Marks {
        kind: "frequency",
        what: "within a second of a change of its frequency",
        cpu: Some(cpu),
        at_ns: periods::frequencies(spikes.input.host, cpu)
            .iter()
            .map(|change| change.at_ns)
            .collect(),
        within_ns: SECOND_NS,
        most_ns: u64::MAX,
    }
}

/// Seconds in which the hypervisor ran something else.
fn steal(spikes: &SpikeTimes<'_>, cpu: u32) -> Marks {
    let stolen = spikes
        .input
        .host
        .iter()
        .filter(|row| row.cpus.iter().any(|own| own.cpu == cpu && own.steal_ms > 0));
    Marks {
        kind: "steal",
        what: "in a second in which the hypervisor ran something else on its CPU (steal)",
        cpu: Some(cpu),
        at_ns: stolen.map(|row| row.at_ns.saturating_sub(SECOND_NS / 2)).collect(),
        within_ns: SECOND_NS / 2,
        most_ns: u64::MAX,
    }
}

/// Where loads start and end.
fn edges(spikes: &SpikeTimes<'_>) -> Marks {
    let (end, phases) = (spikes.input.duration_ns, spikes.input.phases);
    // Phases of equal length: a shift by a whole phase would meet the next edge.
    let shortest = phases.iter().map(|phase| phase.to_ns.saturating_sub(phase.from_ns)).min();
    let edges = phases.iter().map(|phase| phase.from_ns).filter(|&at| at > 0 && at < end);
    let mut at_ns: Vec<u64> = edges.collect();
    at_ns.sort_unstable();
    Marks {
        kind: "phase",
        what: "within a second of a load's start or end",
        cpu: None,
        at_ns,
        within_ns: SECOND_NS,
        most_ns: shortest.unwrap_or(0).saturating_sub(3 * SECOND_NS),
    }
}

// Shared by all questions: the spikes by time, their run, an answer.

/// Adjusted probability by chance below which a sentence is written.
const LEVEL: f64 = 0.01;

/// Fewest groups of spikes for a test.
const EVENTS_MIN: usize = 5;

/// Number of shifts for the null distribution.
const SHIFTS: u32 = 500;

/// Moments that are kept of one sentence: more than a picture can show apart.
const MOMENTS_MAX: u64 = 500;

/// Seed of the shifts: any will do, as long as it stays.
const SEED: u64 = 0x7274_7072_6f6f_6601;

const SECOND_NS: u64 = 1_000_000_000;

/// One spike: when, where, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpikeAt<'a> {
    pub cpu: u32,
    /// When it was due, nanoseconds after the origin of the run.
    pub at_ns: u64,
    pub latency_ns: u64,
    /// Cause of the largest share, by id; empty: not explained.
    pub cause: &'a str,
    /// Its culprit; empty: none.
    pub culprit: &'a str,
}

/// Input of the search for structure.
#[derive(Clone, Copy, Debug)]
pub struct StructureInput<'a> {
    /// Spikes, in any order.
    pub spikes: &'a [SpikeAt<'a>],
    /// Host counters, one row a second.
    pub host: &'a [HostSecond],
    pub phases: &'a [Phase],
    pub period_ns: u64,
    /// Length of the run.
    pub duration_ns: u64,
    /// CPUs that were measured.
    pub cpus: usize,
    /// The level of each CPU, second by second.
    pub levels: &'a [Levels],
}

/// A tested hypothesis. Each test counts, whatever the result.
struct Hypothesis {
    /// Probability of such a result by chance, not adjusted.
    p: f64,
    /// Makes the finding, with `{p}` for the adjusted probability; `None`: too small an effect.
    found: Option<Structure>,
}

/// The level of one CPU, second by second.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    pub cpu: u32,
    /// Begin of each second, nanoseconds after the origin, and the logarithm of its median.
    pub rows: Vec<(u64, f64)>,
}

/// The spikes by time, and their run.
struct SpikeTimes<'a> {
    all: &'a [SpikeAt<'a>],
    input: &'a StructureInput<'a>,
}

impl<'a> SpikeTimes<'a> {
    /// Starts of the groups among the spikes that are wanted: a gap of ten periods ends a group.
    fn groups(&self, want: impl Fn(&SpikeAt<'a>) -> bool) -> Vec<u64> {
        let gap_ns = self.input.period_ns.saturating_mul(coincidence::GAP_PERIODS);
        coincidence::starts(
            self.all.iter().filter(|spike| want(spike)).map(|spike| spike.at_ns),
            gap_ns,
        )
    }

    /// CPUs with spikes, ascending.
    fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.all.iter().map(|spike| spike.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Moments for a picture: those that it can show apart.
    fn moments(&self, all: impl IntoIterator<Item = (u64, String)>) -> Vec<StructureMoment> {
        let apart_ns = self.input.duration_ns / MOMENTS_MAX;
        let (mut kept, mut next_ns): (Vec<StructureMoment>, u64) = (Vec::new(), 0);
        for (at_ns, text) in all {
            if at_ns >= next_ns && at_ns < self.input.duration_ns {
                kept.push(StructureMoment { at_ns, text });
                next_ns = at_ns.saturating_add(apart_ns.max(1));
            }
        }
        kept
    }

    /// The same, without texts.
    fn times(&self, all: impl IntoIterator<Item = u64>) -> Vec<StructureMoment> {
        self.moments(all.into_iter().map(|at_ns| (at_ns, String::new())))
    }

    /// How many of so many, in words: groups are spikes where each group is one.
    fn of(&self, count: u64, groups: &[u64], spikes: usize) -> String {
        let noun = if groups.len() == spikes { "spikes" } else { "groups of spikes" };
        format!("{} of {} {noun}", grouped(count), grouped(groups.len() as u64))
    }
}

/// Whether one of ascending times lies within a window of this one.
fn near(times: &[u64], time: u64, within_ns: u64) -> bool {
    let next = times.partition_point(|&other| other < time.saturating_sub(within_ns));
    times.get(next).is_some_and(|&other| other <= time.saturating_add(within_ns))
}

// Known sources of periodic interference, by period.

const MS: u64 = 1_000_000;

struct Suspect {
    period_ns: u64,
    title: &'static str,
    /// Whether it works in every cycle: then most of them have a spike, if it is the cause of one.
    every: bool,
}

/// Share of the cycles that have a spike, below which it is not something of every cycle.
const MOST_CYCLES: f64 = 0.5;

const fn every(period_ns: u64, who: &'static str) -> Suspect {
    Suspect { period_ns, title: who, every: true }
}

const fn some(period_ns: u64, who: &'static str) -> Suspect {
    Suspect { period_ns, title: who, every: false }
}

/// Known periods: kernel/time, kernel/watchdog.c, mm/vmstat.c, kernel/sched/{rt,fair}.c,
/// kernel/hung_task.c, arch/x86/kernel/cpu/mce, and machines that were measured.
const SUSPECTS: &[Suspect] = &[
    some(MS, "the tick of a kernel with HZ=1000"),
    some(4 * MS, "the tick of a kernel with HZ=250"),
    some(10 * MS, "the tick of a kernel with HZ=100"),
    some(100 * MS, "the CPU quota of a control group (cpu.max) or of a hypervisor"),
    every(500 * MS, "the kernel's clocksource watchdog"),
    every(SECOND_NS, "vmstat's and many daemons' once-a-second work, and sched_rt_period_us"),
    every(4 * SECOND_NS, "the kernel's lockup detector (kernel.watchdog)"),
    every(5 * SECOND_NS, "the kernel's writeback (vm.dirty_writeback_centisecs)"),
    every(10 * SECOND_NS, "daemons that look every 10 s"),
    every(60 * SECOND_NS, "daemons and cron, which work once a minute"),
    every(120 * SECOND_NS, "the kernel's search for hung tasks"),
    every(300 * SECOND_NS, "the kernel's poll for machine checks (check_interval)"),
    every(840 * SECOND_NS, "system management interrupts of some firmware"),
];

/// Clocks and timers go wrong by less.
const WITHIN: f64 = 5e-4;

/// Known sources of this period, in words: candidates, by the period alone; otherwise what else it
/// may be.
fn suspects_text(found: &Period, cause: &str, sampling_ns: u64) -> String {
    let &Period { period_ns, error_ns, .. } = found;
    let slack = (3.0 * error_ns).max(WITHIN * period_ns);
    let is = |other_ns: f64| (other_ns - period_ns).abs() <= slack;
    if cause == "throttled" && is(1e9) {
        return ": as kernel.sched_rt_period_us".into();
    }
    let fits = |suspect: &&Suspect| !suspect.every || found.occupancy() >= MOST_CYCLES;
    let known = SUSPECTS.iter().filter(fits);
    if let Some(suspect) = known.clone().find(|suspect| is(suspect.period_ns as f64)) {
        return format!(": the period of {}", suspect.title);
    }
    let sampling = time(sampling_ns as f64);
    let beats = |suspect: &&Suspect| beat_ns(suspect.period_ns, sampling_ns).is_some_and(is);
    if let Some(suspect) = known.clone().find(beats) {
        return format!(": the period of {}, seen at every {sampling} only", suspect.title);
    }
    // Faster than the samples, it would show as something slower.
    match period_ns < 1000.0 * sampling_ns as f64 {
        true => format!(
            "; wake-ups every {sampling} may also show something faster so: another period \
             (--period) tells"
        ),
        false => String::new(),
    }
}

/// How something faster than half of the sampling frequency shows in the samples.
fn beat_ns(period_ns: u64, sampling_ns: u64) -> Option<f64> {
    if period_ns >= sampling_ns.saturating_mul(2) {
        return None;
    }
    let turns = sampling_ns as f64 / period_ns as f64;
    let off = (turns - turns.round()).abs();
    (off > 0.0).then(|| sampling_ns as f64 / off)
}

// Numbers of a sentence.

/// A probability: below a billionth all are the same.
fn probability(p: f64) -> String {
    match p {
        p if p < 1e-9 => "p < 1e-9".into(),
        p if p < 0.001 => format!("p = {p:.0e}"),
        p => format!("p = {p:.3}"),
    }
}

/// A period with as many digits as its error leaves, three decimals at most.
fn period(period_ns: f64, error_ns: f64) -> String {
    let (unit_ns, name) = match period_ns {
        p if p >= 999.5e6 => (1e9, "s"),
        p if p >= 999.5e3 => (1e6, "ms"),
        _ => (1e3, "µs"),
    };
    let (value, error) = (period_ns / unit_ns, (error_ns / unit_ns).max(1e-9));
    let decimals = (-error.log10()).ceil().clamp(0.0, 3.0) as usize;
    format!("{value:.decimals$} {name}")
}

fn time(ns: f64) -> String {
    quantity::ns(ns.round() as u64)
}

/// How many would be so by chance.
fn expected(count: f64) -> String {
    match count {
        c if c < 0.1 => "fewer than 0.1".into(),
        c if c < 10.0 => format!("{c:.1}"),
        c => format!("{c:.0}"),
    }
}

#[cfg(test)]
mod suspects_tests {
    use rtproof_stats::period::Fold;

    use super::*;

    fn found(period_ns: f64, error_ns: f64, occupied: u64) -> Period {
        let fold = Fold { phase_ns: 0.0, width_ns: 1e6, follow: occupied, of: 100 };
        let (h, trials, p) = (100.0, 1000, 1e-12);
        let (from_ns, to_ns, cycles) = (0, 100 * period_ns as u64, 100);
        Period { period_ns, error_ns, h, trials, p, fold, from_ns, to_ns, cycles, occupied }
    }

    #[test]
    fn known_unknown_and_beats() {
        let named = |ns, cause| suspects_text(&found(ns, 1_000.0, 60), cause, 1_000_000);
        assert!(named(1.000_2e9, "preempted").contains("vmstat"));
        assert_eq!(named(1.000_2e9, "throttled"), ": as kernel.sched_rt_period_us");
        assert!(named(100.01e6, "stall").contains("hypervisor"));
        assert!(named(123e6, "stall").contains("another period"));
        assert_eq!(named(3.7e9, "stall"), "");
        // A tick of 1 ms, looked at every 997 us: 1 / (1/997us - 1/1ms) = 332.333 ms.
        let beat = suspects_text(&found(332.333e6, 1e3, 60), "", 997_000);
        assert!(beat.contains("HZ=1000, seen at every 997 µs"));
        assert_eq!(beat_ns(MS, MS), None, "in step: it never shows as a period");
        assert!(SUSPECTS.is_sorted_by_key(|suspect| suspect.period_ns));
    }

    #[test]
    fn a_period_of_few_cycles_is_not_named() {
        assert_eq!(suspects_text(&found(1e9, 1e3, 20), "stall", 100_000), "");
        let quota = suspects_text(&found(100e6, 1e3, 20), "stall", 10_000);
        assert!(quota.contains("quota"), "{quota}");
    }
}

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn as_a_person_writes_it() {
        assert_eq!(probability(3e-12), "p < 1e-9");
        assert_eq!(probability(4.4e-5), "p = 4e-5");
        assert_eq!(probability(0.0042), "p = 0.004");
        assert_eq!(period(1_000_012_345.0, 9_000.0), "1.000 s");
        assert_eq!(period(63_720_464.0, 150.0), "63.720 ms");
        assert_eq!(period(999_990_000.0, 2e7), "1.00 s");
        assert_eq!(period(840.2e9, 0.3e9), "840.2 s");
        assert_eq!((expected(0.02), expected(0.72)), ("fewer than 0.1".into(), "0.7".into()));
    }
}
