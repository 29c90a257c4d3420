//! Which threads of the kernel run in front of the application, or level with it: those of
//! interrupts, of softirqs and timers, and of RCU, each with its own reason and its own way to
//! change it. Only the user knows whether the application needs them soon or can let them wait.

use rtproof_host::{Facts, Reading, facts::tasks::RtTask, knobs};

use super::tasks::{
    IRQ_THREADS, RCU_THREADS, SOFTIRQ_THREADS, evidence, kinds, named, on_rt_cpus, outranks, own,
};
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::remedies::make_fifo;
use crate::setting;
use crate::text;
use crate::{Finding, Intent, Remedy, When};

/// Priority that OpenShift's profile gives the kernel's softirq and RCU threads.
const HELPER_PRIORITY: u32 = 11;

pub(super) static IRQ_THREAD_PRIO: Check = Check {
    id: "irq-thread-prio",
    title: "interrupt threads at or above the application's priority",
    why: "the application waits for the handler of every device whose interrupt thread ranks as \
          high",
    source: "kernel/irq/manage.c (sched_set_fifo), kernel/sched/syscalls.c (FIFO 50 by default); \
             sched(7); rtirq (raises the threads of sound cards)",
    trade_off: Some(
        "a device that the application waits for needs its thread above the application, all \
         others below",
    ),
    knobs: &[&knobs::sched::IRQ_THREADS],
    judge: Judge::Ask(judge_irq_thread_prio),
    ..Check::NEW
};

fn judge_irq_thread_prio(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wants(format!("none above {}", own(intent))).cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let threads = named(&tasks, IRQ_THREADS);
    let ahead: Vec<&RtTask> =
        threads.iter().filter(|task| outranks(task, intent)).copied().collect();
    let cpus = text::cpus(&intent.rt_cpus);
    if ahead.is_empty() {
        let all = facts.rt_tasks.value().into_iter().flatten().collect::<Vec<_>>();
        return draft.good(match (threads.is_empty(), named(&all, IRQ_THREADS).is_empty()) {
            (false, _) => format!("below {} on {cpus}: {}", own(intent), kinds(&threads)),
            (true, false) => format!("no interrupt thread may run on {cpus}"),
            (true, true) => "no interrupt has a thread: handlers run at once, where they are \
                             sent"
                .into(),
        });
    }
    let names: Vec<&str> = ahead.iter().map(|task| task.comm.as_str()).collect();
    draft
        .saw(evidence(&ahead))
        .remedies([Remedy::Manual {
            text: "unless the application waits for the device: move its interrupt to another \
                   CPU, or lower the thread with chrt --fifo --pid PRIORITY TID"
                .into(),
        }])
        .doubtful(format!(
            "{} may run on {cpus} at or above {}: {}",
            text::count(ahead.len(), "interrupt thread"),
            own(intent),
            text::first_few(&names, 4)
        ))
}

pub(super) static SOFTIRQ_PRIO: Check = Check {
    id: "ksoftirqd-ktimers-prio",
    title: "softirq and timer threads at or above the application's priority",
    why: "softirq work has no end that is known: network packets and timers of others run while \
          the application waits",
    source: "kernel/softirq.c (ksoftirqd is SCHED_OTHER; ktimers, 6.13 and PREEMPT_RT patches, \
             SCHED_FIFO 1); tuned, profile realtime; OpenShift, profile openshift-node-performance",
    trade_off: Some(
        "tuned and OpenShift raise them to SCHED_FIFO 2 and 11, so that an application that rarely \
         sleeps does not starve timers and the network: above ordinary tasks, below the \
         application",
    ),
    knobs: &[&knobs::sched::SOFTIRQ_THREADS],
    judge: Judge::Ask(judge_softirq_prio),
    ..Check::NEW
};

fn judge_softirq_prio(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wants(format!("below {}", own(intent))).cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let threads = named(&tasks, SOFTIRQ_THREADS);
    let ahead: Vec<&RtTask> =
        threads.iter().filter(|task| outranks(task, intent)).copied().collect();
    let cpus = text::cpus(&intent.rt_cpus);
    if !ahead.is_empty() {
        let wanted = HELPER_PRIORITY.min(intent.priority.saturating_sub(1)).max(1);
        let lower = |task: &&RtTask| make_fifo(task, wanted);
        let remedies: Vec<Remedy> = match intent.priority > 1 {
            true => ahead.iter().map(lower).collect(),
            false => vec![Remedy::Manual {
                text: "give the application a priority above these threads".into(),
            }],
        };
        return draft.saw(evidence(&ahead)).remedies(remedies).doubtful(format!(
            "at or above {} on {cpus}: {}",
            own(intent),
            kinds(&ahead)
        ));
    }
    draft.good(match threads.is_empty() {
        true => format!("not real-time on {cpus}"),
        false => format!("below {} on {cpus}: {}", own(intent), kinds(&threads)),
    })
}

pub(super) static RCU_KTHREAD_PRIO: Check = Check {
    id: "rcu-kthread-prio",
    title: "RCU threads at or above the application's priority",
    why: "RCU callbacks run in batches: at or above the application they run in front of it, and \
          at no priority at all memory waits until it sleeps",
    source: "Documentation/admin-guide/kernel-parameters.txt (rcutree.kthread_prio); \
             kernel/rcu/tree.c; OpenShift, profile openshift-node-performance (11)",
    when: When::Boot,
    knobs: &[&knobs::sched::RCU_KTHREAD_PRIO],
    judge: Judge::Ask(judge_rcu_kthread_prio),
    ..Check::NEW
};

