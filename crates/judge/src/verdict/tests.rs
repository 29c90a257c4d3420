//! Verdicts of made runs.

use rtproof_record::{
    Requirement,
    run::{EndReason, Note, RunEnd},
};
use rtproof_stats::{Sample, Totals};

use super::*;
use crate::testing::{of_rows, run};

fn judge(run: &Run, moved: bool) -> Verdict {
    let changed = if moved { vec!["cpus.3.freq.governor".into()] } else { Vec::new() };
    super::judge(run, &changed, &Integrity::Sealed)
}

fn says(verdict: &Verdict, part: &str) -> bool {
    let plain = |text: &str| text.replace('\u{202f}', " ");
    plain(&verdict.sentence).contains(part)
        || verdict.reasons.iter().any(|reason| plain(reason).contains(part))
}

#[test]
fn one_late_wake_up_in_seconds_refuses_three_a_day() {
    let verdict = judge(&run(BudgetClass::Hundred, 2, 10, &[(1, 4321, 279_300)]), false);
    assert!(
        says(&verdict, "1 late second in 10 s, at least 20 times what 3/day allows: refused"),
        "{verdict:?}"
    );
    assert_eq!(verdict.answer, VerdictAnswer::Refused);
    assert!(says(
        &verdict,
        "1 of 20 000 wake-ups were later (worst 279 µs, 280 % of the budget, CPU 1, under load cpu)"
    ));
    let worst = verdict.basis.worst.expect("a worst one");
    assert_eq!((worst.latency_ns, worst.due_ns), (279_300, 4_321_000_000));
}

#[test]
fn a_short_clean_run_reports_how_little_it_proves() {
    let verdict = judge(&run(BudgetClass::Hundred, 1, 40, &[]), false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven);
    // -ln(0.04) / 40 s = 289.7 per hour.
    assert!(
        says(&verdict, "Proven by this run: late episodes rarer than 290/h at 95 %"),
        "{verdict:?}"
    );
    assert!(
        says(&verdict, "at random, at this time of the day, and lasts 3.11 s or less"),
        "{verdict:?}"
    );
    // 3.219 / 0.125 per hour = 25.75 hours, less the 40 s.
    assert_eq!(verdict.basis.further_ns.map(|ns| ns / 60_000_000_000), Some(1544));
    assert!(says(&verdict, "3/day takes 1 d 2 h under load without a late wake-up"), "{verdict:?}");
    assert!(says(&verdict, "Episodes rarer than one in 13 s can be unseen"), "{verdict:?}");
    // In 20 s not even the highest rate.
    let verdict = judge(&run(BudgetClass::Hundred, 1, 20, &[]), false);
    assert_eq!(verdict.basis.late_seconds.and_then(|late| late.proven_per_hour), None);
}

#[test]
fn a_rate_above_a_second_in_ten_is_not_judged() {
    let mut long = run(BudgetClass::Hundred, 1, 60, &[]);
    long.options.requirement.rate_per_1000h = 361_000;
    let verdict = judge(&long, false);
    assert_eq!((verdict.answer, verdict.basis.further_ns), (VerdictAnswer::NotProven, None));
    assert!(says(&verdict, "Above 360/h a rate is a share"), "{verdict:?}");
    let mut slow = long.options.requirement.clone();
    slow.rate_per_1000h = 37_000;
    assert!(ahead(&slow, 10_000_000_000, 0).is_err_and(|why| why.most_per_hour == 36.0));
    slow.rate_per_1000h = 36_000;
    assert!(ahead(&slow, 10_000_000_000, 0).is_ok());
}

#[test]
fn a_clean_run_that_is_long_enough_is_accepted() {
    let mut long = run(BudgetClass::Hundred, 1, 40, &[]);
    long.options.requirement.rate_per_1000h = 290_000;
    let verdict = judge(&long, false);
    assert_eq!(verdict.answer, VerdictAnswer::Accepted, "{verdict:?}");
    assert_eq!(verdict.basis.further_ns, Some(0));
    assert!(
        says(&verdict, "late episodes come less often than 290/h, if what makes"),
        "{verdict:?}"
    );
    assert!(says(&verdict, "How long one would last is not known"), "{verdict:?}");
    long.options.requirement.confidence_ppm = 999_000;
    assert_eq!(
        judge(&long, false).answer,
        VerdictAnswer::NotProven,
        "more confidence takes longer"
    );
}

