//! Checks: memory and file systems.

use super::Section;

mod dirty_writeback;
mod fs_mounts;
mod good;
mod hugepages;
pub(super) mod knob;
mod resctrl_cat;
mod rules;
mod stat_interval;
mod swap;
mod thp;
mod thp_collapse;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "memory",
    title: "memory and file systems",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[
    &thp::Thp,
    &thp_collapse::Defrag,
    &thp_collapse::Khugepaged,
    &swap::Swap,
    &stat_interval::StatInterval,
    &dirty_writeback::DirtyWriteback,
    &hugepages::Hugepages,
    &resctrl_cat::ResctrlCat,
    &fs_mounts::FsMounts,
];
