//! Does the kernel run tasks of a BPF scheduler in front of real-time ones?
//!
//! Kernels with an ext server give tasks of sched_ext what the fair server gives ordinary ones. It
//! serves nobody while no BPF scheduler runs.

use rtproof_host::Facts;
use rtproof_host::knobs::sched::EXT_SERVER;

use super::servers;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option, since};
use crate::{Finding, Impact, Intent};

pub(super) static CHECK: Check = Check {
    id: "ext-server",
    title: "time taken from real-time tasks by the server of BPF schedulers",
    why: "while a task of the BPF scheduler waits, the ext server runs it in front of the \
          real-time task",
    source: "kernel/sched/ext.c and kernel/sched/debug.c of 7.x \
             (/sys/kernel/debug/sched/ext_server, seen on 7.2); \
             Documentation/scheduler/sched-ext.rst",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no time taken"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.sched.ext_server;
    let setting = facts.settings.get("sched-ext").and_then(|setting| setting.values.first());
    let state = setting.map(|value| &value.reading);
    if let Some(state) = state.filter(|state| state.value().is_some_and(|s| s == "disabled")) {
        return draft
            .read(state, String::clone)
            .good("no BPF scheduler runs: an ext server has nobody to serve");
    }
    if built_with(facts, "SCHED_CLASS_EXT") == Some(false) {
        return draft
            .saw([option(facts, "SCHED_CLASS_EXT")])
            .not_applicable("this kernel is built without BPF schedulers");
    }
    if since(facts, (6, 12)) == Some(false) {
        return draft
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .not_applicable("kernels before 6.12 have no BPF schedulers");
    }
    let draft = match state {
        Some(state) if state.value().is_none() && !state.is_absent() => return draft.blind(state),
        Some(state) => draft.read(state, String::clone),
        None => draft,
    };
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let draft = draft.cpus(&intent.rt_cpus);
    if let Some(found) = reading.value() {
        let names = ("ext server", "a task of the BPF scheduler");
        return servers::judge(draft, &EXT_SERVER, reading, found, intent, names, "");
    }
    let fair = &facts.sched.fair_server;
    if reading.is_absent() && fair.value().is_some() {
        return draft
            .read(fair, |found| servers::show(found))
            .not_applicable("this kernel has a fair server and no ext server");
    }
    draft.remedies([servers::readable(facts, reading)]).blind(reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_config};
    use rtproof_host::{Reading, knobs::sched::SCHED_EXT};

    const PATH: &str = "/sys/kernel/debug/sched/ext_server";

    fn with_bpf() -> Facts {
        let mut facts = good();
        set_config(&mut facts, "SCHED_CLASS_EXT", Some("y"));
        fill_setting(&mut facts, &SCHED_EXT, "enabled");
        facts
    }

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    #[test]
    fn nobody_is_served_without_a_bpf_scheduler() {
        assert_eq!(judge(&good()).status, Good);
        let mut facts = good();
        facts.settings.clear();
        assert_eq!(judge(&facts).status, NotApplicable, "built without");
    }

    #[test]
    fn with_one_the_server_counts() {
        let mut facts = with_bpf();
        assert_eq!(judge(&facts).status, NotApplicable, "no ext server beside the fair server");
        facts.sched.fair_server = Reading::denied("/x", "lockdown");
        facts.sched.ext_server = Reading::denied(PATH, "lockdown");
        assert_eq!(judge(&facts).status, Unknown);
        let mut servers = good().sched.fair_server.value().cloned().unwrap();
        facts.sched.ext_server = Reading::known(PATH, servers.clone());
        assert_eq!(judge(&facts).status, Good);
        servers[3].runtime_ns = 50_000_000;
        facts.sched.ext_server = Reading::known(PATH, servers);
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("on CPU 3 while a task of the BPF"), "{finding:?}");
    }
}