#[test]
fn few_episodes_are_accepted_where_the_time_allows_for_them() {
    // Three of two wake-ups in 200 s: 11.49 expected ones are enough.
    let late: Vec<_> = [17_000, 48_000, 81_000]
        .into_iter()
        .flat_map(|at| [(0, at, 200_000), (0, at + 3, 150_000)])
        .collect();
    let mut all = run(BudgetClass::Hundred, 1, 200, &late);
    all.options.requirement.rate_per_1000h = 207_000;
    let verdict = judge(&all, false);
    assert_eq!(verdict.answer, VerdictAnswer::Accepted, "{verdict:?}");
    assert!(says(&verdict, "6 of 200 000 wake-ups were later than 100 µs"), "{verdict:?}");
    assert!(says(&verdict, "in 3 late seconds, in"), "{verdict:?}");
    // A little less is not shown, nor is it shown to be exceeded.
    all.options.requirement.rate_per_1000h = 190_000;
    let verdict = judge(&all, false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven);
    assert!(
        says(&verdict, "3 late episodes; 190/h takes 3 min 38 s without a further one"),
        "{verdict:?}"
    );
    assert!(says(&verdict, "Proven by this run: late episodes rarer than 210/h"), "{verdict:?}");
    // A hundredth is.
    all.options.requirement.rate_per_1000h = 2000;
    let verdict = judge(&all, false);
    assert_eq!((verdict.answer, verdict.basis.further_ns), (VerdictAnswer::Refused, None));
}

#[test]
fn late_seconds_count_whatever_episodes_they_make() {
    // An outage of 20 s in 1000 s is one episode, and 20 late seconds.
    let outage = [(0, 500_000, 20_000_000_000)];
    let mut run = run(BudgetClass::Hundred, 1, 1000, &outage);
    let judged = |run: &mut Run, per_hour: u64| {
        run.options.requirement.rate_per_1000h = 1000 * per_hour;
        judge(run, false)
    };
    let late = judged(&mut run, 60).basis.late_seconds.expect("a budget");
    assert_eq!((late.seconds, late.seconds_least, late.episodes), (20, 20, 2));
    assert_eq!(judged(&mut run, 60).answer, VerdictAnswer::NotProven);
    assert!(says(&judged(&mut run, 60), "20 late seconds; 60/h allows 16 in this time"));
    assert_eq!(judged(&mut run, 3).answer, VerdictAnswer::Refused);
    assert_eq!(judged(&mut run, 73).answer, VerdictAnswer::Accepted);
}

/// Whoever is late always, every tenth time, from the middle on or in one long outage is accepted
/// by no class with no option.
#[test]
fn hopeless_machines_are_accepted_by_nothing() {
    type Late = fn(u64) -> u64;
    let machines: [(&str, Late); 5] = [
        ("always", |_| 1000),
        ("every tenth", |_| 100),
        ("from the middle on", |s| if s >= 600 { 1000 } else { 0 }),
        ("an outage of a tenth", |s| if (300..420).contains(&s) { 1000 } else { 0 }),
        ("an outage in a tenth", |s| if (300..360).contains(&s) { 120 } else { 0 }),
    ];
    for (name, late) in machines {
        let rows: Vec<u64> = (0..1200).map(late).collect();
        for class in [BudgetClass::NinetyFive, BudgetClass::Hundred, BudgetClass::Safe] {
            let mut run = of_rows(class, &[rows.clone(), vec![0; 1200]]);
            for confidence_ppm in [500_000, 800_000, 950_000, 999_900] {
                for rate_per_1000h in [1, 125, 3000, 60_000, 360_000, 1_000_000, u64::MAX] {
                    let requirement = &mut run.options.requirement;
                    (requirement.confidence_ppm, requirement.rate_per_1000h) =
                        (confidence_ppm, rate_per_1000h);
                    let verdict = judge(&run, false);
                    assert_ne!(verdict.answer, VerdictAnswer::Accepted, "{name} {verdict:?}");
                    let late = verdict.basis.late_seconds.expect("a budget");
                    assert!(late.proven_per_hour.is_none(), "{name} {late:?}");
                }
            }
        }
    }
}

