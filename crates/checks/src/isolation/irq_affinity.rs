//! Do device interrupts go to the real-time CPUs?
//!
//! Judged by the effective affinity. What was asked for is not what is: a chip may move an
//! interrupt only when it next fires, managed interrupts of multi-queue devices cannot be moved at
//! all, and a mask of all CPUs still ends on one. Per-CPU interrupts (timers) have no effective
//! affinity and are not devices; they are left out. The default affinity counts too: the next
//! driver that asks for an interrupt gets it.

use rtproof_host::knobs::isolation::IRQ_CPUS;
use rtproof_host::{CpuList, Facts, facts::irq::Irq};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::is_all_rt;
use crate::text;
use crate::{Finding, Intent, Remedy};

/// Most interrupts whose counts are shown.
const COUNTS_SHOWN_MAX: usize = 5;

pub(super) static CHECK: Check = Check {
    id: "irq-affinity",
    title: "device interrupts on the real-time CPUs",
    why: "an interrupt stops the real-time task for its handler, and wakes threads on the same CPU",
    source: "Documentation/core-api/irq/irq-affinity.rst; \
             Documentation/admin-guide/cpu-isolation.rst; kernel/irq/proc.c \
             (effective_affinity_list)",
    wanted: Wanted::Text("off the real-time CPUs"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let listed = &facts.irqs.irqs;
    let draft = draft
        .read(listed, |irqs| format!("{} with a handler", text::count(irqs.len(), "interrupt")));
    let Some(irqs) = listed.value() else {
        return draft.blind(listed);
    };
    if irqs.is_empty() {
        return draft.unknown("no interrupt is listed: /proc/interrupts may be hidden");
    }
    if is_all_rt(facts, intent) {
        return draft.read(&facts.cpus.online, CpuList::to_string).not_applicable(format!(
            "every CPU is a real-time CPU: {} have nowhere else to go",
            text::count(irqs.len(), "interrupt")
        ));
    }
    let views = Views(irqs.iter().map(|irq| (irq, view(irq, &intent.rt_cpus))).collect());
    let on = views.of(&[View::On, View::NotMoved]);
    if !on.is_empty() {
        let not_moved = views.of(&[View::NotMoved]).len();
        let silent = views.of(&[View::Silent]).len();
        return judge_on(draft, facts, intent, &on, (not_moved, silent));
    }
    judge_off(draft, facts, intent, &views)
}

/// Every interrupt, and how it stands.
struct Views<'a>(Vec<(&'a Irq, View)>);

impl<'a> Views<'a> {
    fn of(&self, wanted: &[View]) -> Vec<&'a Irq> {
        self.0.iter().filter(|(_, view)| wanted.contains(view)).map(|(irq, _)| *irq).collect()
    }
}

/// How an interrupt stands to the real-time CPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Goes there and has fired.
    On,
    /// Goes there although it was asked to go elsewhere, and has fired.
    NotMoved,
    /// Goes there, but has never fired.
    Silent,
    /// May go there: no effective affinity on this kernel, and the one asked for allows it.
    Maybe,
    /// Does not go there.
    Off,
    Blind,
}

fn view(irq: &Irq, rt_cpus: &CpuList) -> View {
    let touches = |cpus: &CpuList| !cpus.intersection(rt_cpus).is_empty();
    let requested = irq.requested.value().map(touches);
    match (irq.effective.value().map(touches), requested) {
        (Some(true), _) if irq.count == 0 => View::Silent,
        (Some(true), Some(false)) => View::NotMoved,
        (Some(true), _) => View::On,
        (Some(false), _) | (None, Some(false)) => View::Off,
        (None, Some(true)) if irq.effective.is_absent() && irq.count == 0 => View::Off,
        (None, Some(true)) if irq.effective.is_absent() => View::Maybe,
        (None, _) => View::Blind,
    }
}

fn names(irqs: &[&Irq]) -> Vec<String> {
    let name = |irq: &&Irq| {
        let actions = if irq.actions.is_empty() { &irq.chip } else { &irq.actions };
        format!("{} ({actions})", irq.number)
    };
    irqs.iter().map(name).collect()
}

fn effective(irqs: &[&Irq]) -> Vec<crate::Evidence> {
    let known = irqs.iter().filter(|irq| irq.effective.value().is_some_and(|on| !on.is_empty()));
    text::grouped(known.map(|irq| (irq.number, &irq.effective)), CpuList::to_string)
}

