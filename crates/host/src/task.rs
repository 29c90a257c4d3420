//! Which task a thread id means: three files of /proc, for the tasks that appear
//! round a late wake-up.

use std::os::unix::fs::FileExt as _;

use serde::{Deserialize, Serialize};

use rtproof_trace::Task;

use crate::facts::irq::interrupt_table;
use crate::facts::tasks::{Policy, Stat, unit_of};
use crate::text::field;
use crate::{CpuList, Reading, Root};

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
const fn policy(policy: Policy) -> rtproof_trace::TaskPolicy {
    match policy {
        Policy::Other | Policy::Ext => rtproof_trace::TaskPolicy::Other,
        Policy::Fifo => rtproof_trace::TaskPolicy::Fifo,
        Policy::Rr => rtproof_trace::TaskPolicy::Rr,
        Policy::Batch => rtproof_trace::TaskPolicy::Batch,
        Policy::Idle => rtproof_trace::TaskPolicy::Idle,
        Policy::Deadline => rtproof_trace::TaskPolicy::Deadline,
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

// What ran on each CPU since boot, read from another CPU: two readings are subtracted by the
// reader that wants to know what ran in between. Nothing here interrupts the CPUs that it asks
// about; it is some files of /proc, and two for each task.

/// Time of one CPU since boot (/proc/stat), milliseconds in steps of 10: the ABI counts in
/// USER_HZ, see [`crate::sample`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    pub cpu: u32,
    pub user_ms: u64,
    /// Tasks of low priority.
    pub nice_ms: u64,
    /// The kernel on behalf of tasks, and its threads.
    pub system_ms: u64,
    pub irq_ms: u64,
    pub softirq_ms: u64,
    /// Stolen by the hypervisor.
    pub steal_ms: u64,
}

impl CpuTimes {
    /// Difference to an earlier reading of the same CPU. Counters of a CPU may step back a
    /// tick (Documentation/filesystems/proc.rst).
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu,
            user_ms: self.user_ms.saturating_sub(earlier.user_ms),
            nice_ms: self.nice_ms.saturating_sub(earlier.nice_ms),
            system_ms: self.system_ms.saturating_sub(earlier.system_ms),
            irq_ms: self.irq_ms.saturating_sub(earlier.irq_ms),
            softirq_ms: self.softirq_ms.saturating_sub(earlier.softirq_ms),
            steal_ms: self.steal_ms.saturating_sub(earlier.steal_ms),
        }
    }
}

/// One line of /proc/interrupts or /proc/softirqs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptLine {
    /// Number or abbreviation, e.g. `36`, `LOC`, `TIMER`.
    pub name: String,
    /// What follows the counts, e.g. `PCI-MSI 524288-edge nvme0q1`; empty for softirqs.
    pub about: String,
    /// Count of each requested CPU.
    pub counts: Vec<(u32, u64)>,
}

/// Scheduling activity of one task (thread).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskActivity {
    pub tid: u32,
    /// Start time in clock ticks since boot: with the id, the identity.
    pub start_ticks: u64,
    pub comm: String,
    pub kernel_thread: bool,
    /// Policy, if it is known here.
    pub policy: Option<Policy>,
    /// CPU that it last ran on.
    pub cpu: u32,
    /// CPU time used, milliseconds in steps of 10.
    pub time_ms: u64,
    /// Context switches away from it, of its own will or not.
    pub switches: u64,
    pub allowed: CpuList,
}

/// Times of the CPUs.
pub fn times(root: &Root, cpus: &CpuList) -> Reading<Vec<CpuTimes>> {
    root.read_text("/proc/stat").and_then(|path, text| {
        let rows: Vec<CpuTimes> =
            text.lines().filter_map(cpu_times).filter(|times| cpus.contains(times.cpu)).collect();
        match rows.len() == cpus.len() {
            true => Reading::known(path, rows),
            false => Reading::malformed(path, &text, format!("a line for each of CPU {cpus}")),
        }
    })
}

/// `cpuN user nice system idle iowait irq softirq steal ...` in ticks of 10 ms.
pub(crate) fn cpu_ticks(line: &str) -> Option<(u32, [u64; 8])> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = words.next()?.parse().ok()?;
    }
    Some((cpu, ticks))
}

fn cpu_times(line: &str) -> Option<CpuTimes> {
    let (cpu, ticks) = cpu_ticks(line)?;
    let [user_ms, nice_ms, system_ms, _, _, irq_ms, softirq_ms, steal_ms] =
        ticks.map(|ticks| ticks.saturating_mul(10));
    Some(CpuTimes { cpu, user_ms, nice_ms, system_ms, irq_ms, softirq_ms, steal_ms })
}

/// Interrupts of the CPUs by line.
pub fn interrupts(root: &Root, cpus: &CpuList) -> Reading<Vec<InterruptLine>> {
    events(root, "/proc/interrupts", cpus)
}

