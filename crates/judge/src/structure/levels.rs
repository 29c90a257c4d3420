//! Does the level of latency change during the run, and does it change with something else?
//!
//! The level is the median of each second. Its changes are reported separately, and asked for
//! company by the one coincidence function: changes of frequency, jumps of temperature, starts and
//! ends of loads, bursts of interrupts.

use rtproof_record::run::{HostSecond, Second, Thread};
use rtproof_stats::{
    Layout, change,
    coincidence::{self, Coincidence, CoincidenceOptions},
    samples,
};

use super::periods::Company;
use super::{EVENTS_MIN, Hypothesis, Levels, SECOND_NS, SEED, SHIFTS, SpikeTimes, near, periods};
use crate::causes::{Structure, StructureMoment};
use crate::quantity;

/// Seconds below which level changes are not searched.
pub const SECONDS_MIN: usize = 30;

/// Changes of level by less, as a share, are not spoken of.
const SHARE_MIN: f64 = 0.03;

/// Noise of a median is never taken for less: cells are 3.1 % wide.
const LEAST_SD: f64 = 0.004;

/// Changes with company that are spoken of.
const HITS_MIN: u64 = 2;

impl Levels {
    pub fn of(thread: &Thread) -> Self {
        let row = |second: &Second| Some((second.from_ns, median(second)?.max(1.0).ln()));
        Self { cpu: thread.info.cpu, rows: thread.seconds.iter().filter_map(row).collect() }
    }

    /// Whether a row is longer than two seconds, as usual in this run.
    fn is_coarse(&self) -> bool {
        let [(first, _), .., (last, _)] = self.rows.as_slice() else { return false };
        last.saturating_sub(*first) / (self.rows.len() as u64 - 1) > 2 * SECOND_NS
    }
}

/// Whether a thread has seconds enough to look for changes of its level.
pub fn has_level(thread: &Thread) -> bool {
    thread.seconds.iter().filter(|second| median(second).is_some()).take(SECONDS_MIN).count()
        == SECONDS_MIN
}

/// The median of a second, nanoseconds: its place within its cell is that of its rank.
fn median(second: &Second) -> Option<f64> {
    let n: u64 = second.wake.iter().map(|&(_, n)| n).sum();
    let (half, mut below) = (n as f64 / 2.0, 0_u64);
    second.wake.iter().find_map(|&(cell, n)| {
        below += n;
        if (below as f64) < half || n == 0 {
            return None;
        }
        let layout = Layout::COARSE;
        // A cell outside the grid was refused when the record was read.
        let cell = usize::from(cell).min(layout.len() - 1);
        let (low, high) = (layout.lower(cell) as f64, layout.upper(cell) as f64 + 1.0);
        Some(low + (high - low) * (half - (below - n) as f64) / n as f64)
    })
}

/// One question for each CPU, and one for each kind of company of its changes.
pub(super) fn ask_levels(spikes: &SpikeTimes<'_>) -> Vec<Hypothesis> {
    spikes.input.levels.iter().flat_map(|levels| levels_of_cpu(spikes, levels)).collect()
}

fn levels_of_cpu(spikes: &SpikeTimes<'_>, levels: &Levels) -> Vec<Hypothesis> {
    if levels.rows.len() < SECONDS_MIN {
        return Vec::new();
    }
    let values: Vec<f64> = levels.rows.iter().map(|row| row.1).collect();
    let steps: Vec<(u64, change::LevelStep)> = change::steps(&values, LEAST_SD)
        .into_iter()
        .filter(|step| (step.after - step.before).exp_m1().abs() >= SHARE_MIN)
        .map(|step| (levels.rows[step.at].0, step))
        .collect();
    let neighbours = Company::of(spikes.input, levels.cpu);
    let mut hypotheses = vec![changes(spikes, levels, &steps, &neighbours)];
    let times: Vec<u64> = steps.iter().map(|&(at_ns, _)| at_ns).collect();
    let host = spikes.input.host;
    let hotter = periods::temperatures(host).iter().map(|change| change.at_ns).collect();
    let company = [
        super::frequency(spikes, levels.cpu),
        super::edges(spikes),
        super::moments("temperature", "within a second of a jump of temperature", hotter),
        super::moments("interrupts", "within a second of a burst of interrupts", bursts(host)),
    ];
    hypotheses.extend(company.iter().filter_map(|marks| with(spikes, levels.cpu, &times, marks)));
    hypotheses
}