/// What was asked for, where nothing tells what is in force.
fn requested(irqs: &[&Irq]) -> Vec<crate::Evidence> {
    let only = irqs.iter().filter(|irq| irq.effective.value().is_none());
    text::grouped(only.map(|irq| (irq.number, &irq.requested)), CpuList::to_string)
}

fn judge_on(
    draft: Draft,
    facts: &Facts,
    intent: &Intent,
    on: &[&Irq],
    (not_moved, silent): (usize, usize),
) -> Finding {
    let mut by_count = on.to_vec();
    by_count.sort_by_key(|irq| std::cmp::Reverse(irq.count));
    let names = names(&by_count);
    let hit = on.iter().filter_map(|irq| irq.effective.value());
    let cpus = hit.fold(CpuList::default(), |all, on| all.union(on)).intersection(&intent.rt_cpus);
    let mut summary = format!(
        "{} on {}: {}",
        text::count(on.len(), "interrupt"),
        text::cpus(&cpus),
        text::first_few(&names, 3)
    );
    if not_moved > 0 {
        summary.push_str(&format!("; {not_moved} of them asked elsewhere and not moved"));
    }
    let unhandled = unhandled(facts, intent);
    if silent > 0 {
        summary.push_str(&format!("; {silent} more that never fired"));
    }
    if unhandled > 0 {
        summary.push_str(&format!("; {unhandled} more without a handler"));
    }
    if silent + unhandled > 0 {
        summary.push_str(&format!(", {} in all", on.len() + silent + unhandled));
    }
    let path = &facts.irqs.irqs.path;
    let most = by_count.iter().zip(&names).take(COUNTS_SHOWN_MAX).map(|(irq, name)| {
        crate::Evidence { path: path.clone(), value: format!("{name}: {} since boot", irq.count) }
    });
    let most: Vec<crate::Evidence> = most.collect();
    draft.saw(most).saw(effective(on)).remedies(remedies(facts, intent, on)).bad(summary)
}

/// Lines without a handler that would go to the real-time CPUs.
fn unhandled(facts: &Facts, intent: &Intent) -> usize {
    let lines = facts.irqs.unhandled.value().into_iter().flatten();
    lines.filter(|(_, cpus)| !cpus.intersection(&intent.rt_cpus).is_empty()).count()
}

fn judge_off(draft: Draft, facts: &Facts, intent: &Intent, views: &Views<'_>) -> Finding {
    let blind = views.of(&[View::Blind]);
    if let Some(first) = blind.first() {
        let unread = blind.iter().map(|irq| (irq.number, &irq.effective));
        return draft.saw(text::grouped(unread, CpuList::to_string)).blind(&first.effective);
    }
    let default = &facts.irqs.default_affinity;
    let draft = draft
        .saw(effective(&views.of(&[View::Off, View::Silent])))
        .saw(requested(&views.of(&[View::Off, View::Maybe])))
        .read(default, CpuList::to_string);
    let Some(new) = default.value() else {
        return draft.blind(default);
    };
    for (view, what) in [
        (View::Maybe, "may go to the real-time CPUs, this kernel does not tell"),
        (View::Silent, "would go to the real-time CPUs but never fired"),
    ] {
        let irqs = views.of(&[view]);
        if !irqs.is_empty() {
            let number = text::count(irqs.len(), "interrupt");
            return draft
                .remedies(remedies(facts, intent, &irqs))
                .doubtful(format!("{number} {what}: {}", text::first_few(&names(&irqs), 3)));
        }
    }
    let overlap = new.intersection(&intent.rt_cpus);
    if !overlap.is_empty() {
        let overlap = text::cpus(&overlap);
        return draft
            .remedies(irqaffinity(facts, intent))
            .doubtful(format!("new interrupts may go to {overlap}: default affinity {new}"));
    }
    draft.good(format!("no device interrupt on {}", text::cpus(&intent.rt_cpus)))
}

fn remedies(facts: &Facts, intent: &Intent, irqs: &[&Irq]) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if !intent.housekeeping.is_empty() {
        let paths = irqs.iter().map(|irq| irq.requested.path.clone()).collect();
        remedies.push(Remedy::set(&IRQ_CPUS, paths, intent.housekeeping.to_string()));
    }
    remedies.extend(irqaffinity(facts, intent));
    // The list replaces the one of before: CPUs that are isolated now stay in it.
    let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
    remedies.push(Remedy::Manual {
        text: format!(
            "an interrupt that refuses (managed, of a multi-queue device): boot with \
             isolcpus=managed_irq,domain,{}, or give the device fewer queues",
            intent.rt_cpus.union(&isolated)
        ),
    });
    remedies
}