/// Softirqs of the CPUs by kind.
pub fn softirqs(root: &Root, cpus: &CpuList) -> Reading<Vec<InterruptLine>> {
    events(root, "/proc/softirqs", cpus)
}

fn events(root: &Root, path: &str, cpus: &CpuList) -> Reading<Vec<InterruptLine>> {
    root.read_text(path).and_then(|path, text| {
        let (columns, rows) = interrupt_table(&text);
        if cpus.iter().any(|cpu| !columns.contains(&cpu)) {
            let header = text.lines().next().unwrap_or_default();
            return Reading::malformed(path, header, format!("a column for each of CPU {cpus}"));
        }
        let rows = rows.filter(|row| row.counts.len() == columns.len()).map(|row| {
            let counts = columns.iter().copied().zip(row.counts);
            InterruptLine {
                name: row.label.to_owned(),
                about: row.about.split_whitespace().collect::<Vec<_>>().join(" "),
                counts: counts.filter(|(cpu, _)| cpus.contains(*cpu)).collect(),
            }
        });
        Reading::known(path, rows.collect())
    })
}

/// Time slices of tasks on all the CPUs (Documentation/scheduler/sched-stats.rst, field
/// 9 of `cpuN`). Absent without CONFIG_SCHEDSTATS.
pub fn time_slices(root: &Root, cpus: &CpuList) -> Reading<u64> {
    root.read_text("/proc/schedstat").and_then(|path, text| {
        let of_line = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let cpu: u32 = words.next()?.parse().ok()?;
            Some((cpu, words.nth(8)?.parse::<u64>().ok()?))
        };
        let rows: Vec<(u32, u64)> =
            text.lines().filter_map(of_line).filter(|(cpu, _)| cpus.contains(*cpu)).collect();
        match rows.len() == cpus.len() {
            true => Reading::known(path, rows.iter().map(|(_, slices)| slices).sum()),
            false => Reading::malformed(path, &text, format!("a line for each of CPU {cpus}")),
        }
    })
}

/// Every task that may run on one of the CPUs, this process left out. Tasks that end meanwhile are
/// left out; refused where not all processes are visible.
pub fn tasks(root: &Root, cpus: &CpuList) -> Reading<Vec<TaskActivity>> {
    const PATH: &str = "/proc/*/task/*/stat";
    let pids = root.list_numbered("/proc", "");
    // No process at all, not even this one: nothing hides them, procfs is missing.
    if pids.value().is_some_and(Vec::is_empty) {
        return Reading::absent(PATH);
    }
    if root.read_text("/proc/1/stat").is_absent() {
        let why = "process 1 cannot be seen: /proc hides other users' processes (hidepid)";
        return Reading::denied(PATH, why);
    }
    let own = root.read_link("/proc/self");
    let own: Option<u32> = own.value().and_then(|pid| pid.parse().ok());
    pids.with_path(PATH).map(|pids| {
        let pids = pids.into_iter().filter(|&pid| Some(pid) != own);
        let tasks = pids.flat_map(|pid| {
            let folder = format!("/proc/{pid}/task");
            let tids = root.list_numbered(&folder, "").value().cloned().unwrap_or_default();
            tids.into_iter().filter_map(move |tid| read_task(root, &format!("{folder}/{tid}"), tid))
        });
        tasks.filter(|task| !task.allowed.intersection(cpus).is_empty()).collect()
    })
}

fn read_task(root: &Root, folder: &str, tid: u32) -> Option<TaskActivity> {
    let status = root.read_text(&format!("{folder}/status"));
    let status = status.value()?;
    let number = |name: &str| field(status, name)?.parse::<u64>().ok();
    let stat = root.read_text(&format!("{folder}/stat"));
    let parsed = Stat::parse(stat.value()?)?;
    Some(TaskActivity {
        tid,
        start_ticks: parsed.start_ticks,
        comm: parsed.comm,
        kernel_thread: parsed.kernel_thread,
        policy: parsed.policy,
        cpu: parsed.cpu,
        time_ms: parsed.cpu_ticks.saturating_mul(10),
        switches: number("voluntary_ctxt_switches")?
            .saturating_add(number("nonvoluntary_ctxt_switches")?),
        allowed: CpuList::parse(field(status, "Cpus_allowed_list")?, None).ok()?,
    })
}

// What the kernel counts of the threads of a process, and which processes it has started: for a
// program that is accompanied from its start to its end. And the group that it joins.

/// USER_HZ is 100 on every machine that rtproof is built for (include/asm-generic/param.h).
const TICK_NS: u64 = 10_000_000;

