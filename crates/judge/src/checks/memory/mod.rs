//! Checks: memory and file systems.

use super::Section;

mod good;
mod rules;
mod swap;
mod thp;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "memory",
    title: "memory and file systems",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[&thp::Thp, &swap::Swap];
