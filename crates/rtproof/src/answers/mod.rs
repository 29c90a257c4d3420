//! The answer of each command that judges no run: pure functions of what it found and of the
//! options that were given.

pub(crate) mod measure;
pub(crate) mod tune;

use std::path::Path;

use rtproof_judge::{
    Finding, FirstSentence, Status,
    causes::Spikes,
    compare::{self, CauseCell, CauseLine, Comparison, Group, Mismatch, Side},
    units,
};
use rtproof_record::{
    Effects,
    effects::{Decision, KnobResult, SliceStatistic},
};
use rtproof_results::{Answer, Tone, ranked, signed};
use rtproof_run::{explain::Explained, trace::Traced};

use crate::next;
use crate::next::GivenOptions;

// The answer of `check`: number of open findings, the worst of them, the next step.

/// Findings that are named.
const FINDINGS_NAMED_MAX: usize = 3;

/// The answer. `only`: checks and sections that were asked for; `root`: the machine, where it is
/// not the running one.
pub(crate) fn check_answer(
    first: Option<&FirstSentence>,
    findings: &[Finding],
    given: &GivenOptions<'_>,
    only: &[String],
    root: Option<&Path>,
) -> Answer {
    let count =
        |status| findings.iter().filter(|it| it.skipped.is_none() && it.status == status).count();
    let (bad, doubtful) = (count(Status::Bad), count(Status::Doubtful));
    let unknown = count(Status::Unknown);
    let tone = match (bad, doubtful + unknown) {
        (0, 0) => Tone::Good,
        (0, _) => Tone::Doubtful,
        _ => Tone::Bad,
    };
    let next = if bad + doubtful > 0 {
        let ids: String = only.iter().map(|id| format!(" {}", next::quoted(id))).collect();
        Some(format!("rtproof tune plan{}{}{ids}", given.options(), next::root(root)))
    } else {
        root.is_none().then(|| given.prove())
    };
    if let Some(first) = first {
        let (result, why) = (first.sentence.clone(), Some(first.why.clone()));
        return Answer { result, tone, why, next: next.filter(|_| first.is_in_the_plan) };
    }
    let result = format!("{bad} bad, {doubtful} doubtful of {}; {unknown} unknown", findings.len());
    Answer { result, tone, why: worst_findings(findings), next }
}

/// The worst open findings.
fn worst_findings(findings: &[Finding]) -> Option<String> {
    let mut worst: Vec<&Finding> = findings.iter().filter(|finding| finding.is_open()).collect();
    worst.sort_by_key(|finding| (finding.status, finding.impact, finding.when));
    let more = worst.len().saturating_sub(FINDINGS_NAMED_MAX);
    let mut named: Vec<String> = worst
        .iter()
        .take(FINDINGS_NAMED_MAX)
        .map(|it| format!("{}: {}", it.check, short(&it.summary)))
        .collect();
    named.extend((more > 0).then(|| format!("and {more} more")));
    (!named.is_empty()).then(|| named.join("; "))
}

/// The first part of a summary.
fn short(summary: &str) -> &str {
    summary.split_once("; ").map_or(summary, |(first, _)| first).trim_end_matches('.')
}

// The answer of `compare`: what is decided, which causes came or went, where to look.

/// Causes that are named.
const CAUSES_NAMED_MAX: usize = 3;

pub(crate) fn compare_answer(comparison: &Comparison, groups: &[Group]) -> Answer {
    let tone = match comparison.answer {
        compare::CompareAnswer::Better => Tone::Good,
        compare::CompareAnswer::Worse => Tone::Bad,
        compare::CompareAnswer::NoDifference => Tone::Plain,
        compare::CompareAnswer::CannotDecide => Tone::Doubtful,
    };
    let is_open = matches!(
        comparison.answer,
        compare::CompareAnswer::Worse | compare::CompareAnswer::CannotDecide
    );
    Answer {
        result: comparison.sentence.clone(),
        tone,
        why: forced(comparison).or_else(|| shifted_causes(comparison, groups)),
        next: groups.get(1..).filter(|_| is_open).and_then(explained),
    }
}

