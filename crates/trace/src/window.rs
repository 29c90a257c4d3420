//! What is known round one late wake-up: events, lost stretches, tasks.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::table::{self, FieldValue};
use crate::{Coverage, Event, EventData};

/// The events round one late wake-up, in order of time.
///
/// It begins with what is needed to know the state of the late CPU at its start: the last switch
/// and the last idle event before, however long ago they were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// CPU of the late wake-up.
    pub cpu: u32,
    /// Events of this CPU are complete from here on, but for what `lost` says.
    pub from_ns: u64,
    /// And up to here.
    pub to_ns: u64,
    /// Events of this CPU, and those of other CPUs that concern it or the task: by time.
    pub events: Vec<Event>,
    /// Stretches of this CPU in which events were lost.
    pub lost: Vec<Lost>,
    /// Tasks by thread id, as they were when the window was taken.
    pub tasks: BTreeMap<i32, Task>,
    /// Names of kernel addresses, keyed by the address.
    pub symbols: BTreeMap<u64, String>,
    /// Kernel events that this machine does not have or that were refused, e.g.
    /// `irq_vectors:local_timer_entry`.
    pub missing: Vec<String>,
    /// Whether events were left out because there were too many.
    pub cut: bool,
    /// What the source of the events holds.
    #[serde(default, skip_serializing_if = "Coverage::is_all")]
    pub coverage: Coverage,
    /// Other CPUs that were idle, and whose timer came late meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_idle: Vec<LateTimer>,
    /// Timers of the late CPU itself that came late meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_own: Vec<LateTimer>,
    /// The section of code that a tracer measured: a wake-up of [`WakeUpBasis::Section`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<TracedSection>,
    /// Surroundings of the events.
    #[serde(default)]
    #[serde(rename = "beside")]
    pub surroundings: WindowSurroundings,
}

/// A section with interrupts or preemption off, as irqsoff, preemptoff and preemptirqsoff keep it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedSection {
    /// Name of the tracer.
    pub tracer: String,
    /// Function that turned interrupts or preemption off; empty: the text does not say.
    pub began: String,
    /// Function that turned them on again.
    pub ended: String,
}

/// A timer that came late after a silence of its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateTimer {
    pub cpu: u32,
    /// Its last event before, ns.
    pub from_ns: u64,
    /// When the timer was due, ns.
    pub due_ns: u64,
    /// The first event after, ns: the interrupt.
    pub to_ns: u64,
}

/// Counters for the time of a window. `None`: unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSurroundings {
    /// Between which readings the counters below were taken: the length of that stretch.
    pub over_ns: u64,
    /// Time that the hypervisor took from the CPU (/proc/stat).
    pub steal_ns: Option<u64>,
    /// System management interrupts of the CPU (MSR 0x34).
    pub smi: Option<u64>,
    /// Periods in which the group of the late task was throttled (cpu.stat).
    pub throttled: Option<u64>,
    /// kernel.sched_rt_runtime_us; -1: no limit.
    pub rt_runtime_us: Option<i64>,
    /// kernel.sched_rt_period_us.
    pub rt_period_us: Option<i64>,
    /// Idle states of the CPU by number.
    pub idle_states: BTreeMap<u32, WindowIdleState>,
    /// Whether ordinary tasks are served by a fair server (6.12), which took the place of
    /// throttling.
    #[serde(default)]
    pub fair_server: Option<bool>,
    /// Whether the kernel is PREEMPT_RT.
    pub preempt_rt: Option<bool>,
    /// Whether this is a guest of a hypervisor.
    pub guest: Option<bool>,
}

/// An idle state as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowIdleState {
    pub name: String,
    /// Exit latency that it declares.
    pub exit_latency_ns: u64,
}

/// A stretch in which a CPU's events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub from_ns: u64,
    pub to_ns: u64,
    /// How many; `None`: the kernel does not say.
    pub count: Option<u64>,
}

/// Scheduling policy of a task.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskPolicy {
    Other,
    Fifo,
    Rr,
    Batch,
    Idle,
    Deadline,
}

impl TaskPolicy {
    /// As the kernel's manuals write it, without `SCHED_`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Other => "OTHER",
            Self::Fifo => "FIFO",
            Self::Rr => "RR",
            Self::Batch => "BATCH",
            Self::Idle => "IDLE",
            Self::Deadline => "DEADLINE",
        }
    }
}

/// A task, as it was when the window was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub comm: String,
    /// Process it belongs to; 0: not known.
    pub tgid: i32,
    /// Policy; `None`: the task was gone, or may not be read.
    pub policy: Option<TaskPolicy>,
    /// Real-time priority, 1 to 99; 0 without.
    pub rt_priority: u32,
    /// Nice value of fair tasks.
    pub nice: i32,
    pub kernel: bool,
    /// Control group (v2 path, or the path of the cpu controller).
    pub cgroup: Option<String>,
    /// systemd unit, from the control group.
    pub unit: Option<String>,
    /// CPUs it may use, as the kernel lists them.
    pub cpus_allowed: Option<String>,
}

