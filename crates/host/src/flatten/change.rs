//! What changed between the start and the end of a run that may change latency.
//!
//! An idle machine must not look moved: counters, this process's own limits and affinity, kernel
//! threads that come and go under known names, and the wording of a refusal are no change.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::row::{FactRow, RowState};
use crate::{
    CpuList, Facts,
    facts::tasks::{Policy, RtTask},
};

/// One fact that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactChange {
    /// Key of the row; `cpus.3` or `irqs.24` where the whole of it came or went; `rt_tasks.NAME`.
    pub key: String,
    /// Value at the start, or `not there`, or why it was not known.
    pub from: String,
    /// Value at the end, likewise.
    pub to: String,
}

const NOT_THERE: &str = "not there";

/// What changed between two snapshots of one machine, sorted by key. Interrupts are distinguished
/// by number here, which holds within one boot. A real-time task of a user counts by its identity
/// (process, thread, start time, name, policy, priority), one of the kernel by name and priority.
pub fn changes(start: &Facts, end: &Facts) -> Vec<FactChange> {
    let (start_rows, end_rows) = (start.rows(), end.rows());
    let (from, to) = (conditions(&start_rows), conditions(&end_rows));
    let keys: BTreeSet<&str> = from.keys().chain(to.keys()).copied().collect();
    let mut changes: BTreeMap<String, FactChange> = BTreeMap::new();
    let obeyed = obeyed(start, end);
    for key in keys.into_iter().filter(|key| !obeyed.contains(*key)) {
        if whole(key, &from, &to, &mut changes) {
            continue;
        }
        let text =
            |rows: &Conditions<'_>| rows.get(key).map_or(NOT_THERE.into(), |row| text_of(row));
        let differ = match (from.get(key), to.get(key)) {
            (Some(a), Some(b)) => !same(a, b),
            _ => true,
        };
        if differ {
            add(&mut changes, key, text(&from), text(&to));
        }
    }
    user_tasks(start, end, &mut changes);
    changes.into_values().collect()
}

/// Interrupts that went in between where they had been sent before: the kernel moves one when it
/// next fires.
fn obeyed(start: &Facts, end: &Facts) -> BTreeSet<String> {
    let (Some(before), Some(after)) = (start.irqs.irqs.value(), end.irqs.irqs.value()) else {
        return BTreeSet::new();
    };
    let obeyed = before.iter().filter(|irq| {
        let Some(now) = after.iter().find(|now| now.number == irq.number) else { return false };
        let (Some(asked), Some(was), Some(is)) =
            (irq.requested.value(), irq.effective.value(), now.effective.value())
        else {
            return false;
        };
        let is_within = |cpus: &CpuList| !cpus.is_empty() && cpus.difference(asked).is_empty();
        now.requested.value() == Some(asked) && !is_within(was) && is_within(is)
    });
    obeyed.map(|irq| format!("irqs.{}.effective", irq.number)).collect()
}

type Conditions<'a> = BTreeMap<&'a str, &'a FactRow>;

/// Rows that may change latency. Real-time tasks of users are compared one by one.
fn conditions(rows: &[FactRow]) -> Conditions<'_> {
    let user_task =
        |key: &str| key.starts_with("rt_tasks.") && !key.starts_with("rt_tasks.kernel.");
    rows.iter()
        .filter(|row| row.class.is_condition() && !user_task(&row.key))
        .map(|row| (row.key.as_str(), row))
        .collect()
}

fn same(a: &FactRow, b: &FactRow) -> bool {
    a.state == b.state && (a.state != RowState::Known || a.value == b.value)
}

fn text_of(row: &FactRow) -> String {
    match row.state {
        RowState::Known => row.value.clone(),
        RowState::Absent => NOT_THERE.into(),
        RowState::Denied => format!("refused: {}", row.value),
        RowState::Malformed => format!("malformed: {}", row.value),
    }
}

fn add(changes: &mut BTreeMap<String, FactChange>, key: &str, from: String, to: String) {
    changes.insert(key.to_owned(), FactChange { key: key.to_owned(), from, to });
}

/// A CPU or an interrupt that came or went is one change and not one for each of its rows. True
/// where the key is part of such a one.
fn whole(
    key: &str,
    from: &Conditions<'_>,
    to: &Conditions<'_>,
    changes: &mut BTreeMap<String, FactChange>,
) -> bool {
    let mut parts = key.splitn(3, '.');
    let (Some(subject @ ("cpus" | "irqs")), Some(number), Some(_)) =
        (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if number.parse::<u32>().is_err() {
        return false;
    }
    let prefix = format!("{subject}.{number}.");
    let has = |rows: &Conditions<'_>| {
        rows.range(prefix.as_str()..).next().is_some_and(|(key, _)| key.starts_with(&prefix))
    };
    let text = |rows: &Conditions<'_>| match rows.get(format!("{prefix}actions").as_str()) {
        Some(row) => row.value.clone(),
        None => "there".into(),
    };
    let (from, to) = match (has(from), has(to)) {
        (true, false) => (text(from), NOT_THERE.to_owned()),
        (false, true) => (NOT_THERE.to_owned(), text(to)),
        _ => return false,
    };
    add(changes, prefix.trim_end_matches('.'), from, to);
    true
}

