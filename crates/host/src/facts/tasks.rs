//! Real-time tasks of the machine: which one may preempt which.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::TaskName;
use crate::{CpuList, Reading, Root};

/// One task (thread) under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RtTask {
    pub tid: u32,
    pub pid: u32,
    /// Name of the thread.
    pub comm: String,
    pub policy: Policy,
    /// Real-time priority, 1 to 99; 0 for SCHED_DEADLINE.
    pub priority: u32,
    /// CPUs it may run on, if readable.
    pub cpus: Option<CpuList>,
    pub kernel_thread: bool,
    /// systemd unit or cgroup that owns it, where it has one, e.g. `multipathd.service`.
    pub unit: Option<String>,
    /// Start time in clock ticks since boot: with the pid, the identity of the process.
    pub start_ticks: u64,
}

/// Tasks of one name that are placed and scheduled alike: all tasks of the machine in a few lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskGroup {
    /// Name with numbers as `N`, e.g. `kworker/uN:N`; that of the process where its threads are
    /// all alike. `*`: several names.
    pub name: String,
    /// Whether they are kernel threads.
    pub kernel_thread: bool,
    /// Whether the kernel refuses to move them (PF_NO_SETAFFINITY).
    pub bound: bool,
    /// CPUs that they may run on; `None`: not readable. Of threads that are bound, or that follow
    /// an interrupt, each has its own and this is where any of them may run.
    pub cpus: Option<CpuList>,
    /// Policy; `None`: one that is not known here.
    pub policy: Option<Policy>,
    /// systemd unit or cgroup that owns them, where they have one.
    pub unit: Option<String>,
    pub count: u32,
    /// Thread id of one of them, the lowest.
    pub tid: u32,
    /// Each of them, where they are kernel threads that can be moved one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskName>,
}

/// Scheduling policy (include/uapi/linux/sched.h).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    Other,
    Fifo,
    Rr,
    Batch,
    Idle,
    Deadline,
    Ext,
}

impl Policy {
    /// The policy with this number of the kernel's ABI, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Other),
            1 => Some(Self::Fifo),
            2 => Some(Self::Rr),
            3 => Some(Self::Batch),
            5 => Some(Self::Idle),
            6 => Some(Self::Deadline),
            7 => Some(Self::Ext),
            _ => None,
        }
    }

    /// The policy of that name, of those that a measuring thread can have.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Fifo, Self::Rr, Self::Deadline, Self::Other];
        all.into_iter().find(|policy| policy.name() == name)
    }

    /// Whether it has priorities, 1 to 99.
    pub const fn has_priority(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }

    /// Whether tasks of this policy run ahead of all ordinary ones.
    pub const fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr | Self::Deadline)
    }

    /// Name as it is serialised: `fifo`, `rr`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Deadline => "deadline",
            Self::Ext => "ext",
        }
    }
}

// All tasks of a machine in a few lines, by the CPUs where they may run.

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

/// Groups while they are collected.
#[derive(Debug, Default)]
struct Groups(BTreeMap<Key, TaskGroup>);

