//! Checks: scheduler, real-time tasks, rights.

use rtproof_host::{Facts, Knob, Reading};

use super::Section;

mod autogroup;
mod chrt_capability;
mod daemons;
mod dl_admission;
mod ext_server;
mod fair_server;
mod features;
mod good;
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

/// The section.
pub(super) const SECTION: Section = Section {
    name: "sched",
    title: "scheduler, real-time tasks, rights",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own, or one shared with their like.
const CHECKS: &[&dyn super::Check] = &[
    &rt_throttling::RtThrottling,
    &fair_server::FairServer,
    &ext_server::ExtServer,
    &rogue_rt_tasks::RogueRtTasks,
    &prio_99::Prio99,
    &dl_admission::DlAdmission,
    &kernel_threads::IrqThreadPrio,
    &irq_thread_affinity::IrqThreadAffinity,
    &kernel_threads::SoftirqPrio,
    &kernel_threads::RcuKthreadPrio,
    &limits_rtprio::LimitsRtprio,
    &limits_memlock::LimitsMemlock,
    &chrt_capability::ChrtCapability,
    &limits_files::PAM,
    &limits_files::DUPLICATES,
    &limits_files::GROUPS,
    &daemons::Rtkit,
    &daemons::Stalld,
    &watchdog_daemon::WatchdogDaemon,
    &features::TTWU_QUEUE,
    &features::RT_PUSH_IPI,
    &features::RT_RUNTIME_SHARE,
    &rr_timeslice::SchedRrTimeslice,
    &autogroup::SchedAutogroup,
];

/// The value of a knob that is one file.
fn value(facts: &Facts, knob: &Knob) -> Reading<String> {
    let setting = facts.settings.get(knob.id).and_then(|setting| setting.values.first());
    match setting {
        Some(value) => value.reading.clone(),
        None => Reading::denied(knob.patterns().next().unwrap_or(knob.id), "not asked"),
    }
}
