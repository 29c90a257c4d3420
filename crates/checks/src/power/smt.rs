//! Threads of one core: SMT, siblings of the real-time CPUs, core scheduling.
//!
//! Does anything share a core with a real-time CPU?
//!
//! Judged by the siblings of the real-time CPUs, not by the machine's switch alone: SMT may be on
//! where it does no harm. Whether the siblings are real-time CPUs too, or run ordinary work, is the
//! question of `smt-sibling-isolation`; the profile says whether two threads a core are wanted.
//! A guest cannot see which of its CPUs share a core, so that it sees none proves nothing.

use rtproof_host::{
    CpuList, Facts,
    arch::Family,
    facts::cpu::Cpu,
    knobs::power::{ONLINE, SMT},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, guest, option, rt_cpus, unknown_guest, without_cpu_folder};
use crate::profile::Choice;
use crate::{Finding, Impact, Intent, Remedy, When, machine};

pub(super) static SMT_CHECK: Check = Check {
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
    judge: Judge::Ask(judge_smt),
    ..Check::NEW
};

fn judge_smt(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = match intent.profile.choices.smt {
        Choice::Off => "no sibling online",
        Choice::On | Choice::Either => "known",
    };
    let draft = draft.wanted(wanted).cpus(&intent.rt_cpus);
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
    let is_requested = intent.profile.choices.smt == Choice::Off;
    if !shared.is_empty() && (is_requested || missing.is_empty()) {
        // All of which others may be chosen.
        let is_shown = |cpu: &&Cpu| intent.proposed.is_some() || intent.rt_cpus.contains(cpu.id);
        let shown = facts.cpus.cpus.iter().filter(is_shown).map(|cpu| (cpu.id, &cpu.siblings));
        let draft = draft.evidence(machine::grouped(shown, CpuList::to_string));
        return judge_shared(draft, facts, intent, &shared);
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    if let Some(hypervisor) = guest(facts) {
        return judge_guest(draft, facts, hypervisor);
    }
    if let Some(unseen) = unknown_guest(facts) {
        return draft.unreadable(unseen);
    }
    let draft = draft.read(&facts.virt.hypervisor, |_| "none".into());
    let cpus_are_alone = cpus.iter().all(|cpu| cpu.siblings.value().is_some());
    let is_off = facts.cpus.smt_active.value() == Some(&false);
    let elsewhere = facts.cpus.cpus.iter().find(|cpu| is_off && threads(cpu).is_some());
    if let Some(cpu) = elsewhere {
        return draft
            .read(&facts.cpus.smt_active, |_| "0".into())
            .read(&cpu.siblings, CpuList::to_string)
            .doubtful(format!(
                "SMT is said not to be active, and CPU {} to share its core: one of them is wrong",
                cpu.id
            ));
    }
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
            let offline = facts.cpus.offline().filter(|offline| !offline.is_empty());
            let offline = offline.map(|cpus| format!(" while {}", are_offline(&cpus)));
            draft.evidence(machine::grouped(siblings, CpuList::to_string)).good(format!(
                "{each}{} has its core alone{}",
                machine::cpus(&intent.rt_cpus),
                offline.unwrap_or_default()
            ))
        }
        _ => draft.unreadable(&facts.cpus.smt_active),
    }
}

/// The threads of a CPU's core, where it has more than one.
pub(crate) fn threads(cpu: &Cpu) -> Option<CpuList> {
    let threads = cpu.siblings.value()?.union(&CpuList::new([cpu.id]));
    (threads.len() > 1).then_some(threads)
}

/// `CPU 4 is offline`, `CPUs 4-5 are offline`.
fn are_offline(cpus: &CpuList) -> String {
    format!("{} {} offline", machine::cpus(cpus), if cpus.len() == 1 { "is" } else { "are" })
}