#[test]
fn always_late_is_refused_by_every_rate() {
    for class in [BudgetClass::NinetyFive, BudgetClass::Hundred] {
        for share in [1000, 100] {
            let mut run = of_rows(class, &[vec![share; 200]]);
            for rate_per_1000h in [125, 3000, 30_000, 360_000, 1_000_000] {
                run.options.requirement.rate_per_1000h = rate_per_1000h;
                let verdict = judge(&run, false);
                assert_eq!(verdict.answer, VerdictAnswer::Refused, "{verdict:?}");
            }
        }
    }
}

/// An accepted run is below 5 % in every tenth of each CPU, class 100's late seconds are within
/// the rate, and neither long rows nor a CPU more make it accepted.
#[test]
fn what_is_accepted_holds_what_is_printed() {
    let mut random = rtproof_stats::binomial::Random::new(11);
    let (mut accepted, mut judged) = (0, 0);
    for _ in 0..400 {
        let seconds = [40, 170, 300, 700][random.below(4) as usize];
        let (often, how) = (random.unit().powi(5), 1 + random.below(1000));
        let mut row = |_| if random.unit() < often { random.below(how) } else { 0 };
        let rows: Vec<u64> = (0..seconds).map(&mut row).collect();
        let class = [BudgetClass::NinetyFive, BudgetClass::Hundred][random.below(2) as usize];
        let mut run = of_rows(class, std::slice::from_ref(&rows));
        run.options.requirement.rate_per_1000h =
            [60_000, 200_000, 360_000][random.below(3) as usize];
        let verdict = judge(&run, false);
        judged += 1;
        if verdict.answer != VerdictAnswer::Accepted {
            continue;
        }
        accepted += 1;
        for tenth in rows.chunks(seconds as usize / 10) {
            let late: u64 = tenth.iter().sum();
            assert!((late as f64) < 0.05 * 1000.0 * tenth.len() as f64, "{rows:?}");
        }
        if class == BudgetClass::Hundred {
            let late = rows.iter().filter(|&&late| late > 0).count() as f64;
            let expected = run.options.requirement.rate_per_1000h as f64 / 3.6e6 * seconds as f64;
            assert!(late <= expected, "{late} {expected}");
        }
    }
    assert!(accepted > 20 && accepted < judged - 20, "{accepted} of {judged}");
}

#[test]
fn only_loaded_time_counts_when_there_is_a_load() {
    let mut third = run(BudgetClass::Hundred, 1, 30, &[]);
    third.options.phases[0].from_ns = 10_000_000_000;
    let verdict = judge(&third, false);
    assert_eq!(verdict.basis.exposure_ns, 19_999_000_000, "to the last wake-up");
    assert!(says(&verdict, "in 20 s under load cpu and 10 s idle"), "{verdict:?}");
    third.options.phases[0].loads.clear();
    assert_eq!(judge(&third, false).basis.exposure_ns, 29_999_000_000);
}

#[test]
fn one_wake_up_covers_no_time_and_two_the_time_between() {
    let slow = |scheduled: u64, class| {
        let mut run = run(class, 1, 1, &[]);
        run.options.period_ns = 10_000_000_000;
        run.options.duration_ns = 10_000_000_000 * scheduled;
        run.options.phases[0].to_ns = run.options.duration_ns;
        let thread = &mut run.threads[0];
        thread.info.period_ns = 10_000_000_000;
        thread.totals = Totals::default();
        thread.wake = rtproof_stats::Histogram::new(rtproof_stats::Layout::FINE);
        thread.top.truncate(1);
        for _ in 0..scheduled {
            thread.totals.wake.push(5000);
            thread.wake.record(5000);
        }
        thread.seconds.truncate(1);
        thread.seconds[0].to_ns = run.options.duration_ns;
        thread.seconds[0].totals = thread.totals.clone();
        thread.end.as_mut().expect("an end").scheduled = scheduled;
        run
    };
    for class in [BudgetClass::Hundred, BudgetClass::NinetyFive] {
        let verdict = judge(&slow(1, class), false);
        assert_eq!((verdict.answer, verdict.basis.exposure_ns), (VerdictAnswer::NotProven, 0));
        assert!(says(&verdict, "1 wake-up covers no time"), "{verdict:?}");
    }
    let verdict = judge(&slow(2, BudgetClass::Hundred), false);
    assert_eq!(verdict.basis.exposure_ns, 10_000_000_000);
    assert!(says(&verdict, "in 10 s under load cpu"), "{verdict:?}");
}

