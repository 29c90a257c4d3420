//! What `rtproof kernel` found, chose, built, booted and compared.

use std::io::{self, Write};

use rtproof_host::text;
use rtproof_judge::units::{count, grouped};
use rtproof_results::kernel::{
    Booted, BuildTests, BuiltKernel, CheckPair, Configured, GuestClock, GuestStep, KernelPackage,
    KernelSide, KernelsCompared, Offers, OptionOutcome, OptionRow, Rebased,
};

use super::findings::word;
use crate::page::{BAD, BOLD, DIM, GOOD, Terminal, WARN, wrapped};
use crate::text::columns;

/// Options that changed with the others and are shown.
const CHANGED_MAX: usize = 20;

/// Bytes in the unit that reads best.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// What the distribution offers; single versions only with `all`, or where nothing else is there.
pub fn offers(to: &mut Terminal, offers: &Offers, all: bool) -> io::Result<()> {
    let follows = offers.packages.iter().any(|package| package.follows);
    let is_shown = |package: &&KernelPackage| all || package.follows || !follows;
    if offers.packages.is_empty() {
        let text = format!(
            "{} lists no real-time kernel in the repositories that this machine has enabled. What \
             others hold is not known from here.",
            offers.manager
        );
        return wrapped(to, "", "", &text);
    }
    for package in offers.packages.iter().filter(is_shown) {
        offer(to, package)?;
    }
    let hidden = offers.packages.iter().filter(|package| !is_shown(package)).count();
    if hidden > 0 {
        writeln!(to, "{DIM}{hidden} more packages, each of one version: --all{DIM:#}")?;
    }
    wrapped(
        to,
        "",
        "",
        "The names say that these are real-time kernels; after a boot `rtproof check` \
         reads it from the kernel. Nothing was installed.",
    )
}

fn offer(to: &mut Terminal, package: &KernelPackage) -> io::Result<()> {
    let KernelPackage { name, version, .. } = package;
    writeln!(to, "{BOLD}{name}{BOLD:#} {version}")?;
    if !package.description.is_empty() {
        wrapped(to, "  ", "  ", &package.description)?;
    }
    let or_unknown = |bytes: Option<u64>| bytes.map_or("unknown".into(), size);
    let with = match package.with.as_slice() {
        [] => String::new(),
        with => format!(", with {}", with.join(", ")),
    };
    let sizes = format!(
        "download {}, on disk {}{with}; without other dependencies",
        or_unknown(package.download_bytes),
        or_unknown(package.disk_bytes)
    );
    wrapped(to, "  ", "    ", &sizes)?;
    match &package.installed {
        Some(installed) => writeln!(to, "  {GOOD}installed{GOOD:#}: {installed}")?,
        None => writeln!(to, "  install: {}", package.install)?,
    }
    writeln!(to, "  remove:  {}", package.remove)
}

