//! Values of the running kernel: a round trip from odd values, SIGKILL at every write, what
//! something else changed, hardware threads, the fair server, interrupts, a control group's
//! partition, and a change that nobody confirmed.

use anyhow::{Context, Result};
use serde_json::Value;

use super::tracking::{as_before, differing, script, tracked};
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    vec![
        round_trip("rt-6.1", Tier::One),
        round_trip("stock-6.1", Tier::Two),
        round_trip("stock-6.12", Tier::Two),
        round_trip("rt-7.2", Tier::Two),
        killed("apply", Tier::Three),
        killed("undo", Tier::Three),
        three_way(),
        smt(),
        fair_server("rt-7.2"),
        interrupts(),
        unconfirmed(),
        gone(),
    ]
}

fn machine(kernel: &'static str) -> Machine {
    Machine::new(kernel).cpus(2).multi_threaded()
}

/// Everything that can be done to one CPU of two, done and undone.
fn round_trip(kernel: &'static str, tier: Tier) -> Case {
    Case::new(
        format!("tune/round-trip/{kernel}"),
        "25 changes or more from odd values are applied, effective and undone: 0 values differ",
        machine(kernel),
    )
    .tier(tier)
    .script(script(
        "odd
         track first; track before
         run plan rtproof tune plan --cpus 1 --level max --json
         run apply rtproof tune apply --cpus 1 --level max --yes
         track during
         run status rtproof tune status --json
         run undo rtproof tune undo
         track after
         run again rtproof tune undo
         track twice
         dmesg >/host/dmesg",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        let steps = steps(seen)?;
        expect.that("changes of the plan", "25 or more", steps.len() >= 25, steps.len());
        effective(seen, expect, &steps)?;
        expect.equal("status: exit code", seen.rc("status")?, 0);
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        as_before(seen, expect, ["first", "before", "after"])?;
        expect.equal("a second undo: exit code", seen.rc("again")?, 0);
        let twice = differing(seen, ["first", "before", "twice"])?;
        expect.equal("a second undo: values that differ", twice, Vec::new());
        expect.equal("warnings of the kernel", warnings(&seen.text("dmesg")?), Vec::new());
        Ok(())
    })
    .other_word("run undo rtproof", "run undo echo", "values that differ")
    .other_word("run apply rtproof", "run apply echo", "effective")
}

/// What the kernel warned of. But for one: Linux 6.12 may do so once when the fair server's runtime
/// is written while it is at work (docs/tune.md).
fn warnings(dmesg: &str) -> Vec<String> {
    let is_known = |line: &str| line.contains("dl_rq_change_utilization");
    let lines = dmesg.lines().filter(|line| line.contains("WARNING:") && !is_known(line));
    lines.map(str::to_owned).collect()
}

/// Changes of the plan.
fn steps(seen: &Evidence) -> Result<Vec<Value>> {
    let plan = seen.json("plan")?;
    Ok(plan.list("/steps").iter().map(|step| step["change"].clone()).collect())
}

/// Each value that was wanted is there, as the guest's own shell read it.
fn effective(seen: &Evidence, expect: &mut Expect, steps: &[Value]) -> Result<()> {
    let during = tracked(seen, "during")?;
    let mut missed = Vec::new();
    let mut compared = 0;
    for step in steps {
        let (path, wanted) = match step["kind"].as_str() {
            Some("value") => (text(&step["path"]), text(&step["value"])),
            Some("irq") => {
                let path = format!("/proc/irq/{}/smp_affinity_list", step["irq"]["number"]);
                (path, text(&step["cpus"]))
            }
            _ => continue,
        };
        let Some(lines) = during.get(&path) else { continue };
        compared += 1;
        if !is_same(&lines.join("\n"), &wanted) {
            missed.push(format!("{path}: wanted {wanted:?}, is {lines:?}"));
        }
    }
    expect.that("effective values compared", "15 or more", compared >= 15, compared);
    expect.equal("effective values missed", missed, Vec::new());
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The kernel shows numbers, masks and choices in its own way.
fn is_same(shown: &str, wanted: &str) -> bool {
    let plain = |text: &str| {
        let text =
            text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |c| c.0);
        let text = text.trim().trim_start_matches("0x");
        let text = match text {
            "Y" => "1",
            "N" => "0",
            _ => text,
        };
        text.replace(',', "").trim_start_matches('0').to_owned()
    };
    // One of several words, unless one of them is chosen.
    let word = wanted.trim_start_matches('+');
    let is_word = !shown.contains('[') && shown.split_whitespace().any(|shown| shown == word);
    plain(shown) == plain(wanted) || is_word
}