fn judge_rcu_kthread_prio(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wants(format!("below {}", own(intent))).cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let reading = setting::text(facts, &knobs::sched::RCU_KTHREAD_PRIO);
    let draft = draft.read(&reading, String::clone);
    let threads = named(&tasks, RCU_THREADS);
    let ahead: Vec<&RtTask> =
        threads.iter().filter(|task| outranks(task, intent)).copied().collect();
    let cpus = text::cpus(&intent.rt_cpus);
    if !ahead.is_empty() {
        let wanted = HELPER_PRIORITY.min(intent.priority.saturating_sub(1)).max(1);
        let parameter = format!("rcutree.kthread_prio={wanted}");
        let lower = (intent.priority > 1).then_some(Remedy::Boot { parameter });
        let raise =
            Remedy::Manual { text: "give the application a priority above these threads".into() };
        return draft.saw(evidence(&ahead)).remedies(lower.or(Some(raise))).doubtful(format!(
            "at or above {} on {cpus}: {}",
            own(intent),
            kinds(&ahead)
        ));
    }
    let Some(found) = reading.value() else {
        return draft.blind(&reading);
    };
    if found.parse::<u32>().is_err() {
        return draft.blind(&Reading::<u32>::malformed(&reading.path, found, "a priority"));
    }
    draft.good(match threads.is_empty() {
        true => format!("rcutree.kthread_prio is {found}; none is real-time on {cpus}"),
        false => format!(
            "rcutree.kthread_prio is {found}; below {} on {cpus}: {}",
            own(intent),
            kinds(&threads)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_setting, task};

    fn with(more: Vec<RtTask>) -> Facts {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.extend(more);
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        facts
    }

    fn status(check: &Check, more: Vec<RtTask>) -> Status {
        check.judge(&with(more), &intent()).status
    }

    #[test]
    fn interrupt_threads_by_rank_and_place() {
        assert_eq!(status(&IRQ_THREAD_PRIO, vec![]), Good);
        let thread = |priority, on: &[u32]| vec![task(300, "irq/30-eth1", priority, on, true)];
        assert_eq!(status(&IRQ_THREAD_PRIO, thread(50, &[2])), Good);
        assert_eq!(status(&IRQ_THREAD_PRIO, thread(80, &[2])), Doubtful);
        assert_eq!(status(&IRQ_THREAD_PRIO, thread(90, &[0, 1])), Good);
        let finding = IRQ_THREAD_PRIO.judge(&with(thread(90, &[2])), &intent());
        assert_eq!(
            finding.summary,
            "1 interrupt thread may run on CPUs 2-3 at or above your FIFO 80: irq/30-eth1"
        );
        let low = Intent { priority: 40, ..intent() };
        assert_eq!(IRQ_THREAD_PRIO.judge(&with(thread(50, &[2])), &low).status, Doubtful);
    }

    #[test]
    fn softirq_threads() {
        let finding = SOFTIRQ_PRIO.judge(&with(vec![]), &intent());
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("2 ktimers SCHED_FIFO 1"), "{}", finding.summary);
        let thread = |priority| vec![task(300, "ksoftirqd/2", priority, &[2], true)];
        assert_eq!(status(&SOFTIRQ_PRIO, thread(2)), Good);
        let finding = SOFTIRQ_PRIO.judge(&with(thread(90)), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies[0].to_string(), "chrt --fifo --pid 11 300");
        let none = Intent { priority: 0, ..intent() };
        let finding = SOFTIRQ_PRIO.judge(&with(vec![]), &none);
        assert_eq!(finding.status, Doubtful, "ktimers are above SCHED_OTHER");
    }

    #[test]
    fn rcu_threads_and_the_parameter() {
        let finding = RCU_KTHREAD_PRIO.judge(&with(vec![]), &intent());
        assert_eq!(finding.status, Good);
        assert!(finding.summary.starts_with("rcutree.kthread_prio is 1; below"), "{finding:?}");
        let ahead = vec![task(300, "rcub/2", 85, &[0, 1, 2, 3], true)];
        let finding = RCU_KTHREAD_PRIO.judge(&with(ahead), &intent());
        assert_eq!(finding.status, Doubtful);
        let parameter = "rcutree.kthread_prio=11".into();
        assert_eq!(finding.remedies, [Remedy::Boot { parameter }]);
        let mut facts = good();
        let knob = &knobs::sched::RCU_KTHREAD_PRIO;
        set_setting(&mut facts, knob, Reading::denied("/x", "EACCES"));
        assert_eq!(RCU_KTHREAD_PRIO.judge(&facts, &intent()).status, Unknown);
        set_setting(&mut facts, knob, Reading::known("/x", "high".into()));
        assert_eq!(RCU_KTHREAD_PRIO.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_pid_namespace_is_not_the_machine() {
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        for check in [&IRQ_THREAD_PRIO, &SOFTIRQ_PRIO, &RCU_KTHREAD_PRIO] {
            assert_eq!(check.judge(&facts, &intent()).status, Unknown);
        }
    }
}
