//! In which order changes are made.
//!
//! The kernel, the drivers and the daemons have wishes of their own: a value that is written too
//! early is refused, or written over by what comes after. They are a list here, each with its
//! reason; undo goes through it backwards, which the reasons have to hold for, too.

use rtproof_host::Facts;
use rtproof_host::tune::{Change, UnitWish};

/// One place in the order.
pub(super) struct Rank {
    /// What it is about.
    pub(super) what: &'static str,
    /// Why it is there.
    pub(super) why: &'static str,
    holds: fn(&Change) -> bool,
}

/// The order. A change belongs to the first rank that holds it.
pub(super) const RANKS: &[Rank] = &[
    Rank {
        what: "units stop",
        why: "a daemon that still runs writes its values over ours",
        holds: |change| {
            let stops = [UnitWish::Stopped, UnitWish::Disabled, UnitWish::Masked];
            matches!(change, Change::Unit { want, .. } if stops.contains(want))
        },
    },
    Rank {
        what: "CPUs come",
        why: "what is set for a CPU that is offline is refused or lost",
        holds: |change| match change {
            Change::Hotplug { value, .. } => value == "1" || value == "on",
            _ => false,
        },
    },
    Rank {
        what: "CPUs go",
        why: "the kernel moves tasks and interrupts away, and drops the CPU from their masks",
        holds: |change| matches!(change, Change::Hotplug { .. }),
    },
    Rank {
        what: "frequency driver",
        why: "another mode makes the policies anew, with default governor and limits",
        holds: |change| ends(change, &["intel_pstate/status", "amd_pstate/status"]),
    },
    Rank {
        what: "turbo",
        why: "it moves the highest frequency that the limits may have",
        holds: |change| ends(change, &["/no_turbo", "/cpufreq/boost", "/cpufreq/cpb"]),
    },
    Rank {
        what: "governor",
        why: "a new governor takes the limits as they are, and fixes the energy preference",
        holds: |change| ends(change, &["/scaling_governor"]),
    },
    Rank {
        what: "frequency limits",
        why: "the kernel refuses a minimum above the maximum: which is first, `limits_first` says",
        holds: |change| {
            let limits = ["/scaling_max_freq", "/scaling_min_freq", "max_freq_khz", "min_freq_khz"];
            ends(change, &limits)
        },
    },
    Rank {
        what: "RT throttling",
        why: "before the deadline servers: with a server at 0 the kernel refuses (EBUSY) a limit, \
              which undo, going backwards, then writes after the server is back",
        holds: |change| ends(change, &["/sched_rt_period_us", "/sched_rt_runtime_us"]),
    },
    Rank {
        what: "deadline servers",
        why: "after RT throttling, so that undo turns them on before it limits again",
        holds: |change| {
            let servers = ["/sched/fair_server/", "/sched/ext_server/"];
            path(change).is_some_and(|path| servers.iter().any(|server| path.contains(server)))
        },
    },
    Rank {
        what: "huge pages",
        why: "writing them computes vm.min_free_kbytes anew",
        holds: |change| {
            path(change).is_some_and(|path| path.starts_with("/sys/kernel/mm/transparent_hugepage"))
        },
    },
    Rank {
        what: "both watchdogs",
        why: "it switches both detectors at once, over what each was set to",
        holds: |change| ends(change, &["/sys/kernel/watchdog"]),
    },
    Rank {
        what: "control groups: folders",
        why: "a group has to be there before its files",
        holds: |change| match change {
            Change::Folder { path } => path.starts_with("/sys/fs/cgroup"),
            _ => false,
        },
    },
    Rank {
        what: "control groups: controllers",
        why: "a group has the files of a controller once its parent hands it down",
        holds: |change| ends(change, &["/cgroup.subtree_control"]),
    },
    Rank {
        what: "control groups: CPUs",
        why: "a partition is made of the CPUs that its group has",
        holds: |change| ends(change, &["/cpuset.cpus", "/cpuset.cpus.exclusive", "/cpuset.mems"]),
    },
    Rank {
        what: "control groups: partitions",
        why: "its CPUs leave the other groups: affinities are set after that",
        holds: |change| ends(change, &["/cpuset.cpus.partition"]),
    },
    Rank {
        what: "properties of units",
        why: "the tasks of the unit are moved: those named one by one come after",
        holds: |change| matches!(change, Change::Property { .. }),
    },
    Rank {
        what: "default affinity of interrupts",
        why: "an interrupt that is asked for anew meanwhile gets it",
        holds: |change| ends(change, &["/proc/irq/default_smp_affinity"]),
    },
    Rank {
        what: "interrupts",
        why: "after the default; their threads follow them",
        holds: |change| matches!(change, Change::Irq { .. }),
    },
    Rank {
        what: "workers of the kernel",
        why: "before single threads: a mask moves the threads that it is about",
        holds: |change| {
            path(change).is_some_and(|path| path.starts_with("/sys/devices/virtual/workqueue"))
        },
    },
    Rank {
        what: "other values",
        why: "they depend on nothing here",
        holds: |change| matches!(change, Change::Value { .. }),
    },
    Rank {
        what: "tasks",
        why: "whatever moves them along has been done",
        holds: |change| matches!(change, Change::Task { .. }),
    },
    Rank {
        what: "files",
        why: "they act at the next login, service or boot: nothing of now waits for them",
        holds: |change| matches!(change, Change::Folder { .. } | Change::File { .. }),
    },
    Rank {
        what: "boot loader and firmware",
        why: "the entry that they name has to be there",
        holds: |change| matches!(change, Change::GrubEnv { .. } | Change::EfiVariable { .. }),
    },
    Rank {
        what: "units start",
        why: "their files have to be there",
        holds: |change| matches!(change, Change::Unit { .. }),
    },
];