#[test]
fn what_takes_force_leaves_it_not_proven() {
    let accepted = {
        let mut run = run(BudgetClass::Hundred, 2, 40, &[]);
        run.options.requirement.rate_per_1000h = 360_000;
        run
    };
    assert_eq!(judge(&accepted, false).answer, VerdictAnswer::Accepted);
    let weakened = |weaken: &dyn Fn(&mut Run), part: &str| {
        let mut run = accepted.clone();
        weaken(&mut run);
        let verdict = judge(&run, false);
        assert_eq!(verdict.answer, VerdictAnswer::NotProven, "{part}");
        assert!(says(&verdict, part), "{verdict:?}");
    };
    weakened(&|run| run.meta.ended = None, "torn");
    weakened(
        &|run| run.meta.ended = Some(RunEnd::Interrupted { signal: "SIGINT".into() }),
        "SIGINT",
    );
    weakened(
        &|run| run.meta.ended = Some(RunEnd::Aborted { why: "disk full".into() }),
        "disk full",
    );
    for (reason, part) in [
        (EndReason::Starved, "starved the machine"),
        (EndReason::CpuLost, "CPU 1 lost its CPU"),
        (EndReason::Panicked, "report it"),
    ] {
        let end = |run: &mut Run| {
            run.threads[1].end.as_mut().expect("an end").reason = reason;
        };
        weakened(&end, part);
    }
    let miscount = |run: &mut Run| run.threads[0].end.as_mut().expect("an end").scheduled += 1;
    weakened(&miscount, "does not add up");
    let note = Note {
        at_ns: 0,
        id: "no-rt-right".into(),
        text: "The right is missing.".into(),
        weakens: true,
    };
    weakened(&|run| run.notes.push(note.clone()), "The right is missing.");
    let moved = judge(&accepted, true);
    assert_eq!(moved.answer, VerdictAnswer::NotProven);
    assert!(says(&moved, "changed during the run (cpus.3.freq.governor)"), "{moved:?}");
    assert!(says(&moved, "marked moved"));
    let only_task = ["rt_tasks.rtkit".to_owned()];
    let verdict = super::judge(&accepted, &only_task, &Integrity::Sealed);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven);
    assert!(says(&verdict, "Real-time tasks came or went during the run (rtkit)"));
    assert!(!says(&verdict, "settings"), "{verdict:?}");
    let both = ["irqs.24".to_owned(), "rt_tasks.kernel.irq/N-x".to_owned()];
    let verdict = super::judge(&accepted, &both, &Integrity::Sealed);
    assert!(says(&verdict, "(irqs.24)") && says(&verdict, "(irq/N-x)"), "{verdict:?}");
}

#[test]
fn class_95_allows_one_in_twenty_and_no_more() {
    let judged = |seconds: u64, late: fn(u64) -> u64| {
        judge(&of_rows(BudgetClass::NinetyFive, &[(0..seconds).map(late).collect()]), false)
    };
    let accepted = judged(260, |_| 10);
    assert_eq!(accepted.answer, VerdictAnswer::Accepted, "{accepted:?}");
    assert!(says(&accepted, "1 % of 260 000 wake-ups were later than 100 µs under load cpu"));
    assert!(says(&accepted, "(worst tenth of the run 1 %)"), "{accepted:?}");
    assert!(
        says(
            &accepted,
            "fewer than 5 % are, if late ones come in stretches of about 0.74 s or less"
        ),
        "{accepted:?}"
    );
    // More of the same would prove it: as long as it says.
    let short = judged(200, |_| 10);
    assert_eq!(short.answer, VerdictAnswer::NotProven, "{short:?}");
    assert!(says(&short, "It takes about 4 min"), "{short:?}");
    let needed_ns = short.basis.exposure_ns + short.basis.further_ns.expect("a time");
    let rows = vec![10; needed_ns.div_ceil(1_000_000_000) as usize + 1];
    let long = judge(&of_rows(BudgetClass::NinetyFive, &[rows]), false);
    assert_eq!(long.answer, VerdictAnswer::Accepted, "{long:?}");
    let close = judged(300, |_| 49);
    assert_eq!(close.answer, VerdictAnswer::NotProven, "{close:?}");
    let first_half = judged(600, |s| if s < 300 { 60 } else { 0 });
    assert_eq!((first_half.answer, first_half.basis.further_ns), (VerdictAnswer::NotProven, None));
    assert!(
        says(&first_half, "In one tenth of the run (") && says(&first_half, "6 % of the wake-ups"),
        "{first_half:?}"
    );
    // Below the gate in every tenth, in stretches as long as the run.
    let halves = judged(600, |s| if s < 300 { 45 } else { 0 });
    assert!(says(&halves, "stretches too long for this run to tell"), "{halves:?}");
    let bad = judged(60, |_| 200);
    assert_eq!(bad.answer, VerdictAnswer::Refused, "{bad:?}");
    assert!(says(&bad, "20 % of the wake-ups of a CPU were late: more than 5 %"), "{bad:?}");
    let stretch = judged(600, |s| if s < 100 { 900 } else { 0 });
    assert_eq!(stretch.answer, VerdictAnswer::NotProven, "from one stretch nothing follows");
    assert!(says(&stretch, "this run did not meet it: 15 % late"), "{stretch:?}");
}

