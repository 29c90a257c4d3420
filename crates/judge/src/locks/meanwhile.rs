//! What the holder of a lock did while another thread waited for it.

use schemars::JsonSchema;
use serde::Serialize;

/// How a thread's priority stands to those of the waiter and the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// At least the holder's, and below the waiter's: priority inversion.
    Middle,
    /// At least the waiter's: the waiter would have waited for it anyway.
    Higher,
    /// Below the holder's: preemption was off, or the holder was throttled.
    Lower,
    /// Nobody ran: the holder was throttled, or on its way to a CPU.
    Idle,
}

/// Who ran while the holder could have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Instead {
    /// Thread; 0: the idle task.
    pub tid: u32,
    pub name: String,
    /// Its priority in the kernel's numbers: below 100 is real-time, 99 less its priority.
    pub priority: i32,
    /// How that stands to the others.
    pub order: Order,
    /// How long, nanoseconds.
    pub ns: u64,
}

/// What the holder did during a wait; sums to its length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Meanwhile {
    pub holder_ran_ns: u64,
    /// It slept or waited itself, nanoseconds.
    pub holder_slept_ns: u64,
    /// It could have run, and others did, the longest first.
    pub instead: Vec<Instead>,
    /// Not known: nothing was seen of it so far, or of its CPU.
    pub unknown_ns: u64,
}

impl Meanwhile {
    /// How long threads of lower priority than the waiter's ran in the holder's place, nanoseconds.
    pub fn inversion_ns(&self) -> u64 {
        self.instead.iter().filter(|it| it.order == Order::Middle).map(|it| it.ns).sum()
    }
}
