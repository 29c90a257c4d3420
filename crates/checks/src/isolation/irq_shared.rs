//! Do several drivers share an interrupt of a real-time CPU?

use rtproof_host::{CpuList, Facts, facts::irq::Irq};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Intent, Remedy, When};

pub(super) static IRQ_SHARED: Check = Check {
    id: "irq-shared",
    title: "interrupts of the real-time CPUs that several drivers share",
    why: "each interrupt runs the handlers of all the drivers on its line, one after the other",
    source: "kernel/irq/handle.c (__handle_irq_event_percpu); Documentation/PCI/msi-howto.rst; \
             rtcqs",
    when: When::Firmware,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("one driver for each"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let listed = &facts.irqs.irqs;
    let draft = draft
        .read(listed, |irqs| format!("{} with a handler", text::count(irqs.len(), "interrupt")));
    let Some(irqs) = listed.value() else {
        return draft.blind(listed);
    };
    if irqs.is_empty() {
        return draft.unknown("no interrupt is listed: /proc/interrupts may be hidden");
    }
    // Handlers of one interrupt are joined by ", " (kernel/irq/proc.c, show_interrupts).
    let shared: Vec<&Irq> = irqs.iter().filter(|irq| irq.actions.contains(", ")).collect();
    let touches = |irq: &&&Irq| match irq.effective.value().or_else(|| irq.requested.value()) {
        Some(cpus) => !cpus.intersection(&intent.rt_cpus).is_empty(),
        None => true,
    };
    let on: Vec<&Irq> = shared.iter().filter(touches).copied().collect();
    if on.is_empty() {
        let draft = draft.saw(text::grouped(
            shared.iter().map(|irq| (irq.number, &irq.effective)),
            CpuList::to_string,
        ));
        return draft.good(match shared.len() {
            0 => "no interrupt is shared".into(),
            many => format!("{} shared, none on a real-time CPU", text::count(many, "interrupt")),
        });
    }
    let names: Vec<String> =
        on.iter().map(|irq| format!("{} ({})", irq.number, irq.actions)).collect();
    let text = "give the device an interrupt of its own: MSI in its driver, or another slot".into();
    draft
        .saw(text::grouped(on.iter().map(|irq| (irq.number, &irq.effective)), CpuList::to_string))
        .remedies([Remedy::Manual { text }])
        .doubtful(format!("shared on real-time CPUs: {}", text::first_few(&names, 3)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, irq};
    use rtproof_host::Reading;

    fn with(irqs: Vec<Irq>) -> Status {
        let mut facts = good();
        facts.irqs.irqs = Reading::known("/proc/interrupts", irqs);
        IRQ_SHARED.judge(&facts, &intent()).status
    }

    #[test]
    fn shared_here_or_elsewhere() {
        assert_eq!(with(vec![irq(16, "snd, ehci_hcd:usb1", &[2], &[2])]), Doubtful);
        assert_eq!(with(vec![irq(16, "snd, ehci_hcd:usb1", &[0], &[0])]), Good);
        assert_eq!(with(vec![irq(16, "snd", &[2], &[2])]), Good);
        assert_eq!(with(vec![]), Unknown);
    }
}
