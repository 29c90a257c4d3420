//! A service that `rtproof run --unit` starts, under a real systemd.

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// A service with settings of its own, which another file changes; it says how it runs.
const UNIT: &str = r#"
mkdir -p /etc/systemd/system/control.service.d
cat >/usr/local/bin/control <<'END'
#!/bin/sh
chrt -p $$ >/run/inside
grep Cpus_allowed_list /proc/self/status >>/run/inside
ulimit -r -l >>/run/inside
for i in $(seq 150); do sleep 0.1; done
exit 3
END
chmod 755 /usr/local/bin/control
cat >/etc/systemd/system/control.service <<'END'
[Service]
ExecStart=/usr/local/bin/control
CPUAffinity=0
LimitRTPRIO=5
END
printf '[Service]\nCPUAffinity=0\nNice=5\n' >/etc/systemd/system/control.service.d/override.conf
systemctl daemon-reload
state() {
    find /run/systemd/system /etc/systemd -type f | sort | xargs sha256sum
    systemctl show control.service -p CPUSchedulingPolicy,CPUAffinity,LimitRTPRIO,DropInPaths
    cat /proc/sys/kernel/sched_rt_runtime_us
}
state >/run/before
same() { state | diff /run/before - && echo same; }"#;

/// One that ends at once, one without its program, one of another user, one that is started again.
const ODD: &str = r#"
odd() { printf '[Service]\n%s\n' "$2" >/run/systemd/system/$1.service; }
odd once ExecStart=/bin/true
odd missing ExecStart=/no/such/program
odd nobody 'User=nobody
RestrictRealtime=yes
ExecStart=/bin/sh -c "chrt -p $$$$; sleep 2"'
odd again 'Restart=on-failure
RestartSec=1
ExecStart=/bin/sh -c "chrt -p $$$$ >>/run/again; sleep 1; test $(wc -l </run/again) -ge 6"'
systemctl daemon-reload
state >/run/before"#;

pub(super) fn case() -> Case {
    Case::new(
        "disk/run-unit",
        "run --unit starts a service with its settings, which are gone at its end, also when \
         rtproof was killed",
        Machine::disk().cpus(2),
    )
    .script(format!(
        "{UNIT}
         run plan rtproof run --plan --cpus 1 --priority 70 --unit control.service
         run whole rtproof run --cpus 1 --priority 70 --budget 2s --json /host/got.out --unit control
         cp /run/inside /host/inside
         run rules rtproof run --cpus 1 --rules --rules-for 4s --no-trace --json /host/broken.out --unit control
         rm -f /host/*.rtproof /host/*.html *.rtproof *.html
         same >/host/after-whole
         rtproof run --cpus 1 --unit control.service >/dev/null 2>/host/killed &
         until systemctl is-active -q control.service; do sleep 0.2; done
         run second rtproof run --unit control.service
         kill -KILL $!
         wait
         systemctl is-active control.service >/host/goes-on
         systemctl stop control.service
         sleep 2
         same >/host/after-kill
         rtproof run --cpus 1 --unit control.service 2>/host/ended &
         until systemctl is-active -q control.service; do sleep 0.2; done
         sleep 1
         kill -TERM $!
         wait $!
         echo $? >/host/ended.rc
         systemctl is-active control.service >/host/stopped
         same >/host/after-end
         run none rtproof run --unit no-such.service
         {ODD}
         run once rtproof run --cpus 1 --unit once.service
         run missing rtproof run --cpus 1 --unit missing.service
         run nobody rtproof run --cpus 1 --no-trace --unit nobody.service
         run again rtproof run --cpus 1 --no-trace --unit again.service
         cp /run/again /host/again-runs
         same >/host/after-odd
         systemctl mask masked.service
         run masked rtproof run --unit masked"
    ))
    .expect(as_before)
    .other_word("--priority 70 --budget", "--priority 60 --budget", "inside: priority")
    .tier(Tier::Three)
    .limit_s(300)
}

fn as_before(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let plan = seen.out("plan")?;
    expect.contains("plan: the file", &plan, "/run/systemd/system/control.service.d");
    let inside = seen.text("inside")?;
    expect.contains("inside: policy", &inside, "SCHED_FIFO");
    expect.contains("inside: priority", &inside, "priority: 70");
    expect.contains("inside: CPUs", &inside, "Cpus_allowed_list:\t1\n");
    expect.contains("inside: limits", &inside, "unlimited");
    expect.equal("whole: exit code", seen.rc("whole")?, 3);
    let got = seen.json("got")?;
    expect.equal("whole: ending", got.number("/ending/exited")?, 3);
    let threads = got.list("/threads");
    let wake_ups = |name: &str| {
        let of = threads.iter().find(|it| it["name"] == name);
        of.and_then(|it| it["latency"]["wake_ups"].as_i64()).unwrap_or(0)
    };
    // Each sleep of the shell is a process and a wait for it.
    expect.within("whole: wake-ups", wake_ups("control"), 100..=600);
    // Some of them are too short to be looked at.
    let mut seen_ones = threads.iter().filter(|it| !it["scheduling"].is_null());
    let fifo = seen_ones.all(|it| it["scheduling"]["priority"] == 70);
    expect.that("whole: all its threads are real-time", "70", fifo, threads.len());
    // A shell that sleeps by processes of its own: each is born real-time, and ends.
    expect.equal("rules: exit code", seen.rc("rules")?, 3);
    let rules = seen.json("broken")?;
    expect.equal("rules: answer", rules.text("/rules/answer"), "broken");
    let broken: Vec<&str> =
        rules.list("/rules/breaches").iter().filter_map(|it| it["rule"].as_str()).collect();
    expect.that("rules: inheritance", "broken", broken.contains(&"inheritance"), &broken);
    let proof = got.at("/proof/record").to_string();
    expect.equal("whole: its record", proof, "\"made\"".into());
    for after in ["after-whole", "after-kill", "after-end", "after-odd"] {
        expect.equal(after, seen.text(after)?, "same\n".to_owned());
    }
    expect.equal("second: exit code", seen.rc("second")?, 125);
    expect.contains("second: why", &seen.err("second")?, "another rtproof run has");
    expect.equal("a service goes on", seen.text("goes-on")?, "active\n".to_owned());
    expect.equal("a signal stops it", seen.text("stopped")?, "inactive\n".to_owned());
    expect.equal("ended: exit code", seen.text("ended.rc")?, "0\n".to_owned());
    expect.contains("ended: what 0 is", &seen.text("ended")?, "counts the end as a success");
    // It may be gone before systemd is asked, which forgets what ended well.
    let once = seen.rc("once")?;
    expect.that("once: exit code", "0, or 125 with the reason", [0, 125].contains(&once), once);
    if once == 125 {
        expect.contains("once: why", &seen.err("once")?, "or has ended at once");
    }
    expect.equal("missing: exit code", seen.rc("missing")?, 203);
    expect.contains("missing: whose number", &seen.err("missing")?, "may be systemd's own");
    expect.equal("nobody: exit code", seen.rc("nobody")?, 0);
    expect.contains("nobody: has the policy", &seen.err("nobody")?, "fifo 80");
    expect.equal("again: exit code", seen.rc("again")?, 0);
    let again = seen.text("again-runs")?;
    expect.equal("again: each run has the policy", again.matches("SCHED_FIFO").count(), 3);
    expect.equal("none: exit code", seen.rc("none")?, 127);
    expect.equal("masked: exit code", seen.rc("masked")?, 126);
    Ok(())
}
