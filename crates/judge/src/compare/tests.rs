//! Comparisons with known answers: results, refusals, error rates.

use rtproof_record::BudgetClass;
use rtproof_stats::{Bin, Bins, paired};

use super::*;
use crate::testing::run;

/// A run of one thread with its values spread over cells, as a tool in microseconds writes them.
fn told_in_us(label: &str, cells: &[(u64, u64)], max_us: u64) -> Side {
    let bins: Vec<Bin> = cells
        .iter()
        .map(|&(us, n)| Bin { low_ns: us * 1000, high_ns: us * 1000 + 999, n })
        .collect();
    let bins = Bins::from_bins(bins).expect("cells");
    Side {
        label: label.into(),
        source: format!("{label}.log"),
        id: label.into(),
        tool: "cyclictest".into(),
        machine: None,
        workload: "cyclictest".into(),
        period_ns: Some(200_000),
        budget_ns: None,
        started_ns: None,
        duration_ns: None,
        resolution_ns: 1000,
        rounds_down: true,
        censored_ns: None,
        threads: vec![SideThread {
            label: "thread 0".into(),
            cpu: None,
            wake: bins,
            missed: None,
            missed_count: None,
            late: None,
            min_ns: cells.first().map(|cell| cell.0 * 1000),
            max_ns: Some(max_us * 1000),
            max_is_at_least: false,
            moments: None,
            mean_ns: None,
        }],
        rows: Vec::new(),
        over: None,
        spikes: None,
        policy: None,
        loads: None,
        facts: std::collections::BTreeMap::new(),
        has_facts: false,
        boot_id: None,
        doubts: Vec::new(),
    }
}

/// S0's runs with and without multipathd, in short: the same quantiles, a million wake-ups.
fn multipathd() -> [Side; 2] {
    let with = [(12, 989_999), (40, 8990), (55, 900), (69, 100), (104, 7), (150, 3), (279, 1)];
    let without = [(12, 989_990), (41, 9000), (57, 900), (76, 99), (92, 8), (120, 2), (130, 1)];
    [told_in_us("stress", &with, 279), told_in_us("no-multipathd", &without, 130)]
}

fn one(comparison: &Comparison) -> &Against {
    comparison.against.first().expect("one against the first")
}

#[test]
fn only_the_far_tail_is_lower_and_single_runs_decide_nothing() {
    let comparison = compare(&multipathd(), &CompareRequest::default());
    assert_eq!(comparison.answer, CompareAnswer::CannotDecide);
    assert_eq!((comparison.design, comparison.view), (CompareDesign::Single, View::Wake));
    assert_eq!(
        comparison.sentence,
        "Cannot decide between stress and no-multipathd: single runs, one after the other, drift \
         not excluded. In these runs no-multipathd did not lower p99.9 (55 → 57 µs) nor p99.99 \
         (69 → 76 µs); only the far tail is lower: p99.999 104 → 92 µs, p99.9999 150 → 120 µs, \
         max 279 → 130 µs."
    );
    let change = |name: &str| {
        one(&comparison).changes.iter().find(|c| c.statistic == name).expect("a change")
    };
    assert_eq!(change("p99.9").direction, Direction::Same);
    assert_eq!(change("p99.99").direction, Direction::Higher);
    assert!(change("max").low.is_none() && change("max").p.is_none());
    // No row, no range.
    assert_eq!((change("p99.9").low, change("p99.9").high), (None, None));
    assert!(comparison.mismatches.is_empty());
    assert!(one(&comparison).reasons[0].contains("alternate"));
}

#[test]
fn the_other_way_round_only_the_far_tail_is_higher() {
    let [with, without] = multipathd();
    let sentence = compare(&[without, with], &CompareRequest::default()).sentence;
    assert!(
        sentence.contains("stress did not raise p99.9 (57 → 55 µs)")
            || sentence.contains("p99.9 differs by no more than 5 % (57 → 55 µs)"),
        "{sentence}"
    );
}