#[test]
fn class_95_takes_two_minutes_and_a_half() {
    let clean = |seconds| judge(&of_rows(BudgetClass::NinetyFive, &[vec![0; seconds]]), false);
    let minute = clean(60);
    assert_eq!(minute.answer, VerdictAnswer::NotProven, "{minute:?}");
    let needed_ns = minute.basis.exposure_ns + minute.basis.further_ns.expect("a time");
    assert_eq!(needed_ns / 1_000_000_000, 159, "{minute:?}");
    assert_eq!(clean(159).answer, VerdictAnswer::Accepted);
    // Stretches of a second take 69 blocks of four.
    let mut run = of_rows(BudgetClass::NinetyFive, &[vec![0; 200]]);
    run.options.requirement.episode_ns = Some(1_000_000_000);
    let verdict = judge(&run, false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven, "{verdict:?}");
    let needed_ns = verdict.basis.exposure_ns + verdict.basis.further_ns.expect("a time");
    assert_eq!(needed_ns / 1_000_000_000, 277, "{verdict:?}");
    let mut run = of_rows(BudgetClass::NinetyFive, &[vec![0; 277]]);
    run.options.requirement.episode_ns = Some(1_000_000_000);
    let verdict = judge(&run, false);
    assert_eq!(verdict.answer, VerdictAnswer::Accepted, "{verdict:?}");
    assert!(verdict.basis.held.expect("a share").holds_for_ns >= 1_000_000_000);
    let of = |class| Requirement { class, budget_ns: Some(1), ..run.options.requirement.clone() };
    let ahead =
        |class| ahead(&of(class), 1_000_000, 60_000_000_000).expect("a rate").expect("time");
    assert_eq!(ahead(BudgetClass::NinetyFive).needed_ns / 1_000_000_000, 276);
    let hundred = ahead(BudgetClass::Hundred);
    assert_eq!(hundred.needed_ns / 60_000_000_000, 1545);
    assert!(hundred.proves_per_hour.is_some_and(|rate| (rate - 193.13).abs() < 0.01));
    assert_eq!(
        hundred.sentence(true).expect("too short"),
        "1 min under load can prove at most late episodes rarer than 200/h; 3/day takes 1 d 2 h \
         without a late wake-up (--to-prove)."
    );
    assert_ne!(hundred.sentence(false), hundred.sentence(true));
}

#[test]
fn levels_are_budgets_that_would_have_been_proven() {
    let late = [(0, 100_000, 900_000), (0, 1_900_000, 500_000), (0, 2_500_000, 300_000)];
    let run = run(BudgetClass::Hundred, 1, 3600, &late);
    let verdict = judge(&run, false);
    let level = |per_hour: f64| {
        let levels = &verdict.basis.levels;
        levels.iter().find(|level| level.per_hour == per_hour).and_then(|level| level.level_ns)
    };
    // 10 expected allow two episodes.
    assert_eq!((level(10.0), level(3.0)), (Some(300_000), None));
    assert!(level(60.0).is_some_and(|ns| ns < 10_000), "{:?}", verdict.basis.levels);
    for found in &verdict.basis.levels {
        let Some(level_ns) = found.level_ns else { continue };
        let mut run = run.clone();
        run.options.requirement.budget_ns = Some(level_ns);
        for thread in &mut run.threads {
            let late =
                thread.top.iter().filter(|sample| sample.latency_ns > level_ns).count() as u64;
            // As the run would have counted them.
            thread.totals.late_sampled = late;
        }
        run.options.requirement.rate_per_1000h = (found.per_hour * 1000.0).round() as u64;
        let judged = judge(&run, false);
        assert_eq!(judged.answer, VerdictAnswer::Accepted, "{found:?} {judged:?}");
    }
}