/// Why the runs should not have been compared: nothing else counts then.
fn forced(comparison: &Comparison) -> Option<String> {
    let texts: Vec<String> = comparison.mismatches.iter().map(Mismatch::text).collect();
    (!texts.is_empty()).then(|| format!("compared by force, not alike: {}", texts.join("; ")))
}

/// Causes of spikes that come more often in one of two groups, those with the largest sum first.
/// They are not claimed as the reason of a difference: none has been removed.
fn shifted_causes(comparison: &Comparison, groups: &[Group]) -> Option<String> {
    let spikes: Vec<_> = groups.iter().flat_map(|it| &it.sides).map(|it| &it.spikes).collect();
    let threshold = |it: &&Option<Spikes>| it.as_ref().map(|spikes| spikes.threshold_ns);
    // What is no spike in one of them is counted in the other alone.
    let is_alike = spikes.windows(2).all(|two| threshold(&two[0]) == threshold(&two[1]));
    let [a, b] = comparison.groups.as_slice() else { return None };
    let lines = comparison.causes.iter().filter(|_| is_alike);
    let named = lines.filter_map(|line| differs(line, [&a.label, &b.label]));
    let named: Vec<String> = named.take(CAUSES_NAMED_MAX).collect();
    (!named.is_empty()).then(|| format!("causes that differ: {}", named.join("; ")))
}

/// A cause in two groups, as a rate: runs may differ in length.
fn differs(line: &CauseLine, labels: [&str; 2]) -> Option<String> {
    let [Some(one), Some(other)] = line.cells.as_slice() else { return None };
    if one.count == other.count {
        return None;
    }
    let text = |label: &str, cell: &CauseCell| match cell.count {
        0 => format!("{label} never"),
        _ => format!("{label} {}", units::rate(cell.per_hour)),
    };
    let who = if line.culprit.is_empty() { String::new() } else { format!(" ({})", line.culprit) };
    let (one, other) = (text(labels[0], one), text(labels[1], other));
    Some(format!("{}{who}: {one}, {other}", line.title))
}

/// Where the worst spike of some groups is explained; `None`: no record of them holds one.
fn explained(groups: &[Group]) -> Option<String> {
    let worst = |side: &Side| {
        let spike = side.spikes.as_ref()?.worst.first()?;
        Some((spike.explanation.wake.latency_ns(), spike.number))
    };
    let sides = groups.iter().flat_map(|group| &group.sides);
    let sides = sides.filter_map(|side| Some((worst(side)?, side)));
    let ((_, number), side) = sides.max_by_key(|&(worst, _)| worst)?;
    Some(format!("rtproof explain {} --spike {number}", next::path(Path::new(&side.source))))
}

// The answer of `experiment` and `tune apply --prove`: what helps, what does not, what is open.

/// Knobs that are named of each kind.
const KNOBS_NAMED_MAX: usize = 4;

/// The answer; `next`: what to do with the knobs that help, by name.
pub(crate) fn experiment_answer(
    effects: &Effects,
    cut_short: Option<&str>,
    next: impl FnOnce(&[&str]) -> Option<String>,
) -> Answer {
    let knobs = ranked(effects);
    let of = |decision| knobs.iter().filter(move |knob| knob.decision == decision).copied();
    let kinds = [
        (Decision::Helps, "helps", "help"),
        (Decision::Hurts, "hurts", "hurt"),
        (Decision::NoDifference, "makes no difference", "make no difference"),
        (Decision::CannotDecide, "cannot be decided", "cannot be decided"),
        (Decision::NotTried, "was not tried", "were not tried"),
    ];
    let parts = kinds.into_iter().filter_map(|(decision, one, many)| {
        let names: Vec<String> = of(decision).map(named).collect();
        let verb = if names.len() == 1 { one } else { many };
        (!names.is_empty()).then(|| format!("{} {verb}", listed(&names)))
    });
    let mut parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        parts.push("no knob was tried".into());
    }
    parts.extend(cut_short.map(|why| format!("cut short: {why}")));
    let is_open =
        |knob: &&KnobResult| matches!(knob.decision, Decision::CannotDecide | Decision::NotTried);
    let open: Vec<&KnobResult> = knobs.iter().copied().filter(is_open).collect();
    let helping: Vec<&str> = of(Decision::Helps).map(|knob| knob.name.as_str()).collect();
    let tone = match (open.is_empty() && cut_short.is_none(), helping.is_empty()) {
        (false, _) => Tone::Doubtful,
        (true, false) => Tone::Good,
        (true, true) => Tone::Plain,
    };
    let why = open.first().map(|knob| format!("{}: {}", knob.name, knob.why));
    let next = next(&helping);
    Answer { result: parts.join("; "), tone, why, next }
}

