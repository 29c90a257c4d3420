//! Checks: SMT, frequency, idle states, power.

use super::Section;

mod cpufreq_governor;
mod cpuidle_states;
mod good;
mod rules;
mod smt;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "power",
    title: "SMT, frequency, idle states, power",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] =
    &[&cpufreq_governor::CpufreqGovernor, &cpuidle_states::CpuidleStates, &smt::Smt];