#[test]
fn maxima_are_compared_at_equal_exposure_alone() {
    let short = told_in_us("short", &[(10, 10_000), (20, 10)], 29);
    let long = told_in_us("long", &[(10, 40_000), (20, 40), (80, 1)], 80);
    let comparison = compare(&[short.clone(), long], &CompareRequest::default());
    let max = one(&comparison).changes.iter().find(|c| c.statistic == "max").expect("max");
    assert_eq!((max.ratio, max.direction), (None, Direction::Unknown));
    assert!(max.method.contains("unequal exposure"));
    assert!(!comparison.sentence.contains("max"), "{}", comparison.sentence);
    assert!(one(&comparison).reasons.iter().any(|reason| reason.contains("Maxima are not")));
    // Nor where a histogram ended before the largest value.
    let mut cut = told_in_us("cut", &[(10, 10_000), (20, 10)], 20);
    cut.threads[0].max_is_at_least = true;
    let comparison = compare(&[short, cut], &CompareRequest::default());
    let max = one(&comparison).changes.iter().find(|c| c.statistic == "max").expect("max");
    assert!(max.ratio.is_none() && max.method.contains("ended before"));
}

#[test]
fn differences_are_reported() {
    let mut a = Side::of_run(&run(BudgetClass::Hundred, 1, 2, &[]), "a", "a.rtproof");
    let mut b = a.clone();
    let what = |a: &Side, b: &Side| -> Vec<String> {
        let comparison = compare(&[a.clone(), b.clone()], &CompareRequest::default());
        comparison.mismatches.iter().map(|mismatch| mismatch.what.clone()).collect()
    };
    assert_eq!(what(&a, &b), ["run"]);
    b.id = "another".into();
    assert_eq!(what(&a, &b), [""; 0]);
    b.period_ns = Some(200_000);
    b.budget_ns = Some(50_000);
    b.workload = "hwlat".into();
    assert_eq!(what(&a, &b), ["workload", "period", "budget"]);
    let place = a.machine.get_or_insert_default();
    place.machine_id = Some("1".into());
    let place = b.machine.get_or_insert_default();
    place.machine_id = Some("2".into());
    assert_eq!(what(&a, &b)[0], "machine");
    let comparison = compare(&[a, b], &CompareRequest::default());
    assert_eq!(comparison.mismatches[0].what, "machine");
    // What measures the same under another name is alike.
    let [mut c, d] = multipathd();
    c.workload = "timer-wakeup".into();
    assert_eq!(what(&c, &d), [""; 0]);
}

#[test]
fn differing_facts_are_listed() {
    let mut first = run(BudgetClass::Hundred, 1, 2, &[]);
    let mut a = Side::of_run(&first, "a", "a");
    let mut b = Side::of_run(&first, "b", "b");
    b.facts.insert("cpus.1.freq.governor".into(), "powersave".into());
    a.facts.insert("cpus.1.freq.governor".into(), "performance".into());
    a.facts.insert("rt_tasks.multipathd".into(), "rr 99".into());
    let groups = [Group::single(a.clone()), Group::single(b.clone())];
    let lines = mismatch::fact_lines(&groups);
    let texts: Vec<_> = lines.iter().map(|line| (line.key.as_str(), line.values.clone())).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        texts,
        [
            ("cpus.1.freq.governor", vec![some("performance"), some("powersave")]),
            ("rt_tasks.multipathd", vec![some("rr 99"), some("not there")]),
        ]
    );
    // What varies within a group cannot be what makes the difference.
    let mut other = b.clone();
    other.facts.insert("cpus.1.freq.governor".into(), "performance".into());
    let groups = [Group::single(a), Group { label: "b".into(), sides: vec![b, other] }];
    let line =
        mismatch::fact_lines(&groups).into_iter().find(|line| line.key.ends_with("governor"));
    let line = line.expect("the governor");
    assert!(!line.steady && line.values[1] == some("varies: performance; powersave"), "{line:?}");
    first.options.priority = 50;
    let c = Side::of_run(&first, "c", "c");
    let a = Side::of_run(&run(BudgetClass::Hundred, 1, 2, &[]), "a", "a");
    let lines = mismatch::fact_lines(&[Group::single(a), Group::single(c)]);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].key, "run.policy");
}