/// A knob with its effect, where that is decided.
fn named(knob: &KnobResult) -> String {
    let effect = Effects::of(knob, SliceStatistic::P999)
        .filter(|_| matches!(knob.decision, Decision::Helps | Decision::Hurts));
    match effect {
        Some(effect) => format!("{} (p99.9 {})", knob.name, signed(effect.ratio_ppm)),
        None => knob.name.clone(),
    }
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(KNOBS_NAMED_MAX);
    let mut shown: Vec<String> = names.iter().take(KNOBS_NAMED_MAX).cloned().collect();
    shown.extend((more > 0).then(|| format!("{more} more")));
    shown.join(", ")
}

// The answer of `explain`: how many wake-ups were late, of what, and the knob that removes it.

/// The answer; `next`: a command that can be pasted.
pub(crate) fn explain_answer(found: &Explained, next: Option<String>) -> Answer {
    let mut answer = of_wakes(found, next);
    let locks = found.locks.iter().flat_map(|of| &of.waits);
    if let Some(worst) = locks.filter(|of| of.is_inversion()).max_by_key(|of| of.inversion_ns) {
        answer.tone = if worst.is_certain { Tone::Bad } else { Tone::Doubtful };
        answer.result = format!(
            "{}priority inversion of {}: {} waited {} for a lock of {}; {}",
            if worst.is_certain { "" } else { "likely " },
            units::ns(worst.inversion_ns),
            rtproof_render::page::party(&worst.waiter),
            units::ns(worst.worst_ns),
            rtproof_render::page::party(&worst.holder),
            answer.result
        );
    }
    answer
}

fn of_wakes(found: &Explained, next: Option<String>) -> Answer {
    let Spikes { seen, explained, threshold_ns, .. } = &found.spikes;
    let over = units::ns(*threshold_ns);
    if found.no_wake_ups {
        let gaps = found.gaps.iter().map(|clause| format!("; {clause}")).collect::<String>();
        let result = format!("not known: no wake-up of these threads was seen{gaps}");
        return Answer { result, tone: Tone::Doubtful, ..Answer::default() };
    }
    let doubts = found.doubts.join("; ");
    if *seen == 0 && found.is_open() {
        let gaps = [&found.doubts[..], &found.gaps[..]].concat().join("; ");
        let result = format!("not known: no wake-up was seen to be more than {over} late; {gaps}");
        return Answer { result, tone: Tone::Doubtful, ..Answer::default() };
    }
    if *seen == 0 {
        let result = format!("no wake-up was more than {over} late");
        return Answer { result, tone: Tone::Good, ..Answer::default() };
    }
    let worst = found.spikes.worst.iter().map(|spike| spike.explanation.wake.latency_ns()).max();
    let worst = worst.map_or_else(String::new, |ns| format!(", the worst {}", units::ns(ns)));
    let is_doubtful = !doubts.is_empty();
    let result = format!(
        "{}{} more than {over} late{worst}; {} explained{}{doubts}",
        if is_doubtful { "seemingly " } else { "" },
        units::count(*seen, "wake-up"),
        units::grouped(*explained),
        if is_doubtful { "; " } else { "" },
    );
    let is_plain = explained == seen && !is_doubtful;
    let tone = if is_plain { Tone::Plain } else { Tone::Doubtful };
    Answer { result, tone, why: rtproof_results::why(&found.spikes), next }
}

/// For causes that no knob removes here: the check that explains the largest one.
pub(crate) fn known_cause(spikes: &Spikes) -> Option<String> {
    let id = spikes.causes.iter().flat_map(|cause| &cause.checks).next()?;
    Some(format!("rtproof check explain {id}"))
}

