//! Boot parameters, units and power cuts on a whole Debian with systemd and GRUB.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::tracking::{as_before, script};
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    let cases = [grub(), fallback(), power_off(), units(), at_boot()];
    cases.into_iter().map(|case| case.tier(Tier::Three).limit_s(400)).collect()
}

/// Lines of `sums`, but for what is named.
fn sums(seen: &Evidence, name: &str) -> Result<BTreeSet<String>> {
    Ok(seen.text(name)?.lines().map(str::to_owned).collect())
}

/// /etc and /boot are as they were: bytes, permissions, owners, links.
pub(super) fn same_files(
    seen: &Evidence,
    expect: &mut Expect,
    before: &str,
    after: &str,
) -> Result<()> {
    let (before, after) = (sums(seen, before)?, sums(seen, after)?);
    expect.that("files compared", "500 or more", before.len() >= 500, before.len());
    let gone: Vec<&String> = before.difference(&after).collect();
    let new: Vec<&String> = after.difference(&before).collect();
    expect.equal("files that differ", (gone, new), (Vec::new(), Vec::new()));
    Ok(())
}

/// The whole way: plan, trial, reboot, verify, confirm, reboot, undo, reboot.
fn grub() -> Case {
    Case::new(
        "tune/grub",
        "isolcpus, nohz_full, rcu_nocbs and irqaffinity by a trial entry: effective after the \
         reboot, kept after confirm, and gone to the byte after undo",
        Machine::grub(),
    )
    .script(script(
        "sums before; cat /proc/cmdline >/host/cmdline.0
         run plan rtproof tune plan --cpus 1 --json
         run trial rtproof tune trial isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0 --yes
         sums trial
         grub-editenv list >/host/chosen
         echo reboot >/host/then",
    ))
    .then_again()
    .script(script(
        "cat /proc/cmdline >/host/cmdline.1
         cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full >/host/effective
         cat /proc/irq/default_smp_affinity >/host/irqs
         run verify rtproof tune verify --json
         run confirm rtproof tune confirm
         echo reboot >/host/then",
    ))
    .then_again()
    .script(script(
        "cat /proc/cmdline >/host/cmdline.2
         run kept rtproof tune verify --json
         run undo rtproof tune undo --all
         sums after
         echo reboot >/host/then",
    ))
    .then_again()
    .script("cat /proc/cmdline >/host/cmdline.3; run back rtproof tune verify")
    .expect(grub_is_tried_and_undone)
    .mutation("nothing is undone", "files that differ", |case| {
        let script = &mut case.boots[2].script;
        *script = script.replace("run undo rtproof", "run undo echo");
    })
    .mutation("nothing is confirmed", "kept: isolcpus=", |case| {
        let script = &mut case.boots[1].script;
        *script = script.replace("run confirm rtproof", "run confirm echo");
    })
}

const WORDS: [&str; 4] = ["isolcpus=", "nohz_full=1", "rcu_nocbs=1", "irqaffinity=0"];