/// The changes alone: the largest one is reported, with simultaneous readings.
fn changes(
    spikes: &SpikeTimes<'_>,
    levels: &Levels,
    steps: &[(u64, change::LevelStep)],
    neighbours: &Company,
) -> Hypothesis {
    let size = |step: &change::LevelStep| (step.after - step.before).abs();
    let Some((at_ns, largest)) = steps.iter().max_by(|a, b| size(&a.1).total_cmp(&size(&b.1)))
    else {
        return Hypothesis { p: 1.0, found: None };
    };
    let ns = |ln: f64| quantity::ns(ln.exp().round() as u64);
    let times = match steps.len() {
        1 => "once".into(),
        n => format!("{}, most", quantity::times(n as u64)),
    };
    let cpu = levels.cpu;
    // Of a long run a row is minutes.
    let about = if levels.is_coarse() { "about " } else { "" };
    let text = format!(
        "the median latency of CPU {cpu} changed {times} at {about}{} s, from {} to {} ({{p}}){}",
        at_ns / SECOND_NS,
        ns(largest.before),
        ns(largest.after),
        neighbours.sentence(*at_ns)
    );
    let found = Structure {
        kind: "level".into(),
        text,
        period_ns: None,
        count: steps.len() as u64,
        of: steps.len() as u64,
        p: largest.p,
        cpu: Some(cpu),
        moments: spikes.moments(steps.iter().map(|(at_ns, step)| {
            let level = format!("{} → {}", ns(step.before), ns(step.after));
            (*at_ns, level + &neighbours.short(*at_ns))
        })),
    };
    Hypothesis { p: largest.p, found: Some(found) }
}

/// Whether the changes come with something that happened.
fn with(
    spikes: &SpikeTimes<'_>,
    cpu: u32,
    times: &[u64],
    marks: &super::Marks,
) -> Option<Hypothesis> {
    if times.len() < HITS_MIN as usize || marks.at_ns.is_empty() {
        return None;
    }
    let ask = CoincidenceOptions {
        window_ns: marks.within_ns,
        duration_ns: spikes.input.duration_ns,
        shifts: SHIFTS,
        least_ns: 3 * marks.within_ns,
        most_ns: marks.most_ns,
        step_ns: SECOND_NS,
        seed: SEED,
    };
    let found = coincidence::pair(times, &marks.at_ns, &ask)?;
    let of = times.len() as u64;
    let as_structure = || Structure {
        kind: marks.kind.into(),
        text: format!(
            "{} of {} changes of the median latency of CPU {cpu} came {} ({} by chance, {{p}})",
            found.hits,
            of,
            marks.what,
            super::expected(found.expected)
        ),
        period_ns: None,
        count: found.hits,
        of,
        p: found.p,
        cpu: Some(cpu),
        moments: spikes
            .times(times.iter().copied().filter(|&at| near(&marks.at_ns, at, marks.within_ns))),
    };
    Some(Hypothesis { p: found.p, found: (found.hits >= HITS_MIN).then(as_structure) })
}