impl Window {
    /// Whether events of this CPU are missing between two times.
    pub fn lost_between(&self, from_ns: u64, to_ns: u64) -> bool {
        self.lost.iter().any(|lost| lost.from_ns < to_ns && from_ns < lost.to_ns)
            || from_ns < self.from_ns
            || to_ns > self.to_ns
    }

    /// Every thread id in its events.
    pub fn tids(&self) -> BTreeSet<i32> {
        let mut tids = BTreeSet::new();
        for event in &self.events {
            tids.insert(event.pid);
            for value in values(&event.what) {
                if let FieldValue::Tid(tid) = value {
                    tids.insert(tid);
                }
            }
        }
        tids
    }

    /// Every address of kernel code in its events.
    pub fn addresses(&self) -> BTreeSet<u64> {
        let mut addresses = BTreeSet::new();
        for event in &self.events {
            // In user mode it is code of the program.
            if matches!(event.what, EventData::PageFault { user: true, .. }) {
                continue;
            }
            for value in values(&event.what) {
                match value {
                    FieldValue::Symbol(address) => {
                        addresses.insert(address);
                    }
                    FieldValue::Addresses(frames) => addresses.extend(frames),
                    _ => {}
                }
            }
        }
        addresses.remove(&0);
        addresses
    }

    /// The name of an address: `function+0x1f/0x80`, or `None`.
    pub fn symbol(&self, address: u64) -> Option<&str> {
        self.symbols.get(&address).map(String::as_str)
    }

    /// The name of an address, or else its digits.
    pub(crate) fn symbol_or_address(&self, address: u64) -> String {
        self.symbol(address).map_or_else(|| format!("{address:#x}"), str::to_owned)
    }

    /// The function an address lies in, without the offset.
    pub fn function(&self, address: u64) -> Option<&str> {
        self.symbol(address).map(|symbol| symbol.split('+').next().unwrap_or(symbol))
    }
}

fn values(what: &EventData) -> Vec<FieldValue<'_>> {
    table::event_values(what).map(|(_, values)| values).unwrap_or_default()
}

// One wake-up of a thread: when it should have run, and when it did.

/// A wake-up. `ran_ns - due_ns` is its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeUp {
    pub tid: i32,
    /// CPU it ran on.
    pub cpu: u32,
    /// When it should have run, on the clock of the trace.
    pub due_ns: u64,
    pub ran_ns: u64,
    /// What `due_ns` and `ran_ns` are.
    pub how: WakeUpBasis,
}

impl WakeUp {
    pub const fn latency_ns(&self) -> u64 {
        self.ran_ns.saturating_sub(self.due_ns)
    }
}

/// How the times of a wake-up are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WakeUpBasis {
    /// The thread itself: due is the deadline that it slept for, ran is its own clock reading.
    Measured,
    /// From the trace: due is when its timer was to expire, ran is when it was switched to.
    Timer,
    /// From the trace: due is when it was woken (sched_waking), ran as above.
    Woken,
    /// No wake-up: a section of code with interrupts or preemption off, from its begin to its end,
    /// as the kernel's tracer measured it.
    Section,
    /// No wake-up: a gap in the work of a thread that polls the clock (tracers hwlat, osnoise).
    Gap,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(whats: impl IntoIterator<Item = (i32, EventData)>) -> Window {
        let event = |(pid, what)| Event { at_ns: 1, cpu: 0, pid, flags: 0, preempt: 0, what };
        Window { events: whats.into_iter().map(event).collect(), ..Window::default() }
    }

    #[test]
    fn what_has_an_id_or_an_address_can_be_named() {
        let comm = "x".into();
        let switch = EventData::Switch {
            prev_comm: comm,
            prev_pid: 2,
            prev_prio: 120,
            prev_state: 0,
            next_comm: comm,
            next_pid: 3,
            next_prio: 120,
        };
        let tids = window([(1, switch), (4, EventData::Signal { number: 9, comm, pid: 5 })]).tids();
        assert_eq!(tids.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        let addresses = window([
            (1, EventData::IpiSend { to_cpu: 0, callsite: 10, callback: 0 }),
            (1, EventData::Stack { frames: [11, 12].into() }),
            (1, EventData::PageFault { user: true, address: 13, ip: 14 }),
            (1, EventData::PageFault { user: false, address: 13, ip: 15 }),
        ]);
        let addresses = addresses.addresses();
        assert_eq!(addresses.into_iter().collect::<Vec<_>>(), [10, 11, 12, 15]);
    }
}