impl Groups {
    /// Adds the threads of a process.
    fn add_process(
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
    fn finish(mut self) -> Vec<TaskGroup> {
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

// One walk over all tasks, for the real-time ones and for daemons known by name.

/// Result of one walk over /proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskScan {
    /// Real-time tasks, this process left out, by thread id.
    pub rt_tasks: Reading<Vec<RtTask>>,
    /// All tasks in groups, this process left out.
    pub placement: Reading<Vec<TaskGroup>>,
    /// Name and id of every process; unknown where not all processes are visible.
    pub processes: Reading<Vec<(String, u32)>>,
}

impl TaskScan {
    /// Walks over all tasks. Tasks that end meanwhile are left out.
    pub fn read(root: &Root) -> Self {
        let pids = root.list_numbered("/proc", "").and_then(|path, pids| {
            // Whoever cannot see process 1 does not see all (mount option hidepid, another PID
            // namespace's /proc, or a capture of a few processes): what is missing may be RT.
            let first = root.read_text("/proc/1/stat");
            if pids.is_empty() {
                // No process at all, not even this one: the folder is there and procfs is not.
                return Reading::absent("/proc/*/stat");
            }
            match first.value() {
                Some(_) => Reading::known(path, pids),
                None if root.is_whole() && first.is_absent() => Reading::denied(
                    path,
                    "process 1 cannot be seen: /proc hides other users' processes (hidepid)",
                ),
                None => first.map(|_| Vec::new()),
            }
        });
        let own = own_pid(root);
        let mut tasks = Vec::new();
        let mut groups = Groups::default();
        let mut unseen = None;
        let mut seen = 0;
        let processes = pids.clone().map(|pids| {
            let mut process = |&pid: &u32| {
                let main = read_stat(root, &format!("/proc/{pid}/stat"), &mut unseen)?;
                if Some(pid) != own {
                    seen += process_tasks(root, pid, &main, &mut tasks, &mut groups, &mut unseen);
                }
                Some((main.comm, pid))
            };
            pids.iter().filter_map(&mut process).collect()
        });
        if let Some(why) = left_out(root, seen) {
            let path = "/proc/*/stat, /proc/loadavg";
            return Self {
                rt_tasks: Reading::denied(path, &*why),
                placement: Reading::denied(path, &*why),
                processes: Reading::denied(path, &*why),
            };
        }
        tasks.sort_unstable_by_key(|task| task.tid);
        let placement = pids.clone().map(|_| groups.finish());
        // One that is not seen may be a real-time one. Those that ended meanwhile are absent.
        let rt_tasks = match unseen {
            Some(unseen) => unseen.map(|_| Vec::new()),
            None => pids.map(|_| tasks).with_path("/proc/*/task/*/stat"),
        };
        Self { rt_tasks, placement: placement.with_path("/proc/*/task/*/status"), processes }
    }
}

/// Whether a copy left tasks out, by what the kernel counted: some end while they are copied.
fn left_out(root: &Root, seen: usize) -> Option<String> {
    if root.is_whole() || seen == 0 {
        return None;
    }
    let text = root.read_text("/proc/loadavg");
    let count = text.value()?.split_whitespace().nth(3)?.split_once('/')?.1;
    let count: usize = count.parse().ok()?;
    (seen.saturating_mul(20) < count.saturating_mul(19))
        .then(|| format!("{seen} of the {count} tasks of this machine are in the copy"))
}

/// The id of the process that reads /proc, or read it; a folder of files has none.
fn own_pid(root: &Root) -> Option<u32> {
    if !root.is_whole() {
        return None;
    }
    root.read_link("/proc/self").value()?.parse().ok()
}

/// `unseen` gets the first that is there and cannot be read.
fn read_stat(root: &Root, path: &str, unseen: &mut Option<Reading<String>>) -> Option<Stat> {
    let text = root.read_text(path);
    let stat = text.value().and_then(|text| Stat::parse(text));
    if unseen.is_none() && text.value().is_none() && !text.is_absent() {
        *unseen = Some(text);
    }
    stat
}

/// Adds the tasks of one process: the real-time ones each, all of them to the groups; how many.
fn process_tasks(
    root: &Root,
    pid: u32,
    main: &Stat,
    into: &mut Vec<RtTask>,
    groups: &mut Groups,
    unseen: &mut Option<Reading<String>>,
) -> usize {
    let unit = (!main.kernel_thread).then(|| root.read_text(&format!("/proc/{pid}/cgroup")));
    let unit = unit.and_then(|cgroup| unit_of(cgroup.value()?));
    let mut threads: Vec<(u32, Stat, Option<CpuList>)> = Vec::new();
    let mut add = |tid: u32, stat: Stat| {
        let cpus = allowed_cpus(root, pid, tid);
        if let Some(policy) = stat.policy.filter(|policy| policy.is_real_time()) {
            into.push(RtTask {
                tid,
                pid,
                comm: stat.comm.clone(),
                policy,
                priority: stat.priority,
                cpus: cpus.clone(),
                kernel_thread: stat.kernel_thread,
                unit: unit.clone(),
                start_ticks: stat.start_ticks,
            });
        }
        threads.push((tid, stat, cpus));
    };
    let folder = format!("/proc/{pid}/task");
    // Most processes have one thread: no folder to list.
    let tids = (main.threads > 1).then(|| root.list_numbered(&folder, ""));
    match tids.as_ref().and_then(Reading::value) {
        Some(tids) => {
            for &tid in tids {
                if let Some(stat) = read_stat(root, &format!("{folder}/{tid}/stat"), unseen) {
                    add(tid, stat);
                }
            }
        }
        // Of one thread; or vanished, or not captured.
        None => add(pid, main.clone()),
    }
    groups.add_process(&main.comm, unit.as_ref(), &threads);
    threads.len()
}

/// CPUs that a thread may run on. Only its line is read of a file of some sixty.
fn allowed_cpus(root: &Root, pid: u32, tid: u32) -> Option<CpuList> {
    const LINE: &str = "Cpus_allowed_list";
    let status = root
        .excerpt(&format!("/proc/{pid}/task/{tid}/status"), &[LINE])
        .or_else(|| root.excerpt(&format!("/proc/{pid}/status"), &[LINE]));
    let list = status.value()?.strip_prefix(LINE)?.strip_prefix(':')?;
    CpuList::parse(list, None).ok()
}

/// The innermost service or scope of a cgroup file, else the innermost slice, else the cgroup
/// itself unless it is the root. The lines that matter are version 2's (`0::`) and systemd's own of
/// version 1; where those name none, a controller of version 1 may (no systemd, or a container).
pub(crate) fn unit_of(cgroup: &str) -> Option<String> {
    let is_own = |line: &&str| line.starts_with("0::") || line.contains(":name=systemd:");
    let path = |line: &'_ str| {
        let path = line.splitn(3, ':').nth(2)?;
        Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
    };
    let (own, controllers): (Vec<&str>, Vec<&str>) = cgroup.lines().partition(is_own);
    let own: Vec<String> = own.into_iter().filter_map(path).collect();
    let controllers: Vec<String> = controllers.into_iter().filter_map(path).collect();
    let innermost = |paths: &[String], endings: &[&str]| {
        let is_unit = |part: &&str| endings.iter().any(|ending| part.ends_with(ending));
        paths.iter().find_map(|path| path.rsplit('/').find(is_unit).map(str::to_owned))
    };
    let running = [".service", ".scope"];
    innermost(&own, &running)
        .or_else(|| innermost(&controllers, &running))
        .or_else(|| innermost(&own, &[".slice"]))
        .or_else(|| own.into_iter().find(|path| path.len() > 1))
}

// /proc/PID/stat.

/// Flag of kernel threads (include/linux/sched.h, `PF_KTHREAD`).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Flag of tasks that the kernel refuses to move (`PF_NO_SETAFFINITY`).
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// The fields of /proc/PID/stat that are used here (Documentation/filesystems/proc.rst, table 1-4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) comm: String,
    pub(crate) kernel_thread: bool,
    pub(crate) bound: bool,
    pub(crate) threads: u64,
    pub(crate) start_ticks: u64,
    pub(crate) cpu: u32,
    pub(crate) priority: u32,
    pub(crate) policy: Option<Policy>,
    pub(crate) nice: i64,
    /// Time on CPUs, in user and kernel mode.
    pub(crate) cpu_ticks: u64,
    /// Page faults that needed no disk.
    pub(crate) minor_faults: u64,
    /// Page faults that waited for a disk.
    pub(crate) major_faults: u64,
}

