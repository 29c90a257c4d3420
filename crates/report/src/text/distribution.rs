//! Moments and P² estimates as text: what is asked for with -v.

use std::io::{self, Write};

use rtproof_judge::{
    Report,
    distribution::Distribution,
    units::{grouped, us_column},
};

use crate::{
    distribution::{CONVENTION, P2_CAUTION, held_out, name, number},
    text::sheet::{BOLD, DIM, Sheet, table, wrapped},
};

const HEADS: [&str; 12] =
    ["", "worth", "mean", "±", "sd", "cv", "spread", "g1", "G1", "g2", "G2", "index"];
const INDENT: &str = "         ";

/// All of it, of a report.
pub fn distribution(to: &mut Sheet, report: &Report) -> io::Result<()> {
    writeln!(to, "{BOLD}Moments{BOLD:#}")?;
    let of_workload = report.distribution.iter().map(|of| (name(of.cpu), of));
    moments(to, "  ", &of_workload.collect::<Vec<_>>())?;
    for of in &report.distribution {
        estimates(to, INDENT, of)?;
    }
    if let Some(held) = &report.holdout {
        wrapped(to, INDENT, INDENT, &held_out(held))?;
    }
    let text = format!(
        "{CONVENTION} Index: the extremal index by runs, 1 where the largest samples come one by \
         one. P²: {P2_CAUTION}"
    );
    wrapped(to, &format!("{INDENT}{DIM}"), INDENT, &format!("{text}{DIM:#}"))
}

/// A table of moments, a row for each.
pub(super) fn moments(
    to: &mut Sheet,
    indent: &str,
    of: &[(String, &Distribution)],
) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> = vec![HEADS.map(String::from).into()];
    rows.extend(of.iter().map(|(name, of)| row(name, of)));
    table(to, indent, &rows, &[])
}

fn row(name: &str, of: &Distribution) -> Vec<String> {
    let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.3}", ns / 1000.0));
    let part = |value: Option<f64>| value.map_or("-".into(), number);
    let shape = of.shape.as_ref();
    vec![
        name.into(),
        of.mean_n_eff.map_or("-".into(), grouped),
        us(of.mean_ns),
        us(of.mean_error_ns),
        us(of.sd_ns),
        part(of.cv),
        part(of.spread),
        part(shape.map(|shape| shape.g1)),
        part(shape.and_then(|shape| shape.g1_sample)),
        part(shape.map(|shape| shape.g2)),
        part(shape.and_then(|shape| shape.g2_sample)),
        part(of.extremal.map(|of| of.runs)),
    ]
}

/// P² beside the histogram, in a line.
pub(super) fn estimates(to: &mut Sheet, indent: &str, of: &Distribution) -> io::Result<()> {
    if of.p2.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = of
        .p2
        .iter()
        .map(|of| {
            let own = of.histogram_ns.map_or("too few samples".into(), us_column);
            let error =
                of.error.map_or_else(String::new, |error| format!(", {:+.1} %", 100.0 * error));
            let p2 = us_column(of.p2_ns.max(0.0).round() as u64);
            format!("{} {p2} ({own}{error})", of.q.name())
        })
        .collect();
    let text =
        format!("{}: P² estimates (histogram, error of P²) {} µs", name(of.cpu), texts.join(", "));
    wrapped(to, indent, &format!("{indent}  "), &text)
}
