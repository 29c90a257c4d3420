//! The answer in one sentence, with its statistic and its reason.

use rtproof_stats::paired::pairs_least;

use super::side::Group;
use super::table::{GroupObservation, PairSummary};
use super::{
    Against, CompareAnswer, CompareRequest, Direction, FAR, PRIMARY, StatisticChange, and_list,
    arrow, equal_exposure, p_value, percent, signed, value_text,
};
use crate::quantity;

/// Over all groups: worse comes before undecided.
pub(super) fn of_all(groups: &[Group], against: &[Against]) -> (CompareAnswer, String) {
    let order = [
        CompareAnswer::Worse,
        CompareAnswer::CannotDecide,
        CompareAnswer::Better,
        CompareAnswer::NoDifference,
    ];
    let found = order.into_iter().find(|&answer| against.iter().any(|one| one.answer == answer));
    let answer = found.unwrap_or(CompareAnswer::CannotDecide);
    let sentence = match against {
        [] => "Cannot decide: there is nothing to compare with.".into(),
        [one] => one.sentence.clone(),
        many if many.iter().all(|one| one.pairs.is_none()) => format!(
            "Cannot decide: {} single runs, one after the other; drift is not excluded.",
            groups.len()
        ),
        many => {
            let of = |answer: CompareAnswer| {
                let name = |one: &Against| groups.get(one.group).map(|group| group.label.clone());
                let names: Vec<String> =
                    many.iter().filter(|one| one.answer == answer).filter_map(name).collect();
                (!names.is_empty()).then(|| format!("{}: {}", answer.text(), names.join(", ")))
            };
            let parts: Vec<String> = order.into_iter().filter_map(of).collect();
            let first = groups.first().map_or("the first", |group| group.label.as_str());
            format!("Compared with {first}: {}.", parts.join("; "))
        }
    };
    (answer, sentence)
}

pub(super) fn of_single(
    first: &str,
    other: &str,
    changes: &[StatisticChange],
    request: &CompareRequest,
) -> String {
    let observed = observed(other, changes, request);
    format!(
        "Cannot decide between {first} and {other}: single runs, one after the other, drift not \
         excluded. {observed}"
    )
}

/// What the two runs show, from p99.9 outwards.
fn observed(other: &str, changes: &[StatisticChange], request: &CompareRequest) -> String {
    let known = |change: &&StatisticChange| change.direction != Direction::Unknown;
    let quantile =
        |change: &&StatisticChange| change.statistic.starts_with('p') || change.statistic == "max";
    let all: Vec<&StatisticChange> = changes.iter().filter(quantile).filter(known).collect();
    let from = all.iter().position(|change| change.statistic == PRIMARY.name());
    // Without p99.9 the highest quantile that both carry comes first.
    let tail = &all[from.unwrap_or(all.len().saturating_sub(1))..];
    let Some(primary) = tail.first() else {
        return format!("{other} has too few wake-ups for any quantile.");
    };
    let bulk = &all[..from.unwrap_or(all.len().saturating_sub(1))];
    let main = match primary.direction {
        Direction::Lower | Direction::Higher => tail_sentence(other, tail),
        Direction::Same | Direction::Unknown => trailing(other, tail, request),
    };
    let odd: Vec<String> = bulk
        .iter()
        .filter(|change| ["p50", "p99"].contains(&change.statistic.as_str()))
        .filter(|change| change.direction != Direction::Same)
        .filter(|change| change.direction != primary.direction)
        .map(|change| {
            let word = if change.direction == Direction::Lower { "lower" } else { "higher" };
            format!("{} is {word} ({})", change.statistic, arrows(change))
        })
        .collect();
    let odd = if odd.is_empty() { String::new() } else { format!("; {}", and_list(&odd, "and")) };
    format!("In these runs {main}{odd}.")
}

/// p99.9 itself differs: what goes with it, and what does not.
fn tail_sentence(other: &str, tail: &[&StatisticChange]) -> String {
    let direction = tail[0].direction;
    let word = if direction == Direction::Lower { "lower" } else { "higher" };
    let (with, without): (Vec<&&StatisticChange>, Vec<&&StatisticChange>) =
        tail.iter().partition(|change| change.direction == direction);
    let texts = |some: &[&&StatisticChange]| -> Vec<String> {
        some.iter().map(|change| format!("{} ({})", change.statistic, arrows(change))).collect()
    };
    let names = and_list(&texts(&with), "and");
    let head = format!("with {other} {names} {} {word}", is(with.len()));
    if without.is_empty() {
        return head;
    }
    format!("{head}, but {} {} not {word}", and_list(&texts(&without), "and"), is(without.len()))
}