/// The order in words: what comes, and why there.
pub fn order() -> impl Iterator<Item = (&'static str, &'static str)> {
    RANKS.iter().map(|rank| (rank.what, rank.why))
}

/// The file that a change is about.
fn path(change: &Change) -> Option<&str> {
    match change {
        Change::Value { path, .. } => Some(path),
        _ => None,
    }
}

fn ends(change: &Change, ends: &[&str]) -> bool {
    path(change).is_some_and(|path| ends.iter().any(|end| path.ends_with(end)))
}

/// By what a change is sorted: its rank, within limits of frequency which is first, then names with
/// numbers as numbers.
pub(super) type Key = (usize, u8, Vec<Part>);

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Digits.
    Number(u64),
    /// Others.
    Text(String),
}

/// The place of a change in the order.
pub(super) fn key(facts: &Facts, change: &Change) -> Key {
    let rank = RANKS.iter().position(|rank| (rank.holds)(change)).unwrap_or(RANKS.len());
    (rank, limits_first(facts, change), parts(&change.target()))
}

/// Of the limits of a frequency: raising, the maximum is first; where the maximum goes below the
/// minimum that is there now, the minimum is.
fn limits_first(facts: &Facts, change: &Change) -> u8 {
    let Change::Value { path, value, .. } = change else { return 0 };
    let (file, wanted_khz) = (path.rsplit('/').next(), value.parse::<u64>().ok());
    let limits = |path: &str| {
        let cpus = &facts.cpus.cpus;
        let cpu = cpus.iter().find(|cpu| path.starts_with(&format!("{CPU}{}/", cpu.id)));
        cpu.and_then(|cpu| cpu.freq.min_hz.value().map(|hz| hz / 1_000))
    };
    // Below the minimum that is there: after the minimum.
    let is_below = wanted_khz.is_some_and(|khz| limits(path).is_some_and(|least| khz < least));
    match file {
        Some("scaling_max_freq") if is_below => 2,
        Some("scaling_min_freq" | "min_freq_khz") => 1,
        _ => 0,
    }
}

/// Where /sys keeps a CPU.
const CPU: &str = "/sys/devices/system/cpu/cpu";

/// A name in parts, so that `cpu10` comes after `cpu2`.
fn parts(name: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for char in name.chars() {
        match (parts.last_mut(), char.to_digit(10)) {
            (Some(Part::Number(number)), Some(digit)) => {
                *number = number.saturating_mul(10).saturating_add(digit.into());
            }
            (_, Some(digit)) => parts.push(Part::Number(digit.into())),
            (Some(Part::Text(text)), None) => text.push(char),
            (_, None) => parts.push(Part::Text(char.into())),
        }
    }
    parts
}
