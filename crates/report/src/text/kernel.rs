//! What `rtproof kernel` found, chose and built.

use std::io::{self, Write};

use rtproof_results::kernel::find::{KernelPackage, Offers};

use super::{BOLD, DIM, GOOD, Sheet, wrapped};

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
///
/// # Errors
/// When writing fails.
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
        "The names say that these are real-time kernels; after a boot `rtproof check preempt-rt` \
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
