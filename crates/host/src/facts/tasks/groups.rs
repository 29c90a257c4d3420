//! All tasks of a machine in a few lines: who may run where.

use std::collections::BTreeMap;

use super::{Policy, TaskGroup, stat::Stat};
use crate::{CpuList, change::TaskName};

/// Most groups. A machine with more loses their names first, then their units.
const GROUPS_MAX: usize = 500;

/// What the tasks of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    user: bool,
    name: String,
    unit: Option<String>,
    bound: bool,
    policy: Option<Policy>,
    /// As text; `None` where it is not readable.
    cpus: Option<String>,
}

/// Groups in the making.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<Key, TaskGroup>);

impl Groups {
    /// Adds the threads of a process.
    pub(super) fn add_process(
        &mut self,
        comm: &str,
        unit: Option<&String>,
        threads: &[(u32, Stat, Option<CpuList>)],
    ) {
        let alike = |(_, stat, cpus): &(u32, Stat, Option<CpuList>)| {
            threads.first().is_some_and(|(_, first, on)| first.policy == stat.policy && on == cpus)
        };
        let is_one = threads.iter().all(alike);
        for (tid, stat, cpus) in threads {
            let name = if stat.kernel_thread {
                kernel_name(&stat.comm)
            } else {
                without_numbers(if is_one { comm } else { &stat.comm })
            };
            let is_free = stat.kernel_thread && !stat.bound && !name.starts_with("irq/");
            let one = || TaskName {
                tid: *tid,
                start_ticks: Some(stat.start_ticks),
                comm: stat.comm.clone(),
            };
            self.add(TaskGroup {
                tasks: is_free.then(one).into_iter().collect(),
                name,
                kernel_thread: stat.kernel_thread,
                bound: stat.bound,
                cpus: cpus.clone(),
                policy: stat.policy,
                unit: unit.cloned(),
                count: 1,
                tid: *tid,
            });
        }
    }

    fn add(&mut self, group: TaskGroup) {
        // Each has its own CPU: a line each would say what one says.
        let is_each = group.kernel_thread && (group.bound || group.name.starts_with("irq/"));
        let cpus = group.cpus.as_ref().filter(|_| !is_each).map(CpuList::to_string);
        let key = Key {
            user: !group.kernel_thread,
            name: group.name.clone(),
            unit: group.unit.clone(),
            bound: group.bound,
            policy: group.policy,
            cpus,
        };
        let Some(known) = self.0.get_mut(&key) else {
            self.0.insert(key, group);
            return;
        };
        known.count += group.count;
        known.tasks.extend(group.tasks);
        known.tid = known.tid.min(group.tid);
        known.cpus = match (&known.cpus, &group.cpus) {
            (Some(one), Some(other)) => Some(one.union(other)),
            _ => None,
        };
    }

    /// The groups, kernel threads first, by name.
    pub(super) fn finish(mut self) -> Vec<TaskGroup> {
        let coarser: [fn(&mut TaskGroup); 3] =
            [|group| group.name = "*".into(), |group| group.unit = None, |group| group.cpus = None];
        for coarsen in coarser {
            if self.0.len() <= GROUPS_MAX {
                break;
            }
            for mut group in std::mem::take(&mut self.0).into_values() {
                coarsen(&mut group);
                self.add(group);
            }
        }
        self.0.into_values().collect()
    }
}

/// A kernel thread's name without numbers, and without what a worker is doing just now
/// (kernel/workqueue.c, `wq_worker_comm`: `kworker/0:1-events`, `kworker/u8:2+flush-8:0`).
fn kernel_name(comm: &str) -> String {
    let is_worker = comm.starts_with("kworker/") && !comm.starts_with("kworker/R-");
    let name = if is_worker { comm.split(['-', '+']).next().unwrap_or(comm) } else { comm };
    without_numbers(name)
}

/// `irq/24-nvme0q1` is `irq/N-nvmeNqN`.
pub(crate) fn without_numbers(comm: &str) -> String {
    let mut name = String::new();
    let mut in_number = false;
    for c in comm.chars() {
        if !c.is_ascii_digit() {
            name.push(c);
        } else if !in_number {
            name.push('N');
        }
        in_number = c.is_ascii_digit();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(
        tid: u32,
        comm: &str,
        flags: (bool, bool),
        cpus: &[u32],
    ) -> (u32, Stat, Option<CpuList>) {
        let stat = Stat {
            comm: comm.into(),
            kernel_thread: flags.0,
            bound: flags.1,
            threads: 1,
            start_ticks: 0,
            cpu: 0,
            priority: 0,
            policy: Some(Policy::Other),
            ..Stat::default()
        };
        (tid, stat, Some(CpuList::new(cpus.iter().copied())))
    }

    #[test]
    fn per_cpu_threads_are_one_line_and_others_a_line_for_each_place() {
        let mut groups = Groups::default();
        for (tid, comm, bound, cpus) in [
            (20, "kworker/0:1-events", true, &[0u32][..]),
            (21, "kworker/1:1+mm_percpu_wq", true, &[1]),
            (22, "rcuop/1", false, &[0]),
            (23, "rcuop/2", false, &[0]),
            (24, "rcuop/3", false, &[0, 1]),
            (25, "irq/24-nvme0q0", false, &[0]),
            (26, "irq/25-nvme0q1", false, &[1]),
        ] {
            groups.add_process(comm, None, &[thread(tid, comm, (true, bound), cpus)]);
        }
        let found = groups.finish();
        let shown: Vec<String> = found
            .iter()
            .map(|g| format!("{} {} {} {}", g.name, g.count, g.tid, g.cpus.as_ref().unwrap()))
            .collect();
        let wanted = [
            "irq/N-nvmeNqN 2 25 0-1",
            "kworker/N:N 2 20 0-1",
            "rcuop/N 2 22 0",
            "rcuop/N 1 24 0-1",
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_process_is_one_line_where_its_threads_agree() {
        let user = |tid, comm, cpus| thread(tid, comm, (false, false), cpus);
        let mut groups = Groups::default();
        let unit = "x.service".to_owned();
        groups.add_process("db", Some(&unit), &[user(5, "db", &[0, 1]), user(6, "log2", &[0, 1])]);
        groups.add_process("plc", None, &[user(7, "plc", &[0, 1]), user(8, "cycle", &[1])]);
        let found = groups.finish();
        let names: Vec<_> = found.iter().map(|g| (g.name.as_str(), g.count)).collect();
        assert_eq!(names, [("cycle", 1), ("db", 2), ("plc", 1)]);
        assert_eq!(found[1].unit.as_deref(), Some("x.service"));
    }

    #[test]
    fn thousands_of_tasks_stay_small() {
        let mut groups = Groups::default();
        for tid in 0..6_000u32 {
            let letters: String =
                tid.to_string().chars().map(|c| char::from(b'a' + c as u8 - b'0')).collect();
            let cpus = [tid % 700, 900];
            groups.add_process(
                &letters,
                Some(&format!("{letters}.scope")),
                &[thread(tid, &letters, (false, false), &cpus)],
            );
        }
        let found = groups.finish();
        assert!(found.len() <= GROUPS_MAX);
        assert_eq!(found.iter().map(|group| group.count).sum::<u32>(), 6_000);
    }
}
