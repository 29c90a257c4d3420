//! What the kernel counts of the threads of a process, and which processes it has started: for a
//! program that is accompanied from its start to its end. And the group that it joins.

use std::os::unix::fs::FileExt as _;

use crate::{
    CpuList, Root,
    facts::tasks::{Policy, Stat},
    text::field,
};

/// USER_HZ is 100 on every machine that rtproof is built for (include/asm-generic/param.h).
const TICK_NS: u64 = 10_000_000;

/// What the kernel counted of one thread since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    pub comm: String,
    /// Start in clock ticks since boot: with the thread id, its identity.
    pub start_ticks: u64,
    pub policy: Option<Policy>,
    /// Real-time priority; 0 for other policies.
    pub priority: u32,
    /// CPUs it may run on; `None`: not known, e.g. of one that has ended.
    pub cpus: Option<CpuList>,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Times it gave the CPU up to wait.
    pub voluntary_switches: Option<u64>,
    /// Times it lost the CPU while it was runnable.
    pub involuntary_switches: Option<u64>,
    /// Time on CPUs, nanoseconds, in steps of 10 ms.
    pub cpu_time_ns: u64,
    /// Times it was moved to another CPU; `None`: the kernel does not show it
    /// (`CONFIG_SCHED_DEBUG`).
    pub migrations: Option<u64>,
}

/// The counts of a thread; `None` once it has ended and was waited for.
pub fn of_thread(root: &Root, pid: u32, tid: u32) -> Option<Counts> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let stat = Stat::parse(root.read_text(&format!("{folder}/stat")).value()?)?;
    let status = root.read_text(&format!("{folder}/status"));
    let status = status.value().map(String::as_str).unwrap_or_default();
    let switches = |name: &str| field(status, name)?.trim().parse().ok();
    let sched = root.read_text(&format!("{folder}/sched"));
    Some(Counts {
        comm: stat.comm,
        start_ticks: stat.start_ticks,
        policy: stat.policy,
        priority: stat.priority,
        cpus: field(status, "Cpus_allowed_list").and_then(|list| CpuList::parse(list, None).ok()),
        minor_faults: stat.minor_faults,
        major_faults: stat.major_faults,
        cpu_time_ns: stat.cpu_ticks.saturating_mul(TICK_NS),
        voluntary_switches: switches("voluntary_ctxt_switches"),
        involuntary_switches: switches("nonvoluntary_ctxt_switches"),
        migrations: sched.value().and_then(|text| migrations(text)),
    })
}

/// Page faults of a process, all its threads, also those that have ended: without and with a disk.
pub fn faults_of_process(root: &Root, pid: u32) -> Option<(u64, u64)> {
    let stat = Stat::parse(root.read_text(&format!("/proc/{pid}/stat")).value()?)?;
    Some((stat.minor_faults, stat.major_faults))
}

/// The threads of a process, as of now.
pub fn threads(root: &Root, pid: u32) -> Vec<u32> {
    root.list_numbered(&format!("/proc/{pid}/task"), "").value().cloned().unwrap_or_default()
}

/// When a process began, in clock ticks since boot; `None`: there is none.
pub fn start_ticks(root: &Root, pid: u32) -> Option<u64> {
    Some(Stat::parse(root.read_text(&format!("/proc/{pid}/stat")).value()?)?.start_ticks)
}

/// Whether the process that began then still runs: not ended, and not waiting to be waited for.
pub fn is_running(root: &Root, pid: u32, start_ticks: u64) -> bool {
    let stat = root.read_text(&format!("/proc/{pid}/stat"));
    let Some(text) = stat.value() else { return false };
    let is_same = Stat::parse(text).is_some_and(|stat| stat.start_ticks == start_ticks);
    is_same && !matches!(state(text), Some("Z" | "X"))
}