impl Stat {
    /// Takes a line apart. The name may hold spaces and parentheses, so it ends at the last `)`;
    /// after it comes field 3.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (head, tail) = line.rsplit_once(')')?;
        let (_, comm) = head.split_once('(')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let small = |number: usize| u32::try_from(field(number)?).ok();
        Some(Self {
            comm: comm.to_owned(),
            kernel_thread: field(9)? & PF_KTHREAD != 0,
            bound: field(9)? & PF_NO_SETAFFINITY != 0,
            threads: field(20)?,
            start_ticks: field(22)?,
            cpu: small(39)?,
            priority: small(40)?,
            policy: Policy::from_number(small(41)?),
            nice: fields.get(19 - 3)?.parse().ok()?,
            cpu_ticks: field(14)?.saturating_add(field(15)?),
            minor_faults: field(10)?,
            major_faults: field(12)?,
        })
    }
}

#[cfg(test)]
mod groups_tests {
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

#[cfg(test)]
mod scan_tests {
    use super::*;
    use crate::reading::ReadingState;
    use crate::testing::Tree;

    /// A stat line; fields 3 to 41 with those that matter set.
    fn stat(tid: u32, comm: &str, flags: u64, threads: u32, priority: u32, policy: u32) -> String {
        let mut fields = vec!["0".to_owned(); 50];
        fields[0] = "S".into();
        fields[6] = flags.to_string();
        fields[17] = threads.to_string();
        fields[19] = "777".into();
        fields[36] = "3".into();
        fields[37] = priority.to_string();
        fields[38] = policy.to_string();
        format!("{tid} ({comm}) {}\n", fields.join(" "))
    }

