//! One application: its processes and threads, its control groups, its unit.
//!
//! Not a part of [`crate::Facts`]: a machine has many applications, and a record of a run is about
//! the machine. Everything is read from files, so that a capture that reads the same
//! application answers the same.

#[cfg(test)]
mod tests;
mod unit;

pub(crate) use unit::is_setting as is_unit_setting;
pub use unit::{Assignment, CpuGroup, CpusetGroup, Groups, MemoryGroup, Quota, UnitFile};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rights::{CAP_IPC_LOCK, CAP_SYS_NICE, Limit, effective_capabilities, limit};
use super::tasks::{Policy, Stat, unit_of};
use crate::reading::ReadingState;
use crate::text::field;
use crate::{CpuList, Reading, Root};

/// Maximum number of processes of a unit: those that started first.
const PROCESSES_MAX: usize = 64;

/// What to inspect: a process or a systemd unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The process with this id, or the one that this thread belongs to.
    Pid(u32),
    /// Every process of a systemd unit; `.service` may be left out.
    Unit(String),
}

/// One application: its processes and threads, its unit and control groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct App {
    /// Name of the main process.
    pub name: String,
    /// Id of the main process: the first one with a real-time thread, else the first that started.
    pub pid: u32,
    /// Service or scope that it runs in, by its control group; `None`: neither.
    pub unit: Reading<Option<String>>,
    /// Processes: one, or those of the unit, the first that started first.
    pub processes: Vec<AppProcess>,
    /// Control groups of the main process.
    pub groups: Groups,
    /// Settings of the unit, from its files; `None`: no unit.
    pub unit_file: Reading<Option<UnitFile>>,
    /// Slice of SCHED_RR in milliseconds (/proc/sys/kernel/sched_rr_timeslice_ms).
    pub rr_timeslice_ms: Reading<u64>,
    /// Time since boot in clock ticks of 10 ms, which the kernel's ABI counts in (/proc/uptime).
    pub uptime_ticks: Reading<u64>,
}

/// Why an application cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("no process {0} can be seen: list processes with `ps -e` as root")]
    NoProcess(u32),
    /// The process cannot be read.
    #[error("process {pid}: {path}: {why}; {next}")]
    Unreadable {
        pid: u32,
        /// File that was read.
        path: String,
        why: String,
        next: &'static str,
    },
    /// A thread of the kernel.
    #[error(
        "process {0} is a thread of the kernel, no application: `rtproof check` without --pid \
         judges the machine's threads"
    )]
    KernelThread(u32),
    /// Processes cannot be listed.
    #[error("{path}: {why}; name the process with --pid")]
    NoList {
        /// Folder that was read.
        path: String,
        why: String,
    },
    #[error("no unit {0}: list services with `systemctl list-units --type=service`")]
    NoUnit(String),
    /// The unit has no process.
    #[error("{0} has no process: start it with `systemctl start {0}`")]
    NotRunning(String),
}

impl App {
    /// Reads an application: some files for each thread, more for each real-time thread. Changes
    /// nothing, and asks for nothing that takes a lock of the application's memory.
    ///
    /// # Errors
    /// No such process or unit, a unit that does not run, a thread of the kernel.
    pub fn read(root: &Root, target: &Target) -> Result<Self, AppError> {
        let processes = match target {
            Target::Pid(pid) => vec![of_pid(root, *pid)?],
            Target::Unit(name) => of_unit(root, &full_name(name))?,
        };
        let is_real_time = |process: &&AppProcess| process.real_time().next().is_some();
        let main = processes.iter().find(is_real_time).or_else(|| processes.first());
        let Some(main) = main else {
            // `of_unit` gives at least one.
            return Err(AppError::NoProcess(0));
        };
        let cgroup = root.read_text(&format!("/proc/{}/cgroup", main.pid));
        let unit = cgroup.clone().map(|text| unit_of(&text).filter(|name| is_running_unit(name)));
        let unit_file = unit::read_unit_file(root, &cgroup, &unit);
        Ok(Self {
            name: main.name.clone(),
            pid: main.pid,
            groups: Groups::read(root, &cgroup),
            unit,
            unit_file,
            rr_timeslice_ms: root.number("/proc/sys/kernel/sched_rr_timeslice_ms", "milliseconds"),
            uptime_ticks: root
                .read_text("/proc/uptime")
                .parsed("seconds since boot, with two decimals", uptime_ticks),
            processes,
        })
    }