// The answer of `trace`: what was late, or how long the longest was.

/// The answer; `next`: a command that can be pasted.
pub(crate) fn trace_answer(
    tracer: &str,
    traced: &Traced,
    over_ns: u64,
    next: Option<String>,
) -> Answer {
    let (over, time) = (units::ns(over_ns), units::duration(traced.traced_ns));
    if is_late(traced, over_ns) {
        return explain_answer(&traced.explained, next);
    }
    let events = units::grouped(traced.lost_events);
    let lost =
        (traced.lost_events > 0).then(|| format!("{events} events were lost and may hold one"));
    let found = &traced.explained;
    let open = lost.iter().chain(&found.doubts).chain(&found.gaps);
    let open: String = open.map(|clause| format!("; {clause}")).collect();
    let result = match traced.longest_ns {
        Some(ns) => {
            format!(
                "{tracer} saw nothing over {over} in {time}; the longest was {}{open}",
                units::ns(ns)
            )
        }
        None if traced.explained.no_wake_ups => {
            format!(
                "not known: nothing that {tracer} kept in {time} says how late a task was{open}"
            )
        }
        None => format!("{tracer} saw nothing over 1 µs in {time}{open}"),
    };
    let tone = if is_open(traced, over_ns) { Tone::Doubtful } else { Tone::Good };
    Answer { result, tone, ..Answer::default() }
}

/// Whether something was late.
fn is_late(traced: &Traced, over_ns: u64) -> bool {
    traced.longest_ns.is_some_and(|ns| ns > over_ns) && traced.explained.spikes.seen > 0
}

/// Whether nothing late was seen, and yet may have been.
pub(crate) fn is_open(traced: &Traced, over_ns: u64) -> bool {
    let found = &traced.explained;
    let is_unknown = found.no_wake_ups || found.is_open() || traced.lost_events > 0;
    !is_late(traced, over_ns) && is_unknown
}

#[cfg(test)]
mod check_tests {
    use super::*;
    use crate::IntentArgs;
    use rtproof_judge::{Impact, When};

    fn given(intent: &IntentArgs) -> GivenOptions<'_> {
        GivenOptions {
            intent,
            cpus: Some("2-3"),
            priority: None,
            period_ns: None,
            budget_ns: Some(100_000),
            user: None,
        }
    }

    /// Four findings with this status.
    fn findings(status: Status) -> Vec<Finding> {
        let finding = |check: &str| Finding {
            check: check.into(),
            status,
            summary: format!("{check} is wrong; it costs"),
            wanted: String::new(),
            cpus: None,
            evidence: Vec::new(),
            why: String::new(),
            source: String::new(),
            remedies: Vec::new(),
            when: When::default(),
            impact: Impact::default(),
            trade_off: None,
            skipped: None,
        };
        ["thp", "swap", "timers", "memory"].map(finding).to_vec()
    }

    #[test]
    fn what_is_bad_is_planned_for_with_the_options_that_were_given() {
        let intent = IntentArgs { profile: Some("audio".into()), ..IntentArgs::default() };
        let path = Path::new("my machine.txt");
        let only = ["power".to_owned()];
        let answer = check_answer(None, &findings(Status::Bad), &given(&intent), &only, Some(path));
        assert_eq!(answer.result, "4 bad, 0 doubtful of 4; 0 unknown");
        assert_eq!(answer.tone, Tone::Bad);
        let why = answer.why.expect("reasons");
        assert!(why.starts_with("thp: thp is wrong; "), "{why}");
        assert!(why.ends_with("; and 1 more"), "{why}");
        let expected = "rtproof tune plan --profile audio --cpus 2-3 --budget 100us --root \
                        'my machine.txt' power";
        assert_eq!(answer.next.as_deref(), Some(expected));
    }

    #[test]
    fn where_nothing_is_bad_the_machine_is_measured_if_it_is_here() {
        let intent = IntentArgs::default();
        let findings = findings(Status::Unknown);
        let here = check_answer(None, &findings, &given(&intent), &[], None);
        assert_eq!(here.tone, Tone::Doubtful, "unknown is no pass");
        assert_eq!(here.next.as_deref(), Some("rtproof prove --cpus 2-3 --budget 100us"));
        assert_eq!(here.why, None);
        let captured =
            check_answer(None, &findings, &given(&intent), &[], Some(Path::new("machine.txt")));
        assert_eq!(captured.next, None);
    }
}

