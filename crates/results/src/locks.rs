//! What `rtproof explain --pid` found of the locks that a program waits for.

use rtproof_judge::locks::{LockKind, Meanwhile, Others, Party};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rules::Frame;

/// Waits for locks that were observed, with their holders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LocksFound {
    /// Locks without priority inheritance that real-time threads waited for, the longest wait
    /// first.
    pub waits: Vec<LockWaits>,
    /// Other waits of real-time threads in futex(2).
    pub others: Others,
    /// Why not all is known.
    pub unknown: Vec<String>,
}

/// The waits of a thread for a lock that another one held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LockWaits {
    pub pid: u32,
    /// Address of the lock in it.
    pub address: u64,
    /// What the lock is.
    pub kind: LockKind,
    /// Whether it is certainly a lock, and no event that could contradict was lost.
    pub is_certain: bool,
    pub waiter: Party,
    /// Who held it at the end of the longest wait.
    pub holder: Party,
    pub count: u64,
    /// All waits together, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds: from when the thread left the CPU to when it was woken.
    pub worst_ns: u64,
    /// How long threads of lower priority than the waiter's ran in the holder's place in the
    /// longest, nanoseconds.
    pub inversion_ns: u64,
    /// Others that released the lock before it was the waiter's turn in the longest.
    pub hands: u64,
    /// What the holder did in the longest.
    pub meanwhile: Meanwhile,
    /// Where the program takes the lock; `None`: the stack does not show it.
    pub at: Option<Frame>,
}

impl LockWaits {
    /// Whether a tenth of the longest wait and more was priority inversion.
    pub const fn is_inversion(&self) -> bool {
        self.inversion_ns > 0 && self.inversion_ns >= self.worst_ns / 10
    }
}