#[test]
fn single_runs_have_ranges_of_their_tenths() {
    let late: Vec<_> = (0..120).map(|i| (0, i * 500, 150_000 + 1000 * (i % 9))).collect();
    let a = Side::of_run(&run(BudgetClass::Hundred, 1, 60, &late), "a", "a");
    let mut b = Side::of_run(&run(BudgetClass::Hundred, 1, 60, &late[..60]), "b", "b");
    b.id = "b".into();
    let comparison = compare(&[a, b], &CompareRequest::default());
    assert_eq!(comparison.view, View::Deadline);
    let p999 = one(&comparison).changes.iter().find(|c| c.statistic == "p99.9").expect("p99.9");
    assert_eq!((p999.low, p999.method.as_str()), (None, "range over the tenths of both runs"));
    let p50 = one(&comparison).changes.iter().find(|c| c.statistic == "p50").expect("p50");
    let (low, high) = p50.low.zip(p50.high).expect("hundreds beyond it in each tenth");
    assert!(low <= 1.0 && high >= 1.0 && low > 0.9 && high < 1.1, "{low} {high}");
    assert_eq!(comparison.answer, CompareAnswer::CannotDecide);
    let again = compare_groups(
        &[
            Group::single(Side::of_run(&run(BudgetClass::Hundred, 1, 60, &late), "a", "a")),
            Group::single({
                let mut b = Side::of_run(&run(BudgetClass::Hundred, 1, 60, &late[..60]), "b", "b");
                b.id = "b".into();
                b
            }),
        ],
        &CompareRequest::default(),
    );
    assert_eq!(comparison, again, "the same every time");
}

#[test]
fn moments_are_those_of_the_values() {
    // numpy: 9 ones, one 11: mean 2, sd 3.1623, skewness 2.6667, kurtosis 8.1111.
    let side = told_in_us("a", &[(1, 9), (11, 1)], 11);
    let comparison = compare(&[side.clone(), side], &CompareRequest::default());
    let value = |name: &str| {
        let line = comparison.table.iter().find(|line| line.statistic == name).expect("a line");
        line.cells[0].value.expect("a value")
    };
    for (name, want) in
        [("mean", 2000.0), ("sd", 3162.2777), ("skewness", 8.0 / 3.0), ("kurtosis", 73.0 / 9.0)]
    {
        assert!((value(name) - want).abs() < 1e-4, "{name} {} {want}", value(name));
    }
}

#[test]
fn json_round_trips_and_names_its_schema() {
    let comparison = compare(&multipathd(), &CompareRequest::default());
    let json = serde_json::to_string(&comparison).expect("JSON");
    assert!(json.contains("\"rtproof/compare/3\""));
    let back: Comparison = serde_json::from_str(&json).expect("a comparison");
    assert_eq!(back.sentence, comparison.sentence);
    assert!(!json.contains("NaN"));
}

#[test]
fn nothing_and_little_are_no_panic() {
    let request = CompareRequest::default();
    assert_eq!(compare(&[], &request).answer, CompareAnswer::CannotDecide);
    let empty = told_in_us("empty", &[], 0);
    let little = told_in_us("little", &[(5, 3)], 5);
    assert_eq!(compare(std::slice::from_ref(&empty), &request).answer, CompareAnswer::CannotDecide);
    for other in [empty.clone(), little.clone()] {
        let comparison = compare(&[little.clone(), other, empty.clone()], &request);
        assert_eq!(comparison.answer, CompareAnswer::CannotDecide);
        assert_eq!(comparison.against.len(), 2);
    }
    let zero = told_in_us("zero", &[(0, 5000)], 0);
    let comparison = compare(&[zero, little], &request);
    assert!(serde_json::to_string(&comparison).is_ok());
}