fn grub_is_tried_and_undone(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    for (name, code) in [("trial", 0), ("verify", 0), ("confirm", 0), ("undo", 0)] {
        expect.equal(&format!("{name}: exit code"), seen.rc(name)?, code);
    }
    let tried = seen.text("cmdline.1")?;
    let kept = seen.text("cmdline.2")?;
    for word in WORDS {
        expect.contains(&format!("tried: {word}"), &tried, word);
        expect.contains(&format!("kept: {word}"), &kept, word);
    }
    let effective = seen.text("effective")?;
    expect.equal("effective", effective.lines().collect::<Vec<_>>(), vec!["1", "1"]);
    expect.that(
        "irqaffinity",
        "CPU 0",
        seen.text("irqs")?.trim().ends_with('1'),
        seen.text("irqs"),
    );
    let verify = seen.json("verify")?;
    let states: BTreeMap<String, String> = verify
        .list("/parameters")
        .iter()
        .map(|row| (text(&row["parameter"]), text(&row["effect"])))
        .collect();
    for name in ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"] {
        let state = states.iter().find(|(parameter, _)| parameter.starts_with(name));
        let state = state.map(|(_, state)| state.as_str());
        expect.equal(&format!("verify: {name}"), state, Some("effective"));
    }
    expect.equal("after undo", seen.text("cmdline.3")?, seen.text("cmdline.0")?);
    same_files(seen, expect, "before", "after")
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An entry that cannot boot: the kernel panics, the machine starts again by itself, in the old
/// one.
fn fallback() -> Case {
    Case::new(
        "tune/grub-fallback",
        "a trial entry that cannot boot is left by itself at the next start; undo gives back /etc \
         and /boot",
        Machine::grub(),
    )
    .script(script(
        "sums before; cat /proc/cmdline >/host/cmdline.0
         # No kernel survives it.
         run trial rtproof tune trial isolcpus=1 init=/nonexistent --yes
         echo reboot >/host/then",
    ))
    .then_again()
    .script("echo up >/host/up")
    .ends_by_itself()
    .then_again()
    .script(script(
        "cat /proc/cmdline >/host/cmdline.2
         run verify rtproof tune verify
         run status rtproof tune status
         run undo rtproof tune undo --all
         sums after",
    ))
    .expect(|seen, expect| {
        expect.equal("trial: exit code", seen.rc("trial")?, 0);
        let trial = seen.boots().get(1).map(|boot| std::fs::read(&boot.console)).transpose()?;
        let trial = String::from_utf8_lossy(&trial.unwrap_or_default()).into_owned();
        expect.contains("the trial entry panics", &trial, "Kernel panic");
        expect.equal("the old entry", seen.text("cmdline.2")?, seen.text("cmdline.0")?);
        expect.that("verify: exit code", "not 0", seen.rc("verify")? != 0, seen.out("verify")?);
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        same_files(seen, expect, "before", "after")
    })
    .mutation("the entry boots", "boot 1: the guest ends by itself", |case| {
        let script = &mut case.boots[0].script;
        *script = script.replace("init=/nonexistent", "quiet");
    })
}

/// Rounds of power cuts.
const CUTS: usize = 5;

/// The power is cut at a random moment of apply, five times on one disk; at the next boot undo.
fn power_off() -> Case {
    let begin = "[ -e /root/before ] || { sums before; cp /host/before /root/; }
         cp /root/before /host/before";
    let undo = "run status rtproof tune status
         run undo rtproof tune undo --all
         sums after";
    let cut = "(sleep 0.$(($(od -An -N2 -tu2 /dev/urandom) % 100)); cue cut) &
         while :; do
             rtproof tune apply --cpus 1 --yes >/host/apply.out 2>&1
             rtproof tune undo --all >/host/undo.out 2>&1
         done";
    let machine = Machine::disk().cpus(2).multi_threaded();
    let mut case = Case::new(
        "tune/power-off",
        "the power is cut at random moments of apply and undo: after the next boot undo gives back \
         /etc and /boot, and every value is the boot's own",
        machine,
    )
    .script(script(&format!("{begin}\n{cut}")))
    .on("cut", |guest| guest.power_cut())
    .ends_by_itself();
    for _ in 1..CUTS {
        let text = script(&format!("{begin}\n{undo}\n{cut}"));
        case = case.then_again().script(text).ends_by_itself();
    }
    case.then_again()
        .script(script(&format!("{begin}\n{undo}")))
        .expect(|seen, expect| {
            for (number, boot) in seen.boots().iter().enumerate().skip(1) {
                let read = |name: &str| std::fs::read_to_string(boot.share.join(name));
                let (before, after) = (read("before")?, read("after")?);
                let differ: Vec<_> = before
                    .lines()
                    .filter(|line| !after.lines().any(|other| other == *line))
                    .chain(after.lines().filter(|line| !before.lines().any(|other| other == *line)))
                    .collect();
                expect.equal(&format!("after cut {number}: files that differ"), differ, vec![]);
                let code = read("undo.rc")?;
                expect.equal(&format!("after cut {number}: undo's exit code"), code.trim(), "0");
            }
            expect.equal("power cuts", seen.boots().len() - 1, CUTS);
            Ok(())
        })
        .mutation("a file is left behind", "after cut 1: files that differ", |case| {
            case.boots.truncate(2);
            case.boots[1].ends = true;
            let text = case.boots[1].script.clone();
            let text = text.split("(sleep 0.").next().unwrap_or_default().to_owned();
            case.boots[1].script = text.replace("sums after", "touch /etc/left; sums after");
        })
}