/// The boot parameter for the default affinity, unless it is there.
fn irqaffinity(facts: &Facts, intent: &Intent) -> Option<Remedy> {
    let parameter = intent.housekeeping.to_string();
    let line = facts.kernel.cmdline.value();
    let is_there = line.and_then(|l| l.last("irqaffinity")) == Some(Some(parameter.as_str()));
    (!parameter.is_empty() && !is_there)
        .then(|| Remedy::Boot { parameter: format!("irqaffinity={parameter}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, irq};
    use rtproof_host::Reading;

    fn with(irqs: Vec<Irq>) -> Facts {
        let mut facts = good();
        let mut all = facts.irqs.irqs.value().cloned().unwrap();
        all.extend(irqs);
        facts.irqs.irqs = Reading::known("/proc/interrupts", all);
        facts
    }

    fn judge(irqs: Vec<Irq>) -> Finding {
        CHECK.judge(&with(irqs), &intent())
    }

    #[test]
    fn the_effective_affinity_decides() {
        assert_eq!(judge(vec![irq(30, "eth1", &[0, 1, 2, 3], &[0])]).status, Good);
        let finding = judge(vec![irq(30, "eth1", &[0, 1, 2, 3], &[2])]);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "1 interrupt on CPU 2: 30 (eth1)");
        let paths = vec!["/proc/irq/30/smp_affinity_list".to_owned()];
        assert_eq!(finding.remedies[0], Remedy::set(&IRQ_CPUS, paths, "0-1"));
    }

    #[test]
    fn asked_elsewhere_and_not_moved_is_said() {
        let finding = judge(vec![irq(30, "eth1", &[0, 1], &[3])]);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("1 of them asked elsewhere and not moved"));
    }

    #[test]
    fn an_interrupt_that_never_fired_and_the_default_are_doubtful() {
        let silent = Irq { count: 0, ..irq(31, "nvme0q3", &[2], &[2]) };
        assert_eq!(judge(vec![silent]).status, Doubtful);
        let mut facts = good();
        facts.irqs.default_affinity =
            Reading::known("/proc/irq/default_smp_affinity", cpus(&[0, 3]));
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.summary, "new interrupts may go to CPU 3: default affinity 0,3");
    }

    #[test]
    fn per_cpu_timers_are_no_devices() {
        assert_eq!(judge(vec![irq(11, "arch_timer", &[0, 1, 2, 3], &[])]).status, Good);
    }

    #[test]
    fn a_kernel_without_effective_affinity_is_judged_by_what_was_asked() {
        let path = "/proc/irq/30/effective_affinity_list";
        let old =
            |requested| Irq { effective: Reading::absent(path), ..irq(30, "eth1", requested, &[]) };
        assert_eq!(judge(vec![old(&[0, 1])]).status, Good);
        assert_eq!(judge(vec![old(&[1, 2])]).status, Doubtful);
        assert_eq!(judge(vec![Irq { count: 0, ..old(&[1, 2]) }]).status, Good);
        let denied = Irq { effective: Reading::denied(path, "EACCES"), ..old(&[1, 2]) };
        assert_eq!(judge(vec![denied]).status, Unknown);
    }

    #[test]
    fn with_every_cpu_real_time_there_is_nowhere_to_go() {
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        let finding = CHECK.judge(&good(), &all);
        assert_eq!(finding.status, Status::NotApplicable);
        assert!(finding.summary.contains("nowhere else to go"));
    }

    #[test]
    fn five_hundred_interrupts_stay_readable() {
        let irqs = (100..600).map(|n| irq(n, &format!("mlx5_{n}"), &[0, 1, 2, 3], &[2])).collect();
        let finding = judge(irqs);
        assert!(finding.summary.len() < 120, "{}", finding.summary);
        assert!(finding.evidence.len() < 10);
        assert!(finding.evidence.iter().all(|e| e.path.len() < 120 && e.value.len() < 120));
    }

    #[test]
    fn a_hidden_list_is_unknown() {
        let mut facts = good();
        facts.irqs.irqs = Reading::known("/proc/interrupts", Vec::new());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