const fn is(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// p99.9 stays: whether anything beyond it moves.
fn trailing(other: &str, tail: &[&StatisticChange], request: &CompareRequest) -> String {
    let moved = tail.iter().rev().map(|change| change.direction).next().unwrap_or(Direction::Same);
    let split = tail.iter().rposition(|change| change.direction != moved).map_or(0, |at| at + 1);
    let texts = |some: &[&StatisticChange]| -> Vec<String> {
        some.iter().map(|change| format!("{} ({})", change.statistic, arrows(change))).collect()
    };
    if moved == Direction::Same {
        let far: Vec<&&StatisticChange> =
            tail.iter().filter(|change| change.direction != Direction::Same).collect();
        let odd: Vec<String> = far
            .iter()
            .map(|change| {
                let word = if change.direction == Direction::Lower { "lower" } else { "higher" };
                format!("{} is {word} ({})", change.statistic, arrows(change))
            })
            .collect();
        let odd =
            if odd.is_empty() { String::new() } else { format!(", {}", and_list(&odd, "and")) };
        return format!(
            "p99.9 differs by no more than {} ({}){odd}",
            percent(request.margin),
            arrows(tail[0])
        )
        .replace("p99.9", &tail[0].statistic);
    }
    let (verb, word) =
        if moved == Direction::Lower { ("lower", "lower") } else { ("raise", "higher") };
    let far: Vec<String> = tail[split..]
        .iter()
        .map(|change| format!("{} {}", change.statistic, arrows(change)))
        .collect();
    format!(
        "{other} did not {verb} {}; only the far tail is {word}: {}",
        and_list(&texts(&tail[..split]), "nor"),
        far.join(", ")
    )
}

fn arrows(change: &StatisticChange) -> String {
    match change.from.zip(change.to) {
        Some((from, to)) => arrow(from, to, change.unit),
        None => "not known".into(),
    }
}

/// Caveats of a comparison of two single runs.
pub(super) fn reasons_of_single(
    first: &GroupObservation<'_>,
    other: &GroupObservation<'_>,
    request: &CompareRequest,
) -> Vec<String> {
    let mut reasons = vec![format!(
        "Runs of each that alternate would decide: {} pairs or more, \
         `rtproof compare --a A1 A2 … --b B1 B2 …`.",
        rtproof_stats::paired::PAIRS
    )];
    let (a, b) = (first.group.exposure(), other.group.exposure());
    if !equal_exposure(a, b) {
        reasons.push(format!(
            "Maxima are not compared: {} and {} wake-ups, and the longer run has the larger one \
             by itself.",
            quantity::grouped(a),
            quantity::grouped(b)
        ));
    }
    let resolution_ns = [first, other]
        .iter()
        .flat_map(|other| &other.runs)
        .map(|(side, _)| side.resolution_ns)
        .max()
        .unwrap_or(1);
    if resolution_ns > 1 {
        reasons.push(format!(
            "Resolution is {}: a difference of one step is not significant.",
            quantity::ns(resolution_ns)
        ));
    }
    if first.bins.total() < 1000 || other.bins.total() < 1000 {
        reasons.push("Fewer than 1000 wake-ups have no p99.9.".into());
    }
    reasons.push(format!(
        "Differences up to {} are taken for none; ranges are over the tenths of the runs.",
        percent(request.margin),
    ));
    reasons
}

pub(super) fn of_paired(
    (first, other): (&str, &str),
    answer: CompareAnswer,
    changes: &[StatisticChange],
    pairs: &PairSummary,
    groups: usize,
    request: &CompareRequest,
) -> String {
    let of = |answer: CompareAnswer| -> Vec<&StatisticChange> {
        changes.iter().filter(|change| change.answer == Some(answer)).collect()
    };
    let n = pairs.pairs.len();
    let worded = |some: &[&StatisticChange]| -> String {
        let texts: Vec<String> = some.iter().map(|change| decided(change, request)).collect();
        and_list(&texts, "and")
    };
    match answer {
        CompareAnswer::Worse => {
            let better = of(CompareAnswer::Better);
            let but = match better.is_empty() {
                true => String::new(),
                false => format!(", though {}", worded(&better)),
            };
            format!(
                "Worse: with {other} against {first} {}{but}; {}.",
                worded(&of(CompareAnswer::Worse)),
                quantity::count(n, "pair")
            )
        }
        CompareAnswer::Better => format!(
            "Better: with {other} against {first} {}; {}.",
            worded(&of(CompareAnswer::Better)),
            quantity::count(n, "pair")
        ),
        CompareAnswer::NoDifference => format!(
            "No difference of {} larger than {} of the typical pair: {other} to {first} {}; none \
             of {} deviates by more than {}: at {} fewer than {} of pairs do.",
            PRIMARY.name(),
            percent(request.margin),
            changes
                .iter()
                .find(|change| change.statistic == PRIMARY.name())
                .map_or_else(String::new, |change| interval(change, request)),
            quantity::count(n, "pair"),
            percent(FAR * request.margin),
            percent(request.confidence),
            percent(unseen(n, request.confidence)),
        ),
        CompareAnswer::CannotDecide => {
            let why = why_not(changes, pairs, groups, request);
            format!("Cannot decide between {first} and {other}: {why}.")
        }
    }
}

/// Share of pairs that may deviate where none of so many does.
pub(super) fn unseen(pairs: usize, confidence: f64) -> f64 {
    1.0 - (1.0 - confidence).powf(1.0 / pairs.max(1) as f64)
}

/// `p99.9 is lower by more than 5 %: by 20 % (…), p 0.0029 of 5 % or less after Holm`.
fn decided(change: &StatisticChange, request: &CompareRequest) -> String {
    let p = change.p_margin.map_or_else(String::new, |p| {
        format!(", p {} of {} or less", p_value(p), percent(request.margin))
    });
    format!(
        "{} is {} by more than {}: {}{p}",
        name(change),
        word(change),
        percent(request.margin),
        interval(change, request)
    )
}

fn name(change: &StatisticChange) -> &str {
    match change.statistic.as_str() {
        "missed" => "the share of missed wake-ups",
        "max" => "the latest wake-up of a run",
        name => name,
    }
}

fn word(change: &StatisticChange) -> &'static str {
    if change.ratio.unwrap_or(1.0) < 1.0 { "lower" } else { "higher" }
}