/// What the kernel counted of one thread since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCounts {
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
pub fn of_thread(root: &Root, pid: u32, tid: u32) -> Option<TaskCounts> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let stat = Stat::parse(root.read_text(&format!("{folder}/stat")).value()?)?;
    let status = root.read_text(&format!("{folder}/status"));
    let status = status.value().map(String::as_str).unwrap_or_default();
    let switches = |name: &str| field(status, name)?.trim().parse().ok();
    let sched = root.read_text(&format!("{folder}/sched"));
    Some(TaskCounts {
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

/// Whether a process is stopped by a signal: it does nothing until SIGCONT.
pub fn is_stopped(root: &Root, pid: u32) -> bool {
    let stat = root.read_text(&format!("/proc/{pid}/stat"));
    stat.value().is_some_and(|text| state(text) == Some("T"))
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
            policy: Some(rtproof_trace::TaskPolicy::Rr),
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

#[cfg(test)]
mod activity_tests {
    use super::*;
    use crate::testing::Tree;

    fn cpus(list: &[u32]) -> CpuList {
        CpuList::new(list.iter().copied())
    }

    #[test]
    fn times_of_the_cpus_asked_for() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n\
                    cpu2 10 0 3 4 5 6 7 9 0 0\nintr 5\n";
        let tree = Tree::new(&[("proc/stat", stat)]);
        let root = tree.root();
        let read = times(&root, &cpus(&[0, 2]));
        let rows = read.value().unwrap();
        assert_eq!((rows[0].user_ms, rows[0].softirq_ms, rows[0].steal_ms), (10, 70, 80));
        assert_eq!((rows[1].cpu, rows[1].since(&rows[0]).user_ms), (2, 90));
        assert_eq!(rows[0].since(&rows[1]).steal_ms, 0, "never below zero");
        assert!(times(&root, &cpus(&[1])).why_unknown().unwrap().contains("CPU 1"));
    }

    #[test]
    fn interrupts_by_line_and_cpu() {
        let text = "           CPU0       CPU2       \n \
                    36:          7   3496267  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
                    LOC:   13820748   14392551   Local timer interrupts\nERR:          0\n";
        let tree = Tree::new(&[("proc/interrupts", text)]);
        let root = tree.root();
        let read = interrupts(&root, &cpus(&[2]));
        let rows = read.value().unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].name.as_str(), rows[0].counts[0]), ("36", (2, 3_496_267)));
        assert_eq!(rows[0].about, "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0");
        assert_eq!(rows[1].about, "Local timer interrupts");
        assert!(interrupts(&root, &cpus(&[1])).value().is_none());
        assert!(softirqs(&root, &cpus(&[0])).is_absent());
    }

    #[test]
    fn time_slices_are_the_ninth_field() {
        let text = "version 17\ntimestamp 4\ncpu0 1 2 3 4 5 6 7 8 90\ndomain0 3 0 0\n\
                    cpu1 1 2 3 4 5 6 7 8 9\n";
        let tree = Tree::new(&[("proc/schedstat", text)]);
        let root = tree.root();
        assert_eq!(time_slices(&root, &cpus(&[0, 1])).value(), Some(&99));
        assert!(time_slices(&root, &cpus(&[2])).value().is_none());
    }

    #[test]
    fn tasks_that_may_run_there() {
        let stat = "7 (a b) S 1 7 7 0 -1 4194304 9 0 0 0 3 4 0 0 20 0 1 0 88 0 0 0 0 0 0 0 0 0 0 \
                    0 0 0 0 0 17 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let status = "Name:\ta b\nCpus_allowed_list:\t2-3\nvoluntary_ctxt_switches:\t5\n\
                      nonvoluntary_ctxt_switches:\t6\n";
        let tree = Tree::new(&[
            ("proc/1/stat", ""),
            ("proc/7/task/7/stat", stat),
            ("proc/7/task/7/status", status),
        ]);
        let root = tree.root();
        let read = tasks(&root, &cpus(&[3]));
        let [read_task] = read.value().unwrap().as_slice() else { panic!("{read:?}") };
        assert_eq!((read_task.cpu, read_task.time_ms, read_task.switches), (2, 70, 11));
        assert_eq!((read_task.comm.as_str(), read_task.start_ticks), ("a b", 88));
        assert_eq!(tasks(&root, &cpus(&[1])).value().map(Vec::len), Some(0));
        let hidden = Tree::new(&[("proc/7/stat", "")]);
        assert!(tasks(&hidden.root(), &cpus(&[3])).why_unknown().unwrap().contains("hidepid"));
        let no_procfs = Tree::new(&[("proc/x", "")]);
        assert!(tasks(&no_procfs.root(), &cpus(&[3])).is_absent(), "nothing is hidden there");
    }

    #[test]
    fn the_live_machine() {
        let root = Root::live();
        let online = root.cpu_list("/sys/devices/system/cpu/online");
        let online = online.value().cloned().unwrap_or_else(|| cpus(&[0]));
        assert!(times(&root, &online).value().is_some());
        assert!(interrupts(&root, &online).value().is_some_and(|rows| !rows.is_empty()));
        assert!(tasks(&root, &online).value().is_some_and(|tasks| tasks.len() > 1));
    }
}

#[cfg(test)]
mod counts_tests {
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
