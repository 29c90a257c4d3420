//! Knobs: isolation.

use crate::knob::{Compare, Cpus, Effect, Kind, Knob, Rank, Scope};

table! {
    /// Expedited grace periods of RCU turned into normal ones.
    RCU_NORMAL = Knob::file("rcu-normal-after-boot", "/sys/kernel/rcu_normal")
        .or_boot("rcupdate.rcu_normal_after_boot={}");

    /// Milliseconds that RCU leaves tickless CPUs alone (6.11, and kernels that took it over).
    RCU_PATIENCE = Knob::file(
        "rcu-patience",
        "/sys/module/rcutree/parameters/nohz_full_patience_delay",
    ).at(Effect::Boot).or_boot("rcutree.nohz_full_patience_delay={}");

    /// Unbound work in place of some work that is bound to a CPU.
    POWER_EFFICIENT = Knob::file(
        "wq-power-efficient",
        "/sys/module/workqueue/parameters/power_efficient",
    ).at(Effect::Boot).or_boot("workqueue.power_efficient={}");

    /// Mask of the unbound workers.
    WORKQUEUE_CPUMASK = Knob::file("workqueue-cpumask", "/sys/devices/virtual/workqueue/cpumask")
        .or_boot("workqueue.unbound_cpus={}").workers();

    /// Mask of the workers that write dirty pages back.
    WRITEBACK_CPUMASK = Knob::file(
        "writeback-cpumask",
        "/sys/devices/virtual/workqueue/writeback/cpumask",
    ).couples(&["workqueue-cpumask"]).workers();

    /// kernel.timer_migration.
    TIMER_MIGRATION = Knob::file("timer-migration", "/proc/sys/kernel/timer_migration");

    /// Probes in the kernel's code, for root only.
    KPROBES = Knob::file("text-poke-activity", "/sys/kernel/debug/kprobes/list").counter();

    /// The daemon that keeps network time stamps switched on.
    ENTSK = Knob::units("static-key-ipis", &["realtime-entsk.service"]).of(Scope::Unit);

    /// CPUs of an interrupt.
    IRQ_CPUS = Knob::file("irq-cpus", "/proc/irq/*/smp_affinity_list")
        .of(Scope::Irq).fact().kind(Kind::Irq);

    /// CPUs of interrupts that are requested later.
    IRQ_DEFAULT = Knob::file("irq-default-cpus", "/proc/irq/default_smp_affinity")
        .fact().compared(Compare::CpuMask).cpus(Cpus::Placed).ranked(Rank::IrqDefault);

    GROUP = Knob::group("cgroup", "a control group").ranked(Rank::GroupFolders);

    /// Controllers that a control group passes to its children.
    GROUP_CONTROLLERS = Knob::group(
        "cgroup-controllers",
        "cgroup.subtree_control of a control group",
    ).compared(Compare::Controller).ranked(Rank::GroupControllers);

    /// CPUs of a control group.
    GROUP_CPUS = Knob::group("cgroup-cpus", "cpuset.cpus of a control group")
        .compared(Compare::CpuList).cpus(Cpus::Placed).ranked(Rank::GroupCpus);

    /// Whether a control group has its CPUs for itself.
    GROUP_PARTITION = Knob::group("cgroup-partition", "cpuset.cpus.partition of a control group")
        .compared(Compare::Text).cpus(Cpus::Placed).ranked(Rank::GroupPartitions);
}
