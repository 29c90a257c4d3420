//! Deadline servers: what the fair server and the server of BPF schedulers have in common.

use rtproof_host::facts::sched::{FairServer, wants_debugfs};
use rtproof_host::{CpuList, Facts, Knob, Reading};

use crate::draft::Draft;
use crate::machine::without_cpu_folder;
use crate::profile::Choice;
use crate::text;
use crate::{Finding, Intent, Remedy, Status, quantity};

/// What a check says of a limit that is off, where the profile wants one.
pub(super) const RUNAWAY: &str = "a real-time task that never sleeps locks its CPU up";

/// Status where something limits real-time tasks: bad where it leaves them half of the time or
/// less, else what the profile wants.
pub(super) fn limited(taken_ns: u64, period_ns: u64, choice: Choice) -> Status {
    match choice {
        _ if taken_ns >= period_ns - taken_ns.min(period_ns) => Status::Bad,
        Choice::Off => Status::Doubtful,
        Choice::On | Choice::Either => Status::Good,
    }
}

/// Judges the servers of the real-time CPUs: off is good, unless the profile wants a limit.
pub(super) fn judge(
    draft: Draft,
    knob: &'static Knob,
    reading: &Reading<Vec<FairServer>>,
    servers: &[FairServer],
    intent: &Intent,
    (name, served): (&str, &str),
    remark: &str,
) -> Finding {
    let draft = draft.read(reading, |servers| show(servers));
    let known = CpuList::new(servers.iter().map(|server| server.cpu));
    let missing = intent.rt_cpus.difference(&known);
    let on: Vec<&FairServer> = servers
        .iter()
        .filter(|server| intent.rt_cpus.contains(server.cpu) && server.runtime_ns > 0)
        .collect();
    let Some(worst) = on.iter().max_by_key(|server| server.runtime_ns) else {
        if !missing.is_empty() {
            return draft.unknown(format!("{}: no {name} listed", text::cpus(&missing)));
        }
        let summary = format!("the {name} is off on {}", text::cpus(&intent.rt_cpus));
        return match intent.profile.choices.rt_throttling {
            Choice::On => draft.doubtful(format!("{summary}: {RUNAWAY}")),
            Choice::Off | Choice::Either => draft.good(summary),
        };
    };
    let cpus = CpuList::new(on.iter().map(|server| server.cpu));
    let summary = format!(
        "the {name} takes {} of each {} from real-time tasks on {} while {served} waits \
         there{remark}",
        quantity::ns(worst.runtime_ns),
        quantity::ns(worst.period_ns),
        text::cpus(&cpus),
    );
    let paths = cpus.iter().map(|cpu| format!("{}/cpu{cpu}/runtime", reading.path)).collect();
    let choice = intent.profile.choices.rt_throttling;
    match limited(worst.runtime_ns, worst.period_ns, choice) {
        Status::Good => draft.good(summary),
        status => draft.remedies([Remedy::set(knob, paths, "0")]).status(status, summary),
    }
}

/// How debugfs can be read, where it could not.
pub(super) fn readable<T>(facts: &Facts, reading: &Reading<T>) -> Remedy {
    let is_unmounted = wants_debugfs(reading);
    let text = match facts.kernel.lockdown.value().map(String::as_str) {
        _ if without_cpu_folder(facts).is_some() => {
            "as root, mount both: mount -t sysfs sysfs /sys && mount -t debugfs debugfs \
             /sys/kernel/debug"
        }
        Some("integrity" | "confidentiality") => {
            "kernel lockdown keeps debugfs closed: boot without Secure Boot or lockdown="
        }
        _ if is_unmounted => "as root, mount debugfs: mount -t debugfs debugfs /sys/kernel/debug",
        _ => "read it as root",
    };
    Remedy::Manual { text: text.into() }
}

pub(super) fn show(servers: &[FairServer]) -> String {
    let mut groups: Vec<((u64, u64), Vec<u32>)> = Vec::new();
    for server in servers {
        let key = (server.runtime_ns, server.period_ns);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cpus)) => cpus.push(server.cpu),
            None => groups.push((key, vec![server.cpu])),
        }
    }
    let groups: Vec<String> = groups
        .iter()
        .map(|((runtime_ns, period_ns), cpus)| {
            let (runtime, period) = (quantity::ns(*runtime_ns), quantity::ns(*period_ns));
            format!("cpu {}: runtime {runtime} of {period}", text::list(cpus))
        })
        .collect();
    text::first_few(&groups, 4)
}
