//! Knobs: memory, swap, file systems.

use crate::knob::{Knob, Rank, Scope};

/// Transparent huge pages. Writing it recomputes vm.min_free_kbytes.
pub static THP: Knob = Knob::choice("thp", "/sys/kernel/mm/transparent_hugepage/enabled")
    .or_boot("transparent_hugepage={}")
    .couples(&["min-free"])
    .ranked(Rank::HugePages);

/// What a page fault does to get one.
pub static THP_DEFRAG: Knob =
    Knob::choice("thp-defrag", "/sys/kernel/mm/transparent_hugepage/defrag")
        .ranked(Rank::HugePages);

/// Transparent huge pages of shared memory and tmpfs.
pub static THP_SHMEM: Knob =
    Knob::choice("thp-shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled")
        .couples(&["min-free"])
        .ranked(Rank::HugePages);

/// Transparent huge pages of one size.
pub static THP_SIZES: Knob =
    Knob::choice("thp-sizes", "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled")
        .of(Scope::Device)
        .couples(&["min-free"])
        .ranked(Rank::HugePages);

/// Whether khugepaged may compact memory.
pub static KHUGEPAGED: Knob =
    Knob::file("khugepaged", "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")
        .ranked(Rank::HugePages);

/// Merging of equal pages. 2 gives merged pages their own copies back, and cannot be undone.
pub static KSM: Knob = Knob::file("ksm", "/sys/kernel/mm/ksm/run");

/// Balancing of memory between nodes.
pub static NUMA_BALANCING: Knob = Knob::file("numa-balancing", "/proc/sys/kernel/numa_balancing")
    .or_boot("numa_balancing=disable");

/// Compaction before anybody asks for it.
pub static COMPACTION_PROACTIVE: Knob =
    Knob::file("compaction-proactive", "/proc/sys/vm/compaction_proactiveness").since(5, 9);

/// Compaction of locked pages.
pub static COMPACTION_UNEVICTABLE: Knob =
    Knob::file("compaction-unevictable", "/proc/sys/vm/compact_unevictable_allowed");

/// vm.swappiness.
pub static SWAPPINESS: Knob = Knob::file("swappiness", "/proc/sys/vm/swappiness");

/// Seconds between two updates of the counters of each CPU.
pub static STAT_INTERVAL: Knob = Knob::file("stat-interval", "/proc/sys/vm/stat_interval");

/// Dirty pages, percent of what can be, at which a writer has to wait.
pub static DIRTY_RATIO: Knob =
    Knob::file("dirty-ratio", "/proc/sys/vm/dirty_ratio").couples(&["dirty-bytes"]);

/// The same in bytes; of the two, the one that is not 0 counts.
pub static DIRTY_BYTES: Knob =
    Knob::file("dirty-bytes", "/proc/sys/vm/dirty_bytes").couples(&["dirty-ratio"]);

/// Dirty pages, percent of what can be, at which the kernel starts to write.
pub static DIRTY_BACKGROUND_RATIO: Knob =
    Knob::file("dirty-background-ratio", "/proc/sys/vm/dirty_background_ratio")
        .couples(&["dirty-background-bytes"]);

/// The same in bytes.
pub static DIRTY_BACKGROUND_BYTES: Knob =
    Knob::file("dirty-background-bytes", "/proc/sys/vm/dirty_background_bytes")
        .couples(&["dirty-background-ratio"]);

/// Memory kept free.
pub static MIN_FREE: Knob = Knob::file("min-free", "/proc/sys/vm/min_free_kbytes");

/// Reclaim on a node before memory of another is used.
pub static ZONE_RECLAIM: Knob = Knob::file("zone-reclaim", "/proc/sys/vm/zone_reclaim_mode");

/// Parts of the multi-gen LRU that are on, as bits.
pub static LRU_GEN: Knob = Knob::file("lru-gen", "/sys/kernel/mm/lru_gen/enabled").since(6, 1);

/// Objects on each CPU's list of partial slabs: of the caches behind kmalloc alone, since a machine
/// has hundreds of caches and each is a file.
pub static SLUB_PARTIALS: Knob =
    Knob::file("slub-partials", "/sys/kernel/slab/kmalloc-*/cpu_partial").of(Scope::Device);

/// Huge pages reserved on each node, or on a machine without nodes.
pub static HUGEPAGES: Knob = Knob::file(
    "hugepages",
    "/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages | \
     /sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
)
.of(Scope::Device);

/// Huge pages that may be made when the reserved ones are used up.
pub static HUGEPAGES_OVERCOMMIT: Knob = Knob::file(
    "hugepages-overcommit",
    "/sys/kernel/mm/hugepages/hugepages-*/nr_overcommit_hugepages",
)
.of(Scope::Device);

/// Parts of the cache for groups of CPUs.
pub static RESCTRL: Knob = Knob::other("resctrl-cat", "groups of /sys/fs/resctrl");

/// The table.
pub const KNOBS: &[&Knob] = &[
    &THP,
    &THP_DEFRAG,
    &THP_SHMEM,
    &THP_SIZES,
    &KHUGEPAGED,
    &KSM,
    &NUMA_BALANCING,
    &COMPACTION_PROACTIVE,
    &COMPACTION_UNEVICTABLE,
    &SWAPPINESS,
    &STAT_INTERVAL,
    &DIRTY_RATIO,
    &DIRTY_BYTES,
    &DIRTY_BACKGROUND_RATIO,
    &DIRTY_BACKGROUND_BYTES,
    &MIN_FREE,
    &ZONE_RECLAIM,
    &LRU_GEN,
    &SLUB_PARTIALS,
    &HUGEPAGES,
    &HUGEPAGES_OVERCOMMIT,
    &RESCTRL,
];
