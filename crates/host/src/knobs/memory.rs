//! Knobs: memory, swap, file systems.

use crate::knob::{Knob, Rank, Scope};

table! {
    /// Transparent huge pages. Writing it recomputes vm.min_free_kbytes.
    THP = Knob::choice("thp", "/sys/kernel/mm/transparent_hugepage/enabled")
        .or_boot("transparent_hugepage={}").couples(&["min-free"]).ranked(Rank::HugePages);

    /// What a page fault does to get one.
    THP_DEFRAG = Knob::choice("thp-defrag", "/sys/kernel/mm/transparent_hugepage/defrag")
        .ranked(Rank::HugePages);

    /// Transparent huge pages of shared memory and tmpfs.
    THP_SHMEM = Knob::choice("thp-shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled")
        .couples(&["min-free"]).ranked(Rank::HugePages);

    /// Transparent huge pages of one size.
    THP_SIZES = Knob::choice("thp-sizes", "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled")
        .of(Scope::Device).couples(&["min-free"]).ranked(Rank::HugePages);

    /// Whether khugepaged may compact memory.
    KHUGEPAGED = Knob::file("khugepaged", "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")
        .ranked(Rank::HugePages);

    /// Merging of equal pages. 2 gives merged pages their own copies back, and cannot be undone.
    KSM = Knob::file("ksm", "/sys/kernel/mm/ksm/run");

    /// Balancing of memory between nodes.
    NUMA_BALANCING = Knob::file("numa-balancing", "/proc/sys/kernel/numa_balancing")
        .or_boot("numa_balancing=disable");

    /// Compaction before anybody asks for it.
    COMPACTION_PROACTIVE = Knob::file(
        "compaction-proactive",
        "/proc/sys/vm/compaction_proactiveness",
    ).since(5, 9);

    /// Compaction of locked pages.
    COMPACTION_UNEVICTABLE = Knob::file(
        "compaction-unevictable",
        "/proc/sys/vm/compact_unevictable_allowed",
    );

    SWAPPINESS = Knob::file("swappiness", "/proc/sys/vm/swappiness");

    /// Seconds between two updates of the counters of each CPU.
    STAT_INTERVAL = Knob::file("stat-interval", "/proc/sys/vm/stat_interval");

    /// Dirty pages, percent of what can be, at which a writer has to wait.
    DIRTY_RATIO = Knob::file("dirty-ratio", "/proc/sys/vm/dirty_ratio").couples(&["dirty-bytes"]);

    /// The same in bytes; of the two, the one that is not 0 counts.
    DIRTY_BYTES = Knob::file("dirty-bytes", "/proc/sys/vm/dirty_bytes").couples(&["dirty-ratio"]);

    /// Dirty pages, percent of what can be, at which the kernel starts to write.
    DIRTY_BACKGROUND_RATIO = Knob::file(
        "dirty-background-ratio",
        "/proc/sys/vm/dirty_background_ratio",
    ).couples(&["dirty-background-bytes"]);

    /// The same in bytes.
    DIRTY_BACKGROUND_BYTES = Knob::file(
        "dirty-background-bytes",
        "/proc/sys/vm/dirty_background_bytes",
    ).couples(&["dirty-background-ratio"]);

    MIN_FREE = Knob::file("min-free", "/proc/sys/vm/min_free_kbytes");

    /// Reclaim on a node before memory of another is used.
    ZONE_RECLAIM = Knob::file("zone-reclaim", "/proc/sys/vm/zone_reclaim_mode");

    /// Parts of the multi-gen LRU that are on, as bits.
    LRU_GEN = Knob::file("lru-gen", "/sys/kernel/mm/lru_gen/enabled").since(6, 1);

    /// Objects on each CPU's list of partial slabs: of the caches behind kmalloc alone, since a
    /// machine has hundreds of caches and each is a file.
    SLUB_PARTIALS = Knob::file("slub-partials", "/sys/kernel/slab/kmalloc-*/cpu_partial")
        .of(Scope::Device);

    /// Huge pages reserved on each node, or on a machine without nodes.
    HUGEPAGES = Knob::file(
        "hugepages",
        "/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages | \
         /sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
    ).of(Scope::Device);

    /// Huge pages that may be made when the reserved ones are used up.
    HUGEPAGES_OVERCOMMIT = Knob::file(
        "hugepages-overcommit",
        "/sys/kernel/mm/hugepages/hugepages-*/nr_overcommit_hugepages",
    ).of(Scope::Device);

    /// Parts of the cache for groups of CPUs.
    RESCTRL = Knob::other("resctrl-cat", "groups of /sys/fs/resctrl");
}
