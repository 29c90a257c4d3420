//! Verdicts of made runs.

use rtproof_record::run::{EndReason, Note, RunEnd};
use rtproof_stats::{Sample, Totals};

use super::*;
use crate::testing::run;

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
    // -ln(0.96) / 10 s = 14.7 per hour.
    assert!(says(&verdict, "in 1 group: more than 14/h at 95 % confidence"), "{verdict:?}");
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
    let verdict = judge(&run(BudgetClass::Hundred, 1, 20, &[]), false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven);
    // -ln(0.04) / 20 s = 579.4 per hour.
    assert!(says(&verdict, "fewer than 580/h at 95 % confidence"), "{verdict:?}");
    // 3.219 / 0.125 per hour = 25.75 hours, less the 20 s.
    assert_eq!(verdict.basis.further_ns.map(|ns| ns / 60_000_000_000), Some(1544));
    assert!(says(&verdict, "a run must last 1 d 2 h without a late one"), "{verdict:?}");
    assert!(says(&verdict, "episodes rarer than one in 6.67 s can be unseen"), "{verdict:?}");
}

#[test]
fn a_clean_run_that_is_long_enough_is_accepted() {
    let mut long = run(BudgetClass::Hundred, 1, 20, &[]);
    long.options.requirement.rate_per_1000h = 580_000;
    let verdict = judge(&long, false);
    assert_eq!(verdict.answer, VerdictAnswer::Accepted);
    assert_eq!(verdict.basis.further_ns, Some(0));
    long.options.requirement.confidence_ppm = 999_000;
    assert_eq!(
        judge(&long, false).answer,
        VerdictAnswer::NotProven,
        "more confidence takes longer"
    );
}

#[test]
fn few_groups_are_accepted_where_the_time_allows_for_them() {
    // Three groups of two in 100 s: at 95 % fewer than 3.7 times that.
    let late: Vec<_> = [17_000, 48_000, 81_000]
        .into_iter()
        .flat_map(|at| [(0, at, 200_000), (0, at + 3, 150_000)])
        .collect();
    let mut hundred_seconds = run(BudgetClass::Hundred, 1, 100, &late);
    hundred_seconds.options.requirement.rate_per_1000h = 420_000;
    let verdict = judge(&hundred_seconds, false);
    assert_eq!(verdict.answer, VerdictAnswer::Accepted, "{verdict:?}");
    assert!(says(&verdict, "6 of 100 000 wake-ups were later than 100 µs"), "{verdict:?}");
    assert!(says(&verdict, "in 3 groups, in"), "{verdict:?}");
    assert!(says(&verdict, "they hold 2.0 on average, the largest 2"), "{verdict:?}");
    // Half of that rate is not shown, nor is it shown to be exceeded.
    hundred_seconds.options.requirement.rate_per_1000h = 200_000;
    let verdict = judge(&hundred_seconds, false);
    assert_eq!(verdict.answer, VerdictAnswer::NotProven);
    assert!(says(&verdict, "with no more than 3 late groups"), "{verdict:?}");
    assert!(verdict.basis.further_ns > Some(0));
    // A tenth is.
    hundred_seconds.options.requirement.rate_per_1000h = 5000;
    let verdict = judge(&hundred_seconds, false);
    assert_eq!((verdict.answer, verdict.basis.further_ns), (VerdictAnswer::Refused, None));
    assert!(says(&verdict, "at most 5/h was asked for"), "{verdict:?}");
}

#[test]
fn groups_in_episodes_are_not_accepted() {
    // Twenty within a second, of 1000 s: at a steady rate fewer than 200/h.
    let late: Vec<_> = (0..20).map(|i| (0, 500_000 + i * 50, 200_000)).collect();
    let mut episode = run(BudgetClass::Hundred, 1, 1000, &late);
    episode.options.requirement.rate_per_1000h = 200_000;
    let verdict = judge(&episode, false);
    assert!(verdict.basis.late_rate_upper_per_hour < Some(200.0));
    assert_eq!((verdict.answer, verdict.basis.further_ns), (VerdictAnswer::NotProven, None));
    assert!(says(&verdict, "They come in episodes"), "{verdict:?}");
    // One episode does not refuse where twenty groups would.
    episode.options.requirement.rate_per_1000h = 20_000;
    assert_eq!(judge(&episode, false).answer, VerdictAnswer::NotProven);
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
        assert_eq!(verdict.basis.late_rate_upper_per_hour, None);
    }
    let verdict = judge(&slow(2, BudgetClass::Hundred), false);
    assert_eq!(verdict.basis.exposure_ns, 10_000_000_000);
    assert!(says(&verdict, "in 10 s under load cpu"), "{verdict:?}");
}

