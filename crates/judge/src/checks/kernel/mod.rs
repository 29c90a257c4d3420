//! Checks: kernel build and preemption.

use super::Section;

mod good;
mod preempt_rt;
mod rules;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "kernel",
    title: "kernel build and preemption",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[&preempt_rt::PreemptRt];
