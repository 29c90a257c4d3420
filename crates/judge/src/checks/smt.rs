//! Does anything share a core with a real-time CPU?
//!
//! Judged by the siblings of the real-time CPUs, not by the machine's switch alone: SMT may be on
//! where it does no harm. A guest cannot see which of its CPUs share a core, so that it sees none
//! proves nothing.

use rtproof_host::{CpuList, Facts, facts::cpu::Cpu};

use super::draft::Draft;
use super::machine::{guest, rt_cpus};
use super::{Check, text};
use crate::{Finding, Intent, Remedy};

pub(super) struct Smt;

impl Check for Smt {
    fn id(&self) -> &'static str {
        "smt"
    }

    fn title(&self) -> &'static str {
        "hardware threads that share a core with the real-time CPUs"
    }

    fn why(&self) -> &'static str {
        "threads of one core share its pipeline, first-level caches and fill buffers: what the \
         sibling runs slows the real-time thread, and no priority helps"
    }

    fn source(&self) -> &'static str {
        "Documentation/admin-guide/cpu-isolation.rst; Wu, \"Real-time programming with Linux, \
         part 2\"; Flatscher, \"Real-time Optimizations\""
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let draft = Draft::of(self, "no sibling online").cpus(&intent.rt_cpus);
        if intent.rt_cpus.is_empty() {
            return draft.no_rt_cpus();
        }
        let (cpus, missing) = rt_cpus(facts, intent);
        let shared: Vec<(u32, CpuList)> = cpus.iter().filter_map(|cpu| shared(cpu)).collect();
        if !shared.is_empty() {
            let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
            let draft = draft.saw(text::grouped(siblings, CpuList::to_string));
            return judge_shared(draft, facts, intent, &shared);
        }
        if let Some(hypervisor) = guest(facts) {
            return draft
                .read(&facts.virt.hypervisor, |_| hypervisor.into())
                .unknown(format!("this {hypervisor} guest sees no siblings: the host knows"));
        }
        if !missing.is_empty() {
            return draft.unknown(format!("{}: not online", text::cpus(&missing)));
        }
        let cpus_are_alone = cpus.iter().all(|cpu| cpu.siblings.value().is_some());
        match (facts.cpus.smt_control.value().map(String::as_str), facts.cpus.smt_active.value()) {
            (Some("notsupported"), Some(false) | None) => draft
                .read(&facts.cpus.smt_control, String::clone)
                .not_applicable("this CPU has no SMT"),
            (control, Some(false)) => {
                let control = control.map(|control| format!(" (control: {control})"));
                draft
                    .read(&facts.cpus.smt_active, |_| "0".into())
                    .good(format!("SMT is not active{}", control.unwrap_or_default()))
            }
            _ if cpus_are_alone => {
                let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
                draft
                    .saw(text::grouped(siblings, CpuList::to_string))
                    .good(format!("each of {} has its core alone", text::cpus(&intent.rt_cpus)))
            }
            _ => draft.blind(&facts.cpus.smt_active),
        }
    }
}

/// A CPU and those that share its core.
fn shared(cpu: &Cpu) -> Option<(u32, CpuList)> {
    let others = cpu.siblings.value()?.difference(&CpuList::new([cpu.id]));
    (!others.is_empty()).then_some((cpu.id, others))
}

fn judge_shared(
    draft: Draft,
    facts: &Facts,
    intent: &Intent,
    shared: &[(u32, CpuList)],
) -> Finding {
    let siblings = CpuList::new(shared.iter().flat_map(|(_, others)| others.iter()));
    let foreign = siblings.difference(&intent.rt_cpus);
    let draft = draft.remedies(remedies(facts, &foreign));
    let pairs = |is_wanted: &dyn Fn(&CpuList) -> bool| -> Vec<String> {
        let pairs = shared.iter().filter(|(_, others)| is_wanted(others));
        pairs.map(|(cpu, others)| format!("{cpu} with {others}")).collect()
    };
    if foreign.is_empty() {
        let all = pairs(&|_| true);
        return draft.doubtful(format!(
            "real-time CPUs share cores with each other: {}",
            text::first_few(&all, 4)
        ));
    }
    let bad = pairs(&|others| !others.difference(&intent.rt_cpus).is_empty());
    draft.bad(format!("real-time CPUs share cores with others: {}", text::first_few(&bad, 4)))
}

fn remedies(facts: &Facts, foreign: &CpuList) -> Vec<Remedy> {
    let control = &facts.cpus.smt_control;
    let mut remedies = Vec::new();
    if control.value().is_some_and(|control| control == "on") {
        remedies.push(Remedy::Write { paths: vec![control.path.clone()], value: "off".into() });
        remedies.push(Remedy::Boot { parameter: "nosmt".into() });
    }
    // CPU 0 cannot be taken offline on most machines.
    let offline: Vec<u32> = foreign.iter().filter(|&cpu| cpu != 0).collect();
    if !offline.is_empty() {
        let path = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/online");
        let paths = offline.into_iter().map(path).collect();
        remedies.push(Remedy::Write { paths, value: "0".into() });
    }
    if remedies.is_empty() {
        remedies.push(Remedy::Manual { text: "turn SMT off in the firmware".into() });
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::checks::testing::{cpus, good, intent, set_guest};
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
    fn a_housekeeping_sibling_is_bad() {
        let finding = Smt.judge(&with([&[0, 2], &[1, 3], &[0, 2], &[1, 3]]), &intent());
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "real-time CPUs share cores with others: 2 with 0, 3 with 1");
        assert_eq!(finding.remedies[1], Remedy::Boot { parameter: "nosmt".into() });
        let path = "/sys/devices/system/cpu/cpu1/online".to_owned();
        assert_eq!(finding.remedies[2], Remedy::Write { paths: vec![path], value: "0".into() });
    }

    #[test]
    fn a_real_time_sibling_is_doubtful() {
        let finding = Smt.judge(&with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), &intent());
        assert_eq!(finding.status, Doubtful);
    }

    #[test]
    fn smt_elsewhere_does_no_harm() {
        let facts = with([&[0, 1], &[0, 1], &[2], &[3]]);
        assert_eq!(Smt.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn no_switch_is_judged_by_the_siblings() {
        let mut facts = good();
        facts.cpus.smt_active = Reading::absent(facts.cpus.smt_active.path.clone());
        facts.cpus.smt_control = Reading::absent(facts.cpus.smt_control.path.clone());
        assert_eq!(Smt.judge(&facts, &intent()).status, Good);
        facts.cpus.cpus[3].siblings = Reading::absent("/sys/devices/system/cpu/cpu3/topology");
        assert_eq!(Smt.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_cpu_without_smt_and_a_guest_that_sees_none() {
        let mut facts = good();
        facts.cpus.smt_control = Reading::known("/sys/x/smt/control", "notsupported".into());
        assert_eq!(Smt.judge(&facts, &intent()).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        assert_eq!(Smt.judge(&facts, &intent()).status, Unknown);
    }
}