fn ends(change: &StatisticChange) -> String {
    match change.low.zip(change.high) {
        Some((low, high)) => format!("{} to {}", signed(low), signed(high)),
        None => "none".into(),
    }
}

/// Estimate and interval of the pairs, and the medians of the groups: numbers of two kinds, each
/// with its name.
fn interval(change: &StatisticChange, request: &CompareRequest) -> String {
    let ratio = change.ratio.map_or_else(|| "not known".into(), signed);
    let of =
        if change.unit == super::ValueUnit::Share { "all runs" } else { "medians of the runs" };
    format!(
        "{ratio} (median of the ratios of pairs, {} interval {}; {of} {})",
        percent(request.confidence),
        ends(change),
        arrows(change)
    )
}

fn why_not(
    changes: &[StatisticChange],
    pairs: &PairSummary,
    groups: usize,
    request: &CompareRequest,
) -> String {
    let n = pairs.pairs.len();
    if let Some(why) = &pairs.why_none {
        return format!("{why}, so that they cannot be paired by time");
    }
    let least = pairs_least(groups, 1.0 - request.confidence);
    if n < least {
        let left = match pairs.left_out {
            0 => String::new(),
            left => format!(
                "; {} no neighbour of the other kind, because the runs do not alternate",
                if left == 1 { "1 run has".into() } else { format!("{left} runs have") }
            ),
        };
        let of = if groups > 1 { format!(" of {groups} comparisons") } else { String::new() };
        return format!(
            "{}, and fewer than {least} decide nothing{of} at {}{left}",
            quantity::count(n, "pair"),
            percent(request.confidence)
        );
    }
    let Some(primary) = changes.iter().find(|change| change.statistic == PRIMARY.name()) else {
        return "no p99.9 is known".into();
    };
    if primary.ratio.is_none() {
        return format!("{}: {}", primary.statistic, primary.method);
    }
    if pairs.is_one_sided() {
        return format!(
            "in each of {} the same kind of run came first, and what drifts is no different from \
             what was changed; {} {}",
            quantity::count(n, "pair"),
            primary.statistic,
            interval(primary, request)
        );
    }
    let some: Vec<&StatisticChange> = changes
        .iter()
        .filter(|change| matches!(change.differs, Direction::Lower | Direction::Higher))
        .collect();
    if primary.differs == Direction::Same && some.is_empty() {
        return format!(
            "the typical pair does not differ in {} by more than {}, but one is off by more than \
             {}: {}; {}",
            primary.statistic,
            percent(request.margin),
            percent(FAR * request.margin),
            interval(primary, request),
            quantity::count(n, "pair"),
        );
    }
    if !some.is_empty() {
        let margin = percent(request.margin);
        let one = |change: &&StatisticChange| {
            let word = word(change);
            let p = change.p_adjusted.map_or_else(String::new, |p| {
                format!(", p {} of no difference after Holm", p_value(p))
            });
            format!(
                "{} is {word}, but that it is {word} by more than {margin} is not shown: {}{p}",
                name(change),
                interval(change, request)
            )
        };
        let texts: Vec<String> = some.iter().map(one).collect();
        return format!(
            "{}; {}{}",
            and_list(&texts, "and"),
            quantity::count(n, "pair"),
            detectable_change(primary)
        );
    }
    format!(
        "{} is neither shown to differ nor shown to be within {}: {}; {}{}",
        primary.statistic,
        percent(request.margin),
        interval(primary, request),
        quantity::count(n, "pair"),
        detectable_change(primary)
    )
}