/// SIGKILL before every write, one after the other, on a real kernel.
fn killed(what: &'static str, tier: Tier) -> Case {
    // Each journal entry and each value is a write of its own.
    let run = match what {
        "apply" => "killed write rtproof tune apply --plan /tmp/plan.json --yes",
        _ => {
            "prepare() { rtproof tune apply --plan /tmp/plan.json --yes >/dev/null 2>&1; }
              killed write rtproof tune undo"
        }
    };
    Case::new(
        format!("tune/killed/{what}"),
        "killed before each write, then undone: 0 values differ in every round",
        machine("rt-6.1"),
    )
    .tier(tier)
    .program("strace")
    .limit_s(1200)
    .script(script(&format!(
        "odd
         track first; track before
         run plan rtproof tune plan --cpus 1 --level max --json
         cp /host/plan.out /tmp/plan.json
         {run}
         track after"
    )))
    .expect(|seen, expect| {
        expect.that("changes of the plan", "25 or more", steps(seen)?.len() >= 25, "fewer");
        let rounds = seen.text("rounds.txt")?;
        let number = |after: &str| {
            let rest = rounds.split_once(after).map(|(_, rest)| rest.trim_start());
            let digits = rest.unwrap_or_default().split([',', '\n']).next().unwrap_or_default();
            digits.parse::<i64>().with_context(|| format!("{after} in {rounds:?}"))
        };
        expect.within("rounds", number("rounds ")?, 100..=10_000);
        expect.equal("the last was not killed", number("last ")?, 0);
        expect.equal("undo failed", number("undo failed ")?, 0);
        expect.equal("rounds in which values differ", number("values differ ")?, 0);
        as_before(seen, expect, ["first", "before", "after"])
    })
    // Undone by nothing: what is compared is compared.
    .other_word("if ! rtproof tune undo", "if ! true tune undo", "rounds in which values differ")
}

/// Someone else's change is left alone, and said; the rest is undone.
fn three_way() -> Case {
    Case::new(
        "tune/three-way/rt-6.1",
        "a value that is no longer ours is left alone and named; all others are undone",
        machine("rt-6.1"),
    )
    .script(script(
        "odd
         track first; track before
         run apply rtproof tune apply --cpus 1 --yes swappiness stat-interval rt-throttling
         echo 55 >/proc/sys/vm/stat_interval
         run status rtproof tune status
         run undo rtproof tune undo
         track after",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        expect.contains("status names it", &seen.out("status")?, "stat_interval");
        let said = seen.out("undo")? + &seen.err("undo")?;
        expect.contains("undo names it", &said, "stat_interval");
        expect.contains("undo says what is there", &said, "55");
        let differ = differing(seen, ["first", "before", "after"])?;
        expect.equal("values that differ", differ.len(), 1);
        let is_it = differ.iter().any(|line| line.contains("vm/stat_interval"));
        expect.that("the one that differs", "stat_interval", is_it, &differ);
        Ok(())
    })
    .other_word("echo 55", "true 55", "undo says what is there")
}

