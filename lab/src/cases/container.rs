//! Inside and outside namespaces: a real-time thread in a container is as late as outside
//! (Flatscher, "Real-time optimizations": virtually indistinguishable).

use super::common;
use crate::{
    case::{Case, Tier},
    machine::Machine,
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "container/namespaces/rt-6.1",
            "own mount, pid, ipc, uts, net and cgroup namespaces: rtproof says so, and latencies \
             are those outside",
            Machine::new("rt-6.1"),
        )
        .tier(Tier::Two)
        .program("unshare")
        .script(
            "prove outside --for 2s --budget 500us --load idle
             mkdir -p /sys/fs/cgroup/lab
             cat >/tmp/inside.sh <<'END'
             . /host/functions.sh
             mount -t proc proc /proc
             touch /run/.containerenv
             prove inside --for 2s --budget 500us --load idle
             run check rtproof check --json
END
             echo $$ >/sys/fs/cgroup/lab/cgroup.procs
             # The shell would take its own.
             /tmp/bin/unshare -m -p -i -u -n -C -f sh /tmp/inside.sh",
        )
        .expect(|seen, expect| {
            let mut worst = Vec::new();
            for name in ["outside", "inside"] {
                let report = seen.report(name)?;
                common::adds_up(expect, name, &report, 1);
                expect.equal(&format!("{name}: late"), report.number("/all/late")?, 0);
                worst.push(report.number("/all/max_ns")?);
            }
            expect.that(
                "latencies alike",
                "within 50 µs",
                (worst[0] - worst[1]).abs() < 50_000,
                &worst,
            );
            let inside = seen.json("check")?;
            expect.that(
                "container is named",
                "a name",
                !inside.at("/machine/container").is_null(),
                inside.at("/machine"),
            );
            Ok(())
        })
        .other_word("/tmp/bin/unshare -m -p -i -u -n -C -f sh", "sh", "container is named"),
    ]
}
