//! Idle states and frequencies, from firmware tables.

use anyhow::Result;

use crate::{case::Case, expect::Expect, machine::Machine, seen::Evidence};

pub(super) fn cases() -> Vec<Case> {
    vec![governors("rt-6.1"), governors("stock-6.12"), idle_states("rt-6.1"), psci()]
}

fn machine(kernel: &'static str) -> Machine {
    Machine::new(kernel).cpus(2).power_states()
}

fn governors(kernel: &'static str) -> Case {
    Case::new(
        format!("power/governors/{kernel}"),
        "the frequency governor is read on every CPU",
        machine(kernel),
    )
    .script(
        "set_governor() {
             for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
                 echo $1 >$file
             done
         }
         set_governor performance; run fast rtproof check --json
         set_governor powersave; run slow rtproof check --json",
    )
    .expect(governor_is_seen)
    .other_word("set_governor performance", "set_governor powersave", "finding with performance")
    .mutation("no tables", "finding with performance", |case| {
        case.boots[0].machine.power_states = false;
    })
}

fn governor_is_seen(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let fast = seen.json("fast")?.finding("cpufreq-governor")?;
    expect.equal("finding with performance", fast.text("/status"), "good");
    let slow = seen.json("slow")?.finding("cpufreq-governor")?;
    expect.equal("finding with powersave", slow.text("/status"), "bad");
    expect.contains("slow governor", &slow.whole(), "powersave");
    Ok(())
}

fn idle_states(kernel: &'static str) -> Case {
    Case::new(
        format!("power/idle-states/{kernel}"),
        "deep idle states are named with their exit latency; disabled ones are no longer bad",
        machine(kernel),
    )
    .script(
        "run deep rtproof check --json
         for file in /sys/devices/system/cpu/cpu*/cpuidle/state[23]/disable; do echo 1 >$file; done
         run shallow rtproof check --json",
    )
    .expect(|seen, expect| {
        let deep = seen.json("deep")?.finding("cpuidle-states")?;
        expect.that("deep states are not good", "not good", deep.text("/status") != "good", &deep);
        expect.contains("deepest state", &deep.whole(), "C3");
        expect.contains("its exit latency", &deep.whole(), "300");
        let shallow = seen.json("shallow")?.finding("cpuidle-states")?;
        expect.equal("finding when disabled", shallow.text("/status"), "good");
        Ok(())
    })
    .other_word("echo 1 >", "echo 0 >", "finding when disabled")
}

/// The same on aarch64, through the device tree.
fn psci() -> Case {
    Case::new(
        "power/idle-states/rt-6.1-arm64",
        "idle states of the device tree are named with their exit latency",
        machine("rt-6.1-arm64"),
    )
    .script("run deep rtproof check --json")
    .expect(|seen, expect| {
        let deep = seen.json("deep")?.finding("cpuidle-states")?;
        expect.contains("deepest state", &deep.whole(), "cpu-sleep");
        Ok(())
    })
    .mutation("no device tree of ours", "deepest state", |case| {
        case.boots[0].machine.power_states = false;
    })
}
