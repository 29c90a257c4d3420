//! Checks: isolated CPUs and interrupts.

use super::Section;

mod agreement;
mod good;
mod irq_affinity;
mod irqbalance;
mod rules;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "isolation",
    title: "isolated CPUs and interrupts",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] =
    &[&agreement::Isolation, &irq_affinity::IrqAffinity, &irqbalance::Irqbalance];
