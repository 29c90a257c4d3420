//! Inside and outside namespaces: a real-time thread in a container is as late as outside
//! (Flatscher, "Real-time optimizations": virtually indistinguishable).

use anyhow::Result;

use super::common;
use crate::case::Case;
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// What runs in the namespaces.
const INSIDE: &str = "cat >/tmp/inside.sh <<'END'
. /host/functions.sh
mount -t proc proc /proc
touch /run/.containerenv
prove inside --for 2s --budget 500us --load idle
run check rtproof check --json
END";

pub(super) fn cases() -> Vec<Case> {
    vec![namespaces()]
}

fn namespaces() -> Case {
    Case::new(
        "container/namespaces/rt-6.1",
        "own mount, pid, ipc, uts, net and cgroup namespaces: rtproof says so, and latencies are \
         those outside",
        Machine::new("rt-6.1"),
    )
    .program("unshare")
    // The shell would take its own unshare, which knows no cgroup namespaces.
    .script(format!(
        "prove outside --for 2s --budget 500us --load idle
         {INSIDE}
         mkdir -p /sys/fs/cgroup/lab
         echo $$ >/sys/fs/cgroup/lab/cgroup.procs
         /tmp/bin/unshare -m -p -i -u -n -C -f sh /tmp/inside.sh",
    ))
    .expect(alike)
    .other_word("/tmp/bin/unshare -m -p -i -u -n -C -f sh", "sh", "container is named")
}

fn alike(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let mut worst = Vec::new();
    for name in ["outside", "inside"] {
        let report = seen.report(name)?;
        common::adds_up(expect, name, &report, 1);
        expect.equal(&format!("{name}: late"), report.number("/all/late")?, 0);
        worst.push(report.number("/all/max_ns")?);
    }
    let is_alike = (worst[0] - worst[1]).abs() < 50_000;
    expect.that("latencies alike", "within 50 µs", is_alike, &worst);
    let machine = seen.json("check")?.at("/machine").clone();
    expect.that("container is named", "a name", !machine["container"].is_null(), machine);
    Ok(())
}
