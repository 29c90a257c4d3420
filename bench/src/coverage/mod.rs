//! Whether every confidence that is printed holds: machines whose truth is known are simulated and
//! judged by the code that judges records, and the answers that were wrong are counted.
//!
//! A file per floor of claims; each returns its [`Case`]s. To add a process, add a case.

mod case;
mod compare;
mod rate;
mod share;
mod structure;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;
use case::{Case, Promise};

/// What is measured is held to this page.
const PAGE: &str = "docs/coverage-of-confidence.md";

/// Options.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Experiments of each row; default: what the row asks for
    #[arg(long)]
    runs: Option<u64>,
    /// Only rows that hold this text in claim or process; give a whole claim, as its section of the
    /// page is replaced
    #[arg(long, default_value = "")]
    only: String,
    /// Where the tables are written
    #[arg(long, default_value = PAGE)]
    page: PathBuf,
}

fn cases() -> Vec<Case> {
    let all = [rate::cases(), share::cases(), compare::cases(), structure::cases()];
    all.into_iter().flatten().collect()
}

/// Runs the rows that are asked for and puts their sections into the page.
pub(crate) fn run(out: &mut impl Write, options: &Options) -> anyhow::Result<()> {
    let mut sections: Vec<(&str, String)> = Vec::new();
    let mut broken = 0;
    let of_text = |case: &Case| format!("{} {}", case.claim, case.process).contains(&options.only);
    let cases = cases();
    for case in cases.iter().filter(|case| of_text(case)) {
        let runs = options.runs.unwrap_or(case.runs);
        let count = case.count(runs);
        let (share, keeps) = (count as f64 / runs as f64, case.keeps(count, runs));
        broken += u32::from(!keeps);
        let error = 100.0 * (share * (1.0 - share) / runs as f64).sqrt();
        if !sections.iter().any(|(claim, _)| *claim == case.claim) {
            sections.push((case.claim, String::from(TABLE)));
            writeln!(out, "{}", case.claim)?;
        }
        let promised = match case.promise {
            Promise::AtMost(p) => format!("at most {:.1} %", 100.0 * p),
            Promise::AtLeast(p) => format!("at least {:.1} %", 100.0 * p),
            Promise::Unless(condition) => format!("none: {condition}"),
        };
        let measured = format!("{:.1} ± {error:.1} %", 100.0 * share);
        let mark = if keeps { "" } else { " **broken**" };
        if let Some((_, rows)) = sections.iter_mut().find(|(claim, _)| *claim == case.claim) {
            writeln!(rows, "| {} | {promised} | {measured}{mark} | {runs} |", case.process)?;
        }
        writeln!(out, "  {measured:>14}{mark}  {promised:<18}  {}", case.process)?;
        out.flush()?;
    }
    write_page(&options.page, &cases, sections)?;
    writeln!(out, "{}", options.page.display())?;
    anyhow::ensure!(broken == 0, "{broken} promises are broken");
    Ok(())
}

/// Sections that were not run stay as they are.
#[expect(clippy::disallowed_methods, reason = "our own page")]
fn write_page(path: &Path, cases: &[Case], new: Vec<(&str, String)>) -> anyhow::Result<()> {
    let old = fs::read_to_string(path).unwrap_or_default();
    let old = old.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    let mut sections: BTreeMap<&str, String> =
        old.map(|(claim, rows)| (claim, rows.trim_end().to_owned() + "\n")).collect();
    sections.extend(new);
    let mut page = String::from(HEAD);
    for claim in cases.iter().map(|case| case.claim) {
        // Taken out: a claim of several cases is one section.
        if let Some(rows) = sections.remove(claim) {
            write!(page, "\n## {claim}\n{rows}")?;
        }
    }
    fs::write(path, page).with_context(|| path.display().to_string())
}

const TABLE: &str = "\n| process | promised | measured | runs |\n|---|---|---|---|\n";

const HEAD: &str = "# Whether the stated confidence holds\n\
\n\
Machines whose truth is known are simulated, and judged by the code that judges records. Each row \
counts the\n\
experiments in which what its heading says happened; the error is that of the simulation (one \
standard\n\
error). Made by `cargo run --release -p rtproof-bench -- coverage`; a quick version with fixed \
seeds is\n\
part of `make test`. [How verdicts and intervals are computed](statistics.md) has the methods.\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// One row in four; with `FULL=1` each.
    #[test]
    fn every_promise_is_kept() {
        let step = if rtproof_judge::testing::is_full() { 1 } else { 4 };
        let broken: Vec<String> = cases()
            .iter()
            .filter(|case| case.quick > 0)
            .step_by(step)
            .filter_map(|case| {
                let count = case.count(case.quick);
                let text = format!("{}: {}: {count} of {}", case.claim, case.process, case.quick);
                (!case.keeps(count, case.quick)).then_some(text)
            })
            .collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
