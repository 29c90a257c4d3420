//! A cookie of core scheduling on a kernel that has it: a busy task on the other thread of the
//! program's core does not run while the program does. And memory of one node alone.

use anyhow::{Context, Result};

use crate::{case::Case, expect::Expect, machine::Machine, seen::Evidence};

/// A program that is busy for 2 s, and what the neighbour ran meanwhile, in hundredths of a second.
const PROGRAM: &str = "cat >/tmp/busy.sh <<'END'
ran() { read -r line </proc/$(cat /tmp/neighbour)/stat; set -- ${line##*) }; echo $((${12} + ${13})); }
before=$(ran)
read -r now rest </proc/uptime
end=$((${now%.*} + 2))
while [ ${now%.*} -lt $end ]; do read -r now rest </proc/uptime; done
echo ran $(($(ran) - before))
END
taskset -c 3 sh -c 'while :; do :; done' &
echo $! >/tmp/neighbour
";

const RUN: &str = "rtproof run --cpus 2 --place affinity --tune none --no-trace --dma-latency off";

pub(super) fn case(kernel: &'static str) -> Case {
    Case::new(
        format!("launch/core/{kernel}"),
        "with --core-sched nothing runs on the other thread of the program's core, and without \\
         threads that share a core it is refused",
        Machine::new(kernel).cpus(4).threads(2),
    )
    .program("taskset")
    .script(format!(
        "{PROGRAM}
         run siblings cat /sys/devices/system/cpu/cpu2/topology/thread_siblings_list
         run plan {RUN} --core-sched --plan -- true
         run with {RUN} --core-sched -- sh /tmp/busy.sh
         run without {RUN} -- sh /tmp/busy.sh
         run bound {RUN} --numa local -- cat /proc/self/numa_maps
         run free {RUN} -- cat /proc/self/numa_maps
         run far {RUN} --numa 7 -- true
         echo off >/sys/devices/system/cpu/smt/control
         run refused {RUN} --core-sched -- true
         kill $(cat /tmp/neighbour)"
    ))
    .expect(alone)
    .other_word("--numa local", "--numa 0", "bound: all memory is of node 1")
    .other_word("--core-sched -- sh", "-- sh", "with: the neighbour runs less than a quarter")
}

fn alone(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    expect.equal("CPUs of the core", seen.out("siblings")?.trim(), "2-3");
    let plan = seen.out("plan")?;
    expect.contains("plan: the cookie", &plan, "a cookie of its own");
    expect.contains("plan: the neighbour's CPU", &plan, "thread of that core (CPU 3)");
    let ran = |name: &str| -> Result<i64> {
        let text = seen.out(name)?;
        let word = text.split_whitespace().last();
        word.and_then(|word| word.parse().ok()).with_context(|| format!("{name}: {text}"))
    };
    let (with, without) = (ran("with")?, ran("without")?);
    expect.equal("with: exit code", seen.rc("with")?, 0);
    let is_less = with * 4 < without;
    let what = "with: the neighbour runs less than a quarter";
    expect.that(what, "of what it runs without", is_less, (with, without));
    expect.within("without: the neighbour runs, hundredths of a second", without, 50..=300);
    let (bound, free) = (seen.out("bound")?, seen.out("free")?);
    let is_bound = bound.lines().count() > 0 && bound.lines().all(|line| line.contains(" bind:1"));
    expect.that("bound: all memory is of node 1", "bind:1 in each line", is_bound, &bound);
    expect.lacks("free: nothing is bound", &free, "bind:");
    expect.contains("plan: the node", &plan, "CPU 2 is on node 1 of 2 memory nodes");
    expect.equal("far: exit code", seen.rc("far")?, 125);
    expect.contains("far", &seen.err("far")?, "node 7 of 7 has no memory; 0-1 has");
    expect.equal("refused: exit code", seen.rc("refused")?, 125);
    expect.contains("refused", &seen.err("refused")?, "leave --core-sched out");
    Ok(())
}