/// A configuration: what survived, what was dropped and why, what else changed.
pub fn configured(to: &mut Terminal, of: &Configured, verbose: bool) -> io::Result<()> {
    let dropped = of.dropped().count();
    let asked = of.options.len();
    let answer = match &of.config {
        None => format!("{}; not resolved: no source was given", count(asked, "option")),
        Some(_) => format!("{} of {asked} options survived, {dropped} dropped", asked - dropped),
    };
    writeln!(to, "{BOLD}{answer}{BOLD:#}")?;
    if let (Some(source), Some(version)) = (&of.kernel_source, &of.version) {
        writeln!(to, "  source  {source} (Linux {version})")?;
    }
    writeln!(to, "  base    {}", of.base)?;
    writeln!(to, "  wrote   {}", of.fragment)?;
    if let Some(config) = &of.config {
        writeln!(to, "  wrote   {config}")?;
    }
    for note in &of.notes {
        wrapped(to, &format!("{WARN}note{WARN:#}: "), "  ", note)?;
    }
    writeln!(to)?;
    for row in of.dropped() {
        option(to, row, true)?;
    }
    for row in of.options.iter().filter(|row| row.fate != OptionOutcome::Dropped) {
        option(to, row, verbose)?;
    }
    if !of.changed.is_empty() {
        let count = count(of.changed.len(), "other option");
        writeln!(to, "\n{count} changed with them")?;
    }
    let shown = if verbose { of.changed.len() } else { CHANGED_MAX };
    for it in of.changed.iter().take(shown) {
        let shown = |value: &str| if value.is_empty() { "\"\"" } else { value }.to_owned();
        writeln!(to, "  {}: {} -> {}", it.name, shown(&it.before), shown(&it.after))?;
    }
    if of.changed.len() > shown {
        writeln!(to, "  {DIM}{} more: --verbose or --json{DIM:#}", of.changed.len() - shown)?;
    }
    if verbose && !of.open.is_empty() {
        writeln!(to, "\nLeft open by the profile, as they are")?;
        for row in &of.open {
            let after = row.after.as_deref().unwrap_or("unknown");
            wrapped(to, "  ", "    ", &format!("{}={after}  {}", row.name, row.why))?;
        }
    }
    Ok(())
}

fn option(to: &mut Terminal, row: &OptionRow, in_full: bool) -> io::Result<()> {
    let (style, word) = match row.fate {
        OptionOutcome::Survived => (GOOD, "survived"),
        OptionOutcome::Dropped => (BAD, "dropped "),
        OptionOutcome::Unresolved | OptionOutcome::Open => (DIM, "asked   "),
    };
    let after = row.after.as_ref().map_or_else(String::new, |after| format!(" -> {after}"));
    let OptionRow { name, wanted, before, .. } = row;
    let is = format!("{before}{after}");
    writeln!(to, "{style}{word}{style:#} {BOLD}{name}={wanted}{BOLD:#}  {DIM}{is}{DIM:#}")?;
    for because in &row.because {
        wrapped(to, "    ", "      ", because)?;
    }
    if in_full {
        let costs = row.costs.as_ref().filter(|_| row.wanted == "n");
        let costs = costs.map_or_else(String::new, |costs| format!(" Costs, as a rule: {costs}."));
        let text = format!("{}: {}.{costs} Source: {}", row.check, row.why, row.source);
        wrapped(to, "    ", "      ", &text)?;
    }
    Ok(())
}

/// A kernel that was built.
pub fn built(to: &mut Terminal, of: &BuiltKernel) -> io::Result<()> {
    let continued = if of.continued { ", an earlier build continued" } else { "" };
    writeln!(to, "{BOLD}Linux {}{BOLD:#}: built in {} s{continued}", of.release, of.seconds)?;
    let count = |n: u64, noun| count(n, noun);
    let with = if of.ccache { ", with ccache" } else { "" };
    let (objects, warnings) = (count(of.objects, "object"), count(of.warnings, "warning"));
    writeln!(to, "  {objects}, {warnings}{with}")?;
    writeln!(to, "  PREEMPT_RT={} in its configuration", of.preempt_rt)?;
    writeln!(to, "  source  {}", of.kernel_source)?;
    of.patches.iter().try_for_each(|patch| writeln!(to, "  patch   {patch}"))?;
    for file in &of.files {
        writeln!(to, "  {}  {}", file.path, size(file.bytes))?;
    }
    writeln!(to, "  log     {}\nNothing was installed.", of.log)
}

