//! The statistics as a table: values with their intervals, ratios, and what each rests on.

use maud::{Markup, html};
use rtproof_judge::{
    compare::{Against, Cell, Change, Comparison, Design, Direction, Line},
    units,
};

use super::super::parts::{self, NONE};
use crate::compare as words;

pub(super) fn section(comparison: &Comparison) -> Markup {
    html! {
        section #numbers {
            h2 { "Numbers" }
            p { (convention(comparison)) }
            @if let [one] = comparison.against.as_slice() {
                (parts::scroll("Statistics", &two(comparison, one)))
                (delta(one))
            } @else {
                (parts::scroll("Statistics", &many(comparison)))
            }
            details.numbers {
                summary { "What each number rests on" }
                (parts::scroll("What each number rests on", &rests_on(comparison)))
            }
        }
    }
}

fn convention(comparison: &Comparison) -> String {
    let view = match comparison.view {
        rtproof_judge::compare::View::Deadline => {
            "Quantiles are over all wake-ups that were due: missed ones count with their own \
             lateness."
        }
        rtproof_judge::compare::View::Wake => "Quantiles are over the wake-ups that were measured.",
    };
    let drift = match comparison.design {
        Design::Single => " The intervals do not hold drift between the runs.",
        Design::Paired => "",
    };
    format!(
        "{view} Below each value stands its interval at {}; a question mark is an end that the \
         samples do not give. Kurtosis is 3 of a normal distribution; it and skewness count \
         outliers more than anything else.{drift}",
        words::percent(comparison.wish.confidence)
    )
}

fn delta(one: &Against) -> Markup {
    let Some(delta) = one.cliffs_delta else { return Markup::default() };
    html! {
        p {
            "Of all pairs of wake-ups, one of each, this one's is later in "
            (words::percent(f64::midpoint(1.0, delta)))
            " (ties count half; Cliff’s delta " (format!("{delta:+.3}")) ")."
        }
    }
}

fn two(comparison: &Comparison, one: &Against) -> Markup {
    let label = |at: usize| comparison.groups.get(at).map_or("", |group| group.label.as_str());
    let tested = comparison.design == Design::Paired;
    let change = |line: &Line| one.changes.iter().find(|c| c.statistic == line.statistic);
    html! {
        table {
            thead { tr {
                td {}
                th.num { (label(0)) }
                th.num { (label(one.group)) }
                th.num { (if tested { "change of pairs" } else { "change" }) }
                th { (words::percent(comparison.wish.confidence)) " interval" }
                @if tested { th.num { "p (Holm)" } td {} }
            } }
            tbody {
                @for line in &comparison.table {
                    tr {
                        th scope="row" { (line.statistic) }
                        @for cell in &line.cells { (value(line, cell)) }
                        @match change(line) {
                            Some(change) => (change_cells(change, tested)),
                            None => { td {} td {} @if tested { td {} td {} } },
                        }
                    }
                }
            }
        }
    }
}

fn change_cells(change: &Change, tested: bool) -> Markup {
    html! {
        td.num { (words::change(change)) }
        @if change.ratio.is_none() && change.direction == Direction::Unknown {
            td.wrap { small { "not compared: " (change.method) } }
        } @else {
            td { (words::interval(change)) }
        }
        @if tested {
            td.num { (change.p_adjusted.map_or_else(|| NONE.into(), words::p_value)) }
            td { (words::decided(change)) }
        }
    }
}

/// Statistics as rows, groups as columns, the change against the first below each value.
fn many(comparison: &Comparison) -> Markup {
    html! {
        table {
            thead { tr {
                td {}
                @for group in &comparison.groups { th.num { (group.label) } }
            } }
            tbody {
                @for line in &comparison.table {
                    tr {
                        th scope="row" { (line.statistic) }
                        @for (at, cell) in line.cells.iter().enumerate() {
                            td.num {
                                (words::cell(line.unit, cell))
                                @if let Some(change) = found(comparison, at, &line.statistic) {
                                    small.interval { (words::change(change)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn found<'a>(comparison: &'a Comparison, group: usize, statistic: &str) -> Option<&'a Change> {
    let one = comparison.against.iter().find(|one| one.group == group)?;
    one.changes.iter().find(|change| change.statistic == statistic)
}

fn value(line: &Line, cell: &Cell) -> Markup {
    let end = |value: Option<f64>| value.map_or_else(|| "?".into(), |v| words::bare(line.unit, v));
    let interval = (cell.low.is_some() || cell.high.is_some())
        .then(|| format!("{}…{}", end(cell.low), end(cell.high)));
    html! {
        td.num {
            (words::cell(line.unit, cell))
            @if let Some(interval) = interval { small.interval { (interval) } }
        }
    }
}

fn rests_on(comparison: &Comparison) -> Markup {
    let label = |at: usize| comparison.groups.get(at).map_or("", |group| group.label.as_str());
    html! {
        table {
            (parts::head(["", "run", "#wake-ups", "#worth", "how"]))
            tbody {
                @for line in &comparison.table {
                    @for (at, cell) in line.cells.iter().enumerate() {
                        tr {
                            th scope="row" { (line.statistic) }
                            td { (label(at)) }
                            td.num { (units::grouped(cell.n)) }
                            td.num { (cell.n_eff.map_or_else(|| NONE.into(), units::grouped)) }
                            td.wrap { (cell.method) }
                        }
                    }
                }
                @for one in &comparison.against {
                    @for change in &one.changes {
                        tr {
                            th scope="row" { (change.statistic) }
                            td { (label(one.group)) " to " (label(0)) }
                            td.num { (units::grouped(change.n)) }
                            td.num { (change.n_eff.map_or_else(|| NONE.into(), units::grouped)) }
                            td.wrap { (change.method) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_judge::compare::Unit;

    use super::*;

    #[test]
    fn values_are_short() {
        assert_eq!(words::bare(Unit::Ns, 55_000.0), "55.0");
        assert_eq!(words::bare(Unit::Share, 0.0), "0");
        assert_eq!(words::bare(Unit::Number, 2.5), "2.50");
    }
}