/// A machine whose runs drift, depend on each other and have heavy tails.
struct Bench {
    state: u64,
    level: f64,
    run: u32,
    runs: u32,
}

impl Bench {
    fn new(seed: u64, runs: u32) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D,
            level: 0.0,
            run: 0,
            runs,
        }
    }

    fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    /// A run: log-normal latencies about a level that wanders (AR), drifts by 10 % over the
    /// experiment and has noise of its own; the tail beyond p99 has more of it.
    fn side(&mut self, effect: f64) -> Side {
        const CELLS: [(f64, u64); 12] = [
            (0.55, 30_000),
            (0.8, 30_000),
            (1.0, 20_000),
            (1.3, 12_000),
            (1.7, 5000),
            (2.2, 2000),
            (2.8, 800),
            (3.4, 100),
            (4.1, 60),
            (5.2, 30),
            (7.0, 9),
            (9.0, 1),
        ];
        self.level = 0.7 * self.level + 0.03 * self.normal();
        let drift = 0.1 * f64::from(self.run) / f64::from(self.runs);
        let (own, tail) = (0.03 * self.normal(), 0.04 * self.normal());
        let far = -(1.0 - self.unit()).ln() * 0.2;
        let mut values: Vec<(u64, u64)> = CELLS
            .iter()
            .map(|&(x, n)| {
                let more = if x > 3.0 { tail } else { 0.0 } + if x > 8.0 { far } else { 0.0 };
                let ns = 10_000.0 * x * (self.level + drift + own + more + effect).exp();
                (ns as u64, n)
            })
            .collect();
        values.sort_unstable();
        let bins = values.iter().map(|&(ns, n)| Bin { low_ns: ns, high_ns: ns, n }).collect();
        let mut side = told_in_us("run", &[], 0);
        side.rounds_down = false;
        side.threads[0].wake = Bins::from_bins(bins).expect("cells");
        side.threads[0].max_ns = values.last().map(|value| value.0);
        side.threads[0].missed_count = Some((self.unit() * 4.0) as u64);
        side.id = format!("{}", self.run);
        side.started_ns = Some(u64::from(self.run) * 60_000_000_000);
        self.run += 1;
        side
    }

    /// Pairs in random order.
    fn experiment(seed: u64, pairs: usize, effect: f64) -> Comparison {
        let mut bench = Self::new(seed, 2 * pairs as u32);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for b_first in paired::order(seed, pairs) {
            if b_first {
                b.push(bench.side(effect));
                a.push(bench.side(0.0));
            } else {
                a.push(bench.side(0.0));
                b.push(bench.side(effect));
            }
        }
        let group = |label: &str, sides| Group { label: label.into(), sides };
        compare_groups(&[group("A", a), group("B", b)], &CompareRequest::default())
    }
}

#[test]
fn a_thousand_comparisons_of_nothing_are_wrong_in_one_of_twenty_at_most() {
    let experiments = 1000;
    let wrong = (0..experiments)
        .filter(|&seed| {
            let answer = Bench::experiment(seed, 12, 0.0).answer;
            matches!(answer, CompareAnswer::Better | CompareAnswer::Worse)
        })
        .count() as u64;
    let bound = rtproof_stats::binomial::upper_bound(wrong, experiments, 0.95);
    assert!(bound <= 0.065, "{wrong} of {experiments}");
}

#[test]
fn a_fifth_is_found() {
    let found = (0..200)
        .filter(|&seed| {
            Bench::experiment(seed + 5000, 12, 1.2_f64.ln()).answer == CompareAnswer::Worse
        })
        .count();
    assert!(found >= 184, "{found} of 200");
    let better = Bench::experiment(7, 12, 0.8_f64.ln());
    assert_eq!(better.answer, CompareAnswer::Better);
    assert!(
        better.sentence.starts_with("Better: with B against A p99.9 is lower by more than 5 %: −")
    );
    assert!(better.sentence.ends_with("; 12 pairs."), "{}", better.sentence);
}

