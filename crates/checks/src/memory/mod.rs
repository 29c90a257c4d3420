//! Checks: memory and file systems.

use super::check::Check;
use super::section::Section;

mod dirty_writeback;
mod fs_mounts;
mod hugepages;
mod resctrl_cat;
mod rules;
mod stat_interval;
mod swap;
mod thp;
mod thp_collapse;

pub(super) const SECTION: Section =
    Section { name: "memory", title: "memory and file systems", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &thp::CHECK,
    &thp_collapse::DEFRAG,
    &thp_collapse::KHUGEPAGED,
    &swap::CHECK,
    &stat_interval::CHECK,
    &dirty_writeback::CHECK,
    &hugepages::CHECK,
    &resctrl_cat::CHECK,
    &fs_mounts::CHECK,
    &rules::SWAPPINESS,
    &rules::THP_SHMEM,
    &rules::THP_SIZES,
    &rules::KSM,
    &rules::NUMA_BALANCING,
    &rules::COMPACTION_PROACTIVE,
    &rules::COMPACTION_UNEVICTABLE,
    &rules::MIN_FREE,
    &rules::ZONE_RECLAIM,
    &rules::LRU_GEN,
    &rules::SLUB_PARTIALS,
    &rules::HUGEPAGES_OVERCOMMIT,
];
