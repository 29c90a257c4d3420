//! In which order changes are made.
//!
//! A value that is written too early is refused by the kernel, or overwritten by a driver or a
//! daemon. A knob says at which rank it is set; this list gives the reason of each rank. Undo goes
//! through it backwards, so the reasons must also hold backwards.

use rtproof_host::tune::{Change, UnitWish};
use rtproof_host::{Facts, Knob, knob::Rank, knobs::power};

/// The ranks in their order: what is set, and why at this point.
const RANKS: &[(Rank, &str, &str)] = &[
    (Rank::UnitsStop, "units stop", "a daemon that still runs writes its values over ours"),
    (Rank::CpusCome, "CPUs come", "what is set for a CPU that is offline is refused or lost"),
    (
        Rank::CpusGo,
        "CPUs go",
        "the kernel moves tasks and interrupts away, and drops the CPU from their masks",
    ),
    (
        Rank::FrequencyDriver,
        "frequency driver",
        "another mode makes the policies anew, with default governor and limits",
    ),
    (Rank::Turbo, "turbo", "it moves the highest frequency that the limits may have"),
    (
        Rank::Governor,
        "governor",
        "a new governor takes the limits as they are, and fixes the energy preference",
    ),
    (
        Rank::FrequencyLimits,
        "frequency limits",
        "the kernel refuses a minimum above the maximum: which is first, `limits_first` says",
    ),
    (
        Rank::RtThrottling,
        "RT throttling",
        "before the deadline servers: with a server at 0 the kernel refuses (EBUSY) a limit, \
              which undo, going backwards, then writes after the server is back",
    ),
    (
        Rank::DeadlineServers,
        "deadline servers",
        "after RT throttling, so that undo turns them on before it limits again",
    ),
    (Rank::HugePages, "huge pages", "writing them computes vm.min_free_kbytes anew"),
    (
        Rank::Watchdogs,
        "both watchdogs",
        "it switches both detectors at once, over what each was set to",
    ),
    (Rank::GroupFolders, "control groups: folders", "a group has to be there before its files"),
    (
        Rank::GroupControllers,
        "control groups: controllers",
        "a group has the files of a controller once its parent hands it down",
    ),
    (Rank::GroupCpus, "control groups: CPUs", "a partition is made of the CPUs that its group has"),
    (
        Rank::GroupPartitions,
        "control groups: partitions",
        "its CPUs leave the other groups: affinities are set after that",
    ),
    (
        Rank::UnitProperties,
        "properties of units",
        "the tasks of the unit are moved: those named one by one come after",
    ),
    (
        Rank::IrqDefault,
        "default affinity of interrupts",
        "an interrupt that is asked for anew meanwhile gets it",
    ),
    (Rank::Irqs, "interrupts", "after the default; their threads follow them"),
    (
        Rank::Workers,
        "workers of the kernel",
        "before single threads: a mask moves the threads that it is about",
    ),
    (Rank::Values, "other values", "they depend on nothing here"),
    (Rank::Tasks, "tasks", "whatever moves them along has been done"),
    (
        Rank::Files,
        "files",
        "they act at the next login, service or boot: nothing of now waits for them",
    ),
    (Rank::BootLoader, "boot loader and firmware", "the entry that they name has to be there"),
    (Rank::UnitsStart, "units start", "their files have to be there"),
];

/// The order in words: what is set, and why at this point.
pub fn order() -> impl Iterator<Item = (&'static str, &'static str)> {
    RANKS.iter().map(|(_, what, why)| (*what, *why))
}

/// Whether a unit is not to run.
pub(super) const fn stops(want: UnitWish) -> bool {
    matches!(want, UnitWish::Stopped | UnitWish::Disabled | UnitWish::Masked)
}

/// The rank of a change: that of its knob, else that of its kind.
fn rank(change: &Change, knob: Option<&Knob>) -> Rank {
    if let Some(rank) = knob.and_then(|knob| knob.rank) {
        return rank;
    }
    match change {
        Change::Unit { want, .. } if stops(*want) => Rank::UnitsStop,
        Change::Unit { .. } => Rank::UnitsStart,
        Change::Hotplug { value, .. } if value == "1" || value == "on" => Rank::CpusCome,
        Change::Hotplug { .. } => Rank::CpusGo,
        Change::Property { .. } => Rank::UnitProperties,
        Change::Irq { .. } => Rank::Irqs,
        Change::Value { .. } => Rank::Values,
        Change::Task { .. } => Rank::Tasks,
        Change::Folder { .. } | Change::File { .. } => Rank::Files,
        Change::GrubEnv { .. } | Change::EfiVariable { .. } => Rank::BootLoader,
    }
}

/// By what a change is sorted: its rank, within limits of frequency which is first, then names with
/// numbers as numbers.
pub(super) type Key = (Rank, u8, Vec<Part>);

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Digits.
    Number(u64),
    /// Others.
    Text(String),
}

/// The position of a change in the order.
pub(super) fn key(facts: &Facts, change: &Change, knob: Option<&Knob>) -> Key {
    (rank(change, knob), limits_first(facts, change, knob), parts(&change.target()))
}

/// Of the limits of a frequency: raising, the maximum is first; where the maximum goes below the
/// minimum of now, the minimum is.
fn limits_first(facts: &Facts, change: &Change, knob: Option<&Knob>) -> u8 {
    let (Change::Value { path, value, .. }, Some(knob)) = (change, knob) else { return 0 };
    let least_khz = || {
        let number = knob.cpu_of(path)?;
        let cpu = facts.cpus.cpus.iter().find(|cpu| cpu.id == number)?;
        cpu.freq.min_hz.value().map(|hz| hz / 1_000)
    };
    let is_below =
        || value.parse::<u64>().ok().zip(least_khz()).is_some_and(|(khz, least)| khz < least);
    match () {
        () if [power::MIN_FREQ, power::UNCORE_MIN_FREQ].contains(knob) => 1,
        () if *knob == power::MAX_FREQ && is_below() => 2,
        () => 0,
    }
}

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
