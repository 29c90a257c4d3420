//! Which real-time task may take a CPU from which.

use rtproof_host::{facts::tasks::Policy, sample::rt_tasks::RtNow};

/// Names that are kept.
const NAMES: usize = 3;

/// How many tasks of a higher class or priority may run on a CPU of this one, and the names of the
/// first three, the highest first. A task whose CPUs are not known may run anywhere.
pub(super) fn outranked(task: &RtNow, all: &[RtNow]) -> (u32, Vec<String>) {
    let mut above: Vec<&RtNow> =
        all.iter().filter(|other| rank(other) > rank(task) && meets(task, other)).collect();
    above.sort_by_key(|other| (std::cmp::Reverse(rank(other)), other.tid));
    let names = above.iter().take(NAMES).map(|other| other.comm.clone()).collect();
    (u32::try_from(above.len()).unwrap_or(u32::MAX), names)
}

/// Classes in the order of the scheduler (kernel/sched/sched.h, `for_each_class`): stop, deadline,
/// real-time. The stop class has one thread a CPU, which claims to be FIFO 99
/// (kernel/sched/core.c, `sched_set_stop_task`).
fn rank(task: &RtNow) -> (u32, u32) {
    match task.policy {
        Policy::Fifo if task.kernel_thread && task.comm.starts_with("migration/") => (3, 0),
        Policy::Deadline => (2, 0),
        _ => (1, task.priority),
    }
}

fn meets(task: &RtNow, other: &RtNow) -> bool {
    match (&task.allowed, &other.allowed) {
        (Some(own), Some(others)) => !own.intersection(others).is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use rtproof_host::CpuList;

    use super::*;

    fn task(tid: u32, comm: &str, policy: Policy, priority: u32, cpu: Option<u32>) -> RtNow {
        RtNow {
            tid,
            comm: comm.into(),
            policy,
            priority,
            cpu: 0,
            allowed: cpu.map(|cpu| CpuList::new([cpu])),
            kernel_thread: comm.contains('/'),
            ran_ns: None,
        }
    }

    #[test]
    fn classes_come_before_priorities_and_only_on_common_cpus() {
        let all = [
            task(1, "migration/1", Policy::Fifo, 99, Some(1)),
            task(2, "planner", Policy::Deadline, 0, Some(1)),
            task(3, "multipathd", Policy::Rr, 99, None),
            task(4, "control", Policy::Fifo, 80, Some(1)),
            task(5, "elsewhere", Policy::Fifo, 90, Some(0)),
            task(6, "equal", Policy::Rr, 80, Some(1)),
        ];
        let names = ["migration/1", "planner", "multipathd"].map(String::from).to_vec();
        assert_eq!(outranked(&all[3], &all), (3, names));
        assert_eq!(outranked(&all[1], &all), (1, vec!["migration/1".into()]));
        assert_eq!(outranked(&all[0], &all).0, 0);
        // One that is only called so is none.
        let false_stop = task(7, "migration", Policy::Fifo, 99, Some(1));
        assert_eq!(outranked(&false_stop, &all).0, 2);
    }
}
