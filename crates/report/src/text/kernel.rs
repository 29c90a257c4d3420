//! What `rtproof kernel` found, chose and built.

use std::io::{self, Write};

use rtproof_judge::units;
use rtproof_results::kernel::{
    build::{BuildTests, BuiltKernel},
    config::{Configured, Fate, OptionRow},
    find::{KernelPackage, Offers},
    rebase::Rebased,
};

use super::{BAD, BOLD, DIM, GOOD, Sheet, WARN, wrapped};

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
pub fn offers(to: &mut Sheet, offers: &Offers, all: bool) -> io::Result<()> {
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

fn offer(to: &mut Sheet, package: &KernelPackage) -> io::Result<()> {
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
pub fn configured(to: &mut Sheet, of: &Configured, verbose: bool) -> io::Result<()> {
    let dropped = of.dropped().count();
    let asked = of.options.len();
    let answer = match &of.config {
        None => format!("{}; not resolved: no source was given", units::count(asked, "option")),
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
    for row in of.options.iter().filter(|row| row.fate != Fate::Dropped) {
        option(to, row, verbose)?;
    }
    if !of.changed.is_empty() {
        let count = units::count(of.changed.len(), "other option");
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

fn option(to: &mut Sheet, row: &OptionRow, in_full: bool) -> io::Result<()> {
    let (style, word) = match row.fate {
        Fate::Survived => (GOOD, "survived"),
        Fate::Dropped => (BAD, "dropped "),
        Fate::Unresolved | Fate::Open => (DIM, "asked   "),
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
pub fn built(to: &mut Sheet, of: &BuiltKernel) -> io::Result<()> {
    let continued = if of.continued { ", an earlier build continued" } else { "" };
    writeln!(to, "{BOLD}Linux {}{BOLD:#}: built in {} s{continued}", of.release, of.seconds)?;
    let count = |n: u64, noun| units::count(n, noun);
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
pub fn build_tests(to: &mut Sheet, of: &BuildTests) -> io::Result<()> {
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
pub fn rebased(to: &mut Sheet, of: &Rebased) -> io::Result<()> {
    let Rebased { tree, head, .. } = of;
    match (&of.onto, &of.commits) {
        (Some(onto), Some(commits)) => {
            let count = units::count(commits.len(), "commit");
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