#[test]
fn six_pairs_decide_and_the_margin_is_tested() {
    let six = Bench::experiment(5, 6, 1.0);
    assert_eq!(six.answer, CompareAnswer::Worse, "{}", six.sentence);
    let at_margin: Vec<CompareAnswer> =
        (0..400).map(|seed| Bench::experiment(seed + 40_000, 12, 1.05_f64.ln()).answer).collect();
    let said = |answer| at_margin.iter().filter(|seen| **seen == answer).count();
    // 5 % each, and three deviations.
    assert!(said(CompareAnswer::Worse) <= 33, "{} of 400", said(CompareAnswer::Worse));
    assert!(
        said(CompareAnswer::NoDifference) <= 33,
        "{} of 400",
        said(CompareAnswer::NoDifference)
    );
    // Higher, but not by more than the margin: said in words, and no decision.
    let between = (0..50)
        .map(|seed| Bench::experiment(seed, 12, 0.09))
        .find(|it| it.sentence.contains("p99.9 is higher, but that it is higher by more than 5 %"))
        .expect("one of them");
    assert_eq!(between.answer, CompareAnswer::CannotDecide);
    let p999 = one(&between).changes.iter().find(|c| c.statistic == "p99.9").expect("p99.9");
    assert_eq!(p999.differs, Direction::Higher);
    assert!(p999.p_adjusted < Some(0.05) && p999.p_margin >= Some(0.05), "{p999:?}");
}

#[test]
fn few_pairs_and_runs_that_do_not_alternate_decide_nothing() {
    let few = Bench::experiment(3, 5, 1.0);
    assert_eq!(few.answer, CompareAnswer::CannotDecide);
    assert!(few.sentence.contains("5 pairs, and fewer than 6 decide nothing"), "{}", few.sentence);
    // First all of one kind, then all of the other: one pair where they meet.
    let mut bench = Bench::new(1, 24);
    let a: Vec<Side> = (0..12).map(|_| bench.side(0.0)).collect();
    let b: Vec<Side> = (0..12).map(|_| bench.side(1.0)).collect();
    let group = |label: &str, sides: &[Side]| Group { label: label.into(), sides: sides.to_vec() };
    let after = compare_groups(&[group("A", &a), group("B", &b)], &CompareRequest::default());
    assert_eq!(after.answer, CompareAnswer::CannotDecide);
    assert!(after.sentence.contains("do not alternate"), "{}", after.sentence);
    let untimed: Vec<Side> =
        b.iter().cloned().map(|side| Side { started_ns: None, ..side }).collect();
    let after = compare_groups(&[group("A", &a), group("B", &untimed)], &CompareRequest::default());
    assert!(after.sentence.contains("cannot be paired by time"), "{}", after.sentence);
}

#[test]
fn a_constant_order_decides_nothing_and_many_pairs_are_folded() {
    let mut bench = Bench::new(11, 60);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        a.push(bench.side(0.0));
        b.push(bench.side(-0.4));
    }
    let group = |label: &str, sides| Group { label: label.into(), sides };
    let comparison = compare_groups(&[group("A", a), group("B", b)], &CompareRequest::default());
    assert_eq!(comparison.answer, CompareAnswer::CannotDecide);
    assert!(one(&comparison).pairs.as_ref().is_some_and(PairSummary::is_one_sided));
    let reasons = &one(&comparison).reasons;
    assert!(reasons.iter().any(|reason| reason.contains("In every pair A came before B")));
    let p999 = one(&comparison).changes.iter().find(|c| c.statistic == "p99.9").expect("p99.9");
    assert!(p999.method.contains("of 15 pairs"), "two pairs count as one: {}", p999.method);
}