    /// Threads that are known, of all processes.
    pub fn threads(&self) -> impl Iterator<Item = &AppThread> {
        self.processes.iter().flat_map(|process| process.threads.value().into_iter().flatten())
    }

    /// Number of known threads.
    pub fn thread_count(&self) -> usize {
        self.threads().count()
    }
}

/// The process that a process or thread id belongs to.
fn of_pid(root: &Root, pid: u32) -> Result<AppProcess, AppError> {
    let path = format!("/proc/{pid}/status");
    let status = root.read_text(&path);
    let Some(text) = status.value() else {
        let why = status.why_unknown().unwrap_or_default();
        return Err(match &status.state {
            ReadingState::Absent => AppError::NoProcess(pid),
            _ if root.is_live() => AppError::Unreadable { pid, path, why, next: "run as root" },
            _ => {
                let next = "capture the machine again, with this process";
                AppError::Unreadable { pid, path, why, next }
            }
        });
    };
    let group = text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = AppProcess::read(root, group.unwrap_or(pid)).ok_or(AppError::NoProcess(pid))?;
    if process.is_kernel_thread { Err(AppError::KernelThread(pid)) } else { Ok(process) }
}

/// Processes whose control group lies in the unit's.
fn of_unit(root: &Root, name: &str) -> Result<Vec<AppProcess>, AppError> {
    let pids = root.list_numbered("/proc", "");
    let Some(pids) = pids.value() else {
        let why = pids.why_unknown().unwrap_or_default();
        return Err(AppError::NoList { path: pids.path.clone(), why });
    };
    let is_of_unit = |pid: &&u32| {
        let cgroup = root.read_text(&format!("/proc/{pid}/cgroup"));
        let is_in = |line: &str| {
            let path = line.splitn(3, ':').nth(2).unwrap_or_default();
            path.split('/').any(|part| part == name)
        };
        cgroup.value().is_some_and(|text| text.lines().any(is_in))
    };
    // Ids rise with the time of the start until they wrap round: the order is settled below.
    let found = pids.iter().filter(is_of_unit).filter_map(|&pid| AppProcess::read(root, pid));
    let mut processes: Vec<AppProcess> = found.take(PROCESSES_MAX).collect();
    processes.sort_by_key(|process| (process.start_ticks, process.pid));
    if !processes.is_empty() {
        return Ok(processes);
    }
    match unit::find_unit_file(root, name) {
        Some((file, _)) => match alias(root, &file, name) {
            Some(target) => of_unit(root, &target),
            None => Err(AppError::NotRunning(name.into())),
        },
        None => Err(AppError::NoUnit(name.into())),
    }
}

/// The unit that a file is an alias of: a link to a file of another name. Groups bear its name.
fn alias(root: &Root, file: &str, name: &str) -> Option<String> {
    let target = root.read_link(file);
    let target = target.value()?.rsplit('/').next()?;
    let is_unit = is_running_unit(target) && target != name && !target.contains("@.");
    // systemd does not follow an alias of an alias: this ends.
    let is_alias =
        root.read_link(&format!("{}/{target}", file.rsplit_once('/')?.0)).value().is_none();
    (is_unit && is_alias).then(|| target.to_owned())
}

/// A unit's name with its kind, as systemctl completes it.
fn full_name(name: &str) -> String {
    let kinds = [".service", ".scope", ".slice"];
    let is_full = kinds.iter().any(|kind| name.ends_with(kind));
    if is_full { name.into() } else { format!("{name}.service") }
}

fn is_running_unit(name: &str) -> bool {
    name.ends_with(".service") || name.ends_with(".scope")
}

/// Seconds with two decimals, as /proc/uptime begins: a hundred ticks a second.
pub(super) fn uptime_ticks(text: &str) -> Option<u64> {
    let (whole, part) = text.split_whitespace().next()?.split_once('.')?;
    whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?)
}

// One process and its threads, from /proc/PID.

/// Most ordinary threads whose affinity is read: a thread costs a file each.
const ORDINARY_READ_MAX: usize = 256;

