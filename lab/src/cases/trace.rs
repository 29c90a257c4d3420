//! The kernel's own tracers, driven by `rtproof trace`: what they keep is explained, and the
//! tracing of the machine is as before, after kills at random moments, too.

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

/// What the whole machine shares. The ring of the top gets its size when it is used first, which
/// nobody can undo: it has been used.
const STATE: &str = "T=/sys/kernel/tracing
echo 1 >$T/events/sched/sched_switch/enable
echo 0 >$T/events/sched/sched_switch/enable
echo >$T/trace
cat >/tmp/state.sh <<'END'
cd /sys/kernel/tracing
for file in current_tracer tracing_max_latency tracing_thresh tracing_on tracing_cpumask \\
    trace_options trace_clock buffer_size_kb set_ftrace_filter set_graph_function set_event \\
    events/enable options/funcgraph-abstime options/funcgraph-proc osnoise/* hwlat_detector/*; do
    [ -f $file ] && echo $file $(cat $file)
done
ls instances
ls /run 2>/dev/null | grep tracer
grep -c . per_cpu/cpu0/trace
END
";
const TRACERS: &str = "wakeup_rt function_graph timerlat hwlat nop";
/// Rounds that are killed.
const ROUNDS: i32 = 50;

pub(super) fn cases() -> Vec<Case> {
    ["rt-6.1", "rt-6.12"].map(traced).into()
}

fn traced(kernel: &'static str) -> Case {
    let rounds = format!(
        "for round in $(seq {ROUNDS}); do
             for tracer in $(echo {TRACERS} | cut -d' ' -f$((round % 5 + 1))); do
                 rtproof trace $tracer --for 20s --over 1ms >/dev/null 2>&1 &
             done
             usleep $(($(od -An -N2 -tu2 /dev/urandom) * 12))
             kill -KILL $!
             wait
             tries=0
             while [ -n \"$(ls /sys/kernel/tracing/instances; ls /run | grep tracer)\" ] && \
                 [ $tries -lt 100 ]; do
                 usleep 100000
                 tries=$((tries + 1))
             done
             sh /tmp/state.sh >/tmp/now
             cmp -s /tmp/before /tmp/now || diff /tmp/before /tmp/now >>/tmp/o/differ
         done\n"
    );
    Case::new(
        format!("trace/{kernel}"),
        "tracers of the kernel are explained at once and leave nothing changed, killed or not",
        Machine::new(kernel),
    )
    .tier(Tier::Two)
    .limit_s(900)
    .program("chrt")
    .script(format!(
        "{STATE}
         chmod 755 /tmp/bin/*
         /tmp/bin/chrt -f 80 sh -c 'while :; do usleep 20000; done' & late=$!
         sh /tmp/state.sh >/tmp/before
         run before cat /tmp/before
         run wakeup rtproof trace wakeup_rt --for 2s --over 1us --json
         run none rtproof trace wakeup_rt --for 1s --over 5s
         run graph rtproof trace function_graph --for 500ms --over 5s
         run timerlat rtproof trace timerlat --for 2s --over 1us --json
         run hwlat rtproof trace hwlat --for 2s --over 5s
         run lacks rtproof trace irqsoff --for 1s
         mkdir /sys/kernel/tracing/instances/other
         echo wakeup >/sys/kernel/tracing/instances/other/current_tracer
         run taken rtproof trace wakeup_rt --for 1s
         rmdir /sys/kernel/tracing/instances/other
         kill $late
         run after sh /tmp/state.sh
         touch /tmp/o/differ
         {rounds}
         run last sh /tmp/state.sh
         run differ cat /tmp/o/differ"
    ))
    .expect(as_before)
    .other_word(
        "touch /tmp/o/differ",
        "echo 77 >/sys/kernel/tracing/tracing_thresh; touch /tmp/o/differ",
        "after all kills",
    )
}

fn as_before(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let before = seen.out("before")?;
    let wakeup = seen.json("wakeup")?;
    expect.equal("wakeup_rt: exit code", seen.rc("wakeup")?, 0);
    sums(expect, "wakeup_rt", &wakeup)?;
    sums(expect, "timerlat", &seen.json("timerlat")?)?;
    expect.contains("nothing is over 5 s", &seen.out("none")?, "nothing over 5 s");
    expect.contains("the longest is named", &seen.out("none")?, "the longest was ");
    for name in ["none", "graph", "hwlat"] {
        let rc = seen.rc(name)?;
        expect.that(name, "exit code 0 or 3", rc == 0 || rc == 3, (rc, seen.err(name)?));
    }
    expect.equal("irqsoff: exit code", seen.rc("lacks")?, 1);
    expect.contains("irqsoff", &seen.err("lacks")?, "CONFIG_IRQSOFF_TRACER");
    expect.equal("another's tracer: exit code", seen.rc("taken")?, 1);
    expect.contains("another's tracer", &seen.err("taken")?, "another user runs `wakeup`");
    expect.equal("after", seen.out("after")?, before.clone());
    expect.equal("after each of 50 kills", seen.out("differ")?, String::new());
    expect.equal("after all kills", seen.out("last")?, before);
    Ok(())
}

/// Latencies were kept, and their shares sum to them.
fn sums(expect: &mut Expect, name: &str, trace: &Json) -> Result<()> {
    expect.that(name, "latencies", trace.number("/spikes/explained")? > 0, trace.at("/answer"));
    for spike in trace.list("/spikes/worst") {
        let explanation = &spike["explanation"];
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or_default();
        let shares = explanation["shares"].as_array().into_iter().flatten();
        let sum: u64 = shares.map(|share| number(&share["ns"])).sum();
        let wake = &explanation["wake"];
        let late = number(&wake["ran_ns"]).saturating_sub(number(&wake["due_ns"]));
        expect.equal(&format!("{name}: sum of the shares"), sum, late);
    }
    Ok(())
}
