//! Who else may run ahead of the application?
//!
//! A task of the same or a higher priority is not preempted by it, and SCHED_DEADLINE outranks
//! every priority. Threads of the kernel belong to the machine: migration and the like are above
//! everybody on purpose, interrupt threads above the application are a choice that only the user
//! can make. A list without a single kernel thread comes from inside a PID namespace and says
//! nothing of the machine.

use rtproof_host::{Facts, facts::tasks::Policy, facts::tasks::RtTask};

use super::tasks::{
    HIDDEN, IRQ_THREADS, RCU_THREADS, SOFTIRQ_THREADS, concerns, count, evidence, named, outranks,
    own, place, rank,
};
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::remedies::make_ordinary;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

/// Threads that outrank everybody by design and run for microseconds: the stopper of each CPU, the
/// lockup detector before 4.19, and the feeder of the hardware watchdog.
const ABOVE_BY_DESIGN: &[&str] = &["migration/", "stopper/", "watchdog/", "watchdogd"];
/// Units that a desktop or the system itself lives in: never a candidate to be stopped.
const VITAL_UNITS: &[&str] = &["user@", "systemd-", "dbus", "init.", "display-manager", "session-"];

pub(super) static CHECK: Check = Check {
    id: "rogue-rt-tasks",
    title: "tasks that may run ahead of the application on its CPUs",
    why: "the application waits until a task of the same or a higher priority sleeps",
    source: "sched(7); Wu, \"Real-time programming with Linux, part 2\" (multipathd at SCHED_RR 99 \
             ran 331 µs; maximum 279 µs with it, 130 µs without)",
    impact: Impact::Hundreds,
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let own = own(intent);
    let draft = draft.wants(format!("none at or above {own}")).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let draft = draft.read(&facts.rt_tasks, |tasks| count(tasks));
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.blind(&facts.rt_tasks);
    };
    let mut above: Vec<&RtTask> = tasks.iter().filter(|task| is_ahead(task, intent)).collect();
    above.sort_by_key(|task| (task.policy != Policy::Deadline, 99 - task.priority.min(99)));
    let (kernel, user): (Vec<&RtTask>, _) = above.iter().partition(|task| task.kernel_thread);
    let (known, kernel): (Vec<&RtTask>, _) = kernel.into_iter().partition(has_own_check);
    if let Some(worst) = user.first() {
        let remedies: Vec<Remedy> = user.iter().map(|task| remedy(task, intent)).collect();
        return draft.saw(evidence(&user)).remedies(distinct(remedies)).bad(summary(
            worst,
            user.len(),
            &own,
        ));
    }
    if !tasks.iter().any(|task| task.kernel_thread) {
        return draft.unknown(HIDDEN);
    }
    if let Some(worst) = kernel.first() {
        let text = if worst.comm.starts_with("sugov") {
            "set the frequency governor to performance: this thread changes the frequency for \
             schedutil"
                .into()
        } else if worst.policy == Policy::Deadline {
            "nothing can be raised above SCHED_DEADLINE: keep this thread off the real-time \
             CPUs"
                .into()
        } else {
            format!(
                "decide which is more urgent: raise the application above {}, or lower the \
                 thread with chrt",
                rank(worst)
            )
        };
        return draft.saw(evidence(&kernel)).remedies([Remedy::Manual { text }]).doubtful(summary(
            worst,
            kernel.len(),
            &own,
        ));
    }
    let highest = tasks
        .iter()
        .filter(|task| concerns(task, intent) && !is_above_by_design(task))
        .max_by_key(|task| task.priority)
        .map_or_else(String::new, |task| format!("; highest: {} {}", task.comm, rank(task)));
    let cpus = text::cpus(&intent.rt_cpus);
    if !known.is_empty() {
        return draft.saw(evidence(&known)).good(format!(
            "nothing at or above {own} on {cpus} but threads of interrupts, softirqs or RCU, \
             which have checks of their own"
        ));
    }
    draft.good(format!("nothing at or above {own} on {cpus}{highest}"))
}

fn is_above_by_design(task: &RtTask) -> bool {
    task.kernel_thread && ABOVE_BY_DESIGN.iter().any(|name| task.comm.starts_with(name))
}

/// Threads of interrupts, softirqs and RCU.
fn has_own_check(task: &&RtTask) -> bool {
    let starts = [IRQ_THREADS, SOFTIRQ_THREADS, RCU_THREADS].concat();
    !named(&[task], &starts).is_empty()
}

fn is_ahead(task: &RtTask, intent: &Intent) -> bool {
    outranks(task, intent) && concerns(task, intent) && !is_above_by_design(task)
}