/// One process of an application, as /proc/PID describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppProcess {
    pub pid: u32,
    /// Name of its first thread.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub is_kernel_thread: bool,
    /// Start in clock ticks since boot: with the id, its identity.
    pub start_ticks: u64,
    /// Memory, rights, tracer (/proc/PID/status).
    pub status: Reading<ProcessStatus>,
    /// Limits (/proc/PID/limits).
    pub limits: Reading<ProcessLimits>,
    /// Preference to be spared (-1000) or killed (1000) when memory runs out
    /// (/proc/PID/oom_score_adj).
    pub oom_score_adj: Reading<i64>,
    /// Threads that there were, by id.
    pub threads: Reading<Vec<AppThread>>,
}

/// What /proc/PID/status says of a process. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStatus {
    /// Size of the address space (`VmSize`).
    pub size_bytes: u64,
    /// Resident memory, huge pages of hugetlbfs left out (VmRSS).
    pub resident_bytes: u64,
    /// Address space that is locked (VmLck).
    pub locked_bytes: u64,
    /// Memory that is in swap (VmSwap).
    pub swapped_bytes: u64,
    /// Huge pages of hugetlbfs (HugetlbPages).
    pub hugetlb_bytes: u64,
    /// Process that traces it, 0 for none (TracerPid).
    pub tracer: u32,
    /// Seccomp mode: 0 none, 1 strict, 2 filter; `None`: the kernel has none.
    pub seccomp: Option<u32>,
    /// Ids in nested PID namespaces, one where there is none (NSpid).
    pub pid_namespaces: usize,
    /// CAP_SYS_NICE in the effective set.
    pub cap_sys_nice: bool,
    /// CAP_IPC_LOCK in the effective set.
    pub cap_ipc_lock: bool,
}

/// Limits of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessLimits {
    pub rtprio: Limit,
    /// RLIMIT_MEMLOCK in bytes.
    pub memlock: Limit,
    /// RLIMIT_RTTIME in microseconds.
    pub rttime: Limit,
}

/// One thread of an application, as /proc/PID/task/TID describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppThread {
    pub tid: u32,
    pub pid: u32,
    /// Policy, time and faults (/proc/PID/task/TID/stat).
    pub sched: Reading<ThreadSched>,
    /// CPUs, memory nodes, switches (/proc/PID/task/TID/status).
    pub status: Reading<ThreadStatus>,
    /// Slack of its timers in nanoseconds (/proc/TID/timerslack_ns); for root only.
    pub timer_slack_ns: Reading<u64>,
}

/// What /proc/PID/task/TID/stat says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSched {
    pub comm: String,
    pub policy: Policy,
    /// Real-time priority, 1 to 99; 0 for other policies.
    pub priority: u32,
    /// Nice value, for ordinary threads.
    pub nice: i64,
    /// Time on a CPU since the start, in clock ticks of 10 ms.
    pub cpu_ticks: u64,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// Page faults since the start that needed no I/O.
    pub minor_faults: u64,
    /// Page faults since the start that waited for I/O.
    pub major_faults: u64,
}

/// What /proc/PID/task/TID/status says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadStatus {
    /// CPUs it may run on.
    pub cpus: CpuList,
    /// Memory nodes it may take memory from.
    pub mems: CpuList,
    /// Times it gave the CPU up to wait.
    pub voluntary_switches: u64,
    /// Times it lost the CPU while it was runnable.
    pub involuntary_switches: u64,
}

impl AppProcess {
    /// Reads a process; `None`: it ended.
    fn read(root: &Root, pid: u32) -> Option<Self> {
        let main = Stat::parse(root.read_text(&format!("/proc/{pid}/stat")).value()?)?;
        let status = root.read_text(&format!("/proc/{pid}/status"));
        let folder = format!("/proc/{pid}/task");
        let mut ordinary = 0;
        let threads = root.list_numbered(&folder, "").map(|tids| {
            tids.into_iter().filter_map(|tid| thread(root, pid, tid, &mut ordinary)).collect()
        });
        Some(Self {
            pid,
            name: main.comm,
            is_kernel_thread: main.kernel_thread,
            start_ticks: main.start_ticks,
            status: status.and_then(parse_status),
            limits: limits(&root.read_text(&format!("/proc/{pid}/limits"))),
            oom_score_adj: root.number(&format!("/proc/{pid}/oom_score_adj"), "a number"),
            threads,
        })
    }

    /// Threads that are known to be real-time.
    pub fn real_time(&self) -> impl Iterator<Item = &AppThread> {
        self.threads.value().into_iter().flatten().filter(|thread| thread.is_real_time())
    }
}

