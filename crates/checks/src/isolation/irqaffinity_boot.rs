//! Where does an interrupt go that nobody has placed?

use rtproof_host::knobs::isolation::IRQ_DEFAULT;
use rtproof_host::{CpuList, Facts};

use crate::boot_params::Given;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::{Evidence, Finding, Intent, Remedy};
use crate::{text, value::mask};

pub(super) static IRQAFFINITY_BOOT: Check = Check {
    id: "irqaffinity-boot",
    title: "CPUs for interrupts that nobody has placed (irqaffinity)",
    why: "a driver that asks for an interrupt later, a card that is plugged in or an interface \
          that comes up, gets it on these CPUs",
    source: "Documentation/core-api/irq/irq-affinity.rst; kernel/irq/irqdesc.c \
             (irq_affinity_setup); seapath/ansible issue 865",
    trade_off: Some("an interrupt that a chip moves only when it fires may stay for hours"),
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", text::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let default = &facts.irqs.default_affinity;
    let draft = draft.read(default, CpuList::to_string);
    let Some(cpus) = default.value() else {
        return draft.blind(default);
    };
    let on = cpus.intersection(&intent.rt_cpus);
    if on.is_empty() {
        return draft.good(format!("new interrupts go to {}", text::cpus(cpus)));
    }
    let draft = draft.remedies([
        Remedy::set(&IRQ_DEFAULT, vec![default.path.clone()], mask(&intent.housekeeping)),
        Remedy::Boot { parameter: format!("irqaffinity={}", intent.housekeeping) },
    ]);
    let line = facts.kernel.cmdline.value();
    let given = line.map(|line| Given::of(facts, line, "irqaffinity"));
    let Some(asked) = given.as_ref().and_then(Given::once) else {
        return draft.doubtful(format!("new interrupts may go to {}", text::cpus(&on)));
    };
    let draft = draft.saw([Evidence::of(&facts.kernel.cmdline, |_| asked.written.clone())]);
    match asked.cpus() {
        Some(asked_cpus) if asked_cpus.intersection(&intent.rt_cpus).is_empty() => draft.bad(
            format!("{}, but the default affinity is {cpus}: it was changed since", asked.written),
        ),
        Some(_) => draft.bad(format!("{} covers the real-time {}", asked.written, text::cpus(&on))),
        None => draft.bad(format!(
            "{} is refused by this kernel: new interrupts may go to {}",
            asked.written,
            text::cpus(&on)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str, default: &[u32]) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.irqs.default_affinity =
            Reading::known("/proc/irq/default_smp_affinity", cpus(default));
        IRQAFFINITY_BOOT.judge(&facts, &intent())
    }

    #[test]
    fn the_default_and_the_parameter() {
        assert_eq!(with("quiet", &[0, 1]).status, Good);
        let finding = with("quiet", &[0, 1, 2, 3]);
        assert_eq!(finding.status, Doubtful);
        let paths = vec!["/proc/irq/default_smp_affinity".to_owned()];
        assert_eq!(finding.remedies[0], Remedy::set(&IRQ_DEFAULT, paths, "3"));
        let finding = with("irqaffinity=0-3", &[0, 1, 2, 3]);
        assert_eq!((finding.status, finding.summary.contains("covers the")), (Bad, true));
        assert!(with("irqaffinity=0-1", &[0, 2]).summary.contains("it was changed since"));
        assert!(with("irqaffinity=1-0", &[0, 2]).summary.contains("is refused"));
    }

    #[test]
    fn unreadable() {
        let mut facts = good();
        facts.irqs.default_affinity = Reading::absent("/proc/irq/default_smp_affinity");
        assert_eq!(IRQAFFINITY_BOOT.judge(&facts, &intent()).status, Unknown);
    }
}
