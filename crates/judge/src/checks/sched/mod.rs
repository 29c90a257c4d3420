//! Checks: scheduler, real-time tasks, rights.

use super::Section;

mod good;
mod limits_memlock;
mod limits_rtprio;
mod rogue_rt_tasks;
mod rt_throttling;
mod rules;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "sched",
    title: "scheduler, real-time tasks, rights",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[
    &rt_throttling::RtThrottling,
    &rogue_rt_tasks::RogueRtTasks,
    &limits_rtprio::LimitsRtprio,
    &limits_memlock::LimitsMemlock,
];
