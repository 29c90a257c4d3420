//! What is planted to be blamed: each cause with what an explanation of its spikes must say.

use crate::blame::Counted;
use crate::plants::Plant;

/// Shorter spikes are left out: guests of the lab need so long to wake a thread.
pub(super) const LEAST_NS: u64 = 300_000;

/// A plant and what it must be blamed for.
#[derive(Clone, Copy)]
pub(super) struct Planted {
    pub(super) name: &'static str,
    pub(super) plant: fn() -> Plant,
    pub(super) causes: &'static [&'static str],
    pub(super) culprit: &'static [&'static str],
    pub(super) told: Counted,
    /// Shorter spikes are left out.
    pub(super) least_ns: u64,
    /// Of the planted latency, so much must have one possible cause, in percent.
    pub(super) certain_percent: u64,
    /// Spikes that may be blamed on others.
    pub(super) wrong_most: usize,
    /// Another plant: its spikes must not be blamed on this one.
    pub(super) other: fn() -> Plant,
    /// CPUs of the guest.
    pub(super) cpus: u32,
    /// Priority of the measured thread.
    pub(super) priority: u32,
}

pub(super) const DAEMON: Planted = Planted {
    name: "daemon",
    plant: || Plant::rogue_rr99().every_ms(100),
    causes: &["preempted"],
    culprit: &["multipathd", "RR 99"],
    told: Counted::Occurrences,
    least_ns: LEAST_NS,
    certain_percent: 95,
    wrong_most: 0,
    other: || Plant::equal_fifo(80).us(5_000).every_ms(100),
    cpus: 1,
    priority: 80,
};
pub(super) const NEIGHBOUR: Planted = Planted {
    name: "neighbour",
    plant: || Plant::equal_fifo(80).us(5_000).every_ms(100),
    causes: &["queued"],
    culprit: &["lab-plant", "FIFO 80"],
    other: || Plant::rogue_rr99().every_ms(100),
    ..DAEMON
};
pub(super) const LOCK: Planted = Planted {
    name: "lock",
    plant: Plant::boost,
    causes: &["priority-inheritance"],
    culprit: &["lab-plant"],
    ..DAEMON
};
pub(super) const IRQS_OFF: Planted = Planted {
    name: "interrupts-off",
    plant: Plant::irqs_off,
    // The module's thread has FIFO 99: where one interrupt wakes both, it runs ahead.
    causes: &["irqs-off", "preempted"],
    // The first one comes before stacks are taken: then the task alone is known.
    culprit: &["rtproof_plant"],
    // In a guest a stall inside this code would look the same, and rtproof says so.
    certain_percent: 0,
    other: Plant::preempt_off,
    ..DAEMON
};
pub(super) const PREEMPT_OFF: Planted = Planted {
    name: "preemption-off",
    plant: Plant::preempt_off,
    causes: &["preempt-off"],
    culprit: &["rtproof_plant"],
    other: Plant::irqs_off,
    ..DAEMON
};
pub(super) const HARD_IRQ: Planted = Planted {
    name: "hard-interrupt",
    plant: Plant::hard_irq,
    causes: &["timer-work"],
    culprit: &["rtproof_plant"],
    other: Plant::irqs_off,
    ..DAEMON
};
pub(super) const INTERRUPT: Planted = Planted {
    name: "other-interrupt",
    plant: Plant::irq_work,
    // Where one timer interrupt is for both, the thread is woken before it.
    causes: &["masked", "irq"],
    culprit: &["IRQ work"],
    other: Plant::irqs_off,
    ..DAEMON
};
/// On stock kernels; on PREEMPT_RT it delays no thread.
pub(super) const SOFT_IRQ: Planted = Planted {
    name: "soft-interrupt",
    plant: Plant::soft_irq,
    causes: &["softirq"],
    culprit: &["HRTIMER"],
    other: Plant::irqs_off,
    ..DAEMON
};
pub(super) const DELIVERY: Planted =
    Planted { name: "delivery", plant: || Plant::deliver(2_000), culprit: &["NET_RX"], ..SOFT_IRQ };
pub(super) const SMI: Planted = Planted {
    name: "smi",
    plant: Plant::smi,
    // As above.
    causes: &["stall", "preempted"],
    culprit: &[],
    other: || Plant::equal_fifo(80).us(5_000).every_ms(100),
    ..DAEMON
};
/// Another CPU sends it, which in a guest takes turns with this one.
pub(super) const IPI: Planted = Planted {
    name: "ipi",
    plant: Plant::ipi,
    // Where the timer's interrupt has to wait for its end.
    causes: &["ipi", "masked"],
    culprit: &["function call"],
    cpus: 2,
    other: || Plant::equal_fifo(80).us(5_000).every_ms(100),
    ..DAEMON
};
pub(super) const NMI: Planted = Planted {
    name: "nmi",
    plant: Plant::nmi,
    causes: &["nmi"],
    culprit: &["rtproof_plant_nmi"],
    ..IPI
};
pub(super) const KWORKER: Planted = Planted {
    name: "kworker",
    plant: Plant::kworker,
    causes: &["kworker"],
    culprit: &["rtproof_plant_work", "kworker/0"],
    ..DAEMON
};
/// A handler's thread has FIFO 50.
pub(super) const IRQ_THREAD: Planted = Planted {
    name: "interrupt-thread",
    plant: Plant::irq_thread,
    causes: &["irq-thread"],
    culprit: &["rtproof_plant", "FIFO 50"],
    priority: 40,
    other: || Plant::equal_fifo(40).us(5_000).every_ms(100),
    ..DAEMON
};
pub(super) const FREQUENCY: Planted = Planted {
    name: "frequency",
    plant: Plant::frequency,
    causes: &["frequency"],
    culprit: &["MHz"],
    // A stall, or interrupts off, would look the same.
    certain_percent: 0,
    other: Plant::preempt_off,
    ..DAEMON
};
pub(super) const IDLE_EXIT: Planted = Planted {
    name: "idle-exit",
    plant: Plant::idle_exit,
    causes: &["idle-exit"],
    culprit: &["LATE"],
    ..DAEMON
};
pub(super) const STOPPED: Planted = Planted {
    name: "stopped",
    plant: Plant::stop,
    causes: &["stopped"],
    culprit: &["lab-plant"],
    ..DAEMON
};
/// Before 6.12: 50 ms of each second. The fair server of later kernels is planted by `make bench`:
/// on one CPU it lets the recorder freeze its rings during the spike.
pub(super) const THROTTLED: Planted = Planted {
    name: "throttling",
    plant: || Plant::rt_throttling().lasting_ms(7_000),
    causes: &["throttled"],
    culprit: &["RT throttling"],
    told: Counted::Gaps(20_000_000),
    other: || Plant::rogue_rr99().every_ms(100),
    ..DAEMON
};
