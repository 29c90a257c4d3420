//! Guests as captured machines: `check` says the same of the capture as inside, and as of the
//! capture that the tree holds in fixtures/machines.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::topology::ISOLATED;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

/// Name of the fixture, machine, another kernel.
fn rows() -> Vec<(&'static str, Machine, &'static str)> {
    let four = |kernel| Machine::new(kernel).cpus(4).threads(2).nodes(2).memory_mib(1024);
    vec![
        ("qemu-rt-6.1", Machine::new("rt-6.1"), "stock-6.1"),
        ("qemu-stock-6.1", Machine::new("stock-6.1"), "rt-6.1"),
        ("qemu-rt-6.1-arm64", Machine::new("rt-6.1-arm64"), "stock-6.1"),
        ("qemu-rt-5.10", Machine::new("rt-5.10"), "stock-5.10"),
        ("qemu-stock-5.10", Machine::new("stock-5.10"), "rt-5.10"),
        ("qemu-stock-6.12", Machine::new("stock-6.12"), "rt-6.12"),
        ("qemu-stock-7.2", Machine::new("stock-7.2"), "rt-7.2"),
        ("qemu-rt-6.12-arm64", Machine::new("rt-6.12-arm64"), "stock-6.12"),
        ("qemu-rt-6.1-armhf", Machine::new("rt-6.1-armhf"), "stock-6.1"),
        ("qemu-rt-6.12-power-states", Machine::new("rt-6.12").cpus(2).power_states(), "stock-6.12"),
        ("qemu-rt-6.1-smt-numa-isolated", four("rt-6.1").command_line(ISOLATED), "stock-6.1"),
        ("qemu-rt-7.2-smt-numa", four("rt-7.2"), "stock-7.2"),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    rows().into_iter().map(|(name, machine, other)| case(name, machine, other)).collect()
}

/// Name in the reports' folder, path of the fixture.
pub fn captures() -> Vec<(String, PathBuf)> {
    rows().into_iter().map(|(name, ..)| (format!("{name}.txt"), fixture(name))).collect()
}

fn fixture(name: &str) -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    lab.with_file_name("fixtures").join("machines").join(format!("{name}.txt"))
}

fn case(name: &'static str, machine: Machine, other: &'static str) -> Case {
    Case::new(
        format!("capture/{name}"),
        "check says the same of the guest, of its capture, and of the fixture",
        machine,
    )
    .tier(if name.ends_with("-armhf") { Tier::Three } else { Tier::Two })
    .script("run capture rtproof capture /host/machine.txt\nrun check rtproof check --json")
    .expect(move |seen, expect| says_the_same(seen, expect, name))
    .other_kernel(other, "findings of the fixture")
}

fn says_the_same(seen: &Evidence, expect: &mut Expect, name: &str) -> Result<()> {
    expect.equal("capture", seen.rc("capture")?, 0);
    let small = without_modules(&seen.text("machine.txt")?);
    seen.keep(&format!("{name}.txt"), &small)?;
    let of = |path: &Path| -> Result<Json> {
        Json::parse("check --root", &seen.rtproof(&["check", "--json", "--root"], path)?)
    };
    let inside = statuses(&seen.json("check")?);
    expect.that("checks", "200 or more", inside.len() >= 200, inside.len());
    let captured = statuses(&of(&seen.path("machine.txt")?)?);
    expect.equal("findings of the capture", &captured, &inside);
    let fixture = fixture(name);
    fs::metadata(&fixture)
        .with_context(|| format!("{}: run `cargo xtask lab capture`", fixture.display()))?;
    expect.equal("findings of the fixture", &statuses(&of(&fixture)?), &inside);
    Ok(())
}

/// Checks that look at what happened since boot: a moment later it is more.
const OF_THE_MOMENT: &[&str] =
    &["hypervisor", "irq-storm", "local-ipis", "nohz-single-task", "steal-time", "tlb-shootdown"];

/// Checks of which only the status is kept: a mount point gets another name in a capture, and the
/// options that are modules are left out of the fixtures.
const STATUS_ALONE: &[&str] = &["config-drm", "fs-mounts"];

/// Each check with its status and summary. Numbers are of the day: counts, process ids, releases.
fn statuses(check: &Json) -> Vec<String> {
    let line = |finding: &serde_json::Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let (check, status) = (text("check"), text("status"));
        match OF_THE_MOMENT.contains(&check.as_str()) {
            true => check,
            false if STATUS_ALONE.contains(&check.as_str()) => format!("{check} {status}"),
            false => format!("{check} {status} {}", without_numbers(&text("summary"))),
        }
    };
    check.list("/findings").iter().map(line).collect()
}

/// A text with `N` for each number.
fn without_numbers(text: &str) -> String {
    let mut new = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if new.ends_with('N') => {}
            true => new.push('N'),
            false => new.push(c),
        }
    }
    new
}

/// Options of the kernel that are modules or off: nine lines of ten, and no check asks for them.
fn without_modules(capture: &str) -> String {
    let is_kept = |line: &&str| {
        let is_module = line.starts_with("|CONFIG_") && line.ends_with("=m");
        let is_off = line.starts_with("|# CONFIG_") && line.ends_with(" is not set");
        !is_module && !is_off
    };
    capture.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn numbers_are_left_out() {
        assert_eq!(without_numbers("sugov:0 (pid 183) runs 5.1"), "sugov:N (pid N) runs N.N");
        assert_eq!(without_numbers("no swap"), "no swap");
    }
}
