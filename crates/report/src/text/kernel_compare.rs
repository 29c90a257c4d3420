//! Two kernels beside each other: length of the wake-up path, causes, checks, configuration.

use std::io::{self, Write};

use rtproof_host::harmless;
use rtproof_judge::units::{count, grouped};
use rtproof_results::kernel::{
    boot::GuestClock,
    compare::{CheckPair, KernelSide, KernelsCompared},
};

use super::{BOLD, DIM, Sheet, WARN, findings::word, sheet::columns, wrapped};

/// Options that are listed without --verbose.
const OPTIONS_MAX: usize = 20;
/// Names of the kernels in the tables.
const NAMES: [&str; 2] = ["A", "B"];

/// What tells them apart.
pub fn kernels_compared(to: &mut Sheet, of: &KernelsCompared, verbose: bool) -> io::Result<()> {
    for (name, kernel) in NAMES.iter().zip(&of.kernels) {
        let release = harmless::line(&kernel.release);
        writeln!(to, "{BOLD}{name}  Linux {release}{BOLD:#}")?;
        writeln!(to, "     image   {}", kernel.image)?;
        writeln!(to, "     config  {}", kernel.config.as_deref().unwrap_or("unknown"))?;
        writeln!(to, "     files   {}", kernel.folder)?;
    }
    for note in &of.notes {
        wrapped(to, &format!("{WARN}note{WARN:#}: "), "  ", &harmless::line(note))?;
    }
    measured(
        to,
        &of.prove.join(" "),
        "instructions",
        &NAMES.into_iter().zip(&of.kernels).collect::<Vec<_>>(),
    )?;
    checks(to, &of.checks)?;
    options(to, of, verbose)?;
    writeln!(to)?;
    wrapped(to, "", "", GuestClock::Instructions.says())
}

/// What was measured in each kernel.
pub(super) fn measured(
    to: &mut Sheet,
    prove: &str,
    unit: &str,
    kernels: &[(&str, &KernelSide)],
) -> io::Result<()> {
    latency(to, prove, unit, kernels)?;
    kernels.iter().try_for_each(|(name, kernel)| causes(to, name, unit, kernel))
}

fn latency(
    to: &mut Sheet,
    prove: &str,
    unit: &str,
    kernels: &[(&str, &KernelSide)],
) -> io::Result<()> {
    let arguments = harmless::line(prove);
    writeln!(to, "\n{BOLD}From due to run{BOLD:#}, {unit} {DIM}(prove {arguments}){DIM:#}")?;
    let text = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), grouped);
    let heads = ["", "due", "missed", "min", "p50", "p99", "p99.9", "max"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (name, kernel) in kernels {
        let it = kernel.latency;
        let lengths = [it.min, it.p50, it.p99, it.p999, it.max].map(text);
        let counts = [kernel.scheduled, kernel.missed].map(grouped);
        rows.push([(*name).to_owned()].into_iter().chain(counts).chain(lengths).collect());
    }
    columns(to, "  ", &rows)
}

/// What its slowest wake-ups waited for.
fn causes(to: &mut Sheet, name: &str, unit: &str, of: &KernelSide) -> io::Result<()> {
    let [seen, explained, incomplete] = of.spikes;
    let threshold = of.threshold.map_or_else(|| "-".to_owned(), grouped);
    let mut text = format!(
        "{} above {threshold} {unit}, {} explained",
        count(seen, "wake-up"),
        grouped(explained)
    );
    if incomplete > 0 {
        text +=
            &format!(", {} with events missing, so that causes may be wrong", grouped(incomplete));
    }
    if !of.causes.is_empty() {
        text += "; stretches in other wake-ups are not counted";
    }
    writeln!(to)?;
    wrapped(to, &format!("{BOLD}{name}{BOLD:#}  "), "   ", &text)?;
    if of.causes.is_empty() {
        return Ok(());
    }
    let heads = ["cause", "stretches", "longest", "all", "uncertain"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for cause in &of.causes {
        let numbers = [cause.count, cause.longest, cause.sum, cause.uncertain].map(grouped);
        rows.push([cause.title.clone()].into_iter().chain(numbers).collect());
    }
    columns(to, "  ", &rows)
}

fn checks(to: &mut Sheet, of: &[CheckPair]) -> io::Result<()> {
    writeln!(to, "\n{BOLD}Checks{BOLD:#} that answer differently: {}", of.len())?;
    for pair in of {
        let [first, second] = pair.status.map(|status| status.map_or(("-", DIM), word));
        let ((a, style), (b, other)) = (first, second);
        writeln!(to, "  {}: {style}{a}{style:#} -> {other}{b}{other:#}", pair.check)?;
        for (name, summary) in NAMES.iter().zip(&pair.summary) {
            if let Some(summary) = summary {
                wrapped(to, &format!("    {name}  "), "       ", &harmless::line(summary))?;
            }
        }
    }
    Ok(())
}

fn options(to: &mut Sheet, of: &KernelsCompared, verbose: bool) -> io::Result<()> {
    let Some(options) = &of.options else {
        return writeln!(to, "\n{BOLD}Configuration{BOLD:#}: not compared, one is unknown");
    };
    writeln!(
        to,
        "\n{BOLD}Configuration{BOLD:#}: {} differ",
        count(options.len() as u64, "option")
    )?;
    let shown = if verbose { options.len() } else { OPTIONS_MAX };
    for pair in options.iter().take(shown) {
        let [first, second] = pair.values.each_ref().map(|value| harmless::line(value));
        writeln!(to, "  {}: {first} -> {second}", harmless::line(&pair.name))?;
    }
    if options.len() > shown {
        writeln!(to, "  {DIM}{} more: --verbose or --json{DIM:#}", options.len() - shown)?;
    }
    Ok(())
}
