//! Every kernel: what `check` says of it, and that `prove` measures on it, idle and loaded.

use anyhow::Result;

use super::common;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// Kernel, tier, another kernel that must not be taken for it.
const ROWS: &[(&str, Tier, &str)] = &[
    ("rt-6.1", Tier::One, "stock-6.1"),
    ("stock-6.1", Tier::One, "rt-6.1"),
    ("rt-6.1-arm64", Tier::Two, "stock-6.1"),
    ("rt-5.10", Tier::Two, "stock-5.10"),
    ("stock-5.10", Tier::Two, "rt-5.10"),
    ("rt-6.12", Tier::Two, "stock-6.12"),
    ("stock-6.12", Tier::Two, "rt-6.12"),
    ("rt-7.2", Tier::Two, "stock-7.2"),
    ("stock-7.2", Tier::Two, "rt-7.2"),
    ("rt-6.12-arm64", Tier::Two, "stock-6.12"),
    ("rt-6.1-armhf", Tier::Three, "stock-6.1"),
];

pub(super) fn cases() -> Vec<Case> {
    ROWS.iter().map(|&(kernel, tier, other)| proves(kernel, tier, other)).chain([cloud()]).collect()
}

fn proves(kernel: &'static str, tier: Tier, other: &'static str) -> Case {
    Case::new(
        format!("kernel/prove/{kernel}"),
        "the kernel is recognised; prove measures idle and loaded, and its record says the same \
         outside",
        Machine::new(kernel),
    )
    .tier(tier)
    .script(
        "run check rtproof check --json
         run realtime cat /sys/kernel/realtime
         prove idle --for 2s --budget 2ms --load idle
         run again rtproof report /host/idle.rtproof
         prove loaded --for 1s --budget 100ms --load cpu+memory+net+disk --load-dir /tmp",
    )
    .expect(move |seen, expect| kernel_is_proven(seen, expect, kernel))
    .other_kernel(other, "finding of preempt-rt")
}

fn kernel_is_proven(seen: &Evidence, expect: &mut Expect, kernel: &str) -> Result<()> {
    let is_rt = kernel.starts_with("rt-");
    let check = seen.json("check")?;
    let finding = check.finding("preempt-rt")?;
    let wanted = if is_rt { "good" } else { "bad" };
    expect.equal("finding of preempt-rt", finding.text("/status"), wanted);
    expect.equal("release", check.text("/machine/kernel"), seen.release());
    // The file is gone from 7.x; recognition must not hang on it.
    let has_file = is_rt && !kernel.contains("-7.");
    expect.equal("/sys/kernel/realtime is there", seen.rc("realtime")? == 0, has_file);
    for name in ["idle", "loaded"] {
        let report = seen.report(name)?;
        common::adds_up(expect, name, &report, 1);
        common::sealed(expect, name, &report);
        expect.equal(&format!("{name}: exit code"), seen.rc(name)?, 3);
        expect.equal(&format!("{name}: verdict"), report.text("/verdict/answer"), "not_proven");
    }
    let outside = seen.rtproof(&["report"], &seen.path("idle.rtproof")?)?;
    expect.equal("report outside", outside, seen.out("again")?);
    Ok(())
}

/// A kernel without 9p: files go in with the initramfs and come out over the console.
fn cloud() -> Case {
    Case::new(
        "kernel/serial/cloud-6.1",
        "a kernel that cannot mount the shared folder is measured all the same",
        Machine::new("cloud-6.1").serial_share(),
    )
    .script("run check rtproof check --json\nprove idle --for 1s --budget 2ms --load idle")
    .expect(|seen, expect| {
        let check = seen.json("check")?;
        expect.equal("release", check.text("/machine/kernel"), seen.release());
        expect.contains("release is a cloud kernel's", check.text("/machine/kernel"), "cloud");
        let report = seen.report("idle")?;
        common::adds_up(expect, "idle", &report, 1);
        common::sealed(expect, "idle", &report);
        Ok(())
    })
    .mutation("a kernel that is none of a cloud", "release is a cloud", |case| {
        case.boots[0].machine.kernel = "stock-6.1";
    })
}
