//! What the trials on a live machine observe, as plain values: a trial makes one, the judge reads
//! it.

use serde::Serialize;

use rtproof_host::{
    CpuList, Reading,
    facts::tasks::Policy,
    task::{CpuTimes, InterruptLine},
};

/// Names of the trials, in the order in which they run.
pub const NAMES: &[&str] = &["priority", "memlock", "throttling", "isolation", "smi"];

/// The error number of a missing right.
const EPERM: i32 = 1;

/// What a trial observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    /// Of the trial `throttling`.
    Throttling(ThrottlingObservation),
    /// Of the trial `isolation`.
    Isolation(IsolationObservation),
    /// Of the trial `priority`.
    Priority(PriorityObservation),
    /// Of the trial `memlock`.
    Memlock(MemlockObservation),
    /// Of the trial `smi`.
    Smi(SmiObservation),
}

/// What the trial `throttling` observed on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThrottlingObservation {
    pub cpu: u32,
    /// What the FIFO spinner saw, or why it did not spin.
    #[serde(serialize_with = "or_refused")]
    pub run: Result<Spin, Refusal>,
    /// Time that the hypervisor took of the CPU meanwhile, milliseconds in steps of 10.
    pub steal_ms: Reading<u64>,
}

/// What the FIFO spinner saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spin {
    /// How long it spun, nanoseconds.
    pub duration_ns: u64,
    /// Gaps in which the ordinary spinner ran.
    pub ordinary: GapCounts,
    /// Gaps in which it was switched out and the ordinary spinner did not run: other tasks did, or
    /// none.
    pub others: GapCounts,
    /// Gaps in which it was not switched out: the CPU itself was away.
    pub beneath: GapCounts,
    /// When the first gaps began and how long they were, nanoseconds since the start.
    pub first: Vec<(u64, u64)>,
    /// CPU time that the FIFO spinner got, nanoseconds.
    pub fifo_cpu_ns: u64,
    /// CPU time that the ordinary spinner got, nanoseconds.
    pub ordinary_cpu_ns: u64,
    /// Times that the FIFO spinner was switched out.
    pub preemptions: u64,
}

/// Gaps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GapCounts {
    pub count: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
}

impl GapCounts {
    pub fn add(&mut self, gap_ns: u64) {
        self.count += 1;
        self.sum_ns += gap_ns;
        self.max_ns = self.max_ns.max(gap_ns);
    }
}

/// What the trial `isolation` observed on the real-time CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IsolationObservation {
    pub cpus: CpuList,
    /// CPUs that were loaded; empty: there are none, and nothing was tried.
    pub load_cpus: CpuList,
    /// What the loads did.
    pub loads: Vec<Work>,
    /// How long was looked, nanoseconds.
    pub duration_ns: u64,
    /// Time of each CPU.
    pub times: Reading<Vec<CpuTimes>>,
    pub interrupts: Reading<Vec<InterruptLine>>,
    /// Softirqs that were run.
    pub softirqs: Reading<Vec<InterruptLine>>,
    /// Time slices of tasks on the CPUs together.
    pub time_slices: Reading<u64>,
    pub tasks: Reading<Vec<RanTask>>,
}

/// What a load did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Work {
    /// The load, e.g. `cpu`.
    pub load: String,
    /// What it did, e.g. `400000 operations`.
    pub work: String,
    /// What went wrong with it.
    pub error: Option<String>,
}

/// A task that ran on a real-time CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RanTask {
    pub tid: u32,
    pub comm: String,
    pub kernel_thread: bool,
    /// Policy, if it is known here.
    pub policy: Option<Policy>,
    pub allowed: CpuList,
    /// Real-time CPUs that it was seen on.
    pub on: CpuList,
    /// Context switches in the seconds that ended there.
    pub switches: u64,
    /// CPU time in the seconds that ended there, milliseconds in steps of 10.
    pub time_ms: u64,
}

/// What the trial `priority` observed: the granted priority and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PriorityObservation {
    pub priority: u32,
    /// Priority in force after that, or why there is none.
    #[serde(serialize_with = "or_refused")]
    #[serde(rename = "got")]
    pub granted: Result<u32, Refusal>,
    /// RLIMIT_RTPRIO, soft.
    pub limit: u32,
    /// Seccomp mode of this process (/proc/self/status): 0 none, 1 strict, 2 filter.
    pub seccomp: Reading<u32>,
    /// Whether this process is in a user namespace of its own, where capabilities do not count for
    /// scheduling (/proc/self/uid_map).
    pub user_namespace: Reading<bool>,
    /// Real-time runtime of this process's group, microseconds, where version 1 of the cpu
    /// controller shows one (CONFIG_RT_GROUP_SCHED).
    pub group_runtime_us: Reading<i64>,
}