#[cfg(test)]
mod compare_tests {
    use super::*;

    #[test]
    fn causes_are_compared_by_their_rates() {
        let cell = |count, per_hour| Some(CauseCell { count, per_hour, ..CauseCell::default() });
        let of = |cells: [Option<CauseCell>; 2]| {
            let (cause, title, culprit) = ("irq".into(), "an interrupt".into(), "eth0".into());
            differs(&CauseLine { cause, title, culprit, cells: cells.into() }, ["a", "b"])
        };
        let text = of([cell(3, 180.0), cell(0, 0.0)]);
        assert_eq!(text.as_deref(), Some("an interrupt (eth0): a 180/h, b never"));
        assert_eq!(of([cell(3, 180.0), cell(3, 180.0)]), None);
        assert_eq!(of([cell(3, 180.0), None]), None, "not explained is not never");
    }
}

#[cfg(test)]
mod experiment_tests {
    use super::*;
    use rtproof_record::effects::{Effect, TrialDesign, TrialMode, TrialSummary};

    fn effects(decisions: &[Decision]) -> Effects {
        let trial = TrialSummary {
            seed: 1,
            design: TrialDesign::Single,
            pairs: 12,
            slice_ns: 1_000_000_000,
            margin_ppm: 50_000,
            level_ppb: 50_000_000,
            detectable_ppm: None,
        };
        let knob = |(number, decision): (usize, &Decision)| KnobResult {
            number: number as u32,
            name: format!("knob-{number}"),
            decision: *decision,
            why: "too few pairs".into(),
            effects: vec![Effect {
                statistic: SliceStatistic::P999,
                pairs: 12,
                off_ns: 10,
                on_ns: 8,
                ratio_ppm: 800_000,
                low_ppm: None,
                high_ppm: None,
                p_ppb: None,
                adjusted_ppb: None,
            }],
            changes: Vec::new(),
            how: TrialMode::Toggled,
            kept: false,
        };
        Effects { trial, knobs: decisions.iter().enumerate().map(knob).collect(), slices: vec![] }
    }

    fn of(decisions: &[Decision], cut_short: Option<&str>) -> Answer {
        experiment_answer(&effects(decisions), cut_short, |names| {
            (!names.is_empty()).then(|| names.join(" "))
        })
    }

    #[test]
    fn what_helps_is_named_and_what_is_open_is_not_good() {
        let both = of(&[Decision::CannotDecide, Decision::Helps], None);
        assert_eq!(both.result, "knob-1 (p99.9 −20 %) helps; knob-0 cannot be decided");
        assert_eq!((both.tone, both.next.as_deref()), (Tone::Doubtful, Some("knob-1")));
        assert_eq!(both.why.as_deref(), Some("knob-0: too few pairs"));
        let good = of(&[Decision::Helps, Decision::NoDifference], None);
        assert_eq!((good.tone, good.why), (Tone::Good, None));
        let none = of(&[Decision::NoDifference; 6], None);
        assert!(none.result.ends_with("2 more make no difference"), "{}", none.result);
        assert_eq!((none.tone, none.next), (Tone::Plain, None));
        let cut = of(&[], Some("SIGINT came"));
        assert_eq!(cut.result, "no knob was tried; cut short: SIGINT came");
        assert_eq!(cut.tone, Tone::Doubtful);
    }
}

#[cfg(test)]
mod explain_tests {
    use super::*;

    fn explained_of(seen: u64, explained: u64) -> Explained {
        let spikes = Spikes { threshold_ns: 100_000, seen, explained, ..Spikes::default() };
        Explained {
            about: String::new(),
            spikes,
            windows: Vec::new(),
            notes: Vec::new(),
            no_wake_ups: false,
            gaps: Vec::new(),
            doubts: Vec::new(),
            locks: None,
            report: None,
        }
    }

