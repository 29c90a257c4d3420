//! Checks: clocks, watchdogs, machine checks.

use super::check::Check;
use super::section::Section;

mod clocksource;
mod hung_task;
mod lockup;
mod mce_ce;
mod ntp_steps;
mod rules;
mod tsc_watchdog;

pub(super) const SECTION: Section =
    Section { name: "time", title: "clocks, watchdogs, machine checks", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &lockup::NMI,
    &lockup::SOFT,
    &lockup::MASK,
    &hung_task::CHECK,
    &mce_ce::CHECK,
    &clocksource::CHECK,
    &tsc_watchdog::CHECK,
    &ntp_steps::CHECK,
    &rules::SOFTLOCKUP_BACKTRACE,
    &rules::HARDLOCKUP_BACKTRACE,
    &rules::HUNG_TASK_BACKTRACE,
    &rules::RCU_STALL,
    &rules::MEM_SCRUB,
    &rules::CLOCKEVENT,
    &rules::SPLIT_LOCK,
];
