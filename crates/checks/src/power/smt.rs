//! Does anything share a core with a real-time CPU?
//!
//! Judged by the siblings of the real-time CPUs, not by the machine's switch alone: SMT may be on
//! where it does no harm. Whether the siblings are real-time CPUs too, or run ordinary work, is the
//! question of `smt-sibling-isolation`; the profile says whether two threads a core are wanted.
//! A guest cannot see which of its CPUs share a core, so that it sees none proves nothing.

use rtproof_host::knobs::power::ONLINE;
use rtproof_host::knobs::power::SMT;
use rtproof_host::{CpuList, Facts, facts::cpu::Cpu};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{guest, guest_unseen, offline, rt_cpus, without_cpu_folder};
use crate::profile::Choice;
use crate::text;
use crate::{Finding, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "smt",
    title: "hardware threads that share a core with the real-time CPUs",
    why: "threads of one core share its pipeline, first-level caches and fill buffers: what the \
          sibling runs slows the real-time thread, and no priority helps",
    source: "Documentation/admin-guide/cpu-isolation.rst; Wu, \"Real-time programming with Linux, \
             part 2\"; Flatscher, \"Real-time Optimizations\"",
    trade_off: Some(
        "SMT off halves the number of CPUs; hosts of containers keep it, and give both threads of \
         a core to the same work",
    ),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = match intent.profile.choices.smt {
        Choice::Off => "no sibling online",
        Choice::On | Choice::Either => "known",
    };
    let draft = draft.wants(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    let mut shared: Vec<CpuList> = cpus.iter().filter_map(|cpu| threads(cpu)).collect();
    // Siblings are mostly numbered apart: 0 and 2 on one core, 1 and 3 on the next.
    shared.sort_by(|one, other| one.iter().cmp(other.iter()));
    shared.dedup();
    let is_wish = intent.profile.choices.smt == Choice::Off;
    if !shared.is_empty() && (is_wish || missing.is_empty()) {
        let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
        let draft = draft.saw(text::grouped(siblings, CpuList::to_string));
        return judge_shared(draft, facts, intent, &shared);
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    if let Some(hypervisor) = guest(facts) {
        return judge_guest(draft, facts, hypervisor);
    }
    if let Some(unseen) = guest_unseen(facts) {
        return draft.blind(unseen);
    }
    let draft = draft.read(&facts.virt.hypervisor, |_| "none".into());
    let cpus_are_alone = cpus.iter().all(|cpu| cpu.siblings.value().is_some());
    match (facts.cpus.smt_control.value().map(String::as_str), facts.cpus.smt_active.value()) {
        (Some("notsupported"), Some(false) | None) => {
            draft.read(&facts.cpus.smt_control, String::clone).not_applicable("this CPU has no SMT")
        }
        (control, Some(false)) => {
            let control = control.map(|control| format!(" (control: {control})"));
            draft
                .read(&facts.cpus.smt_active, |_| "0".into())
                .good(format!("SMT is not active{}", control.unwrap_or_default()))
        }
        _ if cpus_are_alone => {
            let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
            let each = if cpus.len() > 1 { "each of " } else { "" };
            let offline = offline(facts).filter(|offline| !offline.is_empty());
            let offline = offline.map(|cpus| format!(" while {}", are_offline(&cpus)));
            draft.saw(text::grouped(siblings, CpuList::to_string)).good(format!(
                "{each}{} has its core alone{}",
                text::cpus(&intent.rt_cpus),
                offline.unwrap_or_default()
            ))
        }
        _ => draft.blind(&facts.cpus.smt_active),
    }
}

/// The threads of a CPU's core, where it has more than one.
pub(super) fn threads(cpu: &Cpu) -> Option<CpuList> {
    let threads = cpu.siblings.value()?.union(&CpuList::new([cpu.id]));
    (threads.len() > 1).then_some(threads)
}

/// `CPU 4 is offline`, `CPUs 4-5 are offline`.
fn are_offline(cpus: &CpuList) -> String {
    format!("{} {} offline", text::cpus(cpus), if cpus.len() == 1 { "is" } else { "are" })
}

/// A guest that sees no sibling: the kernel lists those that are online, and the host may run
/// CPUs that look alone on one core.
fn judge_guest(draft: Draft, facts: &Facts, hypervisor: &str) -> Finding {
    let control = &facts.cpus.smt_control;
    let has_smt = control.value().is_some_and(|control| control != "notsupported");
    let is_off = facts.cpus.smt_active.value() == Some(&false)
        && control.value().is_some_and(|control| control == "off" || control == "forceoff");
    let draft =
        draft.read(&facts.virt.hypervisor, |_| hypervisor.into()).read(control, String::clone);
    let offline = offline(facts).filter(|offline| has_smt && !offline.is_empty());
    let seen = match offline {
        _ if is_off => format!("SMT is off in this {hypervisor} guest"),
        Some(offline) => format!(
            "no sibling is online in this {hypervisor} guest while {}",
            are_offline(&offline)
        ),
        None => format!("this {hypervisor} guest sees no siblings"),
    };
    draft.unknown(format!("{seen}: what shares a core, the host knows"))
}

/// `shared`: the threads of each core that a real-time CPU shares, ascending.
fn judge_shared(draft: Draft, facts: &Facts, intent: &Intent, shared: &[CpuList]) -> Finding {
    let siblings = shared.iter().fold(CpuList::default(), |all, core| all.union(core));
    let foreign = siblings.difference(&intent.rt_cpus);
    let draft = draft.remedies(remedies(facts, intent, &foreign));
    let with = |core: &CpuList| {
        let (own, others) = (core.intersection(&intent.rt_cpus), core.difference(&intent.rt_cpus));
        if others.is_empty() {
            let first = CpuList::new(own.iter().take(1));
            return (false, format!("{first} with {}", own.difference(&first)));
        }
        (true, format!("{own} with {others}"))
    };
    let cores = shared.iter().map(with).filter(|(is_foreign, _)| *is_foreign != foreign.is_empty());
    let cores: Vec<String> = cores.map(|(_, text)| text).collect();
    let cores = text::first_few(&cores, 4);
    let with = if foreign.is_empty() { "each other" } else { "others" };
    let summary = format!("real-time CPUs share cores with {with}: {cores}");
    if intent.profile.choices.smt == Choice::Off {
        draft.doubtful(summary)
    } else {
        draft.good(summary)
    }
}

/// Turning SMT off, or the CPUs that share a core: but neither where that takes real-time CPUs
/// offline, or all that are left for the rest.
pub(super) fn remedies(facts: &Facts, intent: &Intent, foreign: &CpuList) -> Vec<Remedy> {
    let control = &facts.cpus.smt_control;
    // With SMT off the first thread of each core stays.
    let is_second = |cpu: &Cpu| {
        let first = threads(cpu).and_then(|core| core.iter().next());
        intent.rt_cpus.contains(cpu.id) && first.is_some_and(|first| foreign.contains(first))
    };
    let takes_rt = facts.cpus.cpus.iter().any(is_second);
    let takes_rest = intent.housekeeping.difference(foreign).is_empty();
    let mut remedies = Vec::new();
    if !foreign.is_empty() && (takes_rt || takes_rest) {
        let text = format!(
            "choose real-time CPUs by whole cores: {} share theirs with them",
            text::cpus(foreign)
        );
        remedies.push(Remedy::Manual { text });
    }
    if !takes_rt && control.value().is_some_and(|control| control == "on") {
        remedies.push(Remedy::set(&SMT, vec![control.path.clone()], "off"));
        remedies.push(Remedy::Boot { parameter: "nosmt".into() });
    }
    // Else the others of these cores. CPU 0 cannot be taken offline on most machines.
    let is_off = matches!(remedies.last(), Some(Remedy::Boot { .. }));
    let offline: Vec<u32> = foreign.iter().filter(|&cpu| cpu != 0).collect();
    if !is_off && !takes_rest && !offline.is_empty() {
        let path = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/online");
        let paths = offline.into_iter().map(path).collect();
        remedies.push(Remedy::set(&ONLINE, paths, "0"));
    }
    if remedies.is_empty() {
        remedies.push(Remedy::Manual { text: "turn SMT off in the firmware".into() });
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_guest, set_without_sys};
    use rtproof_host::Reading;

    /// The good machine with SMT on and these siblings.
    fn with(siblings: [&[u32]; 4]) -> Facts {
        let mut facts = good();
        for (cpu, siblings) in facts.cpus.cpus.iter_mut().zip(siblings) {
            cpu.siblings = Reading::known(cpu.siblings.path.clone(), cpus(siblings));
        }
        facts.cpus.smt_active = Reading::known(facts.cpus.smt_active.path.clone(), true);
        facts.cpus.smt_control = Reading::known(facts.cpus.smt_control.path.clone(), "on".into());
        facts
    }

    #[test]
    fn a_housekeeping_sibling_is_doubtful_here_and_bad_in_smt_sibling_isolation() {
        let finding = CHECK.judge(&with([&[0, 2], &[1, 3], &[0, 2], &[1, 3]]), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "real-time CPUs share cores with others: 2 with 0, 3 with 1");
        // SMT off would stop CPUs 2-3, and CPUs 0-1 are all that is left for the rest.
        let text = "choose real-time CPUs by whole cores: CPUs 0-1 share theirs with them".into();
        assert_eq!(finding.remedies, [Remedy::Manual { text }]);
    }

    #[test]
    fn no_remedy_takes_the_real_time_cpus_or_the_last_others_offline() {
        let offline = |cpu: u32| {
            Remedy::set(&ONLINE, vec![format!("/sys/devices/system/cpu/cpu{cpu}/online")], "0")
        };
        let boot = Remedy::Boot { parameter: "nosmt".into() };
        let on = |rt: &[u32], rest: &[u32]| {
            let intent = Intent { rt_cpus: cpus(rt), housekeeping: cpus(rest), ..intent() };
            CHECK.judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &intent).remedies
        };
        // The first thread of its core: SMT off leaves it, and CPUs 0-1 stay.
        let found = on(&[2], &[0, 1, 3]);
        assert!(found.contains(&boot) && !found.contains(&offline(3)), "{found:?}");
        let found = on(&[3], &[0, 1, 2]);
        assert!(!found.contains(&boot) && found.contains(&offline(2)), "{found:?}");
        let found = on(&[0, 1, 2], &[3]);
        assert!(found.contains(&boot) && !found.contains(&offline(3)), "{found:?}");
    }

    #[test]
    fn a_real_time_sibling_is_doubtful() {
        let finding = CHECK.judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "real-time CPUs share cores with each other: 2 with 3");
    }

    #[test]
    fn a_profile_may_take_two_threads_a_core() {
        let profile = crate::Profile::of(crate::profile::Kind::ContainerHost);
        let finding = CHECK
            .judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &Intent { profile, ..intent() });
        assert_eq!(finding.status, Good);
        assert!(finding.remedies.is_empty());
    }

    #[test]
    fn each_core_is_named_once() {
        let intent = Intent { rt_cpus: cpus(&[1, 2, 3]), ..intent() };
        let finding = CHECK.judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &intent);
        assert_eq!(finding.summary, "real-time CPUs share cores with others: 1 with 0");
        let four: &[u32] = &[0, 1, 2, 3];
        let finding = CHECK.judge(&with([four, four, four, four]), &intent);
        assert_eq!(finding.summary, "real-time CPUs share cores with others: 1-3 with 0");
    }

    #[test]
    fn siblings_that_are_numbered_apart_are_named_once() {
        let intent = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), ..intent() };
        let finding = CHECK.judge(&with([&[0, 2], &[1, 3], &[0, 2], &[1, 3]]), &intent);
        assert_eq!(
            finding.summary,
            "real-time CPUs share cores with each other: 0 with 2, 1 with 3"
        );
    }

    #[test]
    fn several_offline_cpus_are_offline() {
        let mut facts = good();
        facts.cpus.smt_active = Reading::absent("/sys/x/smt/active");
        let possible = facts.cpus.possible.path.clone();
        for (possible_cpus, says) in [
            (cpus(&[0, 1, 2, 3, 4]), "CPU 4 is offline"),
            (cpus(&[0, 1, 2, 3, 4, 5]), "CPUs 4-5 are offline"),
        ] {
            facts.cpus.possible = Reading::known(possible.clone(), possible_cpus);
            let finding = CHECK.judge(&facts, &intent());
            assert_eq!(finding.status, Good);
            assert!(finding.summary.ends_with(says), "{}", finding.summary);
        }
    }

    #[test]
    fn a_guest_tells_smt_off_and_offline_siblings_from_none() {
        let judge = |facts: &Facts| {
            let finding = CHECK.judge(facts, &intent());
            assert_eq!(finding.status, Unknown);
            finding.summary
        };
        let mut facts = good();
        set_guest(&mut facts, "QEMU");
        assert_eq!(
            judge(&facts),
            "SMT is off in this QEMU guest: what shares a core, the host knows"
        );
        facts.cpus.smt_control = Reading::known("/sys/x/smt/control", "on".into());
        let possible = facts.cpus.possible.path.clone();
        facts.cpus.possible = Reading::known(possible.clone(), cpus(&[0, 1, 2, 3, 4]));
        assert_eq!(
            judge(&facts),
            "no sibling is online in this QEMU guest while CPU 4 is offline: what shares a core, \
             the host knows"
        );
        facts.cpus.possible = Reading::known(possible, cpus(&[0, 1, 2, 3]));
        assert_eq!(
            judge(&facts),
            "this QEMU guest sees no siblings: what shares a core, the host knows"
        );
        set_without_sys(&mut facts);
        assert_eq!(judge(&facts), "/sys/devices/system/cpu: not there");
    }

    #[test]
    fn an_offline_real_time_cpu_is_said_to_be() {
        let mut facts = good();
        facts.cpus.online = Reading::known(facts.cpus.online.path.clone(), cpus(&[0, 1, 2]));
        facts.cpus.cpus.pop();
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Unknown, "CPU 3: offline"));
    }

    #[test]
    fn smt_elsewhere_does_no_harm() {
        let facts = with([&[0, 1], &[0, 1], &[2], &[3]]);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn no_switch_is_judged_by_the_siblings() {
        let mut facts = good();
        facts.cpus.smt_active = Reading::absent(facts.cpus.smt_active.path.clone());
        facts.cpus.smt_control = Reading::absent(facts.cpus.smt_control.path.clone());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.cpus.cpus[3].siblings = Reading::absent("/sys/devices/system/cpu/cpu3/topology");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_cpu_without_smt_and_a_guest_that_sees_none() {
        let mut facts = good();
        facts.cpus.smt_control = Reading::known("/sys/x/smt/control", "notsupported".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
