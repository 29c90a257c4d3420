//! Rows: memory and file systems.

use rtproof_host::knobs::memory as knobs;

use crate::Impact;
use crate::checks::rule::{Absent, Rule, Want};

/// The table.
pub(super) const RULES: &[Rule] = &[
    Rule {
        knob: &knobs::SWAPPINESS,
        title: "how readily pages are swapped out (vm.swappiness)",
        why: "a page of the application that was swapped out takes milliseconds to come back",
        source: "Documentation/admin-guide/sysctl/vm.rst; tuned, profile latency-performance (10); \
                 rtcqs",
        trade_off: None,
        impact: Impact::Milliseconds,
        want: |_| Want::at_most(10).or_doubtful(),
        absent: Absent::WithoutOption("SWAP"),
        applies: None,
        good: "10",
        bad: "60",
    },
    Rule {
        knob: &knobs::THP_SHMEM,
        title: "transparent huge pages of shared memory and tmpfs",
        why: "khugepaged collapses pages of shared memory that a real-time thread has mapped, and \
              its next access is a page fault",
        source: "Documentation/admin-guide/mm/transhuge.rst (Hugepages in tmpfs/shmem); \
                 mm/khugepaged.c (collapse_file)",
        trade_off: None,
        impact: Impact::Hundreds,
        want: |_| Want::one_of(&["never", "deny"]).or_doubtful(),
        absent: Absent::WithoutOption("TRANSPARENT_HUGEPAGE"),
        applies: None,
        good: "never",
        bad: "always",
    },
    Rule {
        knob: &knobs::THP_SIZES,
        title: "transparent huge pages of each size",
        why: "a size that is switched on by itself is made and collapsed whatever the switch on \
              top says",
        source: "Documentation/admin-guide/mm/transhuge.rst (hugepages-<size>kB/enabled)",
        trade_off: None,
        impact: Impact::Hundreds,
        want: |_| Want::one_of(&["inherit", "never"]).or_doubtful().set("never"),
        absent: Absent::WithoutOption("TRANSPARENT_HUGEPAGE"),
        applies: None,
        good: "inherit",
        bad: "always",
    },
    Rule {
        knob: &knobs::KSM,
        title: "merging of equal pages (KSM)",
        why: "ksmd scans and write-protects memory that programs offered, and the next write to a \
              merged page is a page fault that copies it",
        source: "Documentation/admin-guide/mm/ksm.rst (run); mm/ksm.c; tuned, profile \
                 realtime-virtual-host; rigtorp.se/low-latency-guide",
        trade_off: Some(
            "virtual machines share less memory; 2 also gives merged pages their own copies back, \
             which needs memory and cannot be undone",
        ),
        impact: Impact::Tens,
        want: |_| Want::one_of(&["0", "2"]),
        absent: Absent::WithoutOption("KSM"),
        applies: None,
        good: "0",
        bad: "1",
    },
    Rule {
        knob: &knobs::NUMA_BALANCING,
        title: "balancing of memory between nodes",
        why: "the kernel takes pages out of the page table to see who uses them, and each next \
              access is a page fault that may move the page",
        source: "Documentation/admin-guide/sysctl/kernel.rst (numa_balancing); init/Kconfig \
                 (NUMA_BALANCING depends on !PREEMPT_RT); rigtorp.se/low-latency-guide",
        trade_off: Some("programs that are bound to no node may stay far from their memory"),
        impact: Impact::Hundreds,
        want: |_| Want::is("0"),
        absent: Absent::WithoutOption("NUMA_BALANCING"),
        applies: None,
        good: "0",
        bad: "1",
    },
    Rule {
        knob: &knobs::COMPACTION_PROACTIVE,
        title: "compaction before anybody asks (vm.compaction_proactiveness)",
        why: "kcompactd moves pages of every process in the background, and a thread that touches \
              one waits until it has moved",
        source: "Documentation/admin-guide/sysctl/vm.rst (compaction_proactiveness: \"latency \
                 spikes\")",
        trade_off: Some("huge pages are less often free"),
        impact: Impact::Tens,
        want: |_| Want::is("0").or_doubtful(),
        absent: Absent::WithoutOption("COMPACTION"),
        applies: None,
        good: "0",
        bad: "20",
    },
    Rule {
        knob: &knobs::COMPACTION_UNEVICTABLE,
        title: "compaction of locked pages (vm.compact_unevictable_allowed)",
        why: "memory locked with mlock may be moved all the same, and a thread that touches it \
              meanwhile faults and waits",
        source: "Documentation/admin-guide/sysctl/vm.rst (compact_unevictable_allowed); mm/Kconfig \
                 (COMPACT_UNEVICTABLE_DEFAULT is 0 on PREEMPT_RT)",
        trade_off: None,
        impact: Impact::Tens,
        want: |_| Want::is("0").or_doubtful(),
        absent: Absent::WithoutOption("COMPACTION"),
        applies: None,
        good: "0",
        bad: "1",
    },
    Rule {
        knob: &knobs::MIN_FREE,
        title: "memory kept free (vm.min_free_kbytes)",
        why: "an allocation that finds too little memory free reclaims some first, and below 1 MiB \
              the kernel itself may get stuck",
        source: "Documentation/admin-guide/sysctl/vm.rst (min_free_kbytes: at least 1024)",
        trade_off: Some("what is kept free nobody can use"),
        impact: Impact::Milliseconds,
        want: |_| Want::at_least(1024).or_doubtful().not_set().text("at least 1024 KiB"),
        absent: Absent::Unknown,
        applies: None,
        good: "67584",
        bad: "512",
    },
    Rule {
        knob: &knobs::ZONE_RECLAIM,
        title: "reclaim before memory of another node is used (vm.zone_reclaim_mode)",
        why: "an allocation reclaims pages of its own node, and may wait for the disk, while \
              another node has memory free",
        source: "Documentation/admin-guide/sysctl/vm.rst (zone_reclaim_mode)",
        trade_off: Some(
            "memory may come from another node: bind the application where that matters",
        ),
        impact: Impact::Milliseconds,
        want: |_| Want::is("0"),
        absent: Absent::WithoutOption("NUMA"),
        applies: None,
        good: "0",
        bad: "1",
    },
    Rule {
        knob: &knobs::LRU_GEN,
        title: "page-table walks of the multi-gen LRU",
        why: "under memory pressure the kernel walks the page tables of whole processes, and their \
              threads wait for the memory lock meanwhile",
        source: "Documentation/admin-guide/mm/multigen_lru.rst (0x0002: \"can theoretically worsen \
                 lock contention\")",
        trade_off: Some("reclaim finds pages that are in use a little less well"),
        impact: Impact::Tens,
        want: |_| {
            // Every value without bit 0x0002.
            let without = ["0x0005", "0x0004", "0x0001", "0x0000"];
            Want::one_of(&without).or_doubtful().set("5").text("without 0x0002: 0x0005")
        },
        absent: Absent::WithoutOption("LRU_GEN"),
        applies: None,
        good: "0x0005",
        bad: "0x0007",
    },
    Rule {
        knob: &knobs::SLUB_PARTIALS,
        title: "partial slabs kept on each CPU (caches behind kmalloc)",
        why: "a free that overflows the CPU's list hands all of it back at once, under a lock that \
              others wait for",
        source: "mm/Kconfig (SLUB_CPU_PARTIAL: \"latency spikes\", no for real-time systems); \
                 Documentation/ABI/testing/sysfs-kernel-slab (cpu_partial)",
        trade_off: Some(
            "allocation and freeing take the node's lock more often; other caches than \
                         kmalloc's have the same file",
        ),
        impact: Impact::Tens,
        want: |_| Want::is("0").or_doubtful(),
        absent: Absent::WithoutOption("SLUB_CPU_PARTIAL"),
        applies: None,
        good: "0",
        bad: "120",
    },
    Rule {
        knob: &knobs::HUGEPAGES_OVERCOMMIT,
        title: "huge pages made on demand (nr_overcommit_hugepages)",
        why: "a page fault that finds no reserved huge page makes one, and compacts memory for it",
        source: "Documentation/admin-guide/mm/hugetlbpage.rst (nr_overcommit_hugepages); \
                 mm/hugetlb.c",
        trade_off: None,
        impact: Impact::Hundreds,
        want: |_| Want::is("0").or_doubtful(),
        absent: Absent::WithoutOption("HUGETLBFS"),
        applies: None,
        good: "0",
        bad: "512",
    },
];
