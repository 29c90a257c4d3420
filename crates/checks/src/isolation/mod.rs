//! Checks: isolated CPUs and interrupts.

use super::check::Check;
use super::section::Section;

mod agreement;
mod cmdline_glued;
mod common;
mod cpu0_isolated;
mod cpuset_partition;
mod cpuset_shield;
mod hk_sufficient;
mod irq_affinity;
mod irq_shared;
mod irq_storm;
mod irqaffinity_boot;
mod irqbalance;
mod isolcpus;
mod isolcpus_managed_irq;
mod kthread_affinity;
mod local_ipis;
mod nohz_full;
mod nohz_on;
mod nohz_single_task;
mod numa_placement;
mod rcu_nocb_poll;
mod rcu_nocbs;
mod rcuo_affinity;
#[cfg(test)]
mod regressions;
mod rt_tasks_off_their_cpus;
mod rules;
mod skew_tick;
mod static_key_ipis;
mod systemd_cpuaffinity;
mod tlb_shootdown;
mod user_tasks_on_iso;
mod workqueue_cpumask;

pub(super) const SECTION: Section =
    Section { name: "isolation", title: "isolated CPUs and interrupts", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &agreement::CHECK,
    &isolcpus::ISOLCPUS,
    &isolcpus_managed_irq::ISOLCPUS_MANAGED_IRQ,
    &cpuset_partition::CPUSET_PARTITION,
    &cpuset_shield::CPUSET_SHIELD,
    &systemd_cpuaffinity::SYSTEMD_CPUAFFINITY,
    &cmdline_glued::CMDLINE_GLUED,
    &hk_sufficient::HK_SUFFICIENT,
    &cpu0_isolated::CPU0_ISOLATED,
    &numa_placement::NUMA_PLACEMENT,
    &rt_tasks_off_their_cpus::RT_TASKS_OFF_THEIR_CPUS,
    &user_tasks_on_iso::USER_TASKS_ON_ISO,
    &kthread_affinity::KTHREAD_AFFINITY,
    &workqueue_cpumask::WORKQUEUE_CPUMASK,
    &workqueue_cpumask::WRITEBACK_CPUMASK,
    &nohz_full::NOHZ_FULL,
    &nohz_on::NOHZ_ON,
    &nohz_single_task::NOHZ_SINGLE_TASK,
    &skew_tick::SKEW_TICK,
    &rcu_nocbs::RCU_NOCBS,
    &rcuo_affinity::RCUO_AFFINITY,
    &rcu_nocb_poll::RCU_NOCB_POLL,
    &irq_affinity::CHECK,
    &irqaffinity_boot::IRQAFFINITY_BOOT,
    &irqbalance::CHECK,
    &irq_shared::IRQ_SHARED,
    &irq_storm::IRQ_STORM,
    &local_ipis::LOCAL_IPIS,
    &tlb_shootdown::TLB_SHOOTDOWN,
    &static_key_ipis::STATIC_KEY_IPIS,
    &rules::RCU_NORMAL,
    &rules::RCU_PATIENCE,
    &rules::POWER_EFFICIENT,
    &rules::TIMER_MIGRATION,
    &rules::KPROBES,
];