    #[test]
    fn names_with_spaces_and_parentheses() {
        let line = stat(7, "a b) (c) 1 2", 0x0020_0040, 1, 99, 1);
        let stat = Stat::parse(&line).unwrap();
        assert_eq!(stat.comm, "a b) (c) 1 2");
        assert!(stat.kernel_thread);
        assert_eq!((stat.cpu, stat.priority, stat.policy), (3, 99, Some(Policy::Fifo)));
        assert_eq!(stat.start_ticks, 777);
        assert_eq!(Stat::parse("7 (cut) S 1 2"), None);
        assert_eq!(Stat::parse(""), None);
    }

    fn machine() -> Tree {
        Tree::new(&[
            ("proc/1/stat", &stat(1, "systemd", 0, 1, 0, 0)),
            ("proc/12/stat", &stat(12, "migration/0", PF_KTHREAD, 1, 99, 1)),
            ("proc/12/status", "Cpus_allowed_list:\t0\n"),
            ("proc/400/stat", &stat(400, "multipathd", 0, 3, 0, 0)),
            ("proc/400/task/400/stat", &stat(400, "multipathd", 0, 3, 0, 0)),
            ("proc/400/task/401/stat", &stat(401, "multipathd", 0, 3, 99, 2)),
            ("proc/400/task/401/status", "Cpus_allowed_list:\t0-3\n"),
            ("proc/400/cgroup", "0::/system.slice/multipathd.service\n"),
            // 402 vanished: its folder is there and its stat is not.
            ("proc/400/task/402/comm", "x"),
            ("proc/irq/x", ""),
        ])
    }

    #[test]
    fn real_time_tasks_and_processes() {
        let scan = TaskScan::read(&machine().root());
        let tasks = scan.rt_tasks.value().unwrap();
        assert_eq!(tasks.len(), 2);
        assert!(tasks[0].kernel_thread && tasks[0].unit.is_none());
        assert_eq!(tasks[0].cpus.as_ref().unwrap().as_slice(), [0]);
        let thread = &tasks[1];
        assert_eq!((thread.tid, thread.pid, thread.priority), (401, 400, 99));
        assert_eq!(thread.policy, Policy::Rr);
        assert_eq!(thread.unit.as_deref(), Some("multipathd.service"));
        let names: Vec<_> = scan.processes.value().unwrap().iter().map(|p| p.0.as_str()).collect();
        assert_eq!(names, ["systemd", "migration/0", "multipathd"]);
    }

