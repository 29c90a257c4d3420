//! The truth bench: causes of latency are planted on this machine, and what `rtproof prove` says
//! about each spike is compared with what was planted. Prints the confusion matrix; spikes that the
//! lab judged in its guests (`make lab-all`) stand in it, too.

mod live;
mod plants;

use std::{io::Write, path::PathBuf};

use anyhow::Context;
use rtproof_lab::blame::{Judged, Kept, Matrix, Sums};

use live::Bench;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The program that plants; built with `cargo build --package rtproof-lab-plant`
    #[arg(long, default_value = "target/debug/lab-plant")]
    lab_plant: PathBuf,
    /// Folder in which the lab keeps what it judged
    #[arg(long, default_value = "target/lab/reports")]
    lab: PathBuf,
    /// Only plants with this in their name
    #[arg(long)]
    only: Option<String>,
    /// Seconds of each run
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Keep the records in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Plants each cause in turn, and prints what came of it.
pub(crate) fn run(
    out: &mut impl Write,
    rtproof: &std::path::Path,
    cpu: u32,
    options: &Options,
) -> anyhow::Result<()> {
    let mut matrix = Matrix::default();
    let mut sums = Sums::default();
    let mut wrong = Vec::new();
    let mut take = |kept: Kept| {
        matrix.plant(&kept.plant);
        kept.judged.iter().for_each(|judged| matrix.add(judged));
        sums += kept.sums;
        wrong.extend(kept.judged.into_iter().filter(|judged| !judged.right));
    };
    let folder = tempfile::tempdir()?;
    let keep = options.keep.clone().unwrap_or_else(|| folder.path().to_owned());
    std::fs::create_dir_all(&keep).with_context(|| format!("{}: make", keep.display()))?;
    let bench = Bench::new(rtproof, &options.lab_plant, &keep, cpu)?;
    for plant in plants::ALL {
        if options.only.as_ref().is_none_or(|part| plant.name.contains(part.as_str())) {
            let seconds = options.seconds * plant.times_as_long;
            take(bench.run(plant, seconds).with_context(|| format!("plant {}", plant.name))?);
        }
    }
    for kept in judged_by_the_lab(&options.lab)? {
        if options.only.as_ref().is_none_or(|part| kept.plant.contains(part.as_str())) {
            take(kept);
        }
    }
    writeln!(out, "Planted causes and what rtproof says; spikes, CPU {cpu}, period 1 ms\n")?;
    writeln!(out, "{}", matrix.table())?;
    write_sums(out, &sums)?;
    write_wrong(out, &wrong)
}

fn write_sums(out: &mut impl Write, sums: &Sums) -> anyhow::Result<()> {
    let Sums { shown, exact, planted_ns, planted_certain_ns, sum_ns, certain_ns } = *sums;
    let percent = |part: u64, of: u64| part as f64 * 100.0 / of.max(1) as f64;
    writeln!(out, "{exact} of {shown} spikes that the reports show sum to the nanosecond.")?;
    writeln!(
        out,
        "One possible cause have {:.2} % of their planted latency ({:.1} ms), and {:.2} % of all \
         latency of all spikes ({:.1} ms), whoever caused it.\n",
        percent(planted_certain_ns, planted_ns),
        planted_ns as f64 / 1e6,
        percent(certain_ns, sum_ns),
        sum_ns as f64 / 1e6
    )?;
    Ok(())
}

/// The spikes that rtproof judged otherwise, one by one.
fn write_wrong(out: &mut impl Write, wrong: &[Judged]) -> anyhow::Result<()> {
    for one in wrong {
        let Judged { plant, due_ns, latency_ns, cause, culprit, .. } = one;
        let incomplete = if one.incomplete { ", incomplete" } else { "" };
        let us = *latency_ns as f64 / 1e3;
        writeln!(out, "- {plant}: due {due_ns}, {us:.1} µs: {cause} ({culprit}{incomplete})")?;
    }
    Ok(())
}

/// What the lab's cases have kept; nothing where it has not run.
#[expect(clippy::disallowed_methods, reason = "files that the lab wrote for us")]
fn judged_by_the_lab(folder: &std::path::Path) -> anyhow::Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(Kept::PREFIX) && name.ends_with(".json") {
            let text = std::fs::read_to_string(&path)?;
            let one: Kept = serde_json::from_str(&text)
                .with_context(|| format!("{}: what the lab judged", path.display()))?;
            kept.push(one);
        }
    }
    kept.sort_by(|a, b| a.plant.cmp(&b.plant));
    Ok(kept)
}