    #[test]
    fn what_was_not_seen_is_not_good() {
        let of = |found: &Explained| explain_answer(found, Some("x".into()));
        let none = of(&explained_of(0, 0));
        assert_eq!(none.result, "no wake-up was more than 100 µs late");
        assert_eq!((none.tone, none.next), (Tone::Good, None));
        let unseen = of(&Explained { no_wake_ups: true, ..explained_of(0, 0) });
        assert_eq!((unseen.tone, unseen.next), (Tone::Doubtful, None));
        let gaps = vec!["lost: 3 kernel events".into()];
        let gaps = of(&Explained { gaps, ..explained_of(0, 0) });
        assert_eq!((gaps.tone, gaps.next), (Tone::Doubtful, None));
        assert!(gaps.result.ends_with("100 µs late; lost: 3 kernel events"), "{}", gaps.result);
        let some = of(&explained_of(1_431, 226));
        assert_eq!(some.result, "1\u{202f}431 wake-ups more than 100 µs late; 226 explained");
        assert_eq!((some.tone, some.next.as_deref()), (Tone::Doubtful, Some("x")));
        assert_eq!(of(&explained_of(2, 2)).tone, Tone::Plain);
        let doubts = vec!["it has no event of CPU 1".into()];
        let doubted = of(&Explained { doubts: doubts.clone(), ..explained_of(2, 2) });
        assert_eq!(doubted.tone, Tone::Doubtful);
        assert!(doubted.result.starts_with("seemingly 2 wake-ups"), "{}", doubted.result);
        assert!(doubted.result.ends_with("explained; it has no event of CPU 1"));
        assert_eq!(of(&Explained { doubts, ..explained_of(0, 0) }).tone, Tone::Doubtful);
    }
}

#[cfg(test)]
mod trace_tests {
    use rtproof_judge::causes::Spikes;
    use rtproof_run::explain::Explained;

    use super::*;

    fn traced(longest_ns: Option<u64>, seen: u64, lost_events: u64) -> Traced {
        let spikes = Spikes { threshold_ns: 100_000, seen, explained: seen, ..Spikes::default() };
        let explained = Explained {
            about: String::new(),
            spikes,
            windows: Vec::new(),
            notes: Vec::new(),
            no_wake_ups: longest_ns.is_none(),
            gaps: Vec::new(),
            doubts: Vec::new(),
            locks: None,
            report: None,
        };
        Traced { explained, longest_ns, lost_events, traced_ns: 2_000_000_000 }
    }

    fn of(traced: &Traced) -> (String, Tone) {
        let answer = trace_answer("wakeup_rt", traced, 100_000, None);
        (answer.result, answer.tone)
    }

    #[test]
    fn the_longest_is_named_where_nothing_was_late() {
        // The trace of the longest is explained, however short it is.
        let (result, tone) = of(&traced(Some(57_000), 1, 0));
        assert_eq!(result, "wakeup_rt saw nothing over 100 µs in 2 s; the longest was 57 µs");
        assert_eq!(tone, Tone::Good);
        assert_eq!(
            of(&traced(Some(157_000), 1, 0)).0,
            "1 wake-up more than 100 µs late; 1 explained"
        );
    }

    #[test]
    fn what_was_lost_or_never_seen_is_not_good() {
        for traced in [traced(None, 0, 0), traced(Some(57_000), 0, 7)] {
            assert_eq!(of(&traced).1, Tone::Doubtful);
            assert!(is_open(&traced, 100_000));
        }
        let nothing = of(&traced(None, 0, 0)).0;
        assert!(nothing.starts_with("not known"), "{nothing}");
        assert!(!is_open(&traced(Some(157_000), 1, 7), 100_000));
        let mut unseen = traced(Some(57_000), 0, 0);
        unseen.explained.gaps.push("2 wake-ups have no end".into());
        let (result, tone) = of(&unseen);
        assert!(result.ends_with("; 2 wake-ups have no end"), "{result}");
        assert!(tone == Tone::Doubtful && is_open(&unseen, 100_000));
    }
}
