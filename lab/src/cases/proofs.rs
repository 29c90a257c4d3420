//! `check --prove`: trials instead of opinions, on kernels that throttle in different ways.

use std::time::Duration;

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

const PROVE: &str = "rtproof check --only rt-throttling --prove throttling --json";
const NO_LIMIT: &str = "echo -1 >/proc/sys/kernel/sched_rt_runtime_us\n";

pub(super) fn cases() -> Vec<Case> {
    let cases = [
        throttling(),
        fair_server("rt-6.12"),
        fair_server("rt-7.2"),
        application(),
        gaps("rt-6.1"),
        gaps("rt-7.2"),
    ];
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

/// The host stops the emulator, which is not the kernel's doing: hwlat sees one stop in five, which
/// come while interrupts are off for it. Nothing counts here, and a hypervisor may be the cause.
fn gaps(kernel: &'static str) -> Case {
    Case::new(
        format!("proof/smi/{kernel}"),
        "hwlat sees the stops of the emulator, which stay unknown in a guest; its settings are \
         put back, also after SIGKILL",
        Machine::new(kernel).cpus(2).multi_threaded(),
    )
    .script(
        "settings() {
             (cd /sys/kernel/tracing; cat tracing_thresh hwlat_detector/*; ls instances)
         }
         echo 77 >/sys/kernel/tracing/tracing_thresh
         settings >/host/before
         stops() {
             sleep 1
             for stop in $(seq 30); do cue stop; sleep 0.2$((stop % 10)); done
         }
         stops &
         run proof rtproof check --only smi-count --prove smi --json
         wait
         settings >/host/after
         rtproof check --only smi-count --prove smi --json >/dev/null & killed=$!
         sleep 4
         settings >/host/meanwhile
         kill -9 $killed
         sleep 4
         settings >/host/killed",
    )
    .on("stop", |guest| {
        // The word may leave the guest when a window ends. The next one begins 80 ms later.
        std::thread::sleep(Duration::from_millis(90));
        guest.stop_for(Duration::from_millis(60))
    })
    .expect(|seen, expect| {
        let proof = proof(&seen.json("proof")?);
        expect.equal("status", proof["status"].as_str(), Some("unknown"));
        let summary = proof["summary"].as_str().unwrap_or_default();
        expect.contains("hwlat saw them", summary, "not the kernel's, but the hypervisor's");
        // What emulation takes of its CPUs is shorter.
        let longest = proof["observed"]["smi"]["hwlat"]["value"]["gaps"]["max_ns"].as_u64();
        expect.within("longest gap", longest.unwrap_or_default(), 50_000_000..=2_000_000_000);
        let before = seen.text("before")?;
        expect.contains("a threshold of the user's", &before, "77");
        expect.equal("settings afterwards", seen.text("after")?, before.clone());
        expect.lacks("settings meanwhile", &seen.text("meanwhile")?, "77");
        expect.equal("settings after SIGKILL", seen.text("killed")?, before);
        Ok(())
    })
    .other_word("cue stop", "true stop", "longest gap")
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
