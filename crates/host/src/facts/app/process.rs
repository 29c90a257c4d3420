//! One process and its threads, from /proc/PID.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CpuList, Reading, Root,
    facts::limits::{CAP_IPC_LOCK, CAP_SYS_NICE, Limit, effective_capabilities, limit},
    facts::tasks::{Policy, Stat},
    text::field,
};

/// Most ordinary threads whose affinity is read: a thread costs a file each.
const ORDINARY_ASKED_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    pub pid: u32,
    /// Name of its first thread.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub is_kernel_thread: bool,
    /// Start in clock ticks since boot: with the id, its identity.
    pub start_ticks: u64,
    /// Memory, rights, tracer (/proc/PID/status).
    pub status: Reading<Status>,
    /// Limits (/proc/PID/limits).
    pub limits: Reading<ProcessLimits>,
    /// Preference to be spared (-1000) or killed (1000) when memory runs out
    /// (/proc/PID/oom_score_adj).
    pub oom_score_adj: Reading<i64>,
    /// Threads that there were, by id.
    pub threads: Reading<Vec<Thread>>,
}

/// What /proc/PID/status says of a process. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Address space (VmSize).
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
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

impl Process {
    /// Reads a process; `None`: it ended.
    pub(super) fn read(root: &Root, pid: u32) -> Option<Self> {
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
    pub fn real_time(&self) -> impl Iterator<Item = &Thread> {
        self.threads.value().into_iter().flatten().filter(|thread| thread.is_real_time())
    }
}

impl Thread {
    /// Whether it is known to be real-time.
    pub fn is_real_time(&self) -> bool {
        self.sched.value().is_some_and(|sched| sched.policy.is_real_time())
    }
}

/// One thread; `None`: it ended.
fn thread(root: &Root, pid: u32, tid: u32, ordinary: &mut usize) -> Option<Thread> {
    let sched = root.read_text(&format!("/proc/{pid}/task/{tid}/stat"));
    if sched.is_absent() {
        return None;
    }
    let sched = sched.parsed("a line of proc_pid_stat(5)", parse_sched);
    let is_real_time = sched.value().is_none_or(|sched| sched.policy.is_real_time());
    *ordinary += usize::from(!is_real_time);
    let (status, slack) =
        (format!("/proc/{pid}/task/{tid}/status"), format!("/proc/{tid}/timerslack_ns"));
    if *ordinary > ORDINARY_ASKED_MAX && !is_real_time {
        let why = format!("the process has more than {ORDINARY_ASKED_MAX} ordinary threads");
        let (status, slack) = (Reading::denied(status, &why), Reading::denied(slack, &why));
        return Some(Thread { tid, pid, sched, status, timer_slack_ns: slack });
    }
    Some(Thread {
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

fn parse_status(path: String, text: String) -> Reading<Status> {
    let bytes = |name| number::<u64>(&text, name)?.checked_mul(1024);
    let parse = || {
        let capabilities = effective_capabilities(&text)?;
        let has = |bit: u32| capabilities & (1 << bit) != 0;
        Some(Status {
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
