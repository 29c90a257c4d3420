//! Typed kernel events: what rtproof reads out of a trace, whatever kernel wrote it.
//!
//! Names and meanings follow the kernel's own events (`include/trace/events/*.h`,
//! `kernel/trace/trace_entries.h`). Priorities are the kernel's: below 0 deadline, 0 to 99
//! real-time (priority 99 - n), from 100 on fair.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Name of a task at the time of the event, as the kernel keeps it.
pub type Comm = FixedText<16>;

/// Name of an interrupt's handler or of an inter-processor interrupt.
pub type HandlerName = FixedText<32>;

/// One event of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, nanoseconds on the clock of the trace.
    pub at_ns: u64,
    /// CPU that wrote it.
    pub cpu: u32,
    /// Task that was current; 0: the idle task.
    pub pid: i32,
    /// `common_flags`, see [`flags`].
    pub flags: u8,
    /// `common_preempt_count`: low four bits the depth of preemption being off, high four (since
    /// 5.16 or so) of migration.
    pub preempt: u8,
    pub what: EventData,
}

/// Bits of [`Event::flags`] (`enum trace_flag_type` in include/linux/trace_events.h).
pub mod flags {
    pub const IRQS_OFF: u8 = 0x01;
    /// The current task is to be replaced soon, when it leaves the kernel.
    pub const NEED_RESCHED_LAZY: u8 = 0x02;
    /// The current task is to be replaced.
    pub const NEED_RESCHED: u8 = 0x04;
    /// In a hard interrupt.
    pub const HARDIRQ: u8 = 0x08;
    pub const SOFTIRQ: u8 = 0x10;
    /// In a non-maskable interrupt.
    pub const NMI: u8 = 0x40;
    pub const BH_OFF: u8 = 0x80;
}

/// Interrupt vectors of their own trace events on x86 (`arch/x86/include/asm/trace/irq_vectors.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vector {
    LocalTimer,
    /// Reschedule request from another CPU.
    Reschedule,
    /// A function called on several CPUs.
    CallFunction,
    /// A function called on this CPU.
    CallFunctionSingle,
    /// Work queued from a context that could not do it.
    IrqWork,
    Thermal,
    Threshold,
    DeferredError,
    /// Error of the interrupt controller.
    Error,
    Spurious,
    PlatformIpi,
}

impl Vector {
    /// Its name, as /proc/interrupts explains it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::LocalTimer => "local timer",
            Self::Reschedule => "rescheduling interrupt",
            Self::CallFunction | Self::CallFunctionSingle => "function call interrupt",
            Self::IrqWork => "IRQ work",
            Self::Thermal => "thermal event",
            Self::Threshold => "machine check threshold",
            Self::DeferredError => "deferred machine check",
            Self::Error => "APIC error",
            Self::Spurious => "spurious interrupt",
            Self::PlatformIpi => "platform interrupt",
        }
    }
}

/// Softirqs by number (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Name of a softirq.
pub fn softirq_name(vec: u32) -> String {
    SOFTIRQS.get(vec as usize).map_or_else(|| format!("softirq {vec}"), ToString::to_string)
}

