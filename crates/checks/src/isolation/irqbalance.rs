//! Does irqbalance rewrite what was set?
//!
//! Every ten seconds it spreads interrupts over the CPUs that no option excludes.
//! Telling it some CPUs turns off its own detection of isolated CPUs, so a list that does not name
//! every real-time CPU is worse than none.

use rtproof_host::{CpuList, Facts, Reading, facts::irq, reading::State};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::container;
use crate::text;
use crate::{Evidence, Finding, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "irqbalance",
    title: "irqbalance moving interrupts onto the real-time CPUs",
    why: "irqbalance rewrites interrupt affinities every ten seconds: what was set by hand is gone",
    source: "irqbalance(1), IRQBALANCE_BANNED_CPULIST; github.com/Irqbalance/irqbalance pull \
             request 90; Flatscher, \"Real-time Optimizations\"",
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = format!("not running, or banned from {}", intent.rt_cpus);
    let draft = draft.wants(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let reading = &facts.irqs.irqbalance;
    let draft = draft.read(reading, show);
    let Some(state) = reading.value() else {
        if let Some((file, found)) = no_list(reading) {
            let unit = "irqbalance.service".into();
            let line = format!("IRQBALANCE_BANNED_CPULIST={}", intent.rt_cpus);
            return draft
                .remedies([
                    Remedy::Unit { unit, action: "disable --now".into() },
                    Remedy::File { path: file.into(), line },
                ])
                .doubtful(format!(
                    "{file} bans \"{found}\", which is no list of CPUs: irqbalance does not \
                     take it, and does not look for isolated CPUs itself"
                ));
        }
        return draft.blind(reading);
    };
    let draft = draft.remedies(remedies(state, intent));
    match (state.running, &state.banned) {
        (Some(pid), Some(banned)) => judge_banned(draft, state, intent, pid, banned),
        (Some(pid), None) => judge_running(draft, facts, intent, pid),
        (None, _) => match container(facts) {
            Some(name) => draft
                .read(&facts.virt.container, |_| name.into())
                .unknown(format!("inside a {name} container the host's irqbalance is not seen")),
            None if state.enabled => {
                draft.doubtful("not running now, but enabled: it starts at the next boot")
            }
            None => draft.good("neither running nor enabled"),
        },
    }
}

/// File and text of a ban that is neither list nor mask.
fn no_list(reading: &Reading<irq::Irqbalance>) -> Option<(&str, &str)> {
    match &reading.state {
        State::Malformed { found, .. } if reading.path.ends_with("/irqbalance") => {
            Some((&reading.path, found))
        }
        _ => None,
    }
}

fn judge_banned(
    draft: Draft,
    state: &irq::Irqbalance,
    intent: &Intent,
    pid: u32,
    banned: &CpuList,
) -> Finding {
    let from = state.banned_from.as_deref().unwrap_or("its environment");
    let open = intent.rt_cpus.difference(banned);
    if open.is_empty() {
        return draft.good(format!("pid {pid} leaves {} alone ({from})", text::cpus(banned)));
    }
    draft.bad(format!(
        "pid {pid} may use {}: {from} bans only {}, which turns off its own detection of isolated \
         CPUs",
        text::cpus(&open),
        text::or_empty(banned)
    ))
}

/// Runs without such an option: recent versions leave isolated and nohz_full CPUs alone.
fn judge_running(draft: Draft, facts: &Facts, intent: &Intent, pid: u32) -> Finding {
    let none = CpuList::default();
    let isolated = facts.cpus.isolated.value().unwrap_or(&none);
    let quiet = isolated.union(facts.cpus.nohz_full.value().unwrap_or(&none));
    let open = intent.rt_cpus.difference(&quiet);
    if !open.is_empty() {
        return draft.bad(format!("pid {pid} moves interrupts onto {}", text::cpus(&open)));
    }
    draft.saw([Evidence::of(&facts.cpus.isolated, CpuList::to_string)]).doubtful(format!(
        "pid {pid} runs; whether it leaves isolated CPUs alone depends on its version"
    ))
}

fn remedies(state: &irq::Irqbalance, intent: &Intent) -> Vec<Remedy> {
    let unit = Remedy::Unit { unit: "irqbalance.service".into(), action: "disable --now".into() };
    let ban = state.banned_from.as_ref().map(|path| Remedy::File {
        path: path.clone(),
        line: format!("IRQBALANCE_BANNED_CPULIST={}", intent.rt_cpus),
    });
    [unit].into_iter().chain(ban).collect()
}

fn show(state: &irq::Irqbalance) -> String {
    let running = state.running.map_or("not running".into(), |pid| format!("running, pid {pid}"));
    let enabled = if state.enabled { "enabled" } else { "not enabled" };
    match &state.banned {
        Some(banned) => format!("{running}, {enabled}, banned from {}", text::or_empty(banned)),
        None => format!("{running}, {enabled}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent};

    fn judge_in(mut facts: Facts, running: bool, enabled: bool, banned: Option<&[u32]>) -> Finding {
        let state = irq::Irqbalance {
            running: running.then_some(612),
            enabled,
            banned: banned.map(cpus),
            banned_from: banned.map(|_| "/etc/default/irqbalance".into()),
        };
        facts.irqs.irqbalance = Reading::known("/proc", state);
        CHECK.judge(&facts, &intent())
    }

    fn judge(running: bool, enabled: bool, banned: Option<&[u32]>) -> Finding {
        judge_in(good(), running, enabled, banned)
    }

    #[test]
    fn stopped_or_banned_is_good() {
        assert_eq!(judge(false, false, None).status, Good);
        assert_eq!(judge(true, true, Some(&[2, 3])).status, Good);
    }

    #[test]
    fn a_short_ban_is_bad_even_with_isolated_cpus() {
        let finding = judge(true, true, Some(&[3]));
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.starts_with("pid 612 may use CPU 2:"), "{}", finding.summary);
        let path = "/etc/default/irqbalance".into();
        let line = "IRQBALANCE_BANNED_CPULIST=2-3".into();
        assert_eq!(finding.remedies[1], Remedy::File { path, line });
    }

    #[test]
    fn running_is_bad_and_doubtful_where_the_cpus_are_isolated() {
        assert_eq!(judge(true, true, None).status, Doubtful);
        let mut facts = good();
        facts.cpus.isolated = Reading::known("/sys/x/isolated", cpus(&[]));
        facts.cpus.nohz_full = Reading::absent("/sys/x/nohz_full");
        assert_eq!(judge_in(facts, true, true, None).status, Bad);
    }

    #[test]
    fn enabled_is_doubtful_and_a_container_does_not_see_the_host() {
        assert_eq!(judge(false, true, None).status, Doubtful);
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(judge_in(facts, false, false, None).status, Unknown);
    }
}
