//! Could the scheduler keep others off the core while a real-time task runs?
//!
//! With a cookie (`prctl(PR_SCHED_CORE)`) only tasks of the same cookie run on one core at a time.
//! That is a way to keep SMT, no substitute for a core of one's own: forcing the sibling idle
//! takes an interrupt. Which tasks have a cookie only those can ask that may trace them, so this
//! says whether the kernel could.

use rtproof_host::{CpuList, Facts};

use super::smt::threads;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option, rt_cpus};
use crate::text;
use crate::{Finding, Impact, Intent, When};

pub(super) static CHECK: Check = Check {
    id: "core-sched",
    title: "core scheduling, where threads share a core",
    why: "without it the scheduler puts any task on the other thread of a real-time task's core",
    source: "Documentation/admin-guide/hw-vuln/core-scheduling.rst; kernel/Kconfig.preempt \
             (SCHED_CORE); Wu, \"Real-time programming with Linux, part 2\", note 5",
    impact: Impact::Information,
    when: When::Kernel,
    wanted: Wanted::Text("CONFIG_SCHED_CORE, where real-time CPUs share a core"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let active = &facts.cpus.smt_active;
    let draft = draft.read(active, |&active| u8::from(active).to_string());
    match active.value() {
        Some(false) => return draft.good("SMT is not active here: not needed"),
        None => return draft.blind(active),
        Some(true) => {}
    }
    let draft = draft.saw([option(facts, "SCHED_CORE")]);
    let (cpus, missing) = rt_cpus(facts, intent);
    let shares = cpus.iter().any(|cpu| threads(cpu).is_some());
    let is_alone = !cpus.is_empty()
        && missing.is_empty()
        && cpus.iter().all(|cpu| cpu.siblings.value().is_some());
    match built_with(facts, "SCHED_CORE") {
        None => draft.blind(&facts.kernel.config),
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
                .saw(text::grouped(siblings, CpuList::to_string))
                .good("not in the kernel, and not needed: the real-time CPUs share no core")
        }
        Some(false) => draft.unknown(
            "built without CONFIG_SCHED_CORE; whether real-time CPUs share cores is not known",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::Reading;

    #[test]
    fn only_where_cores_are_shared() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.cpus.smt_active = Reading::known(facts.cpus.smt_active.path.clone(), true);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.cpus.cpus[2].siblings = Reading::absent("/sys/devices/system/cpu/cpu2/topology");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        for cpu in &mut facts.cpus.cpus {
            let core = if cpu.id < 2 { cpus(&[0, 1]) } else { cpus(&[2, 3]) };
            cpu.siblings = Reading::known(cpu.siblings.path.clone(), core);
        }
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_config(&mut facts, "SCHED_CORE", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.kernel.config = Reading::absent("/boot/config");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.cpus.smt_active = Reading::absent("/sys/devices/system/cpu/smt/active");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
