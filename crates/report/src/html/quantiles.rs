//! Tables of quantiles with their intervals: all CPUs, each CPU, each load phase, both views.

use maud::{Markup, html};
use rtproof_judge::{Report, report::Measured, units};
use rtproof_stats::quantile::Quantile;

use super::parts;

/// A row: its name and what was measured.
type Row<'a> = (String, &'a Measured);

pub(super) fn section(report: &Report) -> Markup {
    let cpus = || report.cpus.iter().map(|cpu| (format!("CPU {}", cpu.thread.cpu), &cpu.measured));
    let all: Vec<Row<'_>> = std::iter::once(("all".into(), &report.all)).chain(cpus()).collect();
    let phases: Vec<Row<'_>> =
        report.phases.iter().map(|phase| (phase.name.clone(), &phase.measured)).collect();
    html! {
        section #quantiles {
            p { (convention(report)) }
            h3 { "Wake-up view" }
            (table("Wake-up view", &all, View::Wake))
            @if report.all.missed > 0 {
                h3 { "Deadline view" }
                (table("Deadline view", &all, View::Deadline))
            } @else {
                p.quiet { "Nothing was missed: the deadline view is the same." }
            }
            @if !phases.is_empty() {
                h3 { "By load phase" }
                (phase_table(report, &phases))
            }
        }
    }
}

fn convention(report: &Report) -> String {
    format!(
        "Microseconds. Below each quantile stands its interval at {} confidence; a question mark \
         is an end that the samples do not give. A quantile is the upper edge of a bucket at most \
         0.8 % wide; smallest and largest are exact.",
        units::confidence(report.options.requirement.confidence_ppm)
    )
}

/// Which wake-ups a table is about.
#[derive(Clone, Copy)]
enum View {
    /// Those that were measured.
    Wake,
    /// Those that were due.
    Deadline,
}

impl View {
    fn quantiles(self, measured: &Measured) -> &Vec<Quantile> {
        match self {
            Self::Wake => &measured.wake,
            Self::Deadline => &measured.deadline,
        }
    }

    /// Columns before the quantiles. Smallest value and deviation are exact for measured wake-ups
    /// only; the largest is that of both, as a missed one is less late than what swallowed it.
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Wake => &["", "#wake-ups", "#min", "#mean", "#sd", "#max"],
            Self::Deadline => &["", "#wake-ups", "#mean", "#max"],
        }
    }

    fn count_and_mean(self, measured: &Measured) -> (u64, Option<f64>) {
        match self {
            Self::Wake => (measured.sampled, measured.mean_ns),
            Self::Deadline => (measured.sampled + measured.missed, measured.deadline_mean_ns),
        }
    }
}

fn table(label: &str, rows: &[Row<'_>], view: View) -> Markup {
    let names = names(rows, view);
    let fixed = view.columns().iter().map(|&column| column.to_owned());
    let columns = fixed.chain(names.iter().map(|name| format!("#{name}")));
    let body = html! {
        table.quantiles {
            (parts::head(columns))
            tbody {
                @for (name, measured) in rows {
                    @let (count, mean_ns) = view.count_and_mean(measured);
                    tr {
                        th scope="row" { (name) }
                        td.num { (units::grouped(count)) }
                        @if let View::Wake = view { td.num { (parts::us(measured.min_ns)) } }
                        td.num { (parts::us_mean(mean_ns)) }
                        @if let View::Wake = view { td.num { (parts::us_mean(measured.sd_ns)) } }
                        td.num { strong { (parts::us(measured.max_ns)) } }
                        @for i in 0..names.len() {
                            (parts::quantile_cell(view.quantiles(measured).get(i)))
                        }
                    }
                }
            }
        }
    };
    parts::scroll(label, &body)
}

/// Names of the quantiles of the row that has most of them.
fn names(rows: &[Row<'_>], view: View) -> Vec<String> {
    let all = rows.iter().map(|(_, measured)| view.quantiles(measured));
    let longest = all.max_by_key(|quantiles| quantiles.len());
    longest.map_or(Vec::new(), |quantiles| quantiles.iter().map(|q| q.q.name()).collect())
}

fn phase_table(report: &Report, rows: &[Row<'_>]) -> Markup {
    let names = names(rows, View::Wake);
    let fixed =
        ["phase", "time", "#sampled", "#missed", "#late", "#mean", "#max"].map(str::to_owned);
    let columns = fixed.into_iter().chain(names.iter().map(|name| format!("#{name}")));
    let body = html! {
        table.quantiles {
            (parts::head(columns))
            tbody {
                @for (phase, (name, measured)) in report.phases.iter().zip(rows) {
                    tr {
                        th scope="row" { (name) }
                        td { (units::duration(phase.from_ns)) " – " (units::duration(phase.to_ns)) }
                        td.num { (units::grouped(measured.sampled)) }
                        td.num { (units::grouped(measured.missed)) }
                        td.num { (units::grouped(measured.late)) }
                        td.num { (parts::us_mean(measured.mean_ns)) }
                        td.num { strong { (parts::us(measured.max_ns)) } }
                        @for i in 0..names.len() { (parts::quantile_cell(measured.wake.get(i))) }
                    }
                }
            }
        }
    };
    html! {
        (parts::scroll("By load phase", &body))
        p.quiet {
            "A phase holds the seconds that begin in it; its quantiles come from buckets at most "
            "3.1 % wide."
        }
    }
}