/// Build tests, one row each.
pub fn build_tests(to: &mut Terminal, of: &BuildTests) -> io::Result<()> {
    writeln!(to, "{BOLD}{}{BOLD:#}", of.kernel_source)?;
    writeln!(
        to,
        "  {:<20} {:<7} {:>8} {:>8} {:>6}",
        "configuration", "builds", "objects", "warnings", "s"
    )?;
    for row in &of.rows {
        let (style, word) = if row.builds { (GOOD, "yes") } else { (BAD, "no") };
        writeln!(
            to,
            "  {:<20} {style}{word:<7}{style:#} {:>8} {:>8} {:>6}",
            row.config, row.objects, row.warnings, row.seconds
        )?;
    }
    for row in of.rows.iter().filter(|row| !row.builds) {
        writeln!(to, "\n{BAD}{}{BAD:#}: {}", row.config, row.log)?;
        row.errors.iter().try_for_each(|line| writeln!(to, "  {line}"))?;
    }
    Ok(())
}

/// A git tree after a rebase.
pub fn rebased(to: &mut Terminal, of: &Rebased) -> io::Result<()> {
    let Rebased { tree, head, .. } = of;
    match (&of.onto, &of.commits) {
        (Some(onto), Some(commits)) => {
            let count = count(commits.len(), "commit");
            writeln!(to, "{BOLD}{tree}{BOLD:#}: {count} on top of {onto}")?;
            commits.iter().try_for_each(|commit| writeln!(to, "  {commit}"))?;
            match of.local.filter(|local| *local > commits.len() as u64) {
                Some(local) => wrapped(
                    to,
                    "  ",
                    "  ",
                    &format!(
                        "There were {local} to carry. git leaves out what {onto} has already, \
                         what is empty then, and merges."
                    ),
                ),
                None => Ok(()),
            }
        }
        _ if of.aborted => writeln!(to, "{BOLD}{tree}{BOLD:#}: as before, at {head}"),
        _ => writeln!(to, "{BOLD}{tree}{BOLD:#}: rebased, at {head}"),
    }
}

// A kernel that was booted under QEMU: what it is, what ran inside and how it ended.

/// Result of the boot; then each step with its output.
pub fn booted(to: &mut Terminal, of: &Booted) -> io::Result<()> {
    let release = text::harmless_line(&of.release);
    writeln!(
        to,
        "{BOLD}Linux {release}{BOLD:#}: booted; init after {:.1} s, end after {:.1} s",
        of.init_s, of.seconds
    )?;
    writeln!(to, "  image    {} ({})", of.image, of.arch)?;
    match (&of.config, &of.preempt_rt) {
        (Some(config), Some(value)) => writeln!(to, "  config   {config}: PREEMPT_RT={value}")?,
        _ => writeln!(to, "  config   unknown")?,
    }
    let guest = &of.guest;
    let cpus = if guest.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", guest.cpus) };
    let clock = guest.clock.name();
    writeln!(to, "  guest    QEMU {}, {clock}, {cpus}, {} MiB", guest.qemu, guest.memory_mib)?;
    writeln!(to, "  files    {} in {}", of.files.len(), of.folder)?;
    for note in &of.notes {
        wrapped(to, &format!("{WARN}note{WARN:#}: "), "  ", &text::harmless_line(note))?;
    }
    // The machine's form of a step that is shown already.
    let shown = of.steps.iter().filter(|step| !step.name.ends_with("-json"));
    for of in shown {
        writeln!(to)?;
        step(to, of)?;
    }
    let records: Vec<&str> =
        of.files.iter().filter(|name| name.starts_with("prove.")).map(String::as_str).collect();
    if !records.is_empty() {
        writeln!(to)?;
        let text = format!("The guest's /out is in {} now: {}", of.folder, records.join(", "));
        wrapped(to, "", "", &text::harmless_line(&text))?;
    }
    let has = |name: &str| of.steps.iter().any(|step| step.name == name);
    if has("check") {
        let text = "What the checks say of processors, power, devices and firmware is of the \
                    guest's machine, not of one that will run this kernel.";
        writeln!(to)?;
        wrapped(to, "", "", text)?;
    }
    if has("prove") || has("command") {
        writeln!(to)?;
        wrapped(to, "", "", guest.clock.meaning())?;
    }
    Ok(())
}

