//! The host while it was measured: small charts of its counters.

use maud::{Markup, html};
use rtproof_judge::units;
use rtproof_record::Run;

use super::parts::{self, Figure};
use crate::svg::{
    bins::TimeBins,
    host::{self, Counter},
};

/// Rows of the table, at most.
const ROWS: u64 = 100;

/// The section; nothing where no counter was read.
pub(super) fn section(run: &Run, time: TimeBins) -> Markup {
    let counters = Counter::all(run);
    if counters.is_empty() {
        return Markup::default();
    }
    html! {
        section #host {
            p.quiet { "Read once a second on " (place(run)) ". Loaded phases are shaded." }
            div.smalls { @for counter in &counters { (figure(run, counter, time)) } }
            details.numbers {
                summary { "The numbers as a table" }
                (parts::scroll("The host meanwhile", &table(&counters, time)))
            }
        }
    }
}

/// Where the counters were read: without housekeeping CPUs a measured one did it.
fn place(run: &Run) -> &'static str {
    match run.options.housekeeping.is_empty() {
        true => "a measured CPU, as no other was left",
        false => "a housekeeping CPU",
    }
}

fn figure(run: &Run, counter: &Counter, time: TimeBins) -> Markup {
    let title = format!("{}, {}", counter.column.title, counter.column.unit);
    let text = text(counter);
    parts::figure(&Figure {
        title: &title,
        text: &text,
        picture: host::draw(run, counter, time, &text),
        legend: Markup::default(),
        table: None,
    })
}

fn text(counter: &Counter) -> String {
    let Some([low, mean, high]) = counter.summary() else {
        return String::new();
    };
    let [low, mean, high] = [low, mean, high].map(number);
    format!("{low} to {high}, on average {mean} {}.", counter.column.unit)
}

/// A number of a counter: two decimals below ten, one below a hundred.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => return units::grouped(value.round().max(0.0) as u64),
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// All counters in one table, means of at most [`ROWS`] intervals.
fn table(counters: &[Counter], time: TimeBins) -> Markup {
    let time = time.coarser(ROWS);
    let columns: Vec<_> = counters.iter().map(|counter| counter.columns(time)).collect();
    html! {
        table {
            thead { tr {
                th { "from" }
                @for Counter { column, .. } in counters {
                    th.num { (column.title) br; (column.unit) }
                }
            } }
            tbody {
                @for row in 0..time.len {
                    tr {
                        th scope="row" { (units::duration(time.start_ns(row))) }
                        @for column in &columns {
                            td.num { (column[row].map_or(parts::NONE.into(), |v| number(v[1]))) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_host::CpuList;

    use crate::html::sample;

    #[test]
    fn without_housekeeping_cpus_none_is_named() {
        let mut run = sample::run(&sample::Shape::default());
        run.options.housekeeping = CpuList::default();
        assert!(super::place(&run).starts_with("a measured CPU"));
        run.options.housekeeping = CpuList::new([0]);
        assert_eq!(super::place(&run), "a housekeeping CPU");
    }
}