#[test]
fn what_takes_force_leaves_it_not_proven() {
    let accepted = {
        let mut run = run(BudgetClass::Hundred, 2, 20, &[]);
        run.options.requirement.rate_per_1000h = 1_000_000;
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
    // Late ones far apart: each is a cluster of its own.
    let spaced = |n: u64| -> Vec<_> { (0..n).map(|i| (0, i * 20 + 7, 200_000)).collect() };
    let even =
        |step: u64| -> Vec<_> { (0..60_000 / step).map(|i| (0, i * step, 200_000)).collect() };
    let accepted = judge(&run(BudgetClass::NinetyFive, 1, 60, &even(100)), false);
    assert_eq!(accepted.answer, VerdictAnswer::Accepted, "{accepted:?}");
    // 60 s / (19 ln 19)
    assert!(says(&accepted, "episodes of up to 1.07 s on average"), "{accepted:?}");
    let doubtful = judge(&run(BudgetClass::NinetyFive, 1, 60, &spaced(2940)), false);
    assert_eq!(doubtful.answer, VerdictAnswer::NotProven, "{doubtful:?}");
    let first_third = judge(&run(BudgetClass::NinetyFive, 1, 60, &spaced(1000)), false);
    assert_eq!(first_third.answer, VerdictAnswer::NotProven, "{first_third:?}");
    assert!(says(&first_third, "latencies stay high or low for too long"), "{first_third:?}");
    let burst: Vec<_> = (0..12_000).map(|i| (0, i * 5, 200_000)).collect();
    let refused = judge(&run(BudgetClass::NinetyFive, 1, 60, &burst), false);
    assert_eq!(refused.answer, VerdictAnswer::Refused, "{refused:?}");
    let all_late: Vec<_> = (0..60_000).filter(|i| i % 20 < 4).map(|i| (0, i, 200_000)).collect();
    let refused = judge(&run(BudgetClass::NinetyFive, 1, 60, &all_late), false);
    assert_eq!(refused.answer, VerdictAnswer::Refused, "{refused:?}");
}

#[test]
fn class_95_takes_a_minute_whatever_was_counted() {
    for (seconds, late) in [(1, 0), (1, 1), (40, 0), (40, 1)] {
        let late: Vec<_> = (0..late * seconds * 1000).map(|i| (0, i, 200_000)).collect();
        let verdict = judge(&run(BudgetClass::NinetyFive, 1, seconds, &late), false);
        assert_eq!(verdict.answer, VerdictAnswer::NotProven, "{verdict:?}");
        assert!(says(&verdict, "takes a minute of load"), "{verdict:?}");
        assert_eq!(verdict.basis.late_share_upper, None);
    }
    let short = judge(&run(BudgetClass::NinetyFive, 1, 40, &[]), false);
    assert_eq!(short.basis.further_ns.map(|ns| ns / 1_000_000_000), Some(32), "{short:?}");
    let minute = judge(&run(BudgetClass::NinetyFive, 1, 60, &[]), false);
    assert_eq!(minute.answer, VerdictAnswer::Accepted, "{minute:?}");
}

#[test]
fn one_bad_cpu_is_not_hidden_by_good_ones() {
    let late: Vec<_> = (0..3600).map(|i| (3, i * 15, 200_000)).collect();
    let verdict = judge(&run(BudgetClass::NinetyFive, 4, 60, &late), false);
    assert_ne!(verdict.answer, VerdictAnswer::Accepted, "6 % late on CPU 3, 1.5 % in all");
}

#[test]
fn a_stall_is_one_event_however_many_wake_ups_it_delays() {
    let scattered: Vec<_> = (0..60).map(|i| (0, i * 100, 200_000)).collect();
    let burst: Vec<_> = (0..60).map(|i| (0, 3000 + i, 200_000)).collect();
    let n_eff = |late: &[_]| judge(&run(BudgetClass::NinetyFive, 1, 10, late), false).basis;
    assert_eq!((n_eff(&scattered).late_clusters, n_eff(&burst).late_clusters), (60, 1));
    assert!(n_eff(&burst).n_eff < n_eff(&scattered).n_eff / 5);
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
        // 20 s idle with one late in so many, then 80 s under load without any.
        let late: Vec<_> =
            (0..20_000).filter(|i| i % every == 0).map(|i| (0, i, 200_000)).collect();
        let mut run = run(BudgetClass::NinetyFive, 1, 100, &late);
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
    let mut good = run(BudgetClass::Hundred, 2, 20, &[]);
    good.options.requirement.rate_per_1000h = 1_000_000;
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
