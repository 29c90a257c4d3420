//! Checks: scheduler, real-time tasks, rights.

use super::check::Check;
use super::section::Section;

mod autogroup;
mod chrt_capability;
mod daemons;
mod dl_admission;
mod ext_server;
mod fair_server;
mod features;
mod irq_thread_affinity;
mod kernel_threads;
mod limits_files;
mod limits_memlock;
mod limits_rtprio;
mod prio_99;
mod rogue_rt_tasks;
mod rr_timeslice;
mod rt_throttling;
mod rules;
mod servers;
mod tasks;
mod watchdog_daemon;

pub(super) const SECTION: Section =
    Section { name: "sched", title: "scheduler, real-time tasks, rights", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &rt_throttling::CHECK,
    &fair_server::CHECK,
    &ext_server::CHECK,
    &rogue_rt_tasks::CHECK,
    &prio_99::CHECK,
    &dl_admission::CHECK,
    &kernel_threads::IRQ_THREAD_PRIO,
    &irq_thread_affinity::CHECK,
    &kernel_threads::SOFTIRQ_PRIO,
    &kernel_threads::RCU_KTHREAD_PRIO,
    &limits_rtprio::CHECK,
    &limits_memlock::CHECK,
    &chrt_capability::CHECK,
    &limits_files::PAM,
    &limits_files::DUPLICATES,
    &limits_files::GROUPS,
    &daemons::RTKIT,
    &daemons::STALLD,
    &watchdog_daemon::CHECK,
    &features::TTWU_QUEUE,
    &features::RT_PUSH_IPI,
    &features::RT_RUNTIME_SHARE,
    &rr_timeslice::CHECK,
    &autogroup::CHECK,
    &rules::SCHED_EXT,
];
