//! Do handlers of interrupts run in threads, which can be preempted and given priorities?

use rtproof_host::{Facts, facts::kernel::Preemption};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "threadirqs",
    title: "interrupt handlers in threads",
    why: "a handler in hard interrupt context cannot be preempted: the real-time task waits for \
          every device that interrupts its CPU",
    source: "Documentation/admin-guide/kernel-parameters.txt (threadirqs); kernel/irq/manage.c \
             (force_irqthreads)",
    trade_off: Some(
        "each interrupt costs a switch to its thread; not worth it where no device interrupts the \
         real-time CPUs",
    ),
    when: When::Boot,
    wanted: Wanted::Text("PREEMPT_RT, or threadirqs"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let (model, cmdline) = (&facts.kernel.preemption, &facts.kernel.cmdline);
    let draft = draft.read(model, |model| {
        if *model == Preemption::Rt { "PREEMPT_RT" } else { "not PREEMPT_RT" }.into()
    });
    if model.value() == Some(&Preemption::Rt) {
        return draft.good("PREEMPT_RT runs every handler that can be in a thread");
    }
    let asked = cmdline.value().map(|line| line.last("threadirqs").is_some());
    let draft = draft.read(cmdline, |_| match asked {
        Some(true) => "threadirqs".into(),
        _ => "no threadirqs".into(),
    });
    let built = machine::built_with(facts, "IRQ_FORCED_THREADING");
    match (asked, built) {
        (None, _) => draft.blind(cmdline),
        (Some(true), Some(true)) => {
            draft.saw([machine::option(facts, "IRQ_FORCED_THREADING")]).good("threadirqs")
        }
        (Some(true), None) => draft
            .read(&facts.kernel.config, |_| "known".into())
            .unknown("threadirqs; whether the kernel has CONFIG_IRQ_FORCED_THREADING is not known"),
        (Some(true), Some(false)) => draft
            .saw([machine::option(facts, "IRQ_FORCED_THREADING")])
            .doubtful("threadirqs is given, and the kernel does not know it"),
        // Without the model it may be PREEMPT_RT.
        (Some(false), _) if model.value().is_none() => draft.blind(model),
        (Some(false), _) => draft
            .remedies([Remedy::Boot { parameter: "threadirqs".into() }])
            .doubtful("handlers run in hard interrupt context"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, good_stock, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    #[test]
    fn rt_does_it_by_itself_and_others_are_asked_to() {
        assert_eq!(CHECK.judge(&good(), &intent()).status, Good);
        let mut facts = good_stock();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_cmdline(&mut facts, "quiet threadirqs");
        set_config(&mut facts, "IRQ_FORCED_THREADING", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "IRQ_FORCED_THREADING", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn half_known_is_unknown() {
        let mut facts = good_stock();
        set_cmdline(&mut facts, "threadirqs");
        facts.kernel.config = Reading::denied("/boot/config", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "quiet");
        facts.kernel.preemption = Reading::absent("/sys/kernel/realtime");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