/// What makes a task the same one.
type TaskIdentity<'a> = (u32, u32, u64, &'a str, Policy, u32);

fn user_tasks(start: &Facts, end: &Facts, changes: &mut BTreeMap<String, FactChange>) {
    // From known to unknown is in the rows already.
    let (Some(start), Some(end)) = (start.rt_tasks.value(), end.rt_tasks.value()) else {
        return;
    };
    let (start, end) = (identities(start), identities(end));
    let names: BTreeSet<&str> =
        start.symmetric_difference(&end).map(|&(_, _, _, comm, ..)| comm).collect();
    for name in names {
        let text = |tasks: &BTreeSet<TaskIdentity<'_>>| {
            let one = |&&(pid, tid, _, _, policy, priority): &&TaskIdentity<'_>| {
                format!("{} {priority} (process {pid}, thread {tid})", policy.name())
            };
            let all: Vec<String> =
                tasks.iter().filter(|task| task.3 == name).map(|task| one(&task)).collect();
            if all.is_empty() { NOT_THERE.to_owned() } else { all.join(", ") }
        };
        add(changes, &format!("rt_tasks.{name}"), text(&start), text(&end));
    }
}

fn identities(tasks: &[RtTask]) -> BTreeSet<TaskIdentity<'_>> {
    tasks
        .iter()
        .filter(|task| !task.kernel_thread)
        .map(|t| (t.pid, t.tid, t.start_ticks, t.comm.as_str(), t.policy, t.priority))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reading, flatten::tests::machine};

    fn keys(changes: &[FactChange]) -> Vec<&str> {
        changes.iter().map(|change| change.key.as_str()).collect()
    }

    #[test]
    fn an_idle_machine_has_not_moved() {
        let tree = machine();
        let start = Facts::read(&tree.root());
        assert_eq!(changes(&start, &start), []);
        tree.write("proc/stat", "cpu0 0 0 0 0 0 0 0 90\ncpu1 0 0 0 0 0 0 0 80\n");
        tree.write("proc/interrupts", "  CPU0 CPU1\n 24: 50 60 PCI-MSI 1-edge  nvme0q0\n");
        tree.write("proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 8 6 -2\n");
        tree.write("proc/self/status", "Cpus_allowed_list:\t0\nCapEff:\t0\n");
        // One more kernel thread of a known kind, and another process of irqbalance.
        let thread = std::fs::read_to_string(tree.path().join("proc/20/stat")).unwrap();
        tree.write("proc/21/stat", &thread.replace("nvme0q0", "nvme0q1"));
        std::fs::rename(tree.path().join("proc/301"), tree.path().join("proc/400")).unwrap();
        assert_eq!(changes(&start, &Facts::read(&tree.root())), []);
    }

    #[test]
    fn what_moved_is_told_once() {
        let tree = machine();
        let start = Facts::read(&tree.root());
        tree.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
        tree.write("proc/interrupts", "  CPU0 CPU1\n 25: 1 1 PCI-MSI 2-edge  eth0\n");
        let end = Facts::read(&tree.root());
        let changes_found = changes(&start, &end);
        assert_eq!(keys(&changes_found), ["cpus.1.freq.governor", "irqs.24", "irqs.25"]);
        assert_eq!(
            (changes_found[0].from.as_str(), changes_found[0].to.as_str()),
            ("performance", "powersave")
        );
        assert_eq!(
            (changes_found[1].from.as_str(), changes_found[1].to.as_str()),
            ("nvme0q0", NOT_THERE)
        );
        assert_eq!(
            (changes_found[2].from.as_str(), changes_found[2].to.as_str()),
            (NOT_THERE, "eth0")
        );
    }

    #[test]
    fn a_cpu_that_went_away() {
        let tree = machine();
        let start = Facts::read(&tree.root());
        tree.write("sys/devices/system/cpu/online", "0\n");
        let found = changes(&start, &Facts::read(&tree.root()));
        assert_eq!(keys(&found), ["cpus.1", "cpus.online"]);
        assert_eq!(found[0].to, NOT_THERE);
    }

    #[test]
    fn user_tasks_count_one_by_one() {
        let tree = machine();
        let start = Facts::read(&tree.root());
        // Another process of the same name and priority: a restart.
        std::fs::rename(tree.path().join("proc/300"), tree.path().join("proc/310")).unwrap();
        let found = changes(&start, &Facts::read(&tree.root()));
        assert_eq!(keys(&found), ["rt_tasks.multipathd"]);
        assert_eq!(found[0].from, "rr 99 (process 300, thread 300)");
        assert_eq!(found[0].to, "rr 99 (process 310, thread 310)");
    }

    #[test]
    fn the_wording_of_a_refusal_is_no_change_but_a_refusal_is() {
        let mut start = Facts::read(&machine().root());
        let mut end = start.clone();
        start.sched.rt_runtime_us = Reading::denied("p", "one");
        end.sched.rt_runtime_us = Reading::denied("p", "two");
        assert_eq!(changes(&start, &end), []);
        end.sched.rt_runtime_us = Reading::known("p", -1);
        let found = changes(&start, &end);
        assert_eq!((found[0].from.as_str(), found[0].to.as_str()), ("refused: one", "-1"));
    }
}