#[test]
fn one_bad_cpu_is_not_hidden_by_good_ones() {
    let clean = || vec![0; 600];
    let cpus = [clean(), clean(), clean(), vec![60; 600]];
    let verdict = judge(&of_rows(BudgetClass::NinetyFive, &cpus), false);
    assert_eq!(
        verdict.answer,
        VerdictAnswer::Refused,
        "6 % late on CPU 3, 1.5 % in all: {verdict:?}"
    );
    let mut many = vec![clean(); 255];
    many.push(vec![48; 600]);
    let verdict = judge(&of_rows(BudgetClass::NinetyFive, &many), false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven, "{:?}", verdict.sentence);
}

#[test]
fn soft_and_no_budget_are_not_judged_and_safe_is_never_accepted() {
    assert_eq!(judge(&run(BudgetClass::Soft, 1, 5, &[]), false).answer, VerdictAnswer::NotJudged);
    let mut no_budget = run(BudgetClass::Hundred, 1, 5, &[]);
    no_budget.options.requirement.budget_ns = None;
    let verdict = judge(&no_budget, false);
    assert_eq!(verdict.answer, VerdictAnswer::NotJudged);
    assert!(says(&verdict, "--budget"));
    let mut safe = run(BudgetClass::Safe, 1, 20, &[]);
    safe.options.requirement.rate_per_1000h = u64::MAX;
    let verdict = judge(&safe, false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven);
    assert!(says(&verdict, "cannot certify"));
    assert_eq!(
        judge(&run(BudgetClass::Safe, 1, 5, &[(0, 9, 200_000)]), false).answer,
        VerdictAnswer::Refused
    );
}

#[test]
fn idle_time_does_not_dilute_the_load() {
    // 10 s idle and clean, then 60 s under load with one late in fifteen: 6.7 % of the load.
    let late: Vec<_> = (10_000..70_000).filter(|i| i % 15 == 0).map(|i| (0, i, 200_000)).collect();
    let mut run = run(BudgetClass::NinetyFive, 1, 70, &late);
    let mut idle = run.options.phases[0].clone();
    (idle.name, idle.to_ns) = ("idle".into(), 10_000_000_000);
    idle.loads.clear();
    run.options.phases[0].from_ns = 10_000_000_000;
    run.options.phases.insert(0, idle);
    let verdict = judge(&run, false);
    assert_eq!(verdict.answer, VerdictAnswer::Refused, "{verdict:?}");
}

#[test]
fn a_load_does_not_hide_what_is_late_while_idle() {
    let judged = |every: u64| {
        // 20 s idle with one late in so many, then 180 s under load without any.
        let late: Vec<_> =
            (0..20_000).filter(|i| i % every == 0).map(|i| (0, i, 200_000)).collect();
        let mut run = run(BudgetClass::NinetyFive, 1, 200, &late);
        let mut idle = run.options.phases[0].clone();
        (idle.name, idle.to_ns) = ("idle".into(), 20_000_000_000);
        idle.loads.clear();
        run.options.phases[0].from_ns = 20_000_000_000;
        run.options.phases.insert(0, idle);
        judge(&run, false)
    };
    let often = judged(10);
    assert_eq!(often.answer, VerdictAnswer::NotProven, "{often:?}");
    assert!(says(&often, "wake-ups of CPU 0 were late"), "{often:?}");
    let seldom = judged(1000);
    assert_eq!(seldom.answer, VerdictAnswer::Accepted, "{seldom:?}");
    assert!(seldom.sentence.contains("and 20 of 20\u{202f}000 while idle"), "{seldom:?}");
}

#[test]
fn a_hopeless_machine_is_refused_however_evenly_it_is_late() {
    for step in [1, 2, 4, 7] {
        let late: Vec<_> = (0..60_000).filter(|i| i % step == 0).map(|i| (0, i, 200_000)).collect();
        let verdict = judge(&run(BudgetClass::NinetyFive, 1, 60, &late), false);
        assert_eq!(verdict.answer, VerdictAnswer::Refused, "1 in {step}: {verdict:?}");
    }
}

