//! Whether every confidence that is printed holds: machines whose truth is known are simulated and
//! judged by the code that judges records, and the answers that were wrong are counted.
//!
//! A file per floor of claims; each returns its [`Case`]s. To add a process, add a case.

mod compare;
mod rate;
mod share;
mod structure;
mod tail;

use std::{
    fmt::Write as _,
    fs,
    io::Write,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::Context;

/// What is measured is held to this page.
const PAGE: &str = "docs/coverage-of-confidence.md";

/// Options.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Experiments of each row; default: what the row asks for
    #[arg(long)]
    runs: Option<u64>,
    /// Only rows that hold this text in claim or process
    #[arg(long, default_value = "")]
    only: String,
    /// Where the table is written; with --only or --runs nothing is written
    #[arg(long, default_value = PAGE)]
    page: PathBuf,
}

/// What is promised of a share of experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Promise {
    /// A wrong answer: at most this share.
    AtMost(f64),
    /// A right answer where an honest one can be had: at least this share.
    AtLeast(f64),
    /// Nothing: what the run holds cannot tell, and the text says this condition.
    Unless(&'static str),
}

/// One process under one claim.
pub(crate) struct Case {
    /// What is said, e.g. `class 95 accepts at a true share of 5 %`.
    pub(crate) claim: &'static str,
    /// What the machine does.
    pub(crate) process: String,
    /// What is promised.
    pub(crate) promise: Promise,
    /// Experiments for the page.
    pub(crate) runs: u64,
    /// Experiments for the test: so many that it takes well below a second, or none.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test"))]
    pub(crate) quick: u64,
    /// Whether what is counted happened in the experiment with this seed.
    pub(crate) happened: Box<dyn Fn(u64) -> bool + Sync>,
}

/// Every case.
fn cases() -> Vec<Case> {
    let all = [rate::cases(), share::cases(), tail::cases(), compare::cases(), structure::cases()];
    all.into_iter().flatten().collect()
}

impl Case {
    /// How many of so many experiments it happened in; seeds 1, 2, ...
    fn count(&self, runs: u64) -> u64 {
        let (next, happened) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed) + 1;
                if seed > runs {
                    break;
                }
                happened.fetch_add(u64::from((self.happened)(seed)), Ordering::Relaxed);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        happened.into_inner()
    }

    /// Whether a count keeps the promise, within three standard errors of the simulation.
    fn keeps(&self, count: u64, runs: u64) -> bool {
        let share = count as f64 / runs as f64;
        let error = |p: f64| 3.0 * (p * (1.0 - p) / runs as f64).sqrt();
        match self.promise {
            Promise::AtMost(p) => share <= p + error(p),
            Promise::AtLeast(p) => share >= p - error(p),
            Promise::Unless(_) => true,
        }
    }
}

/// Runs every row and writes the page.
pub(crate) fn run(out: &mut impl Write, options: &Options) -> anyhow::Result<()> {
    let mut page = String::from(HEAD);
    let mut broken = 0;
    let of_text = |case: &Case| format!("{} {}", case.claim, case.process).contains(&options.only);
    let mut claim = "";
    for case in cases().iter().filter(|case| of_text(case)) {
        let runs = options.runs.unwrap_or(case.runs);
        let count = case.count(runs);
        let (share, keeps) = (count as f64 / runs as f64, case.keeps(count, runs));
        broken += u32::from(!keeps);
        let error = 100.0 * (share * (1.0 - share) / runs as f64).sqrt();
        if claim != case.claim {
            claim = case.claim;
            write!(
                page,
                "\n## {claim}\n\n| process | promised | measured | runs |\n|---|---|---|---|\n"
            )?;
            writeln!(out, "{claim}")?;
        }
        let promised = match case.promise {
            Promise::AtMost(p) => format!("at most {:.1} %", 100.0 * p),
            Promise::AtLeast(p) => format!("at least {:.1} %", 100.0 * p),
            Promise::Unless(condition) => format!("none: {condition}"),
        };
        let measured = format!("{:.1} ± {error:.1} %", 100.0 * share);
        let mark = if keeps { "" } else { " **broken**" };
        writeln!(page, "| {} | {promised} | {measured}{mark} | {runs} |", case.process)?;
        writeln!(out, "  {measured:>14}{mark}  {promised:<18}  {}", case.process)?;
        out.flush()?;
    }
    if options.only.is_empty() && options.runs.is_none() {
        #[expect(clippy::disallowed_methods, reason = "our own page")]
        let written = fs::write(&options.page, page);
        written.with_context(|| options.page.display().to_string())?;
        writeln!(out, "{}", options.page.display())?;
    }
    anyhow::ensure!(broken == 0, "{broken} promises are broken");
    Ok(())
}

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

    #[test]
    fn every_promise_is_kept() {
        let broken: Vec<String> = cases()
            .iter()
            .filter(|case| case.quick > 0)
            .filter_map(|case| {
                let count = case.count(case.quick);
                let text = format!("{}: {}: {count} of {}", case.claim, case.process, case.quick);
                (!case.keeps(count, case.quick)).then_some(text)
            })
            .collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
