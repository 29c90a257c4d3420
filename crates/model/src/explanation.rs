//! Why one wake-up was late: shares that sum to its latency.

use rtproof_trace::WakeUp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Remedy;

/// Why a wake-up was late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The wake-up. Times are those of its trace.
    pub wake: WakeUp,
    /// The late task with policy and priority, e.g. `rtproof/1 [FIFO 80]`.
    pub task: String,
    /// When the interrupt began that woke it; `None`: not seen.
    pub irq_ns: Option<u64>,
    /// When it was woken (sched_waking); `None`: not seen.
    pub woken_ns: Option<u64>,
    /// When it was switched to; `None`: not seen, or it had never left the CPU.
    pub switched_ns: Option<u64>,
    /// What each nanosecond from `due_ns` to `ran_ns` went into: in order, without gaps.
    pub spans: Vec<Span>,
    /// The same, summed by cause and culprit: largest first. Sums to the latency exactly.
    pub shares: Vec<Share>,
    /// Why the shares may be wrong: events were lost or were not recorded. Empty: complete.
    pub incomplete: Vec<String>,
    /// Who woke it, and who woke the waker, nearest first: e.g. `IRQ 24 eth0-rx`.
    pub wakers: Vec<String>,
}

/// A stretch of time with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Index in the explanation's shares.
    pub share: u32,
}

/// What one cause and culprit took of the latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Cause, e.g. `preempted`: an id of the list of causes.
    pub cause: String,
    /// Who: `multipathd [RR 99]`, `IRQ 24 nvme0q1`, `C6`. Empty where there is nobody to name.
    pub culprit: String,
    /// Nanoseconds.
    pub ns: u64,
    /// Other causes that it may as well be, by id.
    pub or: Vec<String>,
    /// What was not recorded and could contradict it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// How certain it is; `None`: an older rtproof wrote it, see [`Share::certainty`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// What more is known: control group, waker, stack, address.
    pub detail: Vec<String>,
    /// systemd unit, driver or module that it belongs to.
    pub owner: Option<String>,
    /// Checks whose knobs remove it: `rtproof check explain ID`.
    pub checks: Vec<String>,
    pub remedies: Vec<Remedy>,
}

/// How certain the cause of a share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// All events that could contradict it were recorded, and none does.
    Certain,
    /// It fits; what else fits, and what was not recorded, is named with it.
    Likely,
    /// No cause is known.
    Unknown,
}

impl Share {
    /// How certain its cause is.
    pub fn certainty(&self) -> Certainty {
        if self.cause == "unexplained" {
            Certainty::Unknown
        } else if self.or.is_empty() && self.unseen.is_empty() {
            Certainty::Certain
        } else {
            Certainty::Likely
        }
    }

    /// Whether it can be nothing else.
    pub fn is_certain(&self) -> bool {
        self.certainty() == Certainty::Certain
    }
}

impl Explanation {
    /// The cause with the largest share.
    pub fn top(&self) -> Option<&Share> {
        self.shares.first()
    }

    /// Nanoseconds that can be nothing else.
    pub fn certain_ns(&self) -> u64 {
        self.shares.iter().filter(|share| share.is_certain()).map(|share| share.ns).sum()
    }

    /// Whether it is mostly one of several causes that a stack at the timer interrupt would tell
    /// apart.
    pub fn wants_stacks(&self) -> bool {
        let several = self.shares.iter().filter(|share| !share.or.is_empty());
        several.map(|share| share.ns).sum::<u64>() > self.wake.latency_ns() / 2
    }
}