#[test]
fn a_record_that_contradicts_itself_or_is_not_whole_proves_nothing() {
    let mut good = run(BudgetClass::Hundred, 2, 40, &[]);
    good.options.requirement.rate_per_1000h = 360_000;
    assert_eq!(judge(&good, false).answer, VerdictAnswer::Accepted);
    for integrity in [Integrity::Torn, Integrity::Altered { why: "digest".into() }] {
        assert_eq!(super::judge(&good, &[], &integrity).answer, VerdictAnswer::NotProven);
    }
    let weakened = |weaken: &dyn Fn(&mut Run)| {
        let mut run = good.clone();
        weaken(&mut run);
        judge(&run, false).answer
    };
    assert_eq!(weakened(&|run| run.threads[0].totals.early = 1), VerdictAnswer::NotProven);
    assert_eq!(weakened(&|run| run.threads[0].end = None), VerdictAnswer::NotProven);
    assert_eq!(weakened(&|run| run.facts_end = None), VerdictAnswer::NotProven);
    assert_eq!(weakened(&|run| drop(run.threads.remove(1))), VerdictAnswer::NotProven);
    assert_eq!(weakened(&|run| run.loads.clear()), VerdictAnswer::NotProven);
    assert_eq!(weakened(&|run| run.threads[0].wake.record(1_000_000)), VerdictAnswer::NotProven);
    let sample = Sample { due_ns: 5, latency_ns: 1_000_000 };
    assert_eq!(weakened(&|run| run.threads[0].top.insert(0, sample)), VerdictAnswer::NotProven);
}

#[test]
fn an_empty_run_is_not_proven() {
    let mut empty = run(BudgetClass::Hundred, 1, 1, &[]);
    empty.threads.clear();
    let verdict = judge(&empty, false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven);
    assert!(says(&verdict, "nothing was measured"), "{verdict:?}");
    empty.options.requirement.class = BudgetClass::NinetyFive;
    assert_eq!(judge(&empty, false).answer, VerdictAnswer::NotProven);
}

/// What a record of another hand may say.
#[test]
fn numbers_that_no_run_has_are_no_panic() {
    for (rate, episode_ns, period_ns, latency_ns) in [
        (0, Some(u64::MAX), 1, u64::MAX),
        (u64::MAX, Some(1), u64::MAX, u64::MAX - 1),
        (1, Some(0), 0, 1 << 63),
    ] {
        for class in [BudgetClass::NinetyFive, BudgetClass::Hundred, BudgetClass::Safe] {
            let mut run = run(class, 2, 30, &[(0, 9000, latency_ns), (1, 9500, 200_000)]);
            run.options.requirement.rate_per_1000h = rate;
            run.options.requirement.episode_ns = episode_ns;
            run.options.period_ns = period_ns;
            run.threads[1].seconds[3].from_ns = u64::MAX;
            run.threads[1].seconds[4].to_ns = 0;
            run.threads[1].top.clear();
            for confidence_ppm in [0, 999_999, 1_000_000, u32::MAX] {
                run.options.requirement.confidence_ppm = confidence_ppm;
                assert_ne!(judge(&run, false).answer, VerdictAnswer::Accepted);
            }
        }
    }
}

#[test]
fn an_outage_of_ten_minutes_is_accepted_by_nothing_that_it_fills() {
    let outage = |class, seconds: u64| {
        let rows = (0..seconds).map(|s| if (300..900).contains(&s) { 1000 } else { 0 }).collect();
        of_rows(class, &[rows])
    };
    for (seconds, answer) in [
        (1200, VerdictAnswer::Refused),
        (3600, VerdictAnswer::NotProven),
        (7200, VerdictAnswer::NotProven),
    ] {
        let verdict = judge(&outage(BudgetClass::NinetyFive, seconds), false);
        assert_eq!(verdict.answer, answer, "{seconds}: {verdict:?}");
        assert!(seconds == 1200 || says(&verdict, "this run did not meet it"), "{verdict:?}");
    }
    for rate_per_1000h in [125, 3000, 30_000] {
        let mut run = outage(BudgetClass::Hundred, 3600);
        run.options.requirement.rate_per_1000h = rate_per_1000h;
        assert_eq!(judge(&run, false).answer, VerdictAnswer::Refused, "{rate_per_1000h}");
    }
}