/// What SMT off takes away with the CPUs is given back with them.
fn smt() -> Case {
    Case::new(
        "tune/smt/rt-6.1",
        "SMT off and on again: the affinities of tasks and interrupts that the kernel took away \
         with the CPUs are given back",
        Machine::new("rt-6.1").cpus(4).threads(2).multi_threaded(),
    )
    .script(script(
        "# A task on a CPU that goes, one on a CPU of each core; all interrupts on one that goes.
         sleep 1000 & alone=$!
         sleep 1000 & both=$!
         taskset -p 8 $alone; taskset -p 6 $both
         for irq in /proc/irq/[0-9]*; do echo 3 >$irq/smp_affinity_list; done 2>/dev/null
         track first; track before
         run apply rtproof tune apply --cpus 2 --yes smt
         cat /sys/devices/system/cpu/smt/control /sys/devices/system/cpu/online >/host/off
         run undo rtproof tune undo
         cat /sys/devices/system/cpu/smt/control /sys/devices/system/cpu/online >/host/on
         track after
         grep Cpus_allowed_list /proc/$alone/status /proc/$both/status >/host/tasks
         kill $alone $both",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        expect.equal("off", seen.text("off")?.trim(), "off\n0,2");
        expect.equal("on", seen.text("on")?.trim(), "on\n0-3");
        let tasks = seen.text("tasks")?;
        let last = |line| str::split(line, '\t').next_back();
        let cpus: Vec<&str> = tasks.lines().filter_map(last).collect();
        expect.equal("CPUs of the tasks", cpus, vec!["3", "1-2"]);
        as_before(seen, expect, ["first", "before", "after"])
    })
    .mutation("SMT is not a thing here", "off", |case| case.boots[0].machine.threads = 1)
    .other_word(
        "run undo rtproof tune undo",
        "echo on >/sys/devices/system/cpu/smt/control",
        "CPUs of the tasks",
    )
}

/// From 6.12 on the fair server is the throttle; with it at 0 the kernel may refuse a limit of
/// real-time tasks (EBUSY), so that it has to come back first.
fn fair_server(kernel: &'static str) -> Case {
    Case::new(
        format!("tune/fair-server/{kernel}"),
        "the fair server of the real-time CPU is switched off and comes back",
        machine(kernel),
    )
    .script(script(
        "echo 40000000 >/sys/kernel/debug/sched/fair_server/cpu1/runtime
         track first; track before
         run apply rtproof tune apply --cpus 1 --yes rt-throttling fair-server
         cat /sys/kernel/debug/sched/fair_server/cpu[01]/runtime >/host/during
         run undo rtproof tune undo
         track after
         cat /sys/kernel/debug/sched/fair_server/cpu[01]/runtime >/host/back",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        expect.equal("during", seen.text("during")?.trim(), "50000000\n0");
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        expect.equal("back", seen.text("back")?.trim(), "50000000\n40000000");
        as_before(seen, expect, ["first", "before", "after"])
    })
    .other_word("run apply rtproof", "run apply echo", "during")
}