/// Which change so many pairs find.
fn detectable_change(primary: &StatisticChange) -> String {
    primary.detectable.map_or_else(String::new, |ratio| {
        format!("; so many pairs find a change by {} four times in five", percent(ratio - 1.0))
    })
}

/// Caveats of a comparison of alternating runs.
pub(super) fn reasons_of_paired(
    (first, other): (&str, &str),
    changes: &[StatisticChange],
    pairs: &PairSummary,
    groups: usize,
    request: &CompareRequest,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let n = pairs.pairs.len();
    if pairs.left_out > 0 {
        reasons.push(format!(
            "{} left out: no neighbour in time of the other kind.",
            if pairs.left_out == 1 {
                "1 run is".into()
            } else {
                format!("{} runs are", pairs.left_out)
            }
        ));
    }
    if pairs.is_one_sided() {
        let (early, late) = if pairs.first_before == n { (first, other) } else { (other, first) };
        reasons.push(format!(
            "In every pair {early} came before {late}: what drifts steadily adds to the \
             difference. Let a coin decide within each pair, or turn it round from pair to pair."
        ));
    }
    if let Some(primary) = changes.iter().find(|change| change.statistic == PRIMARY.name())
        && let Some(ratio) = primary.detectable
    {
        reasons.push(format!(
            "So many pairs that differ as these do show a change of {} by {} to be larger than {} \
             four times in five, where their ratios are log-normal.",
            primary.statistic,
            percent(ratio - 1.0),
            percent(request.margin)
        ));
    }
    for change in
        changes.iter().filter(|change| change.ratio.is_none() && !change.method.is_empty())
    {
        reasons.push(format!("{} is not compared: {}.", change.statistic, change.method));
    }
    let names: Vec<String> = changes
        .iter()
        .filter(|change| change.p_adjusted.is_some())
        .map(|change| change.statistic.clone())
        .collect();
    let of = if groups > 1 { format!(" of {groups} comparisons") } else { String::new() };
    reasons.push(format!(
        "Differences up to {} do not matter. P values of the exact sign-flip test below {} count, \
         after Holm over {}{of}, with {:.0} % of the level for {} first. They hold where a coin \
         decided which run of each pair came first.",
        percent(request.margin),
        value_text(1.0 - request.confidence, super::ValueUnit::Number),
        and_list(&names, "and"),
        100.0 * rtproof_stats::paired::MAIN,
        PRIMARY.name()
    ));
    reasons
}
