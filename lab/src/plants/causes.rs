//! The plants by name, with what they do when a case says no more.

use super::{Cause, Plant};

impl Plant {
    const fn of(cause: Cause) -> Self {
        Self {
            cause,
            cpu: None,
            us: 3_000,
            every_us: 100_000,
            times: 20,
            for_ms: 3_000,
            after_ms: 500,
            phase_us: None,
            at_once: false,
        }
    }

    /// Interrupts off: 3 ms every 100 ms, 20 times, on CPU 0. Needs the module.
    pub fn irqs_off() -> Self {
        Self::of(Cause::Module("irqsoff"))
    }

    /// Preemption off, as often. Needs the module.
    pub fn preempt_off() -> Self {
        Self::of(Cause::Module("preemptoff"))
    }

    /// A long hard interrupt, as often. Needs the module.
    pub fn hard_irq() -> Self {
        Self::of(Cause::Module("hardirq"))
    }

    /// A long soft interrupt, as often: late threads on stock kernels, none on PREEMPT_RT, where it
    /// runs in an ordinary thread. Needs the module.
    pub fn soft_irq() -> Self {
        Self::of(Cause::Module("softirq"))
    }

    /// A long interrupt that is not the timer's, as often. Needs the module.
    pub fn irq_work() -> Self {
        Self::of(Cause::Module("irqwork"))
    }

    /// A system management interrupt, as often, counted in MSR 0x34. Needs the module, and a q35
    /// machine.
    pub fn smi() -> Self {
        Self::of(Cause::Module("smi"))
    }

    /// A function call interrupt that another CPU sends, as often. Needs the module and two CPUs.
    pub fn ipi() -> Self {
        Self::of(Cause::Module("ipi"))
    }

    /// A non-maskable interrupt that another CPU sends, as often. Needs the module, two CPUs and a
    /// kernel before 6.5.
    pub fn nmi() -> Self {
        Self::of(Cause::Module("nmi"))
    }

    /// Work of a kworker that has FIFO 99, as often. Needs the module.
    pub fn kworker() -> Self {
        Self::of(Cause::Module("kworker"))
    }

    /// A thread of an interrupt with FIFO 50, as often. Needs the module.
    pub fn irq_thread() -> Self {
        Self::of(Cause::Module("irqthread"))
    }

    /// A CPU that stands still while its frequency changes, as often. Needs the module.
    pub fn frequency() -> Self {
        Self::of(Cause::Module("frequency"))
    }

    /// An idle state with a long way out, as often. Needs the module.
    pub fn idle_exit() -> Self {
        Self::of(Cause::Module("idleexit"))
    }

    /// An application whose thread is moved to a busy CPU, and back after 3 ms, as often.
    pub fn moved() -> Self {
        Self::of(Cause::Move)
    }

    /// The rogue daemon of many a field report: multipathd, a service, SCHED_RR 99, 5 ms each
    /// second.
    pub fn rogue_rr99() -> Self {
        let plant = Self::of(Cause::Burst { policy: "rr:99".into(), is_daemon: true });
        plant.us(5_000).every_ms(1_000)
    }

    /// A neighbour of the measured thread's own FIFO priority, 2 ms every 50 ms.
    pub fn equal_fifo(priority: u32) -> Self {
        let policy = format!("fifo:{priority}");
        Self::of(Cause::Burst { policy, is_daemon: false }).us(2_000).every_ms(50)
    }

    /// An ordinary process that never sleeps.
    pub fn hog() -> Self {
        let plant = Self::of(Cause::Burst { policy: "other".into(), is_daemon: false });
        plant.us(100_000).every_ms(100)
    }

    /// A FIFO process that never sleeps.
    pub fn fifo_hog(priority: u32) -> Self {
        let policy = format!("fifo:{priority}");
        Self::of(Cause::Burst { policy, is_daemon: false }).us(100_000).every_ms(100)
    }

    /// A FIFO 10 hog, which before 6.12 makes the kernel throttle all real-time threads of its CPU
    /// for 50 ms of each second.
    pub fn rt_throttling() -> Self {
        Self::of(Cause::Throttling)
    }

    /// From 6.12 on: a FIFO hog starves an ordinary one, and the kernel's fair server steps in.
    pub fn fair_server() -> Self {
        Self::of(Cause::FairServer)
    }

    /// Packets over loopback as fast as they go.
    pub fn network_flood() -> Self {
        Self::of(Cause::NetworkFlood)
    }

    /// A timer interrupt every 100 µs.
    pub fn timer_interrupts() -> Self {
        Self::of(Cause::TimerInterrupts).every_us(100)
    }

    /// Page faults: 16 MiB touched and given back, again and again.
    pub fn page_faults() -> Self {
        Self::of(Cause::Memory { bytes: 16 << 20, high: None })
    }

    /// Memory pressure: 16 MiB in a group that is held at 8.
    pub fn memory_pressure() -> Self {
        Self::of(Cause::Memory { bytes: 16 << 20, high: Some(8 << 20) })
    }

    /// Processes started and reaped.
    pub fn forks() -> Self {
        Self::of(Cause::Forks)
    }

    /// The wall clock steps, and back at the end.
    pub fn clock_step_ms(by_ms: i64) -> Self {
        Self::of(Cause::ClockStep { by_ms }).lasting_ms(1_000)
    }

    /// Fills the file system of a folder but for some bytes.
    pub fn full_disk(dir: impl Into<String>, leave: u64) -> Self {
        Self::of(Cause::FullDisk { dir: dir.into(), leave })
    }

    /// Takes a CPU off for 300 ms, once.
    pub fn cpu_offline(cpu: u32) -> Self {
        Self::of(Cause::Offline { down_ms: 300 }).cpu(cpu).every_ms(1_000).times(1)
    }

    /// For how long [`Plant::cpu_offline`] takes the CPU off.
    #[must_use]
    pub fn down_ms(mut self, ms: u64) -> Self {
        if let Cause::Offline { down_ms } = &mut self.cause {
            *down_ms = ms;
        }
        self
    }

    /// A thread that inherits FIFO 90 through a lock, 3 ms every 100 ms.
    pub fn boost() -> Self {
        Self::of(Cause::Boost)
    }

    /// A datagram for many sockets, every 100 ms: one long soft interrupt.
    pub fn deliver(sockets: u64) -> Self {
        Self::of(Cause::Deliver { sockets })
    }

    /// Timers of one instant, every 100 ms: one long timer interrupt on stock kernels.
    pub fn expire(timers: u64) -> Self {
        Self::of(Cause::Expire { timers })
    }

    /// A full socket is closed every 100 ms: a long stretch of kernel code.
    pub fn purge(messages: u64) -> Self {
        Self::of(Cause::Purge { messages })
    }

    /// The measuring process stands still for 20 ms every 250.
    pub fn stop() -> Self {
        Self::of(Cause::Stop).us(20_000).every_ms(250)
    }

    /// A spinning process that has 20 ms of each 100.
    pub fn cpu_quota() -> Self {
        Self::of(Cause::Quota { quota_us: 20_000 })
    }
}
