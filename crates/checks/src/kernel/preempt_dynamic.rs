//! Which preemption does a kernel without PREEMPT_RT use now?
//!
//! Most stock kernels are PREEMPT_DYNAMIC: the build does not say what is in force, the boot line
//! or debugfs does.

use rtproof_host::{Facts, facts::kernel::Preemption};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When};

/// Budget from which any mode may do, as in the check `preempt-rt`.
const ANY_NS: u64 = 10_000_000;

pub(super) static CHECK: Check = Check {
    id: "preempt-dynamic",
    title: "preemption in force where the kernel is not PREEMPT_RT",
    why: "with voluntary preemption or none, a system call of another task runs on until it asks \
          to be preempted or returns",
    source: "Documentation/admin-guide/kernel-parameters.txt (preempt=); kernel/Kconfig.preempt; \
             kernel/sched/core.c (sched_dynamic_mode)",
    impact: Impact::Milliseconds,
    when: When::Boot,
    wanted: Wanted::Text("full or lazy preemption"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let model = &facts.kernel.preemption;
    let draft = draft.read(model, |found| name(*found).into());
    let Some(found) = model.value() else {
        return draft.blind(model);
    };
    let remedies = match machine::built_with(facts, "PREEMPT_DYNAMIC") {
        Some(false) => Remedy::Manual {
            text: "use a kernel built with CONFIG_PREEMPT_RT, CONFIG_PREEMPT or \
                   CONFIG_PREEMPT_DYNAMIC"
                .into(),
        },
        _ => Remedy::Boot { parameter: "preempt=full".into() },
    };
    let draft = draft.remedies([remedies]);
    match found {
        Preemption::Rt => draft.not_applicable("PREEMPT_RT has one mode only"),
        Preemption::Full | Preemption::Lazy => draft.good(name(*found)),
        Preemption::DynamicUnknown => draft
            .unknown("PREEMPT_DYNAMIC: root can read the mode in /sys/kernel/debug/sched/preempt"),
        _ if intent.budget_ns.is_some_and(|budget_ns| budget_ns >= ANY_NS) => {
            draft.doubtful(name(*found))
        }
        Preemption::Voluntary | Preemption::None => draft.bad(name(*found)),
    }
}

const fn name(model: Preemption) -> &'static str {
    match model {
        Preemption::Rt => "PREEMPT_RT",
        Preemption::Full => "full preemption",
        Preemption::Lazy => "lazy preemption",
        Preemption::Voluntary => "voluntary preemption",
        Preemption::None => "no preemption",
        Preemption::DynamicUnknown => "PREEMPT_DYNAMIC, mode unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent, set_config};
    use rtproof_host::Reading;

    fn with(model: Preemption) -> Finding {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/sys/kernel/debug/sched/preempt", model);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn the_mode_in_force_decides() {
        assert_eq!(with(Preemption::Full).status, Good);
        assert_eq!(with(Preemption::Lazy).status, Good);
        assert_eq!(with(Preemption::None).status, Bad);
        let finding = with(Preemption::Voluntary);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.remedies, [Remedy::Boot { parameter: "preempt=full".into() }]);
        assert_eq!(with(Preemption::DynamicUnknown).status, Unknown);
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/proc/config.gz", Preemption::None);
        let intent = Intent { budget_ns: Some(20_000_000), ..intent() };
        assert_eq!(CHECK.judge(&facts, &intent).status, Doubtful);
        assert_eq!(CHECK.judge(&good(), &intent).status, NotApplicable);
    }

    #[test]
    fn what_is_not_dynamic_needs_another_kernel() {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/boot/config", Preemption::None);
        set_config(&mut facts, "PREEMPT_DYNAMIC", None);
        let finding = CHECK.judge(&facts, &intent());
        assert!(matches!(finding.remedies[..], [Remedy::Manual { .. }]));
        facts.kernel.preemption = Reading::denied("/boot/config", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
