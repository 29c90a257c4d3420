//! Knobs: isolation.

use crate::knob::{Effect, Knob, Scope};

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
        .or_boot("workqueue.unbound_cpus={}");

/// Mask of the workers that write dirty pages back.
pub static WRITEBACK_CPUMASK: Knob =
    Knob::file("writeback-cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask")
        .couples(&["workqueue-cpumask"]);

/// kernel.timer_migration.
pub static TIMER_MIGRATION: Knob =
    Knob::file("timer-migration", "/proc/sys/kernel/timer_migration");

/// Probes in the kernel's code, for root only.
pub static KPROBES: Knob =
    Knob::file("text-poke-activity", "/sys/kernel/debug/kprobes/list").counter();

/// The daemon that keeps network time stamps switched on.
pub static ENTSK: Knob =
    Knob::units("static-key-ipis", &["realtime-entsk.service"]).of(Scope::Unit);

/// The table.
pub const KNOBS: &[&Knob] = &[
    &RCU_NORMAL,
    &RCU_PATIENCE,
    &POWER_EFFICIENT,
    &WORKQUEUE_CPUMASK,
    &WRITEBACK_CPUMASK,
    &TIMER_MIGRATION,
    &KPROBES,
    &ENTSK,
];
