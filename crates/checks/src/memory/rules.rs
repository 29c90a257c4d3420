//! Rows: memory and file systems.

use rtproof_host::knobs::memory as knobs;

use crate::Impact;
use crate::check::{Check, Judge};
use crate::value::{Absent, Want};

pub(super) static SWAPPINESS: Check = Check {
    title: "how readily pages are swapped out (vm.swappiness)",
    why: "a page of the application that was swapped out takes milliseconds to come back",
    source: "Documentation/admin-guide/sysctl/vm.rst; tuned, profile latency-performance (10); \
             rtcqs",
    impact: Impact::Milliseconds,
    judge: Judge::value(|_| Want::at_most(10).or_doubtful(), Absent::WithoutOption("SWAP")),
    ..Check::of(&[&knobs::SWAPPINESS])
};

pub(super) static THP_SHMEM: Check = Check {
    title: "transparent huge pages of shared memory and tmpfs",
    why: "khugepaged collapses pages of shared memory that a real-time thread has mapped, and its \
          next access is a page fault",
    source: "Documentation/admin-guide/mm/transhuge.rst (Hugepages in tmpfs/shmem); \
             mm/khugepaged.c (collapse_file)",
    impact: Impact::Hundreds,
    judge: Judge::value(
        |_| Want::one_of(&["never", "deny"]).or_doubtful(),
        Absent::WithoutOption("TRANSPARENT_HUGEPAGE"),
    ),
    ..Check::of(&[&knobs::THP_SHMEM])
};

pub(super) static THP_SIZES: Check = Check {
    title: "transparent huge pages of each size",
    why: "a size that is switched on by itself is made and collapsed whatever the switch on top \
          says",
    source: "Documentation/admin-guide/mm/transhuge.rst (hugepages-<size>kB/enabled)",
    impact: Impact::Hundreds,
    judge: Judge::value(
        |_| Want::one_of(&["inherit", "never"]).or_doubtful().set("never"),
        Absent::WithoutOption("TRANSPARENT_HUGEPAGE"),
    ),
    ..Check::of(&[&knobs::THP_SIZES])
};

pub(super) static KSM: Check = Check {
    title: "merging of equal pages (KSM)",
    why: "ksmd scans and write-protects memory that programs offered, and the next write to a \
          merged page is a page fault that copies it",
    source: "Documentation/admin-guide/mm/ksm.rst (run); mm/ksm.c; tuned, profile \
             realtime-virtual-host; rigtorp.se/low-latency-guide",
    trade_off: Some(
        "virtual machines share less memory; 2 also gives merged pages their own copies back, \
         which needs memory and cannot be undone",
    ),
    judge: Judge::value(|_| Want::one_of(&["0", "2"]), Absent::WithoutOption("KSM")),
    ..Check::of(&[&knobs::KSM])
};

pub(super) static NUMA_BALANCING: Check = Check {
    title: "balancing of memory between nodes",
    why: "the kernel takes pages out of the page table to see who uses them, and each next access \
          is a page fault that may move the page",
    source: "Documentation/admin-guide/sysctl/kernel.rst (numa_balancing); init/Kconfig \
             (NUMA_BALANCING depends on !PREEMPT_RT); rigtorp.se/low-latency-guide",
    trade_off: Some("programs that are bound to no node may stay far from their memory"),
    impact: Impact::Hundreds,
    judge: Judge::value(|_| Want::is("0"), Absent::WithoutOption("NUMA_BALANCING")),
    ..Check::of(&[&knobs::NUMA_BALANCING])
};

pub(super) static COMPACTION_PROACTIVE: Check = Check {
    title: "compaction before anybody asks (vm.compaction_proactiveness)",
    why: "kcompactd moves pages of every process in the background, and a thread that touches one \
          waits until it has moved",
    source: "Documentation/admin-guide/sysctl/vm.rst (compaction_proactiveness: \"latency \
             spikes\")",
    trade_off: Some("huge pages are less often free"),
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("COMPACTION")),
    ..Check::of(&[&knobs::COMPACTION_PROACTIVE])
};