/// What a kernel event reports: the fields of it that are used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventData {
    /// sched_switch.
    Switch {
        /// Name of the task that left.
        prev_comm: Comm,
        prev_pid: i32,
        prev_prio: i32,
        /// Its state: 0 still runnable, 1 sleeping, 2 uninterruptible, 4 stopped, 8 traced.
        prev_state: u64,
        /// Name of the task that came.
        next_comm: Comm,
        next_pid: i32,
        next_prio: i32,
    },
    /// sched_waking: a waker (the current task, or an interrupt over it) wakes a task.
    Waking {
        comm: Comm,
        /// Task that is woken.
        pid: i32,
        prio: i32,
        target_cpu: u32,
    },
    /// sched_wakeup, sched_wakeup_new: the task is on its CPU's queue.
    Wakeup {
        comm: Comm,
        /// Task that was woken.
        pid: i32,
        prio: i32,
        target_cpu: u32,
    },
    /// sched_migrate_task.
    Migrate {
        comm: Comm,
        pid: i32,
        prio: i32,
        from_cpu: u32,
        /// CPU it goes to.
        to_cpu: u32,
    },
    /// sched_pi_setprio: a task inherits a priority, or gives it back.
    PiSetprio {
        comm: Comm,
        pid: i32,
        old_prio: i32,
        /// Priority from now on.
        new_prio: i32,
    },
    /// hrtimer_start; the current task is its owner when it sleeps on it.
    TimerStart {
        /// Address of the timer.
        timer: u64,
        /// Address of its function.
        function: u64,
        /// When it is to expire at the latest, CLOCK_MONOTONIC for timers of that clock.
        expires_ns: u64,
        /// From when on it may expire: what its owner asked for, before slack; 0: not recorded.
        #[serde(default)]
        soft_ns: u64,
    },
    /// hrtimer_cancel.
    TimerCancel { timer: u64 },
    /// hrtimer_expire_entry: its function begins.
    TimerExpire {
        timer: u64,
        /// Address of its function.
        function: u64,
        /// The clock as the interrupt read it.
        now_ns: u64,
    },
    /// hrtimer_expire_exit.
    TimerExpired { timer: u64 },
    /// timer_expire_entry: a timer of the wheel begins.
    WheelExpire { timer: u64, function: u64 },
    /// timer_expire_exit.
    WheelExpired { timer: u64 },
    /// irq_vectors: `*_entry`.
    VectorEntry { vector: Vector },
    /// irq_vectors: `*_exit`.
    VectorExit { vector: Vector },
    /// irq_handler_entry.
    IrqEntry {
        /// Number, as in /proc/interrupts.
        irq: i32,
        /// Name of the handler.
        name: HandlerName,
    },
    /// irq_handler_exit.
    IrqExit { irq: i32 },
    /// ipi_entry (Arm).
    IpiEntry {
        /// Why, in the kernel's words.
        reason: HandlerName,
    },
    /// ipi_exit (Arm).
    IpiExit { reason: HandlerName },
    /// ipi_raise (Arm) and ipi_send_cpumask: the current task sends to several CPUs.
    IpiRaise {
        /// CPUs 0 to 63 as bits; 0: not known.
        cpus: u64,
        /// Why, where it is known.
        reason: HandlerName,
    },
    /// ipi_send_cpu (6.4): the current task sends to one CPU.
    IpiSend {
        to_cpu: u32,
        /// Address of the code that sends.
        callsite: u64,
        /// Address of the function to run there; 0: none.
        callback: u64,
    },
    /// softirq_raise.
    SoftirqRaise {
        /// 0 HI, 1 TIMER, 2 NET_TX, 3 NET_RX, 4 BLOCK, 5 IRQ_POLL, 6 TASKLET, 7 SCHED, 8 HRTIMER,
        /// 9 RCU.
        vec: u32,
    },
    /// softirq_entry.
    SoftirqEntry { vec: u32 },
    /// softirq_exit.
    SoftirqExit { vec: u32 },
    /// nmi_handler: written when the handler has ended.
    Nmi {
        /// Address of the handler.
        handler: u64,
        /// How long it took.
        delta_ns: u64,
    },
    /// cpu_idle: the CPU goes to sleep.
    Idle {
        /// State as in /sys/devices/system/cpu/cpuN/cpuidle.
        state: u32,
    },
    /// cpu_idle with state -1: the CPU woke.
    IdleExit,
    /// cpu_frequency.
    Frequency { of_cpu: u32, khz: u32 },
    /// workqueue_execute_start.
    WorkStart {
        /// Address of the work item.
        work: u64,
        function: u64,
    },
    /// workqueue_execute_end.
    WorkEnd {
        /// Address of the work item.
        work: u64,
    },
    /// page_fault_user, page_fault_kernel: written when the fault begins.
    PageFault {
        user: bool,
        /// Address that was touched.
        address: u64,
        /// Instruction that touched it.
        ip: u64,
    },
    /// irq_disable, irq_enable (preemptirq; kernels with CONFIG_IRQSOFF_TRACER).
    Irqs {
        /// Off from now on, else on.
        off: bool,
        /// Address of the code that did it.
        caller: u64,
    },
    /// preempt_disable, preempt_enable.
    Preempt {
        /// Off from now on, else on.
        off: bool,
        /// Address of the code that did it.
        caller: u64,
    },
    /// kernel_stack: belongs to the event before it on its CPU.
    Stack {
        /// Return addresses, innermost first.
        frames: Box<[u64]>,
    },
    /// A call of a kernel function (tracers function and function_graph).
    Call {
        /// Address of the function.
        function: u64,
        /// Address of the code that calls it; 0: not recorded.
        caller: u64,
    },
    /// signal_generate: the current task sends a signal.
    Signal {
        number: i32,
        /// Name of the task it goes to.
        comm: Comm,
        /// Task it goes to.
        pid: i32,
    },
    /// cpuhp_enter, cpuhp_multi_enter: a step of taking a CPU away or bringing it back.
    Hotplug {
        /// CPU that goes or comes.
        of_cpu: u32,
        /// State the step leads to (`enum cpuhp_state`).
        target: i32,
        /// Address of the step's function.
        function: u64,
    },
    Timerlat {
        /// Number of the wake-up.
        sequence: u32,
        /// 0 IRQ, 1 thread, 2 return to user.
        context: u32,
        /// Latency up to there.
        latency_ns: u64,
    },
    /// osnoise:*_noise. `start_ns` is on the local clock, whatever the trace's clock is.
    Noise {
        /// nmi, irq, softirq or thread.
        kind: HandlerName,
        /// Interrupt, softirq or task that it was.
        name: HandlerName,
        /// Number of that; -1: none.
        number: i32,
        start_ns: u64,
        /// Duration, without what interrupted it in turn.
        duration_ns: u64,
    },
    Hwlat {
        /// Longest gap inside one reading loop.
        inner_ns: u64,
        /// Longest gap between two loops.
        outer_ns: u64,
        nmi_count: u32,
    },
    /// An event that is not one of these.
    Other {
        /// Its number in the kernel's formats.
        id: u16,
    },
}

