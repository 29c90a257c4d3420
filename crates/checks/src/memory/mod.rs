//! Checks: memory and file systems.

mod thp;

use rtproof_host::{
    CpuList, Facts, Knob, Reading,
    facts::{cpu::Node, memory, settings::SettingValue},
    knobs::cpu as knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, option, since};
use crate::value::{Absent, Want, grouped};
use crate::{Finding, Impact, Intent, Remedy, Section, When, machine, value};

pub(crate) const SECTION: Section =
    Section { name: "memory", title: "memory and file systems", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &thp::THP,
    &thp::DEFRAG,
    &thp::KHUGEPAGED,
    &SWAP,
    &STAT_INTERVAL,
    &DIRTY_WRITEBACK,
    &HUGEPAGES,
    &thp::RESCTRL_CAT,
    &thp::FS_MOUNTS,
    &SWAPPINESS,
    &THP_SHMEM,
    &THP_SIZES,
    &KSM,
    &NUMA_BALANCING,
    &COMPACTION_PROACTIVE,
    &COMPACTION_UNEVICTABLE,
    &MIN_FREE,
    &ZONE_RECLAIM,
    &LRU_GEN,
    &SLUB_PARTIALS,
    &HUGEPAGES_OVERCOMMIT,
];

// How much may be written before the writer has to wait?
//
// Each limit exists twice, in percent and in bytes, and writing one clears the other: both are
// read, and whichever is set counts. Percent are of the memory that can be dirty; bytes are held
// against all memory, which is a little more.

/// Percent of memory that may be dirty, as tuned has them for latency.
const DIRTY_MAX: u64 = 10;

const BACKGROUND_MAX: u64 = 3;

static DIRTY_WRITEBACK: Check = Check {
    id: "dirty-writeback",
    title: "limits of unwritten file pages (vm.dirty_*)",
    why: "a thread that writes to a file sleeps in balance_dirty_pages once too much is unwritten, \
          and a large backlog goes to the disk in one burst",
    source: "Documentation/admin-guide/sysctl/vm.rst (dirty_ratio, dirty_bytes); \
             mm/page-writeback.c; tuned, profile latency-performance (10 and 3)",
    trade_off: Some("bulk writers wait earlier; a real-time thread should not write files at all"),
    impact: Impact::Milliseconds,
    knobs: &[
        &knobs::DIRTY_RATIO,
        &knobs::DIRTY_BYTES,
        &knobs::DIRTY_BACKGROUND_RATIO,
        &knobs::DIRTY_BACKGROUND_BYTES,
    ],
    judge: Judge::Ask(judge_dirty_writeback),
    ..Check::NEW
};

fn judge_dirty_writeback(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let wanted = format!("at most {DIRTY_MAX} %, written from {BACKGROUND_MAX} % on");
    let mut draft = draft.wanted(wanted);
    let mut found = Vec::new();
    let mut wrong = Vec::new();
    let limits = [
        (&knobs::DIRTY_RATIO, &knobs::DIRTY_BYTES, DIRTY_MAX, "a writer waits"),
        (
            &knobs::DIRTY_BACKGROUND_RATIO,
            &knobs::DIRTY_BACKGROUND_BYTES,
            BACKGROUND_MAX,
            "writing starts",
        ),
    ];
    for (ratio_knob, bytes_knob, most, what) in limits {
        let (ratio, bytes) = (number(facts, ratio_knob), number(facts, bytes_knob));
        draft = draft.read(&ratio, u64::to_string).read(&bytes, u64::to_string);
        let (Some(&percent), Some(&limit)) = (ratio.value(), bytes.value()) else {
            return draft.unreadable(if ratio.value().is_none() { &ratio } else { &bytes });
        };
        let is_over = if limit > 0 {
            let memory = &facts.identity.memory_bytes;
            draft = draft.read(memory, |&all| machine::byte_size(all));
            let Some(&all) = memory.value() else {
                return draft.unreadable(memory);
            };
            found.push(format!("{what} at {}", machine::byte_size(limit)));
            u128::from(limit) * 100 > u128::from(all) * u128::from(most)
        } else {
            found.push(format!("{what} at {percent} %"));
            percent > most
        };
        if is_over {
            let paths = vec![ratio.path.clone()];
            wrong.push(Remedy::set(ratio_knob, paths, most.to_string()));
        }
    }
    let summary = found.join(", ");
    if wrong.is_empty() {
        return draft.good(summary);
    }
    draft.remedies(wrong).doubtful(summary)
}

