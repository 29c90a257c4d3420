//! Checks: clocks, watchdogs, machine checks.

use super::Section;

mod clocksource;
mod good;
mod hung_task;
mod lockup;
mod mce_ce;
mod ntp_steps;
mod rules;
mod tsc_watchdog;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "time",
    title: "clocks, watchdogs, machine checks",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[
    &lockup::NMI,
    &lockup::SOFT,
    &lockup::Mask,
    &hung_task::HungTask,
    &mce_ce::MceCe,
    &clocksource::Clocksource,
    &tsc_watchdog::TscWatchdog,
    &ntp_steps::NtpSteps,
];