/// Units: stopped and disabled ones are given back, ours hold /dev/cpu_dma_latency.
fn units() -> Case {
    Case::new(
        "tune/units",
        "irqbalance is stopped, disabled and given back; a unit holds /dev/cpu_dma_latency at 20 \
         us as long as it is wanted",
        Machine::disk().cpus(2).multi_threaded().power_states(),
    )
    .script(script(
        "install -m 755 $(command -v rtproof) /usr/local/bin/rtproof
         systemctl enable --now irqbalance.service 2>/host/enable.err
         state() { systemctl is-enabled irqbalance.service; systemctl is-active irqbalance.service; }
         state >/host/before.unit; sums before; track first; track tracked.before
         od -An -td4 /dev/cpu_dma_latency >/host/latency.before
         run apply /usr/local/bin/rtproof tune apply --cpus 1 --yes irqbalance cpu-dma-latency
         state >/host/during.unit
         od -An -td4 /dev/cpu_dma_latency >/host/latency.during
         systemctl list-units --no-legend 'rtproof*' >/host/ours
         run undo rtproof tune undo --all
         state >/host/after.unit; sums after; track tracked.after
         od -An -td4 /dev/cpu_dma_latency >/host/latency.after",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        expect.equal("before", seen.text("before.unit")?.trim(), "enabled\nactive");
        let during = seen.text("during.unit")?;
        expect.contains("during: it does not run", &during, "inactive");
        expect.lacks("during: it is not enabled", &during, "enabled\n");
        expect.equal("during: latency", seen.text("latency.during")?.trim(), "20");
        expect.equal("after", seen.text("after.unit")?, seen.text("before.unit")?);
        expect.equal("after: latency", seen.text("latency.after")?, seen.text("latency.before")?);
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        same_files(seen, expect, "before", "after")?;
        as_before(seen, expect, ["first", "tracked.before", "tracked.after"])
    })
    .other_word("run undo rtproof", "run undo echo", "after")
}

/// What is to hold at every boot is applied again by rtproof.service.
fn at_boot() -> Case {
    Case::new(
        "tune/at-boot",
        "rtproof.service applies the values again after a reboot, and undo takes it away",
        Machine::disk().cpus(2).multi_threaded(),
    )
    .script(script(
        "install -m 755 $(command -v rtproof) /usr/local/bin/rtproof
         sums before
         cat /proc/sys/kernel/soft_watchdog /proc/sys/kernel/sched_rt_runtime_us >/host/values.0
         run apply rtproof tune apply --cpus 1 --yes
         run persist /usr/local/bin/rtproof tune persist --yes
         cat /proc/sys/kernel/soft_watchdog /proc/sys/kernel/sched_rt_runtime_us >/host/values.1
         sync
         echo reboot >/host/then",
    ))
    .then_again()
    .script(script(
        "cat /proc/sys/kernel/soft_watchdog /proc/sys/kernel/sched_rt_runtime_us >/host/values.2
         systemctl status rtproof.service >/host/service 2>&1
         run status rtproof tune status
         run undo rtproof tune undo --all
         cat /proc/sys/kernel/soft_watchdog /proc/sys/kernel/sched_rt_runtime_us >/host/values.3
         sums after",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        let values = |number: u8| seen.text(&format!("values.{number}"));
        expect.that("applied", "others", values(1)? != values(0)?, values(1)?);
        expect.equal("applied again at boot", values(2)?, values(1)?);
        expect.equal("undone", values(3)?, values(0)?);
        same_files(seen, expect, "before", "after")?;
        Ok(())
    })
    .mutation("it is not persistent", "applied again at boot", |case| {
        let script = &mut case.boots[0].script;
        *script = script.replace("run persist /usr/local/bin/rtproof", "run persist echo");
    })
}