    #[test]
    fn every_task_is_in_a_group() {
        let scan = TaskScan::read(&machine().root());
        assert_eq!(scan.placement.path, "/proc/*/task/*/status");
        let show = |group: &TaskGroup| {
            let cpus = group.cpus.as_ref().map_or("?".into(), CpuList::to_string);
            let unit = group.unit.as_deref().unwrap_or("-");
            format!("{} {} {cpus} {unit}", group.name, group.tid)
        };
        let shown: Vec<String> = scan.placement.value().unwrap().iter().map(show).collect();
        let wanted = [
            "migration/N 12 0 -",
            "multipathd 400 ? multipathd.service",
            "multipathd 401 0-3 multipathd.service",
            "systemd 1 ? -",
        ];
        assert_eq!(shown, wanted);
        assert!(TaskScan::read(&Tree::new(&[]).root()).placement.is_absent());
    }

    #[test]
    fn a_few_processes_are_not_all() {
        let tree = Tree::new(&[("proc/26231/stat", &stat(26231, "vim", 0, 1, 0, 0))]);
        let scan = TaskScan::read(&tree.root());
        assert!(scan.rt_tasks.is_absent() && scan.processes.is_absent());
        assert!(TaskScan::read(&Tree::new(&[]).root()).rt_tasks.is_absent());
        // The folder without procfs on it hides no processes: it has none.
        let bare = TaskScan::read(&Tree::new(&[("proc/x", "")]).root());
        assert_eq!(bare.rt_tasks, Reading::absent("/proc/*/task/*/stat"));
        assert_eq!(bare.processes, Reading::absent("/proc/*/stat"));
        // A folder in place of the file makes the read fail.
        let refused = TaskScan::read(&Tree::new(&[("proc/1/stat/x", "")]).root());
        assert!(matches!(refused.rt_tasks.state, ReadingState::Denied { .. }));
    }

    /// The kernel's own count shows that a copy has a part of them.
    #[test]
    fn a_copy_without_some_tasks_has_none() {
        let tree = machine();
        let is_known = |tree: &Tree| {
            let scan = TaskScan::read(&tree.root());
            [scan.rt_tasks.value().is_some(), scan.placement.value().is_some()]
        };
        tree.write("proc/loadavg", "0.0 0.1 0.5 1/4 402\n");
        assert_eq!(is_known(&tree), [true, true]);
        tree.write("proc/loadavg", "0.0 0.1 0.5 1/240 402\n");
        assert_eq!(is_known(&tree), [false, false]);
        let processes = TaskScan::read(&tree.root()).processes;
        assert!(matches!(processes.state, ReadingState::Denied { .. }), "{processes:?}");
        tree.write("proc/loadavg", "what is this\n");
        assert_eq!(is_known(&tree), [true, true]);
    }

    #[test]
    fn units_of_both_cgroup_versions() {
        let unit = |text| unit_of(text);
        let v1 = "9:name=systemd:/user.slice/user@1000.service/app.slice/run-1.scope\n8:cpu:/\n";
        assert_eq!(unit(v1).as_deref(), Some("run-1.scope"));
        assert_eq!(unit("0::/system.slice/x.service/sub\n").as_deref(), Some("x.service"));
        assert_eq!(unit("0::/docker/abc\n").as_deref(), Some("/docker/abc"));
        assert_eq!(unit("0::/\n"), None);
        assert_eq!(unit("4:cpu:/a.service\n").as_deref(), Some("a.service"));
        assert_eq!(unit("1:name=systemd:/\n4:cpu:/a.service\n").as_deref(), Some("a.service"));
        assert_eq!(unit("4:cpu:/docker/abc\n"), None);
        assert_eq!(unit("0::/user.slice/user-1000.slice\n").as_deref(), Some("user-1000.slice"));
        assert_eq!(unit("0::/system.slice/x.service (deleted)\n").as_deref(), Some("x.service"));
        assert_eq!(unit("0::/../../system.slice/x.service\n").as_deref(), Some("x.service"));
        assert_eq!(unit(""), None);
    }
}