/// A text of at most `N` bytes, as the kernel's fixed arrays hold the names of tasks and
/// interrupts. Longer ones are cut; nothing is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
}

impl<const N: usize> FixedText<N> {
    /// The text up to the first NUL.
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = Self { bytes: [0; N] };
        // Most are a few bytes: a loop is faster than to look for the end and copy up to there.
        for (to, &from) in text.bytes.iter_mut().zip(bytes) {
            if from == 0 {
                break;
            }
            *to = from;
        }
        text
    }

    pub fn as_bytes(&self) -> &[u8] {
        let end = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(N);
        &self.bytes[..end]
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes.first().is_none_or(|&byte| byte == 0)
    }
}

impl<const N: usize> From<&str> for FixedText<N> {
    fn from(text: &str) -> Self {
        Self::of(text.as_bytes())
    }
}

impl<const N: usize> Default for FixedText<N> {
    fn default() -> Self {
        Self { bytes: [0; N] }
    }
}

impl<const N: usize> PartialEq<&str> for FixedText<N> {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> fmt::Display for FixedText<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const N: usize> fmt::Debug for FixedText<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), to)
    }
}

impl<const N: usize> Serialize for FixedText<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<'de, const N: usize> Deserialize<'de> for FixedText<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(from)?.as_str()))
    }
}

impl<const N: usize> schemars::JsonSchema for FixedText<N> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_nul_and_at_its_size() {
        assert_eq!(FixedText::<4>::of(b"ab\0cd"), "ab");
        assert_eq!(FixedText::<4>::from("abcdef"), "abcd");
        assert!(FixedText::<4>::of(b"\0x").is_empty());
        let json = serde_json::to_string(&FixedText::<8>::from("x\"y")).expect("a string");
        assert_eq!(serde_json::from_str::<FixedText<8>>(&json).expect("a text"), "x\"y");
    }
}