/// One run in seven is three times as late: the typical pair does not differ, and some do.
#[test]
fn no_difference_is_said_of_pairs_none_of_which_deviates() {
    let said = |seed: u64, pairs: usize, rare: bool| {
        let mut bench = Bench::new(seed, 2 * pairs as u32);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for (at, b_first) in paired::order(seed, pairs).into_iter().enumerate() {
            let effect = if rare && at % 7 == 3 { 3.0_f64.ln() } else { 0.0 };
            if b_first {
                b.push(bench.side(effect));
                a.push(bench.side(0.0));
            } else {
                a.push(bench.side(0.0));
                b.push(bench.side(effect));
            }
        }
        let group = |label: &str, sides| Group { label: label.into(), sides };
        let groups = [group("A", a), group("B", b)];
        let request = CompareRequest { margin: 0.1, ..CompareRequest::default() };
        compare_groups(&groups, &request)
    };
    let equal = (0..20).map(|seed| said(seed, 20, false));
    let equal: Vec<Comparison> =
        equal.filter(|one| one.answer == CompareAnswer::NoDifference).collect();
    assert!(equal.len() >= 10, "{}", equal.len());
    // 1 - 0.05^(1/20).
    let share = one(&equal[0]).may_deviate.expect("no difference");
    assert!((share - 0.139_108).abs() < 1e-6, "{share}");
    for seed in 0..20 {
        let rare = said(seed, 20, true);
        assert_ne!(rare.answer, CompareAnswer::NoDifference, "{}", rare.sentence);
        assert_eq!(one(&rare).may_deviate, None);
    }
}

#[test]
fn a_higher_maximum_is_worse_whatever_the_rest_does() {
    let mut bench = Bench::new(21, 24);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for b_first in paired::order(21, 12) {
        if !b_first {
            a.push(bench.side(0.0));
        }
        let mut side = bench.side(-0.4);
        side.threads[0].max_ns = side.threads[0].max_ns.map(|ns| 3 * ns);
        b.push(side);
        if b_first {
            a.push(bench.side(0.0));
        }
    }
    let group = |label: &str, sides| Group { label: label.into(), sides };
    let comparison = compare_groups(&[group("A", a), group("B", b)], &CompareRequest::default());
    assert_eq!(comparison.answer, CompareAnswer::Worse);
    let sentence = &comparison.sentence;
    assert!(sentence.contains("the latest wake-up of a run is higher"), "{sentence}");
    assert!(sentence.contains("though p99.9 is lower by more than 5 %"), "{sentence}");
}

/// In a container the host name is the container's, another at each start.
#[test]
fn containers_are_the_machine_of_their_boot() {
    let run = |label: &str, container: Option<&str>, boot: Option<&str>| Side {
        machine: Some(RunMachine {
            hostname: Some(label.into()),
            container: container.map(Into::into),
            ..RunMachine::default()
        }),
        boot_id: boot.map(Into::into),
        ..told_in_us(label, &[(10, 10_000), (20, 10)], 29)
    };
    let of = |sides: [Side; 2]| {
        let comparison = compare(&sides, &CompareRequest::default());
        let unsure = comparison.doubts.iter().any(|doubt| doubt.contains("ran in a container"));
        (comparison.mismatches.iter().any(|found| found.what == "machine"), unsure)
    };
    let (docker, a, b) = (Some("docker"), Some("a"), Some("b"));
    assert_eq!(of([run("host", None, a), run("one", docker, a)]), (false, false));
    assert_eq!(of([run("one", docker, a), run("two", docker, a)]), (false, false));
    // Another boot may be another machine's.
    assert_eq!(of([run("host", None, a), run("one", docker, b)]), (false, true));
    assert_eq!(of([run("one", docker, None), run("two", docker, None)]), (false, true));
    assert_eq!(of([run("host", None, a), run("other", None, b)]), (true, false));
    assert_eq!(of([run("host", None, None), run("other", None, None)]), (true, false));
}
