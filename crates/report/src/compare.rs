//! What text and page of a comparison share: numbers in words, and how it was made.

use rtproof_judge::{
    compare::{Against, Answer, Cell, Change, Comparison, Design, Direction, Unit},
    units,
};
use rtproof_results::effects::signed;

/// A value with its unit; a dash where there is none.
pub(crate) fn cell(unit: Unit, cell: &Cell) -> String {
    match cell.value {
        None => "–".into(),
        Some(value) => format!("{}{}", at_least(cell.at_least), with_unit(unit, value)),
    }
}

/// What stands before a value that may be larger.
pub(crate) const fn at_least(it_is: bool) -> &'static str {
    if it_is { "≥ " } else { "" }
}

fn with_unit(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => units::ns(value.max(0.0).round() as u64),
        Unit::Share => share(value),
        Unit::Number => number(value),
    }
}

fn share(value: f64) -> String {
    if value > 0.0 { units::probability(value) } else { "0".into() }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A value without its unit: microseconds, a share, a number.
pub(crate) fn bare(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => units::us_column(value.max(0.0).round() as u64),
        Unit::Share => share(value),
        Unit::Number => number(value),
    }
}

/// A ratio as a change; a dash where there is none.
pub(crate) fn change(change: &Change) -> String {
    match (change.ratio, change.from.zip(change.to)) {
        (Some(ratio), _) => ratio_text(ratio),
        (None, Some((from, to))) if from == to && change.direction != Direction::Unknown => {
            "0 %".into()
        }
        _ => "–".into(),
    }
}

fn ratio_text(ratio: f64) -> String {
    if ratio > 11.0 {
        return format!("{ratio:.0} times");
    }
    signed((ratio * 1e6).round() as u64)
}

/// The interval of a change.
pub(crate) fn interval(change: &Change) -> String {
    match (change.low, change.high) {
        (Some(low), Some(high)) => format!("{} to {}", ratio_text(low), ratio_text(high)),
        (Some(low), None) => format!("{} or more", ratio_text(low)),
        (None, Some(high)) => format!("{} or less", ratio_text(high)),
        (None, None) if change.ratio.is_some() => "none".into(),
        (None, None) => String::new(),
    }
}

/// The sentence of one among many, without what all of them begin with.
pub(crate) fn own(one: &Against) -> String {
    const BEGIN: &str = "In these runs ";
    match (one.sentence.find(BEGIN), &one.pairs) {
        (Some(at), None) => capital(&one.sentence[at + BEGIN.len()..]),
        _ => one.sentence.clone(),
    }
}

/// With a capital letter; names keep theirs.
pub(crate) fn capital(text: &str) -> String {
    match text.strip_prefix("with ") {
        Some(rest) => format!("With {rest}"),
        None if text.starts_with("cannot") || text.starts_with("no ") => first_capital(text),
        None => match text {
            "better" | "worse" => first_capital(text),
            other => other.to_owned(),
        },
    }
}

fn first_capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(crate) fn p_value(p: f64) -> String {
    rtproof_results::effects::p_value(Some((p * 1e9).round() as u64))
}

/// A share as percent.
pub(crate) fn percent(share: f64) -> String {
    rtproof_results::effects::percent(share)
}

/// What a change decides.
pub(crate) fn decided(change: &Change) -> &'static str {
    match (change.answer, change.differs) {
        (Some(Answer::CannotDecide), Direction::Lower) => "lower, perhaps within the margin",
        (Some(Answer::CannotDecide), Direction::Higher) => "higher, perhaps within the margin",
        (answer, _) => answer.map_or("", Answer::text),
    }
}

/// How the comparison was made, term by term.
pub(crate) fn method(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let wish = &comparison.wish;
    let mut lines = vec![(
        "difference",
        format!(
            "Up to {} up or down it does not matter; intervals are at {} confidence.",
            percent(wish.margin),
            percent(wish.confidence)
        ),
    )];
    match comparison.design {
        Design::Single => lines.push((
            "single runs",
            "One run of each, one after the other. Whatever else changed meanwhile is in the \
             difference too, so nothing is decided. Intervals are from a stationary bootstrap of \
             the seconds where the runs have them, else from order statistics. Order statistics \
             assume independent wake-ups, which late ones are not: these intervals are too narrow."
                .into(),
        )),
        Design::Paired => lines.push((
            "pairs",
            "Runs that follow each other in time, one of each kind, are a pair; what drifts is in \
             both. \"change\" is the median of the ratios of pairs (Hodges and Lehmann), with the \
             exact interval of the signed-rank test. The values of the groups are the medians of \
             their runs: their ratio is another number. p values are those of the exact \
             sign-flip test of no difference, after Holm over p99.9, which has most of the level \
             first, the latest wake-up and missed ones. Better and worse are by more than the \
             margin: the same test of a difference as large as the margin. No difference is \
             within the margin by two such tests. All of them hold where a coin decided which \
             run of a pair came first, and no run changes the one after it. Other statistics \
             decide nothing."
                .into(),
        )),
    }
    lines.push((
        "quantile",
        "The value of rank ceil(p n): the upper edge of its bucket, at most 0.8 % wide; of other \
         tools the value as they write it, which rounds down."
            .into(),
    ));
    lines.push((
        "largest value",
        "Exact. Compared where both numbers of wake-ups agree within 2 %: of two like runs the \
         longer one has the larger maximum by itself."
            .into(),
    ));
    lines
}