/// Interrupts that may be moved are, and go back; those that the kernel manages are left out.
fn interrupts() -> Case {
    Case::new(
        "tune/interrupts/rt-6.1",
        "interrupts of a network card are moved and moved back, also under another number; managed \
         ones of a disk are not touched",
        machine("rt-6.1").devices(),
    )
    .program("taskset")
    .script(script(
        "ip link set eth0 up
         # The disk's queue of CPU 1 has fired: one that never did is left alone.
         /tmp/bin/taskset -c 1 dd if=/dev/vda of=/dev/null bs=4k count=8
         for irq in /proc/irq/[0-9]*; do echo $irq $(cat /sys/kernel/irq/${irq##*/}/actions); done \
             >/host/named
         track first; track before
         run plan rtproof tune plan --cpus 1 --json irq-affinity
         run apply rtproof tune apply --cpus 1 --yes irq-affinity
         track during
         run undo rtproof tune undo
         track after",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        let steps = steps(seen)?;
        let moved: Vec<&Value> = steps.iter().filter(|step| step["kind"] == "irq").collect();
        expect.that("interrupts moved", "one or more", !moved.is_empty(), moved.len());
        let names: String = moved.iter().map(|step| step["irq"]["actions"].to_string()).collect();
        expect.contains("the network card's", &names, "virtio0-");
        // Before 6.10 nothing tells that an interrupt is managed until the kernel refuses.
        expect.contains("managed ones are told", &seen.out("apply")?, "managed interrupt");
        let during = tracked(seen, "during")?;
        let is_managed = |step: &&Value| step["irq"]["actions"].to_string().contains("-req");
        for step in moved.into_iter().filter(|step| !is_managed(step)) {
            let path = format!("/proc/irq/{}/smp_affinity_list", step["irq"]["number"]);
            expect.equal(&format!("effective: {path}"), during.get(&path), Some(&vec!["0".into()]));
        }
        as_before(seen, expect, ["first", "before", "after"])
    })
    .other_word("run apply rtproof", "run apply echo", "effective")
}

/// Nobody confirms, and the tool is dead: the change goes.
fn unconfirmed() -> Case {
    Case::new(
        "tune/confirm/rt-6.1",
        "changes that nobody confirms are taken back, also when the tool and its shell are killed",
        machine("rt-6.1"),
    )
    .script(script(
        "odd
         track first; track before
         setsid sh -c 'echo $$ >/tmp/shell; rtproof tune apply --cpus 1 --level max --yes \
             --confirm 30s >/host/apply.out 2>&1' &
         sleep 1
         for _ in $(seq 60); do
             [ $(cat /proc/sys/kernel/soft_watchdog) = 1 ] || break
             sleep 0.5
         done
         sleep 5
         kill -9 $(cat /tmp/shell)
         for process in /proc/[0-9]*; do
             tr '\\0' ' ' <$process/cmdline | grep -q '^rtproof tune apply' &&
                 kill -9 ${process#/proc/}
         done
         track during
         for _ in $(seq 60); do
             [ $(cat /proc/sys/kernel/soft_watchdog) = 1 ] && break
             sleep 0.5
         done
         sleep 5
         track after
         run status rtproof tune status",
    ))
    .expect(|seen, expect| {
        let during = differing(seen, ["first", "before", "during"])?;
        expect.that("applied", "10 changes or more", during.len() >= 10, &during);
        as_before(seen, expect, ["first", "before", "after"])
    })
    .mutation("somebody confirms", "values that differ", |case| {
        let script = &mut case.boots[0].script;
        *script = script.replace("track during", "track during; rtproof tune confirm");
    })
}

/// Tasks by number and start time: one that took the number of a task that ended is not touched.
fn gone() -> Case {
    Case::new(
        "tune/gone/rt-6.1",
        "a task that ended is reported, and the one that got its number is not touched",
        machine("rt-6.1"),
    )
    .program("chrt")
    .script(script(
        "chrt -f 95 sleep 1000 & task=$!
         sleep 1
         track first; track before
         run plan rtproof tune plan --cpus 1 --json rogue-rt-tasks
         run apply rtproof tune apply --cpus 1 --yes rogue-rt-tasks
         chrt -p $task >/host/applied
         kill $task; wait $task
         # The next process gets the number of the one that ended.
         echo $((task - 1)) >/proc/sys/kernel/ns_last_pid
         chrt -r 7 sleep 1000 & other=$!
         echo $task $other >/host/numbers
         run undo rtproof tune undo
         chrt -p $other >/host/other
         kill $other
         track after",
    ))
    .expect(|seen, expect| {
        let numbers = seen.text("numbers")?;
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        expect.equal("the number was taken", numbers.first(), numbers.last());
        expect.lacks("applied", &seen.text("applied")?, "priority: 95");
        expect.contains("the other's priority", &seen.text("other")?, "priority: 7");
        as_before(seen, expect, ["first", "before", "after"])
    })
    .other_word("run apply rtproof", "run apply echo", "applied")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_the_kernel_shows_them() {
        for (shown, wanted) in [
            ("0000,00000003", "3"),
            ("always madvise [never]", "never"),
            ("0", "0"),
            ("N", "0"),
            ("PLACE_LAG NO_RT_RUNTIME_SHARE", "NO_RT_RUNTIME_SHARE"),
            ("cpuset memory", "+cpuset"),
        ] {
            assert!(is_same(shown, wanted), "{shown} is {wanted}");
        }
        for (shown, wanted) in [("[always] never", "never"), ("10", "1"), ("", "1"), ("1", "")] {
            assert!(!is_same(shown, wanted), "{shown} is not {wanted}");
        }
    }
}