/// A guest that sees no sibling: the kernel lists those that are online, and the host may run
/// CPUs that look alone on one core.
fn judge_guest(draft: FindingBuilder, facts: &Facts, hypervisor: &str) -> Finding {
    let control = &facts.cpus.smt_control;
    let has_smt = control.value().is_some_and(|control| control != "notsupported");
    let is_off = facts.cpus.smt_active.value() == Some(&false)
        && control.value().is_some_and(|control| control == "off" || control == "forceoff");
    let draft =
        draft.read(&facts.virt.hypervisor, |_| hypervisor.into()).read(control, String::clone);
    let offline = facts.cpus.offline().filter(|offline| has_smt && !offline.is_empty());
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
fn judge_shared(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
    shared: &[CpuList],
) -> Finding {
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
    let cores = machine::first_few(&cores, 4);
    let with = if foreign.is_empty() { "each other" } else { "others" };
    let summary = format!("real-time CPUs share cores with {with}: {cores}");
    if intent.profile.choices.smt == Choice::Off {
        draft.doubtful(summary)
    } else {
        draft.good(summary)
    }
}

/// Turning SMT off, or the CPUs that share a core: but neither where that takes real-time CPUs
/// offline, which are named, or all that are left for the rest.
pub(super) fn remedies(facts: &Facts, intent: &Intent, foreign: &CpuList) -> Vec<Remedy> {
    let control = &facts.cpus.smt_control;
    // With SMT off the first thread of each core stays.
    let is_first = |cpu: &&Cpu| threads(cpu).is_none_or(|core| core.iter().next() == Some(cpu.id));
    let stay = facts.cpus.cpus.iter().filter(is_first).map(|cpu| cpu.id);
    let gone = rt_cpus(facts, intent).0.into_iter().filter(|cpu| !is_first(cpu)).map(|cpu| cpu.id);
    let gone = CpuList::new(gone);
    let takes_rt = !gone.is_empty();
    let takes_rest = intent.housekeeping.difference(foreign).is_empty();
    let mut remedies = Vec::new();
    if !foreign.is_empty() && (takes_rt || takes_rest) {
        let text = format!(
            "choose real-time CPUs by whole cores: {} share theirs with them",
            machine::cpus(foreign)
        );
        remedies.push(Remedy::Manual { text });
    }
    let kept = intent.rt_cpus.intersection(&CpuList::new(stay));
    if takes_rt && !kept.is_empty() {
        let text = format!(
            "run the application on one thread of each core ({kept}) and keep the others idle; \
             turning SMT off ({}) would take the real-time {} offline: choose {kept} first",
            way_off(facts),
            machine::cpus(&gone)
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
        remedies.push(elsewhere(facts));
    }
    remedies
}

/// How SMT is turned off here.
fn way_off(facts: &Facts) -> &'static str {
    let control = facts.cpus.smt_control.value().map(String::as_str);
    match (control, facts.kernel.family()) {
        (Some("on"), _) => "smt/control, nosmt",
        (_, Some(Family::S390)) => "nosmt",
        (_, Some(Family::Power)) => "ppc64_cpu --smt=off",
        (_, Some(Family::X86)) => "in the firmware",
        _ => "cpuN/online of the others",
    }
}

/// Where no file of the kernel turns SMT off.
fn elsewhere(facts: &Facts) -> Remedy {
    let text = match facts.kernel.family() {
        Some(Family::S390) => return Remedy::Boot { parameter: "nosmt".into() },
        Some(Family::Power) => "ppc64_cpu --smt=off",
        Some(Family::X86) => "turn SMT off in the firmware",
        Some(_) => "take all threads but the first of each core offline (cpuN/online)",
        None => {
            "turn SMT off: in the firmware on x86, by ppc64_cpu --smt=off on POWER, with nosmt on \
             s390"
        }
    };
    Remedy::Manual { text: text.into() }
}

// Could the scheduler keep others off the core while a real-time task runs?
//
// With a cookie (`prctl(PR_SCHED_CORE)`) only tasks of the same cookie run on one core at a time.
// That is a way to keep SMT, no substitute for a core of one's own: forcing the sibling idle
// takes an interrupt. Which tasks have a cookie only those can ask that may trace them, so this
// says whether the kernel could.

pub(super) static CORE_SCHED: Check = Check {
    id: "core-sched",
    title: "core scheduling, where threads share a core",
    why: "without it the scheduler puts any task on the other thread of a real-time task's core",
    source: "Documentation/admin-guide/hw-vuln/core-scheduling.rst; kernel/Kconfig.preempt \
             (SCHED_CORE); Wu, \"Real-time programming with Linux, part 2\", note 5",
    impact: Impact::Information,
    when: When::Kernel,
    wanted: Wanted::Text("CONFIG_SCHED_CORE, where real-time CPUs share a core"),
    judge: Judge::Ask(judge_core_sched),
    ..Check::NEW
};

fn judge_core_sched(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let active = &facts.cpus.smt_active;
    let draft = draft.read(active, |&active| u8::from(active).to_string());
    match active.value() {
        Some(false) => return draft.good("SMT is not active here: not needed"),
        None => return draft.unreadable(active),
        Some(true) => {}
    }
    let draft = draft.evidence([option(facts, "SCHED_CORE")]);
    let (cpus, missing) = rt_cpus(facts, intent);
    let shares = cpus.iter().any(|cpu| threads(cpu).is_some());
    let is_alone = !cpus.is_empty()
        && missing.is_empty()
        && cpus.iter().all(|cpu| cpu.siblings.value().is_some());
    match built_with(facts, "SCHED_CORE") {
        None => draft.unreadable(&facts.kernel.config),
        Some(true) => draft.good(
            "in the kernel: tasks with a cookie share a core with no other; \
             rtproof run --core-sched starts a program with one",
        ),
        Some(false) if shares => draft.doubtful(
            "real-time CPUs share cores, and this kernel is built without CONFIG_SCHED_CORE",
        ),
        Some(false) if is_alone => {
            let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
            draft
                .evidence(machine::grouped(siblings, CpuList::to_string))
                .good("not in the kernel, and not needed: the real-time CPUs share no core")
        }
        Some(false) => draft.unknown(
            "built without CONFIG_SCHED_CORE; whether real-time CPUs share cores is not known",
        ),
    }
}

// Is a core split between a real-time CPU and one that runs ordinary work?
//
// `smt` asks whether anything shares a core with the real-time CPUs; this, whether what shares it
// is kept as free as they are: a real-time CPU too, or isolated. tuned's `calc_isolated_cores`
// reserves one logical CPU of each socket for housekeeping and so splits a core.

pub(super) static SMT_SIBLING_ISOLATION: Check = Check {
    id: "smt-sibling-isolation",
    title: "cores split between real-time and ordinary work",
    why: "ordinary work, and its interrupts, on the other thread of the core take the pipeline and \
          the caches from the real-time thread at any time, and no priority helps",
    source: "Documentation/admin-guide/cpu-isolation.rst; rteval, CoreSiblings; tuned, \
             calc_isolated_cores; Flatscher, \"Real-time Optimizations\"",
    impact: Impact::Tens,
    wanted: Wanted::Text("each core in one role"),
    judge: Judge::Ask(judge_smt_sibling_isolation),
    ..Check::NEW
};

fn judge_smt_sibling_isolation(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
    let draft = draft.evidence(machine::grouped(siblings, CpuList::to_string));
    let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
    let kept = intent.rt_cpus.union(&isolated);
    let mut split: Vec<(CpuList, CpuList)> = Vec::new();
    for cpu in &cpus {
        let Some(core) = threads(cpu) else { continue };
        let (own, others) = (core.intersection(&intent.rt_cpus), core.difference(&kept));
        if !others.is_empty() && !split.iter().any(|(known, _)| *known == own) {
            split.push((own, others));
        }
    }
    if !split.is_empty() {
        let others = split.iter().fold(CpuList::default(), |all, (_, cpus)| all.union(cpus));
        let cores: Vec<String> =
            split.iter().map(|(own, others)| format!("{own} with {others}")).collect();
        let cores = machine::first_few(&cores, 4);
        let draft = draft.remedies(remedies(facts, intent, &others));
        let split = format!("cores split between real-time and other CPUs: {cores}");
        let isolated = &facts.cpus.isolated;
        return match isolated.why_unknown() {
            None => draft.bad(split),
            // The other threads may be isolated, and idle.
            Some(why) => draft
                .read(isolated, CpuList::to_string)
                .doubtful(format!("{split}; what is isolated is unknown: {why}")),
        };
    }
    if let Some(unreadable) = cpus.iter().find(|cpu| cpu.siblings.value().is_none()) {
        return draft.unreadable(&unreadable.siblings);
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    if let Some(hypervisor) = guest(facts) {
        return draft.read(&facts.virt.hypervisor, |_| hypervisor.into()).unknown(format!(
            "this {hypervisor} guest sees no split core: what shares one, the host knows"
        ));
    }
    if let Some(unseen) = unknown_guest(facts) {
        return draft.unreadable(unseen);
    }
    let draft = draft.read(&facts.virt.hypervisor, |_| "none".into());
    let core = |cpu: &&_| threads(cpu).map(|core| core.difference(&intent.rt_cpus));
    let idle = cpus.iter().filter_map(core).fold(CpuList::default(), |all, c| all.union(&c));
    if !idle.is_empty() {
        return draft.read(&facts.cpus.isolated, CpuList::to_string).good(format!(
            "the siblings of the real-time CPUs are isolated as well: {}",
            machine::cpus(&idle)
        ));
    }
    let is_shared = cpus.iter().any(|cpu| threads(cpu).is_some());
    draft.good(match is_shared {
        true => "the real-time CPUs share cores with each other alone",
        false => "the real-time CPUs share no core",
    })
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
        let finding = SMT_CHECK.judge(&with([&[0, 2], &[1, 3], &[0, 2], &[1, 3]]), &intent());
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
            SMT_CHECK.judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &intent).remedies
        };
        // The first thread of its core: SMT off leaves it, and CPUs 0-1 stay.
        let found = on(&[2], &[0, 1, 3]);
        assert!(found.contains(&boot) && !found.contains(&offline(3)), "{found:?}");
        let found = on(&[3], &[0, 1, 2]);
        assert!(!found.contains(&boot) && found.contains(&offline(2)), "{found:?}");
        // Two threads of one core: SMT off would stop CPU 1.
        let found = on(&[0, 1, 2], &[3]);
        assert!(!found.contains(&boot) && !found.contains(&offline(3)), "{found:?}");
    }

    #[test]
    fn a_real_time_sibling_is_doubtful() {
        let finding = SMT_CHECK.judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "real-time CPUs share cores with each other: 2 with 3");
        let text = "run the application on one thread of each core (2) and keep the others idle; \
                    turning SMT off (smt/control, nosmt) would take the real-time CPU 3 \
                    offline: choose 2 first";
        assert_eq!(finding.remedies, [Remedy::Manual { text: text.into() }]);
    }

    #[test]
    fn a_profile_may_take_two_threads_a_core() {
        let profile = crate::Profile::of(crate::profile::WorkloadKind::ContainerHost);
        let finding = SMT_CHECK
            .judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &Intent { profile, ..intent() });
        assert_eq!(finding.status, Good);
        assert!(finding.remedies.is_empty());
    }

    #[test]
    fn each_core_is_named_once() {
        let intent = Intent { rt_cpus: cpus(&[1, 2, 3]), ..intent() };
        let finding = SMT_CHECK.judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &intent);
        assert_eq!(finding.summary, "real-time CPUs share cores with others: 1 with 0");
        let four: &[u32] = &[0, 1, 2, 3];
        let finding = SMT_CHECK.judge(&with([four, four, four, four]), &intent);
        assert_eq!(finding.summary, "real-time CPUs share cores with others: 1-3 with 0");
    }

    #[test]
    fn siblings_that_are_numbered_apart_are_named_once() {
        let intent = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), ..intent() };
        let finding = SMT_CHECK.judge(&with([&[0, 2], &[1, 3], &[0, 2], &[1, 3]]), &intent);
        assert_eq!(
            finding.summary,
            "real-time CPUs share cores with each other: 0 with 2, 1 with 3"
        );
    }

    #[test]
    fn several_offline_cpus_are_offline() {
        let mut facts = good();
        facts.cpus.smt_active = Reading::absent("/sys/x/smt/active");
        let present = facts.cpus.present.path.clone();
        for (present_cpus, says) in [
            (cpus(&[0, 1, 2, 3, 4]), "CPU 4 is offline"),
            (cpus(&[0, 1, 2, 3, 4, 5]), "CPUs 4-5 are offline"),
        ] {
            facts.cpus.present = Reading::known(present.clone(), present_cpus);
            let finding = SMT_CHECK.judge(&facts, &intent());
            assert_eq!(finding.status, Good);
            assert!(finding.summary.ends_with(says), "{}", finding.summary);
        }
    }

    #[test]
    fn a_guest_distinguishes_smt_off_and_offline_siblings() {
        let judge = |facts: &Facts| {
            let finding = SMT_CHECK.judge(facts, &intent());
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
        let present = facts.cpus.present.path.clone();
        facts.cpus.present = Reading::known(present.clone(), cpus(&[0, 1, 2, 3, 4]));
        assert_eq!(
            judge(&facts),
            "no sibling is online in this QEMU guest while CPU 4 is offline: what shares a core, \
             the host knows"
        );
        facts.cpus.present = Reading::known(present, cpus(&[0, 1, 2, 3]));
        assert_eq!(
            judge(&facts),
            "this QEMU guest sees no siblings: what shares a core, the host knows"
        );
        set_without_sys(&mut facts);
        assert_eq!(judge(&facts), "/sys/devices/system/cpu: not there");
    }

    #[test]
    fn an_offline_real_time_cpu_is_named() {
        let mut facts = good();
        facts.cpus.online = Reading::known(facts.cpus.online.path.clone(), cpus(&[0, 1, 2]));
        facts.cpus.cpus.pop();
        let finding = SMT_CHECK.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Unknown, "CPU 3: offline"));
    }

    #[test]
    fn where_the_kernel_has_no_switch_the_architecture_says_who_has() {
        let remedy = |arch: &str| {
            let mut facts = good();
            facts.kernel.arch = Reading::known("/proc/cpuinfo", arch.to_owned());
            elsewhere(&facts)
        };
        let text = |arch: &str| match remedy(arch) {
            Remedy::Manual { text } => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(remedy("s390x"), Remedy::Boot { parameter: "nosmt".into() });
        assert_eq!(text("ppc64le"), "ppc64_cpu --smt=off");
        assert_eq!(text("x86_64"), "turn SMT off in the firmware");
        assert_ne!(text("aarch64"), text("x86_64"));
    }

    #[test]
    fn witnesses_that_contradict_each_other_are_both_shown() {
        let mut facts = with([&[0, 1], &[0, 1], &[2], &[3]]);
        facts.cpus.smt_active = Reading::known("/sys/devices/system/cpu/smt/active", false);
        let finding = SMT_CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.evidence.iter().any(|it| it.path == facts.cpus.smt_active.path));
        assert!(finding.evidence.iter().any(|it| it.path == facts.cpus.cpus[0].siblings.path));
    }

    #[test]
    fn smt_elsewhere_does_no_harm() {
        let facts = with([&[0, 1], &[0, 1], &[2], &[3]]);
        assert_eq!(SMT_CHECK.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn no_switch_is_judged_by_the_siblings() {
        let mut facts = good();
        facts.cpus.smt_active = Reading::absent(facts.cpus.smt_active.path.clone());
        facts.cpus.smt_control = Reading::absent(facts.cpus.smt_control.path.clone());
        assert_eq!(SMT_CHECK.judge(&facts, &intent()).status, Good);
        facts.cpus.cpus[3].siblings = Reading::absent("/sys/devices/system/cpu/cpu3/topology");
        assert_eq!(SMT_CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_cpu_without_smt_and_a_guest_that_sees_none() {
        let mut facts = good();
        facts.cpus.smt_control = Reading::known("/sys/x/smt/control", "notsupported".into());
        assert_eq!(SMT_CHECK.judge(&facts, &intent()).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        assert_eq!(SMT_CHECK.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod core_sched_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::Reading;

    #[test]
    fn only_where_cores_are_shared() {
        let mut facts = good();
        assert_eq!(CORE_SCHED.judge(&facts, &intent()).status, Good);
        facts.cpus.smt_active = Reading::known(facts.cpus.smt_active.path.clone(), true);
        assert_eq!(CORE_SCHED.judge(&facts, &intent()).status, Good);
        facts.cpus.cpus[2].siblings = Reading::absent("/sys/devices/system/cpu/cpu2/topology");
        assert_eq!(CORE_SCHED.judge(&facts, &intent()).status, Unknown);
        for cpu in &mut facts.cpus.cpus {
            let core = if cpu.id < 2 { cpus(&[0, 1]) } else { cpus(&[2, 3]) };
            cpu.siblings = Reading::known(cpu.siblings.path.clone(), core);
        }
        assert_eq!(CORE_SCHED.judge(&facts, &intent()).status, Doubtful);
        set_config(&mut facts, "SCHED_CORE", Some("y"));
        assert_eq!(CORE_SCHED.judge(&facts, &intent()).status, Good);
        facts.kernel.config = Reading::absent("/boot/config");
        assert_eq!(CORE_SCHED.judge(&facts, &intent()).status, Unknown);
        facts.cpus.smt_active = Reading::absent("/sys/devices/system/cpu/smt/active");
        assert_eq!(CORE_SCHED.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod smt_sibling_isolation_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_guest};
    use rtproof_host::Reading;

    fn with(siblings: [&[u32]; 4]) -> Facts {
        let mut facts = good();
        for (cpu, siblings) in facts.cpus.cpus.iter_mut().zip(siblings) {
            cpu.siblings = Reading::known(cpu.siblings.path.clone(), cpus(siblings));
        }
        facts
    }

    #[test]
    fn a_core_in_two_roles_is_bad() {
        let facts = with([&[0, 2], &[1, 3], &[0, 2], &[1, 3]]);
        let finding = SMT_SIBLING_ISOLATION.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("2 with 0, 3 with 1"), "{}", finding.summary);
        assert!(!finding.remedies.is_empty());
    }

    #[test]
    fn a_core_in_one_role_is_good() {
        let facts = with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]);
        assert_eq!(SMT_SIBLING_ISOLATION.judge(&facts, &intent()).status, Good);
        // CPU 3 is isolated and idle: as free as CPU 2.
        let alone = Intent { rt_cpus: cpus(&[2]), ..intent() };
        let finding = SMT_SIBLING_ISOLATION.judge(&facts, &alone);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("as well: CPU 3"), "{}", finding.summary);
        let mut facts = facts;
        facts.cpus.isolated = Reading::known(facts.cpus.isolated.path.clone(), cpus(&[2]));
        assert_eq!(SMT_SIBLING_ISOLATION.judge(&facts, &alone).status, Bad);
        facts.cpus.isolated = Reading::denied(facts.cpus.isolated.path.clone(), "EACCES");
        assert_eq!(SMT_SIBLING_ISOLATION.judge(&facts, &alone).status, Doubtful);
    }

    #[test]
    fn a_guest_and_unread_siblings_are_unknown() {
        let mut facts = good();
        set_guest(&mut facts, "kvm");
        assert_eq!(SMT_SIBLING_ISOLATION.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.cpus.cpus[3].siblings = Reading::absent("/sys/devices/system/cpu/cpu3/topology");
        assert_eq!(SMT_SIBLING_ISOLATION.judge(&facts, &intent()).status, Unknown);
    }
}
