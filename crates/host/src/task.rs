//! Which task a thread id means: three files of /proc, for the tasks that appear
//! round a late wake-up.

use rtproof_trace::{Policy, Task};

use crate::{
    Root,
    facts::tasks::{self, Stat, unit_of},
    text::field,
};

/// The task with this thread id; `None` once it has ended, or where it is hidden.
pub fn task(root: &Root, tid: i32) -> Option<Task> {
    // The idle tasks have no folder.
    let tid = u32::try_from(tid).ok().filter(|tid| *tid > 0)?;
    let folder = format!("/proc/{tid}");
    let stat = root.read_text(&format!("{folder}/stat"));
    let parsed = Stat::parse(stat.value()?)?;
    let status = root.read_text(&format!("{folder}/status"));
    let field = |name: &str| field(status.value()?, name);
    let cgroup = root.read_text(&format!("{folder}/cgroup"));
    let cgroup = cgroup.value().map(String::as_str).unwrap_or_default();
    Some(Task {
        tgid: field("Tgid").and_then(|tgid| tgid.parse().ok()).unwrap_or(0),
        policy: parsed.policy.map(policy),
        rt_priority: parsed.priority,
        nice: i32::try_from(parsed.nice).unwrap_or(0),
        kernel: parsed.kernel_thread,
        cgroup: group(cgroup),
        unit: unit_of(cgroup).filter(|_| !parsed.kernel_thread),
        cpus_allowed: field("Cpus_allowed_list").map(str::to_owned),
        comm: parsed.comm,
    })
}

/// Tasks of a BPF scheduler are fair ones to everybody else.
const fn policy(policy: tasks::Policy) -> Policy {
    match policy {
        tasks::Policy::Other | tasks::Policy::Ext => Policy::Other,
        tasks::Policy::Fifo => Policy::Fifo,
        tasks::Policy::Rr => Policy::Rr,
        tasks::Policy::Batch => Policy::Batch,
        tasks::Policy::Idle => Policy::Idle,
        tasks::Policy::Deadline => Policy::Deadline,
    }
}

/// The group of the cpu controller: of version 1 where that has it, else of version 2.
fn group(cgroup: &str) -> Option<String> {
    let lines = || cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let cpu = lines().find(|(names, _)| names.split(',').any(|name| name == "cpu"));
    let (_, path) = cpu.or_else(|| lines().find(|(names, _)| names.is_empty()))?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

/// cpu.stat of a group as [`task`] names it: where the kernel counts how often its quota ran out.
pub fn throttle_file(root: &Root, group: &str) -> Option<String> {
    let group = group.trim_end_matches('/');
    ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"]
        .iter()
        .map(|top| format!("{top}{group}/cpu.stat"))
        .find(|path| throttled(root, path).is_some())
}

/// Periods in which a group's tasks were stopped, since it was made.
pub fn throttled(root: &Root, file: &str) -> Option<u64> {
    let text = root.read_text(file);
    let line = text.value()?.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_task_by_its_thread_id() {
        let stat = "401 (a b) S 1 401 401 0 -1 0 9 0 0 0 3 4 0 0 -91 -5 3 0 88 0 0 0 0 0 0 0 0 0 0 \
                    0 0 0 0 0 17 2 90 2 0 0 0 0 0 0 0 0 0 0 0\n";
        let tree = Tree::new(&[
            ("proc/401/stat", stat),
            ("proc/401/status", "Name:\ta b\nTgid:\t400\nCpus_allowed_list:\t2-3\n"),
            ("proc/401/cgroup", "0::/system.slice/plc.service\n"),
            ("sys/fs/cgroup/system.slice/plc.service/cpu.stat", "usage_usec 5\nnr_throttled 7\n"),
        ]);
        let root = tree.root();
        let task = task(&root, 401).unwrap();
        let wanted = Task {
            comm: "a b".into(),
            tgid: 400,
            policy: Some(Policy::Rr),
            rt_priority: 90,
            nice: -5,
            kernel: false,
            cgroup: Some("/system.slice/plc.service".into()),
            unit: Some("plc.service".into()),
            cpus_allowed: Some("2-3".into()),
        };
        assert_eq!(task, wanted);
        let file = throttle_file(&root, "/system.slice/plc.service").unwrap();
        assert_eq!(throttled(&root, &file), Some(7));
        assert_eq!(throttle_file(&root, "/"), None);
        assert_eq!((super::task(&root, 402), super::task(&root, 0)), (None, None));
        assert_eq!(super::task(&root, -1), None);
    }

    #[test]
    fn groups_of_both_versions() {
        assert_eq!(group("0::/a/b (deleted)\n").as_deref(), Some("/a/b"));
        assert_eq!(group("9:cpu,cpuacct:/x\n1:name=systemd:/y\n0::/z\n").as_deref(), Some("/x"));
        assert_eq!(group("1:name=systemd:/y\n"), None);
    }

    #[test]
    fn the_live_machine() {
        let own = i32::try_from(std::process::id()).unwrap();
        let task = task(&Root::live(), own).unwrap();
        assert_eq!((task.tgid, task.kernel), (own, false));
        assert!(task.policy.is_some() && task.cpus_allowed.is_some());
    }
}