/// Processes that `top` or one of its descendants started and that have not ended, `top` left out.
/// One whose parent has ended belongs to the nearest subreaper above it (prctl(2)).
pub fn descendants(root: &Root, top: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = root
        .list_numbered("/proc", "")
        .value()
        .into_iter()
        .flatten()
        .filter_map(|&pid| {
            let stat = root.read_text(&format!("/proc/{pid}/stat"));
            let text = stat.value()?;
            (!matches!(state(text)?, "Z" | "X")).then_some((pid, parent(text)?))
        })
        .collect();
    let mut found = vec![top];
    let mut at = 0;
    while let Some(&of) = found.get(at) {
        let children = parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid);
        let fresh: Vec<u32> = children.filter(|pid| !found.contains(pid)).collect();
        found.extend(fresh);
        at += 1;
    }
    found.remove(0);
    found
}

/// Processes in a control group and in the groups below it.
pub fn in_group(root: &Root, group: &str) -> Vec<u32> {
    let mut groups = vec![group.to_owned()];
    let mut found = Vec::new();
    while let Some(group) = groups.pop() {
        let procs = root.trimmed(&format!("{group}/cgroup.procs"));
        let pids = procs.value().map_or("", String::as_str).lines();
        found.extend(pids.filter_map(|line| line.parse::<u32>().ok()));
        let names = root.list_dir(&group);
        let below = names.value().into_iter().flatten().map(|name| format!("{group}/{name}"));
        groups.extend(below.filter(|path| root.exists(&format!("{path}/cgroup.procs"))));
    }
    found
}

/// Moves the calling process into a control group of the live machine.
///
/// # Errors
/// There is no such group, or it takes no processes.
#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "a file of the kernel that is written")
)]
pub fn join_group(group: &str) -> std::io::Result<()> {
    std::fs::write(format!("{group}/cgroup.procs"), "0")
}

/// Five words of the memory of a thread of the live machine; `None`: they cannot be read.
#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "memory is read at an address, not as a file")
)]
pub fn words_of(tid: u32, address: u64) -> Option<[u32; 5]> {
    let memory = std::fs::File::open(format!("/proc/{tid}/mem")).ok()?;
    let mut bytes = [0; 20];
    memory.read_exact_at(&mut bytes, address).ok()?;
    let mut words = [0; 5];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}

/// Children of a process that have ended and were not waited for.
pub fn ended_children(root: &Root, of: u32) -> Vec<u32> {
    let is_one = |pid: &u32| {
        let stat = root.read_text(&format!("/proc/{pid}/stat"));
        stat.value().is_some_and(|text| state(text) == Some("Z") && parent(text) == Some(of))
    };
    let pids = root.list_numbered("/proc", "");
    pids.value().into_iter().flatten().copied().filter(is_one).collect()
}

/// Field 3 of proc_pid_stat(5).
fn state(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().next()
}

/// Field 4.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// `se.nr_migrations` of /proc/PID/sched.
fn migrations(sched: &str) -> Option<u64> {
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_threads_are_counted_and_one_that_is_not_there_is_not() {
        let root = Root::live();
        let pid = std::process::id();
        let own = of_thread(&root, pid, pid).unwrap();
        assert!(own.minor_faults > 0 && own.voluntary_switches.is_some(), "{own:?}");
        assert!(own.cpus.is_some_and(|cpus| !cpus.is_empty()));
        assert!(threads(&root, pid).contains(&pid));
        assert!(is_running(&root, pid, own.start_ticks));
        assert!(!is_running(&root, pid, own.start_ticks + 1), "another process of this number");
        assert_eq!(of_thread(&root, pid, u32::MAX), None);
        assert_eq!(start_ticks(&root, u32::MAX), None);
    }

    #[test]
    fn children_are_descendants_until_they_end() {
        let root = Root::live();
        let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let ticks = start_ticks(&root, child.id()).unwrap();
        assert!(descendants(&root, std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        let is_gone = || !is_running(&root, child.id(), ticks);
        while !is_gone() {
            std::thread::yield_now();
        }
        assert!(!descendants(&root, std::process::id()).contains(&child.id()), "a zombie");
        child.wait().unwrap();
    }

    #[test]
    fn migrations_are_read_as_the_kernel_writes_them() {
        let text = "x (1, #threads: 1)\n---\nse.exec_start : 1.5\nse.nr_migrations   :    12\n";
        assert_eq!(migrations(text), Some(12));
        assert_eq!(migrations("nr_switches : 3\n"), None);
    }
}