fn summary(worst: &RtTask, number: usize, own: &str) -> String {
    let is_equal =
        worst.policy != Policy::Deadline && own.ends_with(&format!(" {}", worst.priority));
    let relation = if is_equal { "level with" } else { "above" };
    let more = match number {
        1 => String::new(),
        more => format!("; {} more", more - 1),
    };
    let (pid, rank, place) = (worst.pid, rank(worst), place(worst));
    let unit = worst.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
    format!("{} (pid {pid}{unit}) runs {rank} on {place}, {relation} {own}{more}", worst.comm)
}

fn remedy(task: &RtTask, intent: &Intent) -> Remedy {
    if task.policy != Policy::Deadline && task.priority == intent.priority {
        let text = format!(
            "unless {} (pid {}) is the application itself: lower it, or keep it off the real-time \
             CPUs",
            task.comm, task.pid
        );
        return Remedy::Manual { text };
    }
    match task.unit.as_deref() {
        Some(unit)
            if unit.ends_with(".service")
                && !VITAL_UNITS.iter().any(|vital| unit.starts_with(vital)) =>
        {
            Remedy::Unit { unit: unit.into(), action: "disable --now".into() }
        }
        _ => make_ordinary(task),
    }
}

fn distinct(remedies: Vec<Remedy>) -> Vec<Remedy> {
    let mut distinct: Vec<Remedy> = Vec::new();
    for remedy in remedies {
        if !distinct.contains(&remedy) {
            distinct.push(remedy);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, task};
    use rtproof_host::Reading;

    fn with(more: Vec<RtTask>) -> Facts {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.extend(more);
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        facts
    }

    fn judge(more: Vec<RtTask>) -> Finding {
        CHECK.judge(&with(more), &intent())
    }

    fn multipathd() -> RtTask {
        let unit = Some("multipathd.service".into());
        RtTask { policy: Policy::Rr, unit, ..task(1456, "multipathd", 99, &[0, 1, 2, 3], false) }
    }

    #[test]
    fn multipathd_is_named_with_its_unit() {
        let finding = judge(vec![multipathd()]);
        assert_eq!(finding.status, Bad);
        assert_eq!(
            finding.summary,
            "multipathd (pid 1456, multipathd.service) runs SCHED_RR 99 \
             on CPUs 0-3, above your FIFO 80"
        );
        let unit = "multipathd.service".into();
        assert_eq!(finding.remedies, [Remedy::Unit { unit, action: "disable --now".into() }]);
    }

    #[test]
    fn tasks_below_or_elsewhere_are_good() {
        assert_eq!(judge(vec![task(7, "jackd", 79, &[2], false)]).status, Good);
        assert_eq!(judge(vec![task(7, "jackd", 99, &[0, 1], false)]).status, Good);
        let finding = judge(vec![task(7, "jackd", 79, &[2], false)]);
        assert!(finding.summary.ends_with("highest: jackd SCHED_FIFO 79"), "{}", finding.summary);
    }

    #[test]
    fn deadline_and_unreadable_affinity_count() {
        let deadline = RtTask { policy: Policy::Deadline, ..task(8, "dl", 0, &[3], false) };
        assert_eq!(judge(vec![deadline]).status, Bad);
        let anywhere = RtTask { cpus: None, ..task(8, "x", 90, &[], false) };
        assert_eq!(judge(vec![anywhere]).status, Bad);
    }

    #[test]
    fn an_equal_task_may_be_the_application_and_a_session_is_not_stopped() {
        let finding = judge(vec![task(9, "control", 80, &[2], false)]);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("level with your FIFO 80"), "{}", finding.summary);
        assert!(matches!(finding.remedies[0], Remedy::Manual { .. }));
        let unit = Some("user@1000.service".into());
        let finding = judge(vec![RtTask { unit, ..task(9, "jackd", 95, &[2], false) }]);
        assert_eq!(finding.remedies[0].to_string(), "chrt --other --pid 0 9");
    }

    #[test]
    fn kernel_threads_above_the_application_are_a_choice() {
        assert_eq!(judge(vec![task(10, "card0-crtc0", 50, &[2], true)]).status, Good);
        assert_eq!(judge(vec![task(10, "card0-crtc0", 85, &[2], true)]).status, Doubtful);
        let finding = judge(vec![task(10, "irq/30-eth1", 85, &[2], true)]);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("have checks of their own"), "{}", finding.summary);
        assert_eq!(judge(vec![task(10, "watchdogd", 99, &[0, 1, 2, 3], true)]).status, Good);
    }

    #[test]
    fn a_pid_namespace_is_not_the_machine() {
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn many_are_counted() {
        let many = |n| (0..n).map(|tid| task(tid, "w", 90, &[2], false)).collect();
        let finding = judge(many(30));
        assert!(finding.summary.ends_with("; 29 more"), "{}", finding.summary);
        assert_eq!(finding.evidence.len(), 1 + 30);
        assert_eq!(judge(many(300)).evidence.len(), 2 + 256);
    }
}
