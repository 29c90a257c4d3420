//! Several CPUs: hardware threads, nodes, isolation.

use anyhow::Result;

use super::common;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

/// Two of four CPUs isolated in every way.
pub(super) const ISOLATED: &str =
    "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1";

pub(super) fn cases() -> Vec<Case> {
    let four = |kernel| Machine::new(kernel).cpus(4).threads(2).nodes(2).memory_mib(1024);
    vec![
        isolated("rt-6.1", Tier::One, four("rt-6.1").multi_threaded()),
        isolated("rt-6.12", Tier::Two, four("rt-6.12")),
        isolated("stock-7.2", Tier::Two, four("stock-7.2")),
        many(),
    ]
}

/// Four CPUs on two nodes, two threads a core, two of them isolated.
fn isolated(kernel: &'static str, tier: Tier, machine: Machine) -> Case {
    Case::new(
        format!("topology/isolated/{kernel}"),
        "isolated, nohz_full and rcu_nocbs CPUs, hardware threads and nodes are seen; prove \
         measures the isolated CPUs and keeps to the others itself",
        machine.command_line(ISOLATED),
    )
    .tier(tier)
    .script(
        "run check rtproof check --json
         prove run --for 1s --budget 100ms --load idle",
    )
    .expect(sets_are_seen)
    .other_command_line("", "finding of isolation")
    .mutation("one thread a core", "finding of smt", |case| {
        case.boots[0].machine.threads = 1;
    })
    .mutation("one node", "CPUs of the nodes", |case| case.boots[0].machine.nodes = 1)
}

fn sets_are_seen(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let check = seen.json("check")?;
    let isolation = check.finding("isolation")?;
    expect.equal("finding of isolation", isolation.text("/status"), "good");
    for part in ["isolated 2-3", "nohz_full 2-3", "rcu_nocbs 2-3", "irqaffinity 0-1"] {
        expect.contains(&format!("isolation: {part}"), isolation.text("/summary"), part);
    }
    let smt = check.finding("smt")?;
    expect.equal("finding of smt", smt.text("/status"), "doubtful");
    expect.contains("siblings", smt.text("/summary"), "2 with 3");
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 2);
    common::sealed(expect, "run", &report);
    expect.equal("measured CPUs", report.text("/options/cpus"), "2-3");
    expect.equal("housekeeping CPUs", report.text("/options/housekeeping"), "0-1");
    let record = seen.path("run.rtproof")?;
    let facts = Json::parse("facts", &seen.rtproof(&["export", "--format", "json"], &record)?)?;
    let nodes = facts.list("/facts_start/cpus/nodes/value");
    let cpus: Vec<&str> = nodes.iter().filter_map(|node| node["cpus"].as_str()).collect();
    expect.equal("CPUs of the nodes", cpus, vec!["0-1", "2-3"]);
    Ok(())
}

/// As many CPUs as a small server.
fn many() -> Case {
    Case::new(
        "topology/32-cpus/rt-6.1",
        "32 CPUs are measured at once",
        Machine::new("rt-6.1").cpus(32).memory_mib(2048),
    )
    .limit_s(300)
    .script(
        "run check rtproof check --json
         prove run --for 300ms --period 10ms --budget 1s --load idle",
    )
    .expect(|seen, expect| {
        expect.equal("CPUs", seen.json("check")?.number("/machine/cpus_online")?, 32);
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 32);
        common::sealed(expect, "run", &report);
        Ok(())
    })
    .mutation("31 CPUs", "CPUs", |case| {
        for boot in &mut case.boots {
            boot.machine.command_line = "maxcpus=31".into();
        }
    })
}