/// Beginnings of seconds with more than twice as many interrupts as half of them have.
fn bursts(host: &[HostSecond]) -> Vec<u64> {
    let mut counts: Vec<u64> = host.iter().filter_map(|row| row.interrupts).collect();
    counts.sort_unstable();
    let Some(&median) = counts.get(counts.len() / 2) else { return Vec::new() };
    let is_burst = |row: &HostSecond| row.interrupts.is_some_and(|n| n > 2 * median.max(50));
    let begins = (0..host.len())
        .filter(|&i| is_burst(&host[i]) && (i == 0 || !is_burst(&host[i - 1])))
        .map(|i| host[i].at_ns.saturating_sub(SECOND_NS / 2));
    begins.collect()
}

// Do spikes of several CPUs come at once?
//
// A spike's end is compared: what stops CPUs together lets them go together, wherever their own
// wake-ups were due.

/// Ends this close together are one.
const WITHIN_NS: u64 = 100_000;

/// Maximum number of CPUs compared in pairs, those with the most spikes first.
const PAIRS_OF: usize = 8;

/// Times as often as by chance that is spoken of.
const TIMES: f64 = 2.0;

/// Groups of spikes of one CPU: when the first wake-up of each came to run.
struct Cpu {
    cpu: u32,
    spikes: usize,
    ends: Vec<u64>,
}

/// One question for all CPUs at once, and one for each pair.
pub(super) fn ask_cpus(spikes: &SpikeTimes<'_>) -> Vec<Hypothesis> {
    let mut cpus: Vec<Cpu> =
        spikes.cpus().into_iter().map(|cpu| groups_of_cpu(spikes, cpu)).collect();
    cpus.retain(|cpu| cpu.ends.len() >= EVENTS_MIN);
    // Company is counted from the CPU with the fewest groups.
    cpus.sort_by_key(|cpu| (cpu.ends.len(), cpu.cpu));
    let mut hypotheses = Vec::new();
    if cpus.len() == spikes.input.cpus && cpus.len() >= 2 {
        let lists: Vec<&[u64]> = cpus.iter().map(|cpu| cpu.ends.as_slice()).collect();
        if let Some(found) = samples::together(&lists, &moves(spikes)) {
            hypotheses.push(Hypothesis { p: found.p, found: all(&found, &cpus, spikes) });
        }
    }
    if spikes.input.cpus > 2 {
        let together = hypotheses.iter().any(|hypotheses| hypotheses.found.is_some());
        if together {
            leave_out_common(&mut cpus);
        }
        hypotheses.extend(pairs(&cpus, spikes));
    }
    hypotheses
}

fn groups_of_cpu(spikes: &SpikeTimes<'_>, cpu: u32) -> Cpu {
    let own = || spikes.all.iter().filter(move |spike| spike.cpu == cpu);
    let starts = spikes.groups(|spike| spike.cpu == cpu);
    let mut next = own();
    let mut ends: Vec<u64> = starts
        .iter()
        .filter_map(|&start| next.find(|spike| spike.at_ns == start))
        .map(|spike| spike.at_ns.saturating_add(spike.latency_ns))
        .collect();
    ends.sort_unstable();
    Cpu { cpu, spikes: own().count(), ends }
}

