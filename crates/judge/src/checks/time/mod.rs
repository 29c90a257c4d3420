//! Checks: clocks, watchdogs, machine checks.

use super::Section;

mod clocksource;
mod good;
mod rules;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "time",
    title: "clocks, watchdogs, machine checks",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[&clocksource::Clocksource];
