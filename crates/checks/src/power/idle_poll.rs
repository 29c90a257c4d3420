//! Do idle CPUs spin instead of sleeping?
//!
//! `idle=poll` wakes up fastest and never rests. Where two threads share a core the one that spins
//! takes the other's time (the kernel warns of it at boot); in a guest it never gives its CPU back,
//! which is right only where the host gave it one of its own.

use rtproof_host::{Facts, knob::Arch};

use super::idle::is_polling;
use super::smt::threads;
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{guest, rt_cpus};
use crate::profile::Choice;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};
use rtproof_host::CpuList;

pub(super) static CHECK: Check = Check {
    id: "idle-poll",
    title: "idle CPUs that spin (idle=poll)",
    why: "a CPU that spins wakes up at once. But it takes execution time from the thread that \
          shares its core, heat and power from all, and in a guest the host's CPU",
    source: "arch/x86/kernel/process.c (select_idle_routine); \
             Documentation/admin-guide/pm/cpuidle.rst; \
             Documentation/admin-guide/kernel-parameters.txt (idle=)",
    trade_off: Some(
        "the kernel's documentation does not recommend it. No CPU ever rests, so turbo frequencies \
         that need idle cores are never reached. A limit on the exit latency does as well on most \
         machines",
    ),
    impact: Impact::Tens,
    when: When::Boot,
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let wish = intent.profile.choices.idle_poll;
    let wanted = match wish {
        Choice::On => "idle=poll, without SMT",
        Choice::Off => "not set",
        Choice::Either => "not set, or without SMT",
    };
    let draft = draft.wants(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !Arch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let cmdline = &facts.kernel.cmdline;
    let draft = draft.read(cmdline, |line| match line.last("idle") {
        Some(Some(value)) => format!("idle={value}"),
        _ => "no idle=".into(),
    });
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let (cpus, missing) = rt_cpus(facts, intent);
    if line.last("idle") != Some(Some("poll")) {
        if !missing.is_empty() {
            return draft.gone(facts, &missing);
        }
        return match wish {
            Choice::On => draft
                .remedies([Remedy::Boot { parameter: "idle=poll".into() }])
                .doubtful("not set: idle CPUs sleep"),
            _ => draft.good("not set"),
        };
    }
    let draft = draft.read(arch, String::clone);
    if !is_polling(facts) {
        return draft.blind(arch);
    }
    let drop = Remedy::Unboot { parameter: "idle".into() };
    let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
    let draft = draft.saw(text::grouped(siblings, CpuList::to_string)).remedies([drop]);
    if cpus.iter().any(|cpu| threads(cpu).is_some()) {
        return draft.bad("set while real-time CPUs share cores: idle siblings spin beside them");
    }
    if let Some(hypervisor) = guest(facts) {
        return draft.read(&facts.virt.hypervisor, |_| hypervisor.into()).doubtful(format!(
            "set in this {hypervisor} guest, which never gives its CPUs back to the host"
        ));
    }
    if wish == Choice::Off {
        return draft.doubtful("set: no CPU ever rests");
    }
    if let Some(blind) = cpus.iter().find(|cpu| cpu.siblings.value().is_none()) {
        return draft.blind(&blind.siblings);
    }
    if facts.virt.hypervisor.value().is_none() {
        return draft.blind(&facts.virt.hypervisor);
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    draft
        .read(&facts.virt.hypervisor, |_| "none".into())
        .good("set, and the real-time CPUs share no core")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline, set_guest};
    use rtproof_host::Reading;

    fn polling() -> Facts {
        let mut facts = good();
        set_cmdline(&mut facts, "idle=poll");
        facts
    }

    fn with(wish: Choice) -> Intent {
        let mut intent = intent();
        intent.profile.choices.idle_poll = wish;
        intent
    }

    #[test]
    fn never_beside_a_sibling() {
        assert_eq!(CHECK.judge(&good(), &intent()).status, Good);
        assert_eq!(CHECK.judge(&polling(), &intent()).status, Good);
        let mut facts = polling();
        facts.cpus.cpus[2].siblings = Reading::known("/sys/cpu2/siblings", cpus(&[2, 3]));
        assert_eq!(CHECK.judge(&facts, &with(Choice::On)).status, Bad);
        facts.cpus.cpus[2].siblings = Reading::absent("/sys/cpu2/siblings");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn the_profile_and_the_host_have_a_word() {
        assert_eq!(CHECK.judge(&polling(), &with(Choice::Off)).status, Doubtful);
        assert_eq!(CHECK.judge(&good(), &with(Choice::On)).status, Doubtful);
        let mut facts = polling();
        set_guest(&mut facts, "kvm");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn another_architecture_has_no_such_parameter() {
        let mut facts = polling();
        facts.kernel.arch = Reading::absent("/proc/sys/kernel/arch");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
