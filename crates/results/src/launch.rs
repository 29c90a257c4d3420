//! Plan of `rtproof run`, and result of a started program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_judge::{
    causes::Spikes,
    rules::{Compliance, Rule},
};

use crate::tune::{JournalUndone, PlanDocument as Changes};

/// Version of the JSON form of a plan.
pub const PLAN: &str = "rtproof/run-plan/1";

/// Version of the JSON form of a run.
pub const SCHEMA: &str = "rtproof/run/1";

/// What would be set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LaunchPlan {
    /// Version of this form: `rtproof/run-plan/1`.
    pub schema: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the program is started with; it ends with it.
    pub program: Vec<LaunchSetting>,
    /// What is held open while it runs; the kernel drops it with the process.
    pub held: Vec<LaunchSetting>,
    /// Changes of the machine, under a journal, undone at the end of the program.
    pub machine: Changes,
    /// What was requested and cannot be set here. Without `--best-effort` nothing is started.
    pub cannot: Vec<Cannot>,
    /// What the user has to know.
    pub notes: Vec<String>,
}

/// One thing that a program is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LaunchSetting {
    pub what: String,
    pub value: String,
    /// How it is set, or the reason.
    pub how: String,
}

/// What cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cannot {
    pub what: String,
    /// Why, and what to do.
    pub why: String,
}

/// A program from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Launched {
    /// Version of this form: `rtproof/run/1`.
    pub schema: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    pub pid: u32,
    /// How long it ran, nanoseconds, with the processes that it left.
    pub ran_ns: u64,
    pub ending: ProgramEnding,
    /// What it was started with.
    pub program: Vec<LaunchSetting>,
    pub held: Vec<LaunchSetting>,
    /// What could not be set: with `--best-effort` alone.
    pub not_set: Vec<Cannot>,
    /// Changes of the machine that were made.
    pub changes: usize,
    /// Their undo at the end; `None`: there were none.
    pub undone: Option<JournalUndone>,
    /// Page faults of its first process, all threads: without and with a disk.
    pub faults: Option<Faults>,
    /// Its threads, those of the processes that it started among them.
    pub threads: Vec<LaunchedThread>,
    /// Threads that came after so many that no more are kept apart.
    pub threads_more: u64,
    /// Wake-ups; `None`: they were not recorded, and `notes` says why.
    pub wake_ups: Option<WakeUps>,
    /// Whether the budget was kept; `None`: there was none.
    pub verdict: Option<BudgetKept>,
    /// Result of the rules of a real-time program; `None`: not requested.
    pub rules: Option<Rules>,
    /// The record of its wake-ups and its verdict; `None`: there is no budget, or none was wanted.
    pub proof: Option<RecordProof>,
    /// What the user has to know.
    pub notes: Vec<String>,
}

/// A record of a program's wake-ups, judged as `prove` judges.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "record")]
pub enum RecordProof {
    Made {
        file: String,
        /// Its page; `None`: it could not be written.
        page: Option<String>,
        /// Whether the record is sealed.
        sealed: bool,
        verdict: Box<rtproof_model::Verdict>,
    },
    Missing {
        why: String,
    },
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramEnding {
    /// With an exit status.
    Exited(u8),
    /// By a signal, by its number.
    Killed(i32),
}

impl ProgramEnding {
    /// The exit status as a shell has it.
    pub fn status(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

/// Page faults of a thread, counted by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Faults {
    /// That needed no disk.
    pub minor: u64,
    /// That waited for a disk.
    pub major: u64,
}

/// Result of one thread. Counts are those of the last look before it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LaunchedThread {
    pub tid: u32,
    pub pid: u32,
    pub name: String,
    /// Policy and priority; `None`: it was too short to be seen.
    pub scheduling: Option<ThreadScheduling>,
    /// CPUs it may run on; empty where it was not seen.
    pub cpus: String,
    pub faults: Option<Faults>,
    /// Times it gave the CPU up to wait.
    pub voluntary_switches: Option<u64>,
    /// Times it lost the CPU while it was runnable.
    pub involuntary_switches: Option<u64>,
    /// Times it was moved to another CPU.
    pub migrations: Option<u64>,
    /// Its wake-ups as far as they were recorded.
    pub latency: Option<WakeUpLatency>,
    /// Tasks that ran in its place while it was runnable, the most frequent first.
    pub preempted_by: Vec<Preempted>,
}

/// How a thread is scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThreadScheduling {
    /// Policy, e.g. `SCHED_FIFO`.
    pub policy: &'static str,
    /// Priority; 0 for other policies.
    pub priority: u32,
    /// Whether that is a real-time or deadline policy.
    pub is_real_time: bool,
}

