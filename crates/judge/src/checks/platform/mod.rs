//! Checks: firmware, virtualization, security.

use super::Section;

mod good;
mod hypervisor;
mod rules;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "platform",
    title: "firmware, virtualization, security",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[&hypervisor::Hypervisor];
