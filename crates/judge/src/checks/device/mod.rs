//! Checks: network, graphics, devices, services.

use super::Section;

mod good;
mod rules;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "device",
    title: "network, graphics, devices, services",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[];
