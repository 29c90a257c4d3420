//! Machines that lack something, or work against us.

use anyhow::Result;

use super::common;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![without_tracefs(), without_sys(), unprivileged()];
    cases.extend([hog_on_isolated("rt-6.1"), starved()]);
    cases
}

fn without_tracefs() -> Case {
    Case::new(
        "hostile/no-tracefs/rt-6.1",
        "without tracefs and debugfs everything else works",
        Machine::new("rt-6.1"),
    )
    .script(
        "umount /sys/kernel/tracing; umount /sys/kernel/debug
         run mounts grep -c -e tracefs -e debugfs /proc/mounts
         run check rtproof check --json
         prove run --for 1s --budget 2ms --load idle",
    )
    .expect(|seen, expect| {
        expect.equal("mounts of tracefs and debugfs", seen.out("mounts")?.trim(), "0");
        expect.equal("check", seen.json("check")?.finding("preempt-rt")?.text("/status"), "good");
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 1);
        common::sealed(expect, "run", &report);
        Ok(())
    })
    .other_word("umount", "true", "mounts of tracefs and debugfs")
}

fn without_sys() -> Case {
    Case::new(
        "hostile/no-sys/rt-6.1",
        "without /sys what cannot be known is unknown, and prove measures",
        Machine::new("rt-6.1"),
    )
    .tier(Tier::One)
    .script(
        "umount /sys/kernel/tracing; umount /sys/kernel/debug; umount /sys/fs/cgroup; umount /sys
         run check rtproof check --json
         prove run --for 1s --budget 2ms --load idle",
    )
    .expect(unknown_is_not_good)
    .other_word("umount /sys\n", "true\n", "clocksource is not good")
}

fn unknown_is_not_good(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let check = seen.json("check")?;
    for name in ["cpufreq-governor", "cpuidle-states", "isolation", "clocksource"] {
        let status = check.finding(name)?.text("/status").to_owned();
        expect.that(&format!("{name} is not good"), "not good", status != "good", status);
    }
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    common::sealed(expect, "run", &report);
    expect.that("exit code", "2 or 3", [2, 3].contains(&seen.rc("run")?), seen.rc("run")?);
    Ok(())
}

fn unprivileged() -> Case {
    Case::new(
        "hostile/unprivileged/rt-6.1",
        "without rights rtproof measures all the same, says so, and accepts nothing",
        Machine::new("rt-6.1"),
    )
    .script(
        "chmod 777 /tmp/o
         run check su lab -c 'rtproof check --json'
         run user su lab -c 'rtproof prove -o /tmp/o/user --for 1s --budget 10ms --load idle'",
    )
    .expect(|seen, expect| {
        let check = seen.json("check")?;
        let rtprio = check.finding("limits-rtprio")?;
        expect.equal("finding of limits-rtprio", rtprio.text("/status"), "bad");
        let report = seen.report("user")?;
        common::adds_up(expect, "user", &report, 1);
        expect.equal("policy", report.text("/cpus/0/thread/policy"), "other");
        expect.equal("verdict", report.text("/verdict/answer"), "not_proven");
        Ok(())
    })
    .other_word("su lab -c", "sh -c", "finding of limits-rtprio")
}

/// rtproof, then cyclictest, on a CPU that a hog has had for a second.
const HOG_FIRST: &str = "echo -1 >/proc/sys/kernel/sched_rt_runtime_us
    lab-plant burst --busy 100ms --every 100ms --policy fifo:10 --cpu 1 --for 60s &
    hog=$!
    sleep 1
    prove run --for 2s --budget 1s --load idle --cpus 1
    kill -0 $hog && echo yes >/host/hog
    cyclictest -m -a1 -t1 -p90 -i1000 -q -D 1 >/host/cyclictest.out &
    peer=$!
    sleep 5
    kill -0 $peer && echo hangs >/host/cyclictest
    kill $hog
    wait";

/// A hog that is already there: a newly started cyclictest hangs on such a CPU for ever.
fn hog_on_isolated(kernel: &'static str) -> Case {
    Case::new(
        format!("hostile/hog-on-isolated/{kernel}"),
        "a FIFO hog that already has the isolated CPU does not hang rtproof",
        Machine::new(kernel)
            .cpus(2)
            .multi_threaded()
            .command_line("isolcpus=1 nohz_full=1 rcu_nocbs=1"),
    )
    .program("cyclictest")
    .script(HOG_FIRST)
    .expect(hog_is_survived)
    .other_word("--for 60s &", "--for 100ms &", "the hog lived")
}

fn hog_is_survived(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    common::sealed(expect, "run", &report);
    expect.equal("the hog lived", seen.text("hog").unwrap_or_default().trim(), "yes");
    // The trap that rtproof avoids; should a cyclictest of the future avoid it too, look here.
    expect.equal("cyclictest", seen.text("cyclictest").unwrap_or_default().trim(), "hangs");
    Ok(())
}

/// A hog above ours on the only CPU, throttling off: prove ends by itself and says why.
fn starved() -> Case {
    Case::new(
        "hostile/starved/rt-6.1",
        "a hog above the measured thread on the only CPU: prove ends and says so",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::fifo_hog(90).cpu(0).lasting_ms(30_000).after_ms(300))
    .script(
        "echo -1 >/proc/sys/kernel/sched_rt_runtime_us
         prove run --for 2s --budget 1ms --load idle",
    )
    .limit_s(200)
    .expect(starved_and_ended)
    .unplanted("exit code")
}

fn starved_and_ended(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    expect.equal("exit code", seen.rc("run")?, 2);
    expect.that(
        "worst",
        "over a second",
        report.number("/all/max_ns")? > 1_000_000_000,
        report.number("/all/max_ns")?,
    );
    Ok(())
}