impl PriorityObservation {
    /// Nothing was requested yet.
    pub fn not_requested(priority: u32) -> Self {
        Self {
            priority,
            granted: Err(Refusal { errno: None, text: "not asked".into() }),
            limit: 0,
            seccomp: Reading::absent("/proc/self/status"),
            user_namespace: Reading::absent("/proc/self/uid_map"),
            group_runtime_us: Reading::absent("/proc/self/cgroup"),
        }
    }
}

/// What the trial `memlock` observed when it locked memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemlockObservation {
    /// Memory beyond that of the program itself, bytes.
    pub bytes: u64,
    /// What the child saw, or what was refused to it.
    #[serde(serialize_with = "or_refused")]
    pub run: Result<Locked, Refusal>,
    /// RLIMIT_MEMLOCK, soft, bytes; `None` is unlimited.
    pub limit: Option<u64>,
}

/// What the child saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Locked {
    /// Locked in all (VmLck of /proc/self/status), bytes; 0 where the kernel does not report it.
    pub locked_bytes: u64,
    /// Minor page faults while the memory was written.
    pub faults_minor: u64,
    /// Major ones: from disk.
    pub faults_major: u64,
}

/// What the trial `smi` counted, or saw as gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SmiObservation {
    /// Maker of the CPU, e.g. `GenuineIntel`.
    pub vendor: Reading<String>,
    /// What was to count them; `None`: nothing that this CPU has.
    pub counter: Option<SmiCounter>,
    /// How long was counted, nanoseconds; 0: it was not.
    pub duration_ns: u64,
    /// SMIs meanwhile by the CPU that counts them, one of each package; empty where none counts.
    pub counts: Vec<(u32, Reading<u64>)>,
    /// What a loop saw instead; `None`: they were counted, or it could not run.
    pub gaps: Option<GapLook>,
    /// Result of the kernel's hwlat tracer during the loop; absent: not in this kernel, or not
    /// asked.
    pub hwlat: Reading<HwlatLook>,
}

/// Gaps that the kernel's hwlat tracer saw with interrupts off on one CPU
/// (Documentation/trace/hwlat_detector.rst): none of them is the work of the kernel or of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HwlatLook {
    pub cpu: u32,
    /// How long it looked at most, nanoseconds: a part of the time of the trial. The kernel does
    /// not count its windows.
    pub duration_ns: u64,
    /// A longer step is a gap, nanoseconds.
    pub threshold_ns: u64,
    /// The largest gap of each window.
    pub gaps: GapCounts,
    /// Windows with a gap in which a non-maskable interrupt came: the kernel's, maybe.
    pub with_nmi: u64,
}

/// Hardware counter that counts system management interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SmiCounter {
    /// MSR_SMI_COUNT of Intel, through the msr driver.
    Register,
    /// The same through perf's PMU `msr`, event `smi` (arch/x86/events/msr.c).
    PerfMsr,
    /// LsSmiRx, event 2Bh of AMD's cores from family 17h on, through perf.
    PerfAmd,
}

impl SmiCounter {
    /// What counted, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Register => "MSR_SMI_COUNT (0x34)",
            Self::PerfMsr => "perf's msr/smi/",
            Self::PerfAmd => "the core event LsSmiRx (0x2b, perf)",
        }
    }
}

/// Gaps of an ordinary thread that reads the clock without pause on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GapLook {
    pub cpu: u32,
    /// How long it looked, nanoseconds.
    pub duration_ns: u64,
    /// A longer step is a gap, nanoseconds.
    pub threshold_ns: u64,
    /// Gaps in which another task ran.
    pub switched: GapCounts,
    /// Gaps in which it was not switched out: interrupts, the hypervisor, the firmware.
    pub beneath: GapCounts,
    /// Time that the hypervisor took of the CPU meanwhile, milliseconds in steps of 10.
    pub steal_ms: Reading<u64>,
}

/// Error number and text of a refused call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// errno, e.g. 1 for EPERM.
    pub errno: Option<i32>,
    /// What was refused, and in the words of the C library why.
    pub text: String,
}

impl Refusal {
    /// Of a call that failed.
    pub fn new(call: &str, error: &std::io::Error) -> Self {
        Self { errno: error.raw_os_error(), text: format!("{call}: {error}") }
    }

    /// Whether it is EPERM: a right is missing.
    pub fn is_permission(&self) -> bool {
        self.errno == Some(EPERM)
    }
}

/// A result as it is written: what was seen, or `refused` with the refusal.
fn or_refused<T: Serialize, S: serde::Serializer>(
    result: &Result<T, Refusal>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Written<'a, T> {
        Seen(&'a T),
        Refused(&'a Refusal),
    }
    match result {
        Ok(seen) => Written::Seen(seen),
        Err(refusal) => Written::Refused(refusal),
    }
    .serialize(serializer)
}