/// Moves along the grid of the wake-ups within 2 ms to a second: what both have in common for
/// longer, as a load that comes and goes, stays where it was.
const fn moves(spikes: &SpikeTimes<'_>) -> samples::JitterOptions<'static> {
    samples::JitterOptions {
        window_ns: WITHIN_NS,
        widths_ns: &[2_000_000, 20_000_000, 200_000_000, SECOND_NS],
        step_ns: spikes.input.period_ns,
        tries: SHIFTS,
        seed: SEED,
    }
}

fn worth_saying(found: &Coincidence) -> bool {
    found.hits >= EVENTS_MIN as u64 && found.hits as f64 >= TIMES * found.expected
}

fn all(found: &Coincidence, cpus: &[Cpu], spikes: &SpikeTimes<'_>) -> Option<Structure> {
    let first = cpus.first().filter(|_| worth_saying(found))?;
    let of = spikes.of(found.hits, &first.ends, first.spikes);
    let (cpu, expected) = (first.cpu, super::expected(found.expected));
    let text = match cpus {
        [_, second] => format!(
            "{of} of CPU {cpu} came at once with one of CPU {}, within 100 µs ({expected} by \
             chance, {{p}}), more closely than a common load or tick explains: firmware, the hypervisor, a \
             stopped clock, an interrupt that both take, or a core or cache that they share",
            second.cpu
        ),
        _ => format!(
            "{of} of CPU {cpu} came at once on all {} measured CPUs, within 100 µs ({expected} by \
             chance, {{p}}), more closely than a common load or tick explains: firmware, the hypervisor, a \
             stopped clock or an interrupt that all take",
            cpus.len()
        ),
    };
    let together = first
        .ends
        .iter()
        .copied()
        .filter(|&at| cpus.iter().skip(1).all(|other| near(&other.ends, at, WITHIN_NS)));
    Some(structure(text, found, first, spikes.times(together)))
}

fn structure(
    text: String,
    found: &Coincidence,
    first: &Cpu,
    moments: Vec<StructureMoment>,
) -> Structure {
    Structure {
        kind: "cpus".into(),
        text,
        period_ns: None,
        count: found.hits,
        of: first.ends.len() as u64,
        p: found.p,
        cpu: None,
        moments,
    }
}

/// Spikes of all CPUs are no evidence for two.
fn leave_out_common(cpus: &mut [Cpu]) {
    let lists: Vec<Vec<u64>> = cpus.iter().map(|cpu| cpu.ends.clone()).collect();
    for cpu in cpus {
        cpu.ends.retain(|&time| !lists.iter().all(|list| near(list, time, WITHIN_NS)));
    }
}

fn pairs(cpus: &[Cpu], spikes: &SpikeTimes<'_>) -> Vec<Hypothesis> {
    let mut cpus: Vec<&Cpu> = cpus.iter().filter(|cpu| cpu.ends.len() >= EVENTS_MIN).collect();
    cpus.sort_by_key(|cpu| (std::cmp::Reverse(cpu.ends.len()), cpu.cpu));
    cpus.truncate(PAIRS_OF);
    cpus.sort_by_key(|cpu| cpu.cpu);
    let mut hypotheses = Vec::new();
    for (index, a) in cpus.iter().enumerate() {
        for b in &cpus[index + 1..] {
            let Some(found) = samples::together(&[&a.ends, &b.ends], &moves(spikes)) else {
                continue;
            };
            let as_structure = || {
                let of = spikes.of(found.hits, &a.ends, a.spikes);
                let text = format!(
                    "{of} of CPU {} came at once with one of CPU {}, within 100 µs ({} by chance, \
                     {{p}}), not on all CPUs. Both have one cause, such as a shared core or cache, or an \
                     interrupt from one to the other",
                    a.cpu,
                    b.cpu,
                    super::expected(found.expected)
                );
                let together = a.ends.iter().copied().filter(|&at| near(&b.ends, at, WITHIN_NS));
                structure(text, &found, a, spikes.times(together))
            };
            hypotheses
                .push(Hypothesis { p: found.p, found: worth_saying(&found).then(as_structure) });
        }
    }
    hypotheses
}

#[cfg(test)]
mod tests {
    use rtproof_record::run::HostCpuSecond;

    use super::*;
    use crate::structure::{StructureInput, structure};

    /// Ten minutes; the level is 20 % higher between the two times of each pair.
    fn levels(slow: &[(u64, u64)]) -> Levels {
        let mut state = 88_172_645_463_325_252_u64;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        let level = |s: u64| if slow.iter().any(|&(a, b)| (a..b).contains(&s)) { 1.2 } else { 1.0 };
        let rows = (0..600)
            .map(|s| (s * SECOND_NS, f64::ln(12_000.0 * level(s)) + 0.02 * noise()))
            .collect();
        Levels { cpu: 3, rows }
    }

    fn host(slow: &[(u64, u64)]) -> Vec<HostSecond> {
        (0..600)
            .map(|s| {
                let is_slow = slow.iter().any(|&(a, b)| (a..b).contains(&s));
                let freq_hz = Some(if is_slow { 1_200_000_000 } else { 2_400_000_000 });
                HostSecond {
                    at_ns: (s + 1) * SECOND_NS,
                    interrupts: Some(if s % 97 == 5 { 90_000 } else { 2000 + s % 50 }),
                    temp_max_mc: Some(if s % 3 == 0 { 50_000 } else { 50_500 }),
                    cpus: vec![HostCpuSecond { cpu: 3, freq_hz, ..HostCpuSecond::default() }],
                    ..HostSecond::default()
                }
            })
            .collect()
    }

    fn texts(levels: Levels, host: &[HostSecond]) -> Vec<(String, String)> {
        let input = StructureInput {
            spikes: &[],
            host,
            phases: &[],
            period_ns: 1_000_000,
            duration_ns: 600 * SECOND_NS,
            cpus: 1,
            levels: &[levels],
        };
        structure(&input).into_iter().map(|found| (found.kind, found.text)).collect()
    }

    const SLOW: [(u64, u64); 4] = [(60, 100), (205, 260), (333, 410), (501, 540)];

    #[test]
    fn changes_are_moments_of_a_picture() {
        let levels = [levels(&SLOW)];
        let input = StructureInput {
            spikes: &[],
            host: &host(&SLOW),
            phases: &[],
            period_ns: 1_000_000,
            duration_ns: 600 * SECOND_NS,
            cpus: 1,
            levels: &levels,
        };
        let found = structure(&input);
        for one in &found {
            let at: Vec<u64> = one.moments.iter().map(|m| m.at_ns / SECOND_NS).collect();
            let near = |(at, want): (&u64, &u64)| at.abs_diff(*want) <= 1;
            let want = [60, 100, 205, 260, 333, 410, 501, 540];
            assert!(at.len() == 8 && at.iter().zip(&want).all(near), "{one:?}");
            assert_eq!(one.cpu, Some(3));
        }
        assert!(found[0].moments[0].text.starts_with("12 µs → 14."), "{:?}", found[0].moments[0]);
        assert!(found[0].moments[0].text.ends_with(", 2.4 GHz → 1.2 GHz"));
        assert!(found[1].moments[0].text.is_empty());
    }

    #[test]
    fn changes_with_the_frequency_are_reported() {
        let found = texts(levels(&SLOW), &host(&SLOW));
        let kinds: Vec<&str> = found.iter().map(|one| one.0.as_str()).collect();
        assert_eq!(kinds, ["level", "frequency"], "{found:?}");
        assert!(
            found[0].1.starts_with("the median latency of CPU 3 changed 8 times, most at "),
            "{found:?}"
        );
        let with = "8 of 8 changes of the median latency of CPU 3 came within a second of a change \
                    of its frequency";
        assert!(found[1].1.starts_with(with), "{found:?}");
    }

    /// The sentence of the level, and the kinds of all sentences.
    fn level(host: &[HostSecond]) -> (String, Vec<String>) {
        let found = texts(levels(&SLOW), host);
        let text = found.iter().find(|one| one.0 == "level").expect("a level").1.clone();
        (text, found.into_iter().map(|one| one.0).collect())
    }

    #[test]
    fn a_jump_names_the_frequency_of_its_own_cpu_and_second() {
        let (text, kinds) = level(&host(&SLOW));
        assert_eq!(kinds, ["level", "frequency"]);
        assert!(text.contains(", within a second of a change of its frequency from "), "{text}");
        assert!(text.contains("2.4 GHz") && text.contains("1.2 GHz"), "{text}");
        assert!(text.ends_with("(3 % of the run is as near to one)"), "{text}");
        let silent = |rows: &[HostSecond], why: &str| {
            let (text, kinds) = level(rows);
            assert!(!text.contains("frequency"), "{why}: {text}");
            assert!(!kinds.contains(&"frequency".to_owned()), "{why}: {kinds:?}");
        };
        let with = |change: &dyn Fn(u64, &mut HostCpuSecond)| {
            let mut rows = host(&SLOW);
            for (s, row) in (0..).zip(&mut rows) {
                row.cpus.iter_mut().for_each(|cpu| change(s, cpu));
            }
            rows
        };
        silent(&with(&|_, cpu| cpu.freq_hz = None), "never read");
        silent(&with(&|_, cpu| cpu.cpu = 0), "of another CPU");
        silent(
            &with(&|s, cpu| cpu.freq_hz = Some(1_000_000_000 * (1 + s % 2))),
            "changes every second",
        );
        silent(&host(&SLOW.map(|(from, to)| (from + 3, to + 3))), "three seconds later");
        silent(&[], "no rows");
    }

    #[test]
    fn of_long_rows_the_time_is_about() {
        let mut long = levels(&[(300, 600)]);
        assert!(!long.is_coarse());
        long.rows.iter_mut().for_each(|row| row.0 *= 60);
        let input = StructureInput {
            spikes: &[],
            host: &[],
            phases: &[],
            period_ns: 1_000_000,
            duration_ns: 36_000 * SECOND_NS,
            cpus: 1,
            levels: &[long],
        };
        let found = structure(&input);
        assert!(found[0].text.contains("changed once at about 18000 s"), "{found:?}");
    }

    #[test]
    fn jumps_with_the_temperature_are_reported() {
        let mut rows = host(&[]);
        for (s, row) in (0..).zip(&mut rows) {
            let slow = SLOW.iter().any(|&(from, to)| (from..to).contains(&s));
            row.temp_max_mc = Some(if slow { 85_000 } else { 60_000 });
        }
        assert_eq!(level(&rows).1, ["level", "temperature"]);
        rows.iter_mut().for_each(|row| row.temp_max_mc = None);
        assert_eq!(level(&rows).1, ["level"]);
    }

    #[test]
    fn changes_at_other_times_are_not() {
        let elsewhere = [(20, 50), (120, 180), (290, 310), (440, 480)];
        let found = texts(levels(&SLOW), &host(&elsewhere));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(texts(levels(&[]), &host(&SLOW)).is_empty());
        let once = texts(levels(&[(300, 600)]), &[]);
        assert_eq!(once.len(), 1, "{once:?}");
        let text = "the median latency of CPU 3 changed once at 300 s, from 12 µs to 14.4 µs (p";
        assert!(once[0].1.replace('\u{202f}', " ").starts_with(text), "{once:?}");
    }

    #[test]
    fn medians_lie_within_their_cells() {
        let cell = |ns: u64| Layout::COARSE.index(ns) as u16;
        let second = |wake: Vec<(u16, u64)>| {
            let run = crate::testing::run(rtproof_record::BudgetClass::Hundred, 1, 1, &[]);
            Second { wake, ..run.threads[0].seconds[0].clone() }
        };
        let middle = median(&second(vec![(cell(1000), 10), (cell(2000), 80), (cell(9000), 10)]));
        let (low, high) =
            (Layout::COARSE.lower(cell(2000).into()), Layout::COARSE.upper(cell(2000).into()));
        let want = low as f64 + (high + 1 - low) as f64 / 2.0;
        assert_eq!(middle, Some(want));
        assert_eq!(median(&second(Vec::new())), None);
    }

    #[test]
    fn moments_of_the_host() {
        let mut rows = host(&[]);
        assert_eq!(bursts(&rows).len(), 7);
        assert!(periods::temperatures(&rows).is_empty());
        rows[10].temp_max_mc = Some(61_000);
        assert_eq!(periods::temperatures(&rows).len(), 2, "up and down");
        assert_eq!(bursts(&[]), Vec::<u64>::new());
    }
}