pub(super) static COMPACTION_UNEVICTABLE: Check = Check {
    title: "compaction of locked pages (vm.compact_unevictable_allowed)",
    why: "memory locked with mlock may be moved all the same, and a thread that touches it \
          meanwhile faults and waits",
    source: "Documentation/admin-guide/sysctl/vm.rst (compact_unevictable_allowed); mm/Kconfig \
             (COMPACT_UNEVICTABLE_DEFAULT is 0 on PREEMPT_RT)",
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("COMPACTION")),
    ..Check::of(&[&knobs::COMPACTION_UNEVICTABLE])
};

pub(super) static MIN_FREE: Check = Check {
    title: "memory kept free (vm.min_free_kbytes)",
    why: "an allocation that finds too little memory free reclaims some first, and below 1 MiB the \
          kernel itself may get stuck",
    source: "Documentation/admin-guide/sysctl/vm.rst (min_free_kbytes: at least 1024)",
    trade_off: Some("what is kept free nobody can use"),
    impact: Impact::Milliseconds,
    judge: Judge::value(
        |_| Want::at_least(1024).or_doubtful().not_set().text("at least 1024 KiB"),
        Absent::Unknown,
    ),
    ..Check::of(&[&knobs::MIN_FREE])
};

pub(super) static ZONE_RECLAIM: Check = Check {
    title: "reclaim before memory of another node is used (vm.zone_reclaim_mode)",
    why: "an allocation reclaims pages of its own node, and may wait for the disk, while another \
          node has memory free",
    source: "Documentation/admin-guide/sysctl/vm.rst (zone_reclaim_mode)",
    trade_off: Some("memory may come from another node: bind the application where that matters"),
    impact: Impact::Milliseconds,
    judge: Judge::value(|_| Want::is("0"), Absent::WithoutOption("NUMA")),
    ..Check::of(&[&knobs::ZONE_RECLAIM])
};

pub(super) static LRU_GEN: Check = Check {
    title: "page-table walks of the multi-gen LRU",
    why: "under memory pressure the kernel walks the page tables of whole processes, and their \
          threads wait for the memory lock meanwhile",
    source: "Documentation/admin-guide/mm/multigen_lru.rst (0x0002: \"can theoretically worsen \
             lock contention\")",
    trade_off: Some("reclaim finds pages that are in use a little less well"),
    judge: Judge::value(
        |_| {
            // Every value without bit 0x0002.
            let without = ["0x0005", "0x0004", "0x0001", "0x0000"];
            Want::one_of(&without).or_doubtful().set("5").text("without 0x0002: 0x0005")
        },
        Absent::WithoutOption("LRU_GEN"),
    ),
    ..Check::of(&[&knobs::LRU_GEN])
};

pub(super) static SLUB_PARTIALS: Check = Check {
    title: "partial slabs kept on each CPU (caches behind kmalloc)",
    why: "a free that overflows the CPU's list hands all of it back at once, under a lock that \
          others wait for",
    source: "mm/Kconfig (SLUB_CPU_PARTIAL: \"latency spikes\", no for real-time systems); \
             Documentation/ABI/testing/sysfs-kernel-slab (cpu_partial)",
    trade_off: Some(
        "allocation and freeing take the node's lock more often; other caches than kmalloc's have \
         the same file",
    ),
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("SLUB_CPU_PARTIAL")),
    ..Check::of(&[&knobs::SLUB_PARTIALS])
};

pub(super) static HUGEPAGES_OVERCOMMIT: Check = Check {
    title: "huge pages made on demand (nr_overcommit_hugepages)",
    why: "a page fault that finds no reserved huge page makes one, and compacts memory for it",
    source: "Documentation/admin-guide/mm/hugetlbpage.rst (nr_overcommit_hugepages); mm/hugetlb.c",
    impact: Impact::Hundreds,
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("HUGETLBFS")),
    ..Check::of(&[&knobs::HUGEPAGES_OVERCOMMIT])
};
