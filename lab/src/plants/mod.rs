//! What a case can switch on in its guest: causes of latency, each bounded in time, each writing
//! down what it really did (`truth.jsonl` in the shared folder).
//!
//! ```text
//! Plant::rogue_rr99()
//! Plant::irqs_off().cpu(1).us(3000).every_ms(100).times(20)
//! Plant::cpu_offline(2).after_ms(500)
//! ```
//!
//! A plant waits until `rtproof prove` is measuring, and for [`Plant::after_ms`] then, unless it is
//! to begin [`Plant::at_once`]. lab-plant and the kernel module do the work.

use serde_json::{Value, json};

mod causes;
mod shell;

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel module, by the name of its plant.
    Module(&'static str),
    /// A process that is busy for some time in every period.
    Burst {
        /// Policy as lab-plant reads it: `other`, `fifo:10`, `rr:99`.
        policy: String,
        /// Whether it is a service named multipathd.
        is_daemon: bool,
    },
    /// A FIFO hog, which the kernel throttles (before 6.12).
    Throttling,
    /// A FIFO hog beside a starving ordinary one: from 6.12 on the fair server steps in.
    FairServer,
    /// A UDP flood over loopback.
    NetworkFlood,
    TimerInterrupts,
    /// Page faults; with a limit, also reclaim.
    Memory {
        bytes: u64,
        /// `memory.high` of its group.
        high: Option<u64>,
    },
    Forks,
    /// A step of the wall clock, and back.
    ClockStep {
        by_ms: i64,
    },
    /// A full file system, and free again.
    FullDisk {
        dir: String,
        /// Bytes that stay free.
        leave: u64,
    },
    /// CPU [`Plant::cpu`] goes and comes back.
    Offline {
        down_ms: u64,
    },
    /// A lock held by a thread of low priority, which one of FIFO 90 waits for.
    Boost,
    /// One datagram to many sockets: a long soft interrupt.
    Deliver {
        sockets: u64,
    },
    /// Timers that expire in the same instant.
    Expire {
        timers: u64,
    },
    /// A socket that is closed with many messages in it.
    Purge {
        messages: u64,
    },
    /// SIGSTOP and SIGCONT for the measuring process.
    Stop,
    /// An application that is moved to a busy CPU, and back.
    Move,
    /// A process under a CPU quota.
    Quota {
        /// Its share of each 100 ms, microseconds.
        quota_us: u64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plant {
    cause: Cause,
    cpu: Option<u32>,
    us: u64,
    every_us: u64,
    times: u64,
    for_ms: u64,
    after_ms: u64,
    phase_us: Option<u64>,
    at_once: bool,
}

impl Plant {
    /// CPU that it runs on, or takes off.
    #[must_use]
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// Length of each occurrence, microseconds.
    #[must_use]
    pub fn us(mut self, us: u64) -> Self {
        self.us = us;
        self
    }

    /// From one occurrence to the next, milliseconds.
    #[must_use]
    pub fn every_ms(self, ms: u64) -> Self {
        self.every_us(ms * 1_000)
    }

    /// From one occurrence to the next, microseconds.
    #[must_use]
    pub fn every_us(mut self, us: u64) -> Self {
        self.every_us = us;
        self
    }

    /// Number of occurrences, of plants that have one (module, CPU off).
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// How long it goes on, of plants without a number of occurrences, milliseconds.
    #[must_use]
    pub fn lasting_ms(mut self, ms: u64) -> Self {
        self.for_ms = ms;
        self
    }

    /// Time between the begin of the measurement (as far as it can be seen from outside: up to
    /// 100 ms late) and its own, milliseconds.
    #[must_use]
    pub fn after_ms(mut self, ms: u64) -> Self {
        self.after_ms = ms;
        self
    }

    /// Begins so long after a multiple of the period on CLOCK_MONOTONIC, microseconds.
    #[must_use]
    pub fn phase_us(mut self, us: u64) -> Self {
        self.phase_us = Some(us);
        self
    }

    /// Does not wait for the measurement.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Requests to the guest, for the books of the run.
    pub fn asked(&self) -> Value {
        json!({
            "cause": format!("{:?}", self.cause),
            "cpu": self.cpu,
            "us": self.us,
            "every_us": self.every_us,
            "times": self.times,
            "for_ms": self.for_ms,
            "after_ms": self.after_ms,
            "phase_us": self.phase_us,
            "at_once": self.at_once,
        })
    }

    /// Whether the kernel module must be there.
    pub fn needs_module(&self) -> bool {
        matches!(self.cause, Cause::Module(_))
    }
}