fn step(to: &mut Terminal, of: &GuestStep) -> io::Result<()> {
    let command = text::harmless_line(&of.command.join(" "));
    let (style, ended) = match (of.exit, &of.why) {
        (Some(0), _) => (GOOD, "exit code 0".to_owned()),
        (Some(code), _) => (WARN, format!("exit code {code}")),
        (None, why) => (BAD, text::harmless_line(why.as_deref().unwrap_or("no exit code"))),
    };
    writeln!(
        to,
        "{BOLD}{command}{BOLD:#}: {style}{ended}{style:#} {DIM}({:.1} s of the guest){DIM:#}",
        of.seconds
    )?;
    // On standard error rtproof shows its progress, and why it failed.
    let is_shown = of.name == "command" || of.output.is_empty();
    let errors = of.errors.lines().filter(|_| is_shown);
    for line in of.output.lines().chain(errors) {
        writeln!(to, "  {}", text::harmless_line(line))?;
    }
    Ok(())
}

// Two kernels beside each other: length of the wake-up path, causes, checks, configuration.

/// Options that are listed without --verbose.
const OPTIONS_MAX: usize = 20;

/// Names of the kernels in the tables.
const NAMES: [&str; 2] = ["A", "B"];

/// Differences between the two kernels.
pub fn kernels_compared(to: &mut Terminal, of: &KernelsCompared, verbose: bool) -> io::Result<()> {
    for (name, kernel) in NAMES.iter().zip(&of.kernels) {
        let release = text::harmless_line(&kernel.release);
        writeln!(to, "{BOLD}{name}  Linux {release}{BOLD:#}")?;
        writeln!(to, "     image   {}", kernel.image)?;
        writeln!(to, "     config  {}", kernel.config.as_deref().unwrap_or("unknown"))?;
        writeln!(to, "     files   {}", kernel.folder)?;
    }
    for note in &of.notes {
        wrapped(to, &format!("{WARN}note{WARN:#}: "), "  ", &text::harmless_line(note))?;
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
    wrapped(to, "", "", GuestClock::Instructions.meaning())
}

/// What was measured in each kernel.
pub(crate) fn measured(
    to: &mut Terminal,
    prove: &str,
    unit: &str,
    kernels: &[(&str, &KernelSide)],
) -> io::Result<()> {
    latency(to, prove, unit, kernels)?;
    kernels.iter().try_for_each(|(name, kernel)| causes(to, name, unit, kernel))
}

fn latency(
    to: &mut Terminal,
    prove: &str,
    unit: &str,
    kernels: &[(&str, &KernelSide)],
) -> io::Result<()> {
    let arguments = text::harmless_line(prove);
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
fn causes(to: &mut Terminal, name: &str, unit: &str, of: &KernelSide) -> io::Result<()> {
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

fn checks(to: &mut Terminal, of: &[CheckPair]) -> io::Result<()> {
    writeln!(to, "\n{BOLD}Checks{BOLD:#} that answer differently: {}", of.len())?;
    for pair in of {
        let [first, second] = pair.status.map(|status| status.map_or(("-", DIM), word));
        let ((a, style), (b, other)) = (first, second);
        writeln!(to, "  {}: {style}{a}{style:#} -> {other}{b}{other:#}", pair.check)?;
        for (name, summary) in NAMES.iter().zip(&pair.summary) {
            if let Some(summary) = summary {
                wrapped(to, &format!("    {name}  "), "       ", &text::harmless_line(summary))?;
            }
        }
    }
    Ok(())
}

fn options(to: &mut Terminal, of: &KernelsCompared, verbose: bool) -> io::Result<()> {
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
        let [first, second] = pair.values.each_ref().map(|value| text::harmless_line(value));
        writeln!(to, "  {}: {first} -> {second}", text::harmless_line(&pair.name))?;
    }
    if options.len() > shown {
        writeln!(to, "  {DIM}{} more: --verbose or --json{DIM:#}", options.len() - shown)?;
    }
    Ok(())
}
