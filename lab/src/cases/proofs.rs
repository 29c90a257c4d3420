//! `check --prove`: trials instead of opinions, on kernels that throttle in different ways.

use anyhow::Result;

use crate::{
    case::{Case, Tier},
    expect::Expect,
    machine::Machine,
    seen::{Evidence, Json},
};

const PROVE: &str = "rtproof check --only rt-throttling --prove throttling --json";
const NO_LIMIT: &str = "echo -1 >/proc/sys/kernel/sched_rt_runtime_us\n";

pub(super) fn cases() -> Vec<Case> {
    let cases = [throttling(), fair_server("rt-6.12"), fair_server("rt-7.2"), application()];
    cases.into_iter().map(|case| case.tier(Tier::Two)).collect()
}

/// Before 6.12 the limit is the throttle.
fn throttling() -> Case {
    Case::new(
        "proof/throttling/rt-6.1",
        "a spinner under SCHED_FIFO is paused 50 ms a second, and not with sched_rt_runtime_us=-1",
        Machine::new("rt-6.1"),
    )
    .script(format!("run limited {PROVE}\n{NO_LIMIT}run unlimited {PROVE}"))
    .expect(|seen, expect| {
        is(seen, expect, "limited", "bad")?;
        is(seen, expect, "unlimited", "good")
    })
    .other_word("echo -1", "echo 950000", "unlimited: paused")
}

/// From 6.12 on the fair server is, whatever the limit says.
fn fair_server(kernel: &'static str) -> Case {
    let off = "for f in /sys/kernel/debug/sched/*_server/cpu*/runtime; do echo 0 >$f; done\n";
    Case::new(
        format!("proof/fair-server/{kernel}"),
        "sched_rt_runtime_us=-1 alone leaves the pauses; with the fair server off there are none",
        Machine::new(kernel),
    )
    .script(format!("{NO_LIMIT}run unlimited {PROVE}\n{off}run off {PROVE}"))
    .expect(|seen, expect| {
        is(seen, expect, "unlimited", "bad")?;
        let proof = proof(&seen.json("unlimited")?);
        expect.contains("names the fair server", &proof.to_string(), "fair server");
        is(seen, expect, "off", "good")
    })
    .other_word("echo 0", "echo 50000000", "off: paused")
}

/// An application that is real-time, and one that only seems so.
fn application() -> Case {
    Case::new(
        "application/rt-6.1",
        "of an application its policy, affinity and what outranks it are told",
        Machine::new("rt-6.1").cpus(2).command_line("isolcpus=managed_irq,domain,1"),
    )
    .program("chrt")
    .script(
        "sleep 60 & plain=$!
         sleep 60 & real=$!
         taskset -p 2 $real; /tmp/bin/chrt -f -p 80 $real
         run plain rtproof check --pid $plain --json
         run real rtproof check --pid $real --json
         kill $plain $real",
    )
    .expect(|seen, expect| {
        for (name, policy, affinity) in [("plain", "bad", "bad"), ("real", "good", "good")] {
            let check = seen.json(name)?;
            let of = |id: &str| {
                let findings = check.list("/application/findings");
                let found = findings.iter().find(|finding| finding["check"] == id);
                found.map_or(String::new(), |f| f["status"].as_str().unwrap_or("").to_owned())
            };
            expect.equal(&format!("{name}: app-policy"), of("app-policy").as_str(), policy);
            expect.equal(&format!("{name}: app-affinity"), of("app-affinity").as_str(), affinity);
        }
        Ok(())
    })
    .other_word("/tmp/bin/chrt -f -p 80 $real", "true", "real: app-policy")
}

fn proof(check: &Json) -> serde_json::Value {
    check.list("/proofs").first().cloned().unwrap_or_default()
}

fn is(seen: &Evidence, expect: &mut Expect, name: &str, status: &str) -> Result<()> {
    let proof = proof(&seen.json(name)?);
    let came = proof["status"].as_str().unwrap_or_default();
    expect.equal(&format!("{name}: paused"), came, status);
    Ok(())
}
