//! Knobs: isolation.

use crate::{
    compare::Compare,
    knob::{Cpus, Effect, Kind, Knob, Rank, Scope},
};

/// Expedited grace periods of RCU turned into normal ones.
pub static RCU_NORMAL: Knob = Knob::file("rcu-normal-after-boot", "/sys/kernel/rcu_normal")
    .or_boot("rcupdate.rcu_normal_after_boot={}");

/// Milliseconds that RCU leaves tickless CPUs alone (6.11, and kernels that took it over).
pub static RCU_PATIENCE: Knob =
    Knob::file("rcu-patience", "/sys/module/rcutree/parameters/nohz_full_patience_delay")
        .at(Effect::Boot)
        .or_boot("rcutree.nohz_full_patience_delay={}");

/// Unbound work in place of some work that is bound to a CPU.
pub static POWER_EFFICIENT: Knob =
    Knob::file("wq-power-efficient", "/sys/module/workqueue/parameters/power_efficient")
        .at(Effect::Boot)
        .or_boot("workqueue.power_efficient={}");

/// Mask of the unbound workers.
pub static WORKQUEUE_CPUMASK: Knob =
    Knob::file("workqueue-cpumask", "/sys/devices/virtual/workqueue/cpumask")
        .or_boot("workqueue.unbound_cpus={}")
        .workers();

/// Mask of the workers that write dirty pages back.
pub static WRITEBACK_CPUMASK: Knob =
    Knob::file("writeback-cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask")
        .couples(&["workqueue-cpumask"])
        .workers();

/// kernel.timer_migration.
pub static TIMER_MIGRATION: Knob =
    Knob::file("timer-migration", "/proc/sys/kernel/timer_migration");

/// Probes in the kernel's code, for root only.
pub static KPROBES: Knob =
    Knob::file("text-poke-activity", "/sys/kernel/debug/kprobes/list").counter();

/// The daemon that keeps network time stamps switched on.
pub static ENTSK: Knob =
    Knob::units("static-key-ipis", &["realtime-entsk.service"]).of(Scope::Unit);

/// CPUs of an interrupt.
pub static IRQ_CPUS: Knob =
    Knob::file("irq-cpus", "/proc/irq/*/smp_affinity_list").of(Scope::Irq).fact().kind(Kind::Irq);

/// CPUs of interrupts that are requested later.
pub static IRQ_DEFAULT: Knob = Knob::file("irq-default-cpus", "/proc/irq/default_smp_affinity")
    .fact()
    .compared(Compare::CpuMask)
    .cpus(Cpus::Placed)
    .ranked(Rank::IrqDefault);

/// A control group.
pub static GROUP: Knob = Knob::group("cgroup", "a control group").ranked(Rank::GroupFolders);

/// Controllers that a control group passes to its children.
pub static GROUP_CONTROLLERS: Knob =
    Knob::group("cgroup-controllers", "cgroup.subtree_control of a control group")
        .compared(Compare::Controller)
        .ranked(Rank::GroupControllers);

/// CPUs of a control group.
pub static GROUP_CPUS: Knob = Knob::group("cgroup-cpus", "cpuset.cpus of a control group")
    .compared(Compare::CpuList)
    .cpus(Cpus::Placed)
    .ranked(Rank::GroupCpus);

/// Whether a control group has its CPUs for itself.
pub static GROUP_PARTITION: Knob =
    Knob::group("cgroup-partition", "cpuset.cpus.partition of a control group")
        .compared(Compare::Text)
        .cpus(Cpus::Placed)
        .ranked(Rank::GroupPartitions);

/// The table.
pub const KNOBS: &[&Knob] = &[
    &IRQ_CPUS,
    &IRQ_DEFAULT,
    &GROUP,
    &GROUP_CONTROLLERS,
    &GROUP_CPUS,
    &GROUP_PARTITION,
    &RCU_NORMAL,
    &RCU_PATIENCE,
    &POWER_EFFICIENT,
    &WORKQUEUE_CPUMASK,
    &WRITEBACK_CPUMASK,
    &TIMER_MIGRATION,
    &KPROBES,
    &ENTSK,
];
