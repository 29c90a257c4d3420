//! A program that is bound to memory of its CPUs' node, and what a kernel without core scheduling
//! refuses. (Debian's kernels are built without CONFIG_SCHED_CORE: a cookie cannot be shown here.)

use anyhow::Result;

use crate::case::Case;
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

const RUN: &str = "rtproof run --cpus 2 --place affinity --tune none --no-trace --dma-latency off";

pub(super) fn case(kernel: &'static str) -> Case {
    Case::new(
        format!("launch/nodes/{kernel}"),
        "--numa local binds all memory to the node of the CPUs; nodes without memory, and a cookie \
         where the kernel has no core scheduling, are refused",
        Machine::new(kernel).cpus(4).threads(2).nodes(2).memory_mib(1024),
    )
    .script(format!(
        "run plan {RUN} --plan -- true
         run bound {RUN} --numa local -- cat /proc/self/numa_maps
         run free {RUN} -- cat /proc/self/numa_maps
         run far {RUN} --numa 7 -- true
         run cookie {RUN} --core-sched -- true"
    ))
    .expect(bound)
    .other_word("--numa local", "--numa 0", "bound: all memory is of node 1")
}

fn bound(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let (bound, free) = (seen.out("bound")?, seen.out("free")?);
    let is_bound = bound.lines().count() > 0 && bound.lines().all(|line| line.contains(" bind:1"));
    expect.that("bound: all memory is of node 1", "bind:1 in each line", is_bound, &bound);
    expect.lacks("free: nothing is bound", &free, "bind:");
    expect.contains("plan: the node", &seen.out("plan")?, "CPU 2 is on node 1 of 2 memory nodes");
    expect.contains("far: refused", &seen.err("far")?, "node 7 of 7 has no memory; 0-1 has");
    expect.contains("cookie: refused", &seen.err("cookie")?, "needs CONFIG_SCHED_CORE");
    for name in ["far", "cookie"] {
        expect.equal(&format!("{name}: exit code"), seen.rc(name)?, 125);
    }
    Ok(())
}