fn number(facts: &Facts, knob: &Knob) -> Reading<u64> {
    value::knob_number(facts, knob).and_then(|path, number| match u64::try_from(number) {
        Ok(number) => Reading::known(path, number),
        Err(_) => Reading::malformed(path, &number.to_string(), "not below 0"),
    })
}

// Are huge pages reserved where the real-time CPUs are?
//
// A machine that reserves none has no question here. One that does reserves them on nodes, and
// pages of another node are farther away than any small page of the own.

static HUGEPAGES: Check = Check {
    id: "hugepages",
    title: "huge pages reserved on the real-time CPUs' node",
    why: "an application that finds no reserved huge page on its node gets one that is farther \
          away, or none",
    source: "Documentation/admin-guide/mm/hugetlbpage.rst (per node attributes); \
             Documentation/core-api/real-time/hardware.rst",
    impact: Impact::Microseconds,
    when: When::Boot,
    knobs: &[&knobs::HUGEPAGES],
    wanted: Wanted::Text("some on each node with real-time CPUs, if any are"),
    judge: Judge::Ask(judge_hugepages),
    ..Check::NEW
};

fn judge_hugepages(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let setting = facts.settings.get(knobs::HUGEPAGES.id);
    let values: Vec<&SettingValue> =
        setting.into_iter().flat_map(|setting| &setting.values).collect();
    if values.is_empty() {
        return match built_with(facts, "HUGETLBFS") {
            Some(false) => draft
                .evidence([option(facts, "HUGETLBFS")])
                .not_applicable("this kernel has no huge pages to reserve"),
            _ => draft.unreadable(&value::knob_text(facts, &knobs::HUGEPAGES)),
        };
    }
    let draft = draft.evidence(grouped(&values));
    let mut reserved = Vec::new();
    for value in values {
        match value.reading.value().map(|text| text.parse::<u64>()) {
            Some(Ok(0)) => {}
            Some(Ok(_)) => reserved.push(value.of.as_str()),
            _ => return draft.unreadable(&value.reading),
        }
    }
    if reserved.is_empty() {
        return draft.not_applicable("no huge pages are reserved");
    }
    if !reserved[0].contains('/') {
        return draft.good("reserved; the machine has no nodes");
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let nodes = &facts.cpus.nodes;
    let draft = draft.read(nodes, |nodes| show_hugepages(nodes));
    let Some(known) = nodes.value() else {
        return draft.unreadable(nodes);
    };
    let has_rt = |cpus: &CpuList| !cpus.intersection(&intent.rt_cpus).is_empty();
    let of_rt: Vec<u32> =
        known.iter().filter(|node| has_rt(&node.cpus)).map(|node| node.id).collect();
    if of_rt.is_empty() {
        return draft.unknown("no node has the real-time CPUs");
    }
    let is_bare = |node: &&u32| !reserved.iter().any(|of| of.starts_with(&format!("{node}/")));
    let bare: Vec<String> = of_rt.iter().filter(is_bare).map(u32::to_string).collect();
    if bare.is_empty() {
        return draft.good("reserved on the real-time CPUs' node");
    }
    let text = format!(
        "reserve them at boot (hugepages=NODE:NUMBER), or write the number to \
         /sys/devices/system/node/node{}/hugepages/hugepages-*/nr_hugepages",
        bare[0]
    );
    draft
        .remedies([Remedy::Manual { text }])
        .doubtful(format!("none on node {}, where real-time CPUs are", bare.join(", ")))
}

/// Nodes and their CPUs in a line.
fn show_hugepages(nodes: &[Node]) -> String {
    let node = |node: &Node| format!("node {}: CPUs {}", node.id, node.cpus);
    let nodes: Vec<String> = nodes.iter().map(node).collect();
    if nodes.is_empty() { "no nodes".into() } else { nodes.join("; ") }
}

// Rows: memory and file systems.

static SWAPPINESS: Check = Check {
    title: "how readily pages are swapped out (vm.swappiness)",
    why: "a page of the application that was swapped out takes milliseconds to come back",
    source: "Documentation/admin-guide/sysctl/vm.rst; tuned, profile latency-performance (10); \
             rtcqs",
    impact: Impact::Milliseconds,
    judge: Judge::value(|_| Want::at_most(10).or_doubtful(), Absent::WithoutOption("SWAP")),
    ..Check::of(&[&knobs::SWAPPINESS])
};

static THP_SHMEM: Check = Check {
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

static THP_SIZES: Check = Check {
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

static KSM: Check = Check {
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

static NUMA_BALANCING: Check = Check {
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

static COMPACTION_PROACTIVE: Check = Check {
    title: "compaction before anybody asks (vm.compaction_proactiveness)",
    why: "kcompactd moves pages of every process in the background, and a thread that touches one \
          waits until it has moved",
    source: "Documentation/admin-guide/sysctl/vm.rst (compaction_proactiveness: \"latency \
             spikes\")",
    trade_off: Some("huge pages are less often free"),
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("COMPACTION")),
    ..Check::of(&[&knobs::COMPACTION_PROACTIVE])
};

static COMPACTION_UNEVICTABLE: Check = Check {
    title: "compaction of locked pages (vm.compact_unevictable_allowed)",
    why: "memory locked with mlock may be moved all the same, and a thread that touches it \
          meanwhile faults and waits",
    source: "Documentation/admin-guide/sysctl/vm.rst (compact_unevictable_allowed); mm/Kconfig \
             (COMPACT_UNEVICTABLE_DEFAULT is 0 on PREEMPT_RT)",
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("COMPACTION")),
    ..Check::of(&[&knobs::COMPACTION_UNEVICTABLE])
};

static MIN_FREE: Check = Check {
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

static ZONE_RECLAIM: Check = Check {
    title: "reclaim before memory of another node is used (vm.zone_reclaim_mode)",
    why: "an allocation reclaims pages of its own node, and may wait for the disk, while another \
          node has memory free",
    source: "Documentation/admin-guide/sysctl/vm.rst (zone_reclaim_mode)",
    trade_off: Some("memory may come from another node: bind the application where that matters"),
    impact: Impact::Milliseconds,
    judge: Judge::value(|_| Want::is("0"), Absent::WithoutOption("NUMA")),
    ..Check::of(&[&knobs::ZONE_RECLAIM])
};

static LRU_GEN: Check = Check {
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

static SLUB_PARTIALS: Check = Check {
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

static HUGEPAGES_OVERCOMMIT: Check = Check {
    title: "huge pages made on demand (nr_overcommit_hugepages)",
    why: "a page fault that finds no reserved huge page makes one, and compacts memory for it",
    source: "Documentation/admin-guide/mm/hugetlbpage.rst (nr_overcommit_hugepages); mm/hugetlb.c",
    impact: Impact::Hundreds,
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("HUGETLBFS")),
    ..Check::of(&[&knobs::HUGEPAGES_OVERCOMMIT])
};

// How often does each CPU fold its memory counters?
//
// Since 6.5 the kernel leaves CPUs alone that are isolated from the scheduler's domains or
// tickless, whatever the interval; before, the interval is all there is.

/// Seconds, as tuned's profile for isolated CPUs has it; Codethink has 120.
const SECONDS_MIN: i64 = 10;

/// First kernel that leaves isolated CPUs out (mm/vmstat.c, be5e015d107d).
const SKIPS_ISOLATED: (u32, u32) = (6, 5);

static STAT_INTERVAL: Check = Check {
    id: "stat-interval",
    title: "update of memory counters on each CPU (vm.stat_interval)",
    why: "a worker folds the CPU's counters into the machine's, by default every second, on the \
          CPU itself",
    source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst (vmstat_update); mm/vmstat.c \
             (vmstat_shepherd); tuned, profile cpu-partitioning (10); Codethink, \"Configuring \
             Linux systems to stabilise latency\" (120)",
    trade_off: Some("/proc/vmstat and what reads it lag behind by so many seconds"),
    knobs: &[&knobs::STAT_INTERVAL],
    judge: Judge::Ask(judge_stat_interval),
    ..Check::NEW
};

fn judge_stat_interval(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let interval = value::knob_number(facts, &knobs::STAT_INTERVAL);
    let wanted = format!("at least {SECONDS_MIN} s, or CPUs that the kernel leaves out");
    let draft = draft.wanted(wanted).read(&interval, i64::to_string);
    let Some(&seconds) = interval.value() else {
        return draft.unreadable(&interval);
    };
    if seconds >= SECONDS_MIN {
        return draft.good(format!("every {seconds} s"));
    }
    if !intent.rt_cpus.is_empty() && since(facts, SKIPS_ISOLATED) == Some(true) {
        let cpus = &facts.cpus;
        for (list, word) in [(&cpus.isolated, "isolated"), (&cpus.nohz_full, "tickless")] {
            let covers = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
            if list.value().is_some_and(covers) {
                return draft
                    .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
                    .read(list, CpuList::to_string)
                    .good(format!("every {seconds} s, but {word} CPUs are left out"));
            }
        }
    }
    let paths = vec![interval.path.clone()];
    draft
        .remedies([Remedy::set(&knobs::STAT_INTERVAL, paths, SECONDS_MIN.to_string())])
        .doubtful(format!("every {seconds} s a worker may run on the real-time CPUs"))
}

// Can memory be on disk when it is needed?
//
// Swap in use is bad. Swap that is there and empty is doubtful: locked memory never goes to it,
// and whether everything is locked only the application knows.

static SWAP: Check = Check {
    id: "swap",
    title: "swap areas",
    why: "a page that was swapped out takes milliseconds to come back",
    source: "proc_swaps(5), mlock(2); Bridgers, \"Real Time Linux Scheduling Comparison\"; \
             rigtorp.se/low-latency-guide",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_swap),
    ..Check::NEW
};

fn judge_swap(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let swaps = &facts.memory.swaps;
    let draft = draft.read(swaps, |areas| show_swap(areas));
    if swaps.is_absent() && built_with(facts, "SWAP") == Some(false) {
        return draft.evidence([option(facts, "SWAP")]).not_applicable("this kernel has no swap");
    }
    let Some(areas) = swaps.value() else {
        return draft.unreadable(swaps);
    };
    if areas.is_empty() {
        return draft.good("no swap");
    }
    let used = areas.iter().fold(0_u64, |sum, area| sum.saturating_add(area.used_bytes));
    let draft = draft.remedies([
        Remedy::Command { command: "swapoff --all".into() },
        Remedy::Unit { unit: "swap.target".into(), action: "mask".into() },
    ]);
    let names: Vec<&str> = areas.iter().map(|area| area.name.as_str()).collect();
    let names = machine::first_few(&names, 3);
    if used > 0 {
        return draft.bad(format!("{} swapped out to {names}", machine::byte_size(used)));
    }
    draft.doubtful(format!("{names} is swap, unused so far: locked memory stays out of it"))
}

fn show_swap(areas: &[memory::Swap]) -> String {
    let lines: Vec<String> = areas
        .iter()
        .map(|area| {
            let (used, size) =
                (machine::byte_size(area.used_bytes), machine::byte_size(area.size_bytes));
            format!("{} {used} of {size} used", area.name)
        })
        .collect();
    if lines.is_empty() { "no areas".into() } else { machine::first_few(&lines, 6) }
}

#[cfg(test)]
mod dirty_writeback_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent};

    fn judge(values: [&str; 4]) -> Finding {
        let mut facts = good();
        for (knob, value) in DIRTY_WRITEBACK.knobs.iter().zip(values) {
            fill_setting(&mut facts, knob, value);
        }
        DIRTY_WRITEBACK.judge(&facts, &intent())
    }

    fn status(values: [&str; 4]) -> Status {
        judge(values).status
    }

    #[test]
    fn percent_or_bytes_whichever_is_set() {
        assert_eq!(status(["10", "0", "3", "0"]), Good);
        assert_eq!(status(["20", "0", "10", "0"]), Doubtful);
        assert_eq!(status(["0", "67108864", "0", "16777216"]), Good);
        assert_eq!(status(["0", "8589934592", "3", "0"]), Doubtful);
        let finding = judge(["10", "0", "10", "0"]);
        assert_eq!(finding.summary, "a writer waits at 10 %, writing starts at 10 %");
        let paths = vec!["/proc/sys/vm/dirty_background_ratio".into()];
        assert_eq!(finding.remedies, [Remedy::set(&knobs::DIRTY_BACKGROUND_RATIO, paths, "3")]);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        assert_eq!(status(["10", "?", "3", "0"]), Unknown);
        assert_eq!(status(["-1", "0", "3", "0"]), Unknown);
        let mut facts = good();
        fill_setting(&mut facts, &knobs::DIRTY_BYTES, "1000");
        facts.identity.memory_bytes = Reading::absent("/proc/meminfo");
        assert_eq!(DIRTY_WRITEBACK.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod hugepages_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::{Reading, facts::settings::Setting};

    fn status(values: &[(&str, &str)]) -> Status {
        let mut facts = good();
        let nodes = vec![Node { id: 0, cpus: cpus(&[0, 1]) }, Node { id: 1, cpus: cpus(&[2, 3]) }];
        facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        let value = |&(of, text): &(&str, &str)| SettingValue {
            of: of.into(),
            reading: Reading::known(format!("/sys/{of}"), text.into()),
        };
        let values = values.iter().map(value).collect();
        facts.settings.insert("hugepages".into(), Setting { values, missing_from: None });
        HUGEPAGES.judge(&facts, &intent()).status
    }

    #[test]
    fn on_the_node_of_the_real_time_cpus() {
        assert_eq!(status(&[("0/2048kB", "0"), ("1/2048kB", "0")]), NotApplicable);
        assert_eq!(status(&[("0/2048kB", "0"), ("1/2048kB", "8")]), Good);
        assert_eq!(status(&[("0/2048kB", "8"), ("1/2048kB", "0")]), Doubtful);
        assert_eq!(status(&[("0/2048kB", "8"), ("1/1048576kB", "1")]), Good);
        assert_eq!(status(&[("2048kB", "8")]), Good);
        assert_eq!(status(&[("0/2048kB", "?")]), Unknown);
    }

    #[test]
    fn no_files_need_the_kernel_s_word() {
        let mut facts = good();
        facts.settings.remove("hugepages");
        set_config(&mut facts, "HUGETLBFS", Some("y"));
        assert_eq!(HUGEPAGES.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "HUGETLBFS", None);
        assert_eq!(HUGEPAGES.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod stat_interval_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{cpus, fill_setting, good, good_stock, intent, set_setting};
    use rtproof_host::Reading;

    #[test]
    fn long_enough_or_left_out() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::STAT_INTERVAL, "1");
        assert_eq!(STAT_INTERVAL.judge(&facts, &intent()).status, Good);
        facts.cpus.isolated = Reading::known("/sys/x", cpus(&[3]));
        facts.cpus.nohz_full = Reading::absent("/sys/y");
        assert_eq!(STAT_INTERVAL.judge(&facts, &intent()).status, Doubtful);
        fill_setting(&mut facts, &knobs::STAT_INTERVAL, "120");
        assert_eq!(STAT_INTERVAL.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn older_kernels_leave_nothing_out() {
        let mut facts = good_stock();
        fill_setting(&mut facts, &knobs::STAT_INTERVAL, "1");
        assert_eq!(STAT_INTERVAL.judge(&facts, &intent()).status, Doubtful);
        set_setting(&mut facts, &knobs::STAT_INTERVAL, Reading::denied("x", "EACCES"));
        assert_eq!(STAT_INTERVAL.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod swap_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::Reading;

    fn judge(used_bytes: &[u64]) -> Finding {
        let area =
            |used_bytes| memory::Swap { name: "/dev/sda2".into(), size_bytes: 2 << 30, used_bytes };
        let mut facts = good();
        let areas = used_bytes.iter().copied().map(area).collect();
        facts.memory.swaps = Reading::known("/proc/swaps", areas);
        SWAP.judge(&facts, &intent())
    }

    #[test]
    fn used_is_bad_unused_is_doubtful_none_is_good() {
        assert_eq!(judge(&[]).status, Good);
        assert_eq!(judge(&[0]).status, Doubtful);
        let finding = judge(&[0, 1_572_864]);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "1.5 MiB swapped out to /dev/sda2, /dev/sda2");
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = good();
        facts.memory.swaps = Reading::absent("/proc/swaps");
        assert_eq!(SWAP.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "SWAP", None);
        assert_eq!(SWAP.judge(&facts, &intent()).status, NotApplicable);
    }
}
