//! Do interrupt threads run where their interrupts go?
//!
//! The kernel gives a thread the CPUs of its interrupt. Where a chip's driver does not tell, or the
//! thread was moved by hand, the interrupt is kept away from a real-time CPU and its work is not.
//! A thread whose interrupt never fired follows at the first one: it is left out.

use rtproof_host::{CpuList, Facts, Reading, facts::irq::Irq, facts::tasks::RtTask};

use super::tasks::{IRQ_THREADS, evidence, named, on_rt_cpus};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::remedies::move_to;
use crate::text;
use crate::{Finding, Intent};

pub(super) static CHECK: Check = Check {
    id: "irq-thread-affinity",
    title: "interrupt threads on CPUs that their interrupts do not use",
    why: "an interrupt that was moved away from a real-time CPU still runs its handler there",
    source: "kernel/irq/manage.c (irq_thread_check_affinity); github.com/raspberrypi/linux issue \
             7301",
    wanted: Wanted::Text("each where its interrupt goes"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let cpus = text::cpus(&intent.rt_cpus);
    let threads = named(&tasks, IRQ_THREADS);
    if threads.is_empty() {
        return draft.good(format!("no interrupt thread may run on {cpus}"));
    }
    let irqs = &facts.irqs.irqs;
    let draft = draft.read(irqs, |irqs| text::count(irqs.len(), "interrupt"));
    let Some(irqs) = irqs.value() else {
        return draft.blind(irqs);
    };
    let of = |task: &RtTask| irqs.iter().find(|irq| Some(irq.number) == number(&task.comm));
    let pairs: Vec<(&RtTask, &Irq)> = threads
        .iter()
        .filter_map(|task| Some((*task, of(task)?)))
        .filter(|(_, irq)| irq.count > 0)
        .collect();
    let targets: Vec<(u32, &Reading<CpuList>)> =
        pairs.iter().map(|(_, irq)| (irq.number, target(irq))).collect();
    let draft = draft.saw(text::grouped(targets.iter().copied(), text::or_empty));
    let elsewhere =
        pairs.iter().filter(|(_, irq)| is_elsewhere(irq, intent)).map(|(task, _)| *task);
    let (stray, unseen): (Vec<&RtTask>, Vec<&RtTask>) =
        elsewhere.partition(|task| task.cpus.is_some());
    if let Some(first) = stray.first() {
        let names: Vec<&str> = stray.iter().map(|task| task.comm.as_str()).collect();
        let commands = stray.iter().filter_map(|task| {
            let to = target(of(task)?).value()?;
            Some(move_to(task, to))
        });
        let on = first.cpus.as_ref().map_or_else(|| "any CPU".into(), text::cpus);
        return draft.saw(evidence(&stray)).remedies(commands).doubtful(format!(
            "{} may run on {on}, where the interrupt does not go: {}",
            text::count(stray.len(), "interrupt thread"),
            text::first_few(&names, 4)
        ));
    }
    if let Some(task) = unseen.first() {
        return draft.unknown(format!(
            "/proc/{}/status: on which CPUs {} may run cannot be read",
            task.tid, task.comm
        ));
    }
    if let Some((_, blind)) = targets.iter().find(|(_, reading)| reading.value().is_none()) {
        return draft.blind(blind);
    }
    draft.good(match pairs.len() {
        0 => format!("the interrupt threads on {cpus} have had no work"),
        number => format!(
            "{} on {cpus}, each where its interrupt goes",
            text::count(number, "interrupt thread")
        ),
    })
}

/// `irq/24-eth0` and `irq/24-s-eth0` are of interrupt 24.
fn number(comm: &str) -> Option<u32> {
    let rest = comm.strip_prefix("irq/")?;
    rest.split('-').next()?.parse().ok()
}

/// Where it goes, else where it was asked to go: not every chip tells the former.
fn target(irq: &Irq) -> &Reading<CpuList> {
    match irq.effective.value().is_some_and(|cpus| !cpus.is_empty()) {
        true => &irq.effective,
        false if irq.effective.is_absent() || irq.effective.value().is_some() => &irq.requested,
        false => &irq.effective,
    }
}

fn is_elsewhere(irq: &Irq, intent: &Intent) -> bool {
    let target = target(irq).value();
    target.is_some_and(|cpus| cpus.intersection(&intent.rt_cpus).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, irq, task};

    fn with(irq: Irq, on: &[u32]) -> Facts {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.push(task(300, "irq/30-s-eth1", 50, on, true));
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        let mut irqs = facts.irqs.irqs.value().cloned().unwrap();
        irqs.push(irq);
        facts.irqs.irqs = Reading::known(facts.irqs.irqs.path.clone(), irqs);
        facts
    }

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    #[test]
    fn threads_follow_their_interrupts() {
        assert_eq!(judge(&good()).status, Good);
        assert_eq!(judge(&with(irq(30, "eth1", &[2], &[2]), &[2])).status, Good);
        assert_eq!(judge(&with(irq(30, "eth1", &[0], &[0]), &[0])).status, Good);
        let finding = judge(&with(irq(30, "eth1", &[0, 1], &[0]), &[0, 1, 2, 3]));
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.ends_with("does not go: irq/30-s-eth1"), "{}", finding.summary);
        assert_eq!(finding.remedies[0].to_string(), "taskset -cp 0 300");
        let idle = Irq { count: 0, ..irq(30, "eth1", &[0, 1], &[0]) };
        assert_eq!(judge(&with(idle, &[0, 1, 2, 3])).status, Good);
    }

    #[test]
    fn an_interrupt_that_cannot_be_read_is_unknown() {
        let mut other = irq(30, "eth1", &[0], &[0]);
        other.effective = Reading::absent(other.effective.path.clone());
        assert_eq!(judge(&with(other.clone(), &[2])).status, Doubtful, "the request tells");
        other.effective = Reading::denied(other.effective.path.clone(), "EACCES");
        assert_eq!(judge(&with(other, &[2])).status, Unknown);
        let mut facts = with(irq(30, "eth1", &[2], &[2]), &[2]);
        facts.irqs.irqs = Reading::denied("/proc/interrupts", "EACCES");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn numbers_of_threads() {
        assert_eq!(number("irq/24-nvme0q1"), Some(24));
        assert_eq!(number("irq/9-s-acpi"), Some(9));
        assert_eq!(number("ksoftirqd/0"), None);
    }
}
