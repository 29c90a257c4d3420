//! What `rtproof run --rules` and `explain --rules` found of the rules of a real-time program.

use rtproof_judge::rules::{Kept, Rule};
use schemars::JsonSchema;
use serde::Serialize;

/// Which rules a program kept while it was watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rules {
    /// How the program said that it is ready.
    pub ready: String,
    /// When that was, nanoseconds after its start, or after rtproof came; `None`: it never was.
    pub ready_after_ns: Option<u64>,
    /// How long it was observed from then on, nanoseconds.
    pub watched_ns: u64,
    pub answer: Kept,
    pub text: String,
    pub rules: Vec<RuleKept>,
    /// The breaches, by rule and then the most frequent first.
    pub breaches: Vec<Breach>,
    /// Breaches beyond those that are kept apart.
    pub breaches_more: u64,
    /// Real-time threads that were judged.
    pub threads: Vec<Judged>,
    /// Names of ordinary threads, which are not judged.
    pub ordinary: Vec<String>,
    /// Why not everything is known.
    pub unknown: Vec<String>,
    /// The kernel's own monitors of real-time applications.
    pub monitors: Monitors,
}

/// The kernel's own monitors of real-time applications (Linux 6.16, CONFIG_RV_MON_RTAPP).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Monitors {
    /// Those whose reports were taken to the end.
    pub taken: Vec<&'static str>,
    /// What was seen of them, or why nothing was.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleKept {
    pub rule: Rule,
    pub title: &'static str,
    /// Whether it was kept.
    pub answer: Kept,
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
    /// What was done: that of the first time.
    pub what: String,
    pub count: u64,
    /// The longest, nanoseconds; `None`: it has no length, or did not return.
    pub worst_ns: Option<u64>,
    /// The first time, nanoseconds after the program was ready.
    pub first_ns: u64,
    /// The innermost frame of the program itself; `None`: the stack shows none.
    pub at: Option<Frame>,
    /// The user's stack, innermost first.
    pub stack: Vec<Frame>,
    /// Whether the stack ends where it was not sampled or cannot be unwound.
    pub is_cut: bool,
    /// Why it is a breach.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
    /// The kernel's monitor that reports it, too; `None`: none does.
    pub monitor: Option<&'static str>,
    /// How often it does.
    pub monitor_count: u64,
}

/// A frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Frame {
    pub module: Option<String>,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub address: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Judged {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    /// Times it left the CPU while it was observed.
    pub switches: u64,
}