/// Wake-up latency of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WakeUpLatency {
    pub wake_ups: u64,
    /// Those later than the threshold.
    pub over: u64,
    pub mean_ns: u64,
    pub worst_ns: u64,
}

/// A task that ran in the place of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Preempted {
    /// Name of the task; empty: tasks beyond those kept apart.
    pub by: String,
    pub times: u64,
    /// How long the thread waited in all, nanoseconds.
    pub waited_ns: u64,
}

/// Wake-ups that were recorded.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WakeUps {
    /// Later than this is late, nanoseconds.
    pub over_ns: u64,
    /// Kernel events that were lost: wake-ups may be missing.
    pub lost_events: u64,
    /// Wake-ups of which the kernel did not record when they were due or when they ended: how late
    /// they were is not known.
    pub unseen: u64,
    /// Wake-ups that are counted with a bound as their end, as the kernel did not record the switch
    /// to the thread: those on time were at most, the late ones at least that late.
    pub inferred: u64,
    pub spikes: Spikes,
}

/// Whether a budget was kept, as far as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BudgetKept {
    pub budget_ns: u64,
    pub answer: BudgetAnswer,
    pub text: String,
}

/// Whether a budget was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetAnswer {
    /// No recorded wake-up was later. That is an observation, not a proof.
    Within,
    /// At least one was.
    Exceeded,
    /// Wake-ups were not recorded, or not all.
    CannotTell,
}

// What `rtproof run --rules` and `explain --rules` found of the rules of a real-time program.

/// Which rules a program kept while it was watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rules {
    /// How the program said that it is ready.
    pub ready: String,
    /// When that was, nanoseconds after its start, or after rtproof came; `None`: it never was.
    pub ready_after_ns: Option<u64>,
    /// How long it was observed from then on, nanoseconds.
    pub watched_ns: u64,
    pub answer: Compliance,
    pub text: String,
    pub rules: Vec<RuleKept>,
    /// The breaches, by rule and then the most frequent first.
    pub breaches: Vec<Breach>,
    /// Breaches beyond those that are kept apart.
    pub breaches_more: u64,
    /// Real-time threads that were judged.
    pub threads: Vec<RuleThread>,
    /// Names of ordinary threads, which are not judged.
    pub ordinary: Vec<String>,
    /// Why not everything is known.
    pub unknown: Vec<String>,
    /// The kernel's own monitors of real-time applications.
    pub monitors: MonitorReport,
}

/// The kernel's own monitors of real-time applications (Linux 6.16, CONFIG_RV_MON_RTAPP).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MonitorReport {
    /// Monitors whose reports were read to the end.
    pub taken: Vec<&'static str>,
    /// Their result, or why there is none.
    pub text: String,
}

/// Whether a real-time rule was kept, over all threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleKept {
    pub rule: Rule,
    pub title: &'static str,
    /// Whether it was kept.
    pub answer: Compliance,
    /// Why that is not known.
    pub why: Option<String>,
}

/// A breach, by one thread at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Breach {
    pub rule: Rule,
    pub pid: u32,
    pub tid: u32,
    /// Name of the thread.
    pub thread: String,
    /// The call: that of the first time.
    pub what: String,
    pub count: u64,
    /// The longest, nanoseconds; `None`: it has no length, or did not return.
    pub worst_ns: Option<u64>,
    /// The first time, nanoseconds after the program was ready.
    pub first_ns: u64,
    /// The innermost frame of the program itself; `None`: the stack shows none.
    pub at: Option<StackFrame>,
    /// The user's stack, innermost first.
    pub stack: Vec<StackFrame>,
    /// Whether the stack ends where it was not sampled or cannot be unwound.
    pub is_cut: bool,
    /// Why it is a breach.
    pub why: &'static str,
    /// What to do instead.
    #[serde(rename = "instead")]
    pub advice: &'static str,
    /// The kernel's monitor that reports it, too; `None`: none does.
    pub monitor: Option<&'static str>,
    /// How often it does.
    pub monitor_count: u64,
}

/// A frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StackFrame {
    pub module: Option<String>,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub address: u64,
}

/// A thread that was observed for breaches of the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleThread {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    /// Times it left the CPU while it was observed.
    pub switches: u64,
}