impl AppThread {
    /// Whether it is known to be real-time.
    pub fn is_real_time(&self) -> bool {
        self.sched.value().is_some_and(|sched| sched.policy.is_real_time())
    }
}

/// One thread; `None`: it ended.
fn thread(root: &Root, pid: u32, tid: u32, ordinary: &mut usize) -> Option<AppThread> {
    let sched = root.read_text(&format!("/proc/{pid}/task/{tid}/stat"));
    if sched.is_absent() {
        return None;
    }
    let sched = sched.parsed("a line of proc_pid_stat(5)", parse_sched);
    let is_real_time = sched.value().is_none_or(|sched| sched.policy.is_real_time());
    *ordinary += usize::from(!is_real_time);
    let (status, slack) =
        (format!("/proc/{pid}/task/{tid}/status"), format!("/proc/{tid}/timerslack_ns"));
    if *ordinary > ORDINARY_READ_MAX && !is_real_time {
        let why = format!("the process has more than {ORDINARY_READ_MAX} ordinary threads");
        let (status, slack) = (Reading::denied(status, &why), Reading::denied(slack, &why));
        return Some(AppThread { tid, pid, sched, status, timer_slack_ns: slack });
    }
    Some(AppThread {
        tid,
        pid,
        sched,
        status: root.read_text(&status).and_then(parse_thread_status),
        timer_slack_ns: root.number(&slack, "nanoseconds"),
    })
}

/// Fields by their numbers in proc_pid_stat(5); after the name comes field 3.
fn parse_sched(line: &str) -> Option<ThreadSched> {
    let stat = Stat::parse(line)?;
    Some(ThreadSched {
        policy: stat.policy?,
        priority: stat.priority,
        nice: stat.nice,
        cpu_ticks: stat.cpu_ticks,
        start_ticks: stat.start_ticks,
        minor_faults: stat.minor_faults,
        major_faults: stat.major_faults,
        comm: stat.comm,
    })
}

fn number<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    field(text, name)?.split_whitespace().next()?.parse().ok()
}

fn parse_status(path: String, text: String) -> Reading<ProcessStatus> {
    let bytes = |name| number::<u64>(&text, name)?.checked_mul(1024);
    let parse = || {
        let capabilities = effective_capabilities(&text)?;
        let has = |bit: u32| capabilities & (1 << bit) != 0;
        Some(ProcessStatus {
            size_bytes: bytes("VmSize")?,
            resident_bytes: bytes("VmRSS")?,
            locked_bytes: bytes("VmLck")?,
            swapped_bytes: bytes("VmSwap").unwrap_or(0),
            hugetlb_bytes: bytes("HugetlbPages").unwrap_or(0),
            tracer: number(&text, "TracerPid")?,
            seccomp: number(&text, "Seccomp"),
            pid_namespaces: field(&text, "NSpid").map_or(1, |ids| ids.split_whitespace().count()),
            cap_sys_nice: has(CAP_SYS_NICE),
            cap_ipc_lock: has(CAP_IPC_LOCK),
        })
    };
    match parse() {
        Some(status) => Reading::known(path, status),
        None => {
            let state = field(&text, "State").unwrap_or_default();
            Reading::malformed(path, state, "a running process with VmSize, VmLck and CapEff")
        }
    }
}

fn parse_thread_status(path: String, text: String) -> Reading<ThreadStatus> {
    let list = |name| CpuList::parse(field(&text, name)?, None).ok();
    let parse = || {
        Some(ThreadStatus {
            cpus: list("Cpus_allowed_list")?,
            mems: list("Mems_allowed_list").unwrap_or_default(),
            voluntary_switches: number(&text, "voluntary_ctxt_switches")?,
            involuntary_switches: number(&text, "nonvoluntary_ctxt_switches")?,
        })
    };
    let expected = "Cpus_allowed_list and context switches";
    parse().map_or_else(|| Reading::malformed(&path, "", expected), |it| Reading::known(&path, it))
}

fn limits(text: &Reading<String>) -> Reading<ProcessLimits> {
    let (rtprio, memlock, rttime) = (
        limit(text, "Max realtime priority"),
        limit(text, "Max locked memory"),
        limit(text, "Max realtime timeout"),
    );
    rtprio.and_then(|_, rtprio| {
        memlock
            .and_then(|_, memlock| rttime.map(|rttime| ProcessLimits { rtprio, memlock, rttime }))
    })
}
