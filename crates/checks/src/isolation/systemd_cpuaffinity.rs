//! Which CPUs does every service inherit?
//!
//! Process 1 passes its affinity on. systemd takes it from the boot parameter, else from
//! `CPUAffinity=` of its configuration; what it is, its own status tells.

use rtproof_host::{CpuList, Facts};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Intent, Remedy, When};

pub(super) static SYSTEMD_CPUAFFINITY: Check = Check {
    id: "systemd-cpuaffinity",
    title: "CPUs that every service inherits from process 1",
    why: "a service may run on every CPU that process 1 may, and wakes up on a real-time one",
    source: "systemd-system.conf(5), CPUAffinity=; kernel-command-line(7), systemd.cpu_affinity=; \
             tuned, profile cpu-partitioning; kernel/sched/core.c (sched_init_smp)",
    trade_off: Some(
        "the application inherits it, too: it has to ask for its CPUs, by CPUAffinity= of its unit \
         or taskset",
    ),
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", text::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = match common::outside_containers(draft, facts) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    let found = &facts.isolation;
    let init = &found.init_cpus;
    let draft = draft.read(init, CpuList::to_string);
    let asked = asked(facts);
    let Some(cpus) = init.value() else {
        let on = asked.as_ref().map(|(_, _, cpus)| cpus.intersection(&intent.rt_cpus));
        return match (asked, on) {
            (Some((evidence, written, _)), Some(on)) if !on.is_empty() => draft
                .saw([evidence])
                .remedies(remedies(facts, intent, true))
                .bad(format!("{written} lets every service use the real-time {}", text::cpus(&on))),
            _ => draft.blind(init),
        };
    };
    let on = cpus.intersection(&intent.rt_cpus);
    if on.is_empty() {
        return draft.good(format!("process 1 and what it starts: {}", text::cpus(cpus)));
    }
    let is_systemd = found.init.value().is_some_and(|name| name == "systemd");
    let draft = draft.remedies(remedies(facts, intent, is_systemd));
    if let Some((evidence, written, wanted)) = asked {
        let draft = draft.saw([evidence]);
        if wanted.intersection(&intent.rt_cpus).is_empty() {
            return draft.bad(format!(
                "{written}, but process 1 may use {}: the setting is not in force",
                text::cpus(cpus)
            ));
        }
        return draft.bad(format!(
            "{written} lets every service use the real-time {}",
            text::cpus(&wanted.intersection(&intent.rt_cpus))
        ));
    }
    draft.doubtful(format!("every service may use the real-time {}", text::cpus(&on)))
}

/// What is configured: where, as written, and the CPUs. The boot parameter overrides the files.
fn asked(facts: &Facts) -> Option<(Evidence, String, CpuList)> {
    let cmdline = &facts.kernel.cmdline;
    let on_line = cmdline.value().and_then(|line| line.last("systemd.cpu_affinity").flatten());
    if let Some(value) = on_line {
        let cpus = CpuList::parse(value, None).ok()?;
        let written = format!("systemd.cpu_affinity={value}");
        return Some((Evidence::of(cmdline, |_| written.clone()), written, cpus));
    }
    let set = facts.isolation.manager_affinity.value()?.as_ref()?;
    let evidence = Evidence { path: set.file.clone(), value: format!("CPUAffinity={}", set.text) };
    let cpus = set.cpus.clone()?;
    Some((evidence, format!("CPUAffinity={cpus} ({})", set.file), cpus))
}

fn remedies(facts: &Facts, intent: &Intent, is_systemd: bool) -> Vec<Remedy> {
    let hk = &intent.housekeeping;
    if !is_systemd {
        let text = format!("let process 1 run on {} only", text::cpus(hk));
        return vec![Remedy::Manual { text }];
    }
    let boot = Remedy::Boot { parameter: format!("systemd.cpu_affinity={hk}") };
    let cmdline = facts.kernel.cmdline.value();
    // The parameter overrides the files: where it is given, only it can be changed.
    if cmdline.is_some_and(|line| line.last("systemd.cpu_affinity").is_some()) {
        return vec![boot];
    }
    let file = Remedy::File {
        path: "/etc/systemd/system.conf.d/90-rtproof-affinity.conf".into(),
        line: format!("[Manager] CPUAffinity={hk}"),
    };
    vec![file, boot]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::{Reading, facts::isolation::ManagerAffinity};

    fn with(init: &[u32], line: &str, file: Option<&[u32]>) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.isolation.init_cpus = Reading::known("/proc/1/status", cpus(init));
        let set = file.map(|set| ManagerAffinity {
            file: "/etc/systemd/system.conf".into(),
            cpus: Some(cpus(set)),
            text: cpus(set).to_string(),
        });
        facts.isolation.manager_affinity = Reading::known("/etc/systemd/system.conf", set);
        SYSTEMD_CPUAFFINITY.judge(&facts, &intent())
    }

    #[test]
    fn what_process_1_may_use_decides() {
        assert_eq!(with(&[0, 1], "", None).status, Good);
        assert_eq!(with(&[0, 1, 2, 3], "", None).status, Doubtful);
    }

    #[test]
    fn a_setting_that_is_not_in_force_names_both_sides() {
        let finding = with(&[0, 1, 2, 3], "systemd.cpu_affinity=0,1", None);
        assert_eq!(finding.status, Bad);
        assert!(
            finding.summary.starts_with("systemd.cpu_affinity=0,1, but process 1 may use CPUs")
        );
        let finding = with(&[0, 1, 2, 3], "", Some(&[0, 1]));
        assert!(finding.summary.contains("CPUAffinity=0-1 (/etc/systemd/system.conf), but"));
        assert_eq!(with(&[0, 1, 2, 3], "", Some(&[0, 1, 2])).status, Bad);
    }

    #[test]
    fn a_hidden_process_is_unknown() {
        let mut facts = good();
        facts.isolation.init_cpus = Reading::denied("/proc/1/status", "hidden");
        assert_eq!(SYSTEMD_CPUAFFINITY.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "systemd.cpu_affinity=0-2");
        assert_eq!(SYSTEMD_CPUAFFINITY.judge(&facts, &intent()).status, Bad);
    }

    #[test]
    fn a_file_cannot_mend_what_the_command_line_overrides() {
        let boot = Remedy::Boot { parameter: "systemd.cpu_affinity=0-1".into() };
        let mut facts = good();
        facts.isolation.init_cpus = Reading::denied("/proc/1/status", "hidden");
        set_cmdline(&mut facts, "systemd.cpu_affinity=0-2");
        assert_eq!(SYSTEMD_CPUAFFINITY.judge(&facts, &intent()).remedies, [boot]);
    }
}
