//! One fact as a row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One fact as a row for SQL, with the path that it was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactRow {
    /// Dotted name, e.g. `cpus.3.freq.governor`.
    pub key: String,
    /// The value as text where it is known; else why it is not, empty where it is absent.
    pub value: String,
    /// State of the reading.
    pub state: RowState,
    /// The path that was read.
    pub path: String,
    pub class: Class,
}

/// State of a [`crate::Reading`], without what comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    /// The value was read.
    Known,
    /// No such file.
    Absent,
    /// Reading was refused.
    Denied,
    /// Not what was expected.
    Malformed,
}

/// Who sets a fact, and so what has to be done to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Which machine, which boot: no condition.
    Identity,
    /// The hardware, or the hypervisor in its place.
    Hardware,
    /// Tables of the firmware.
    Firmware,
    Kernel,
    Boot,
    /// Set while the system runs.
    Runtime,
    /// Other work on the machine.
    Load,
    /// Rights and limits of this process: what a run got is in the record of its threads.
    Process,
    /// Counters, which change by themselves: no condition.
    Volatile,
}

impl Class {
    /// Name as it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Hardware => "hardware",
            Self::Firmware => "firmware",
            Self::Kernel => "kernel",
            Self::Boot => "boot",
            Self::Runtime => "runtime",
            Self::Load => "load",
            Self::Process => "process",
            Self::Volatile => "volatile",
        }
    }

    /// Whether facts of this class may change latency.
    pub const fn is_condition(self) -> bool {
        !matches!(self, Self::Identity | Self::Process | Self::Volatile)
    }
}

pub(super) fn known(key: &str, value: String, path: &str) -> FactRow {
    row(key, value, RowState::Known, path)
}

pub(super) fn row(key: &str, value: String, state: RowState, path: &str) -> FactRow {
    FactRow { key: key.to_owned(), value, state, path: path.to_owned(), class: class_of(key) }
}

/// Class by the start of the key, the first that matches. `*` matches one part of the key.
const CLASSES: &[(&str, Class)] = &[
    ("identity.model", Class::Hardware),
    ("identity.cpu_model", Class::Hardware),
    ("identity.memory_bytes", Class::Hardware),
    ("identity", Class::Identity),
    ("kernel.cmdline", Class::Boot),
    ("kernel.lockdown", Class::Boot),
    ("kernel.tainted", Class::Runtime),
    ("kernel", Class::Kernel),
    ("cpus.possible", Class::Hardware),
    ("cpus.nodes", Class::Hardware),
    ("cpus.isolated", Class::Boot),
    ("cpus.nohz_full", Class::Boot),
    ("cpus.allowed", Class::Process),
    ("cpus.*.core", Class::Hardware),
    ("cpus.*.package", Class::Hardware),
    ("cpus.*.siblings", Class::Hardware),
    ("cpus.*.last_level_cache_bytes", Class::Hardware),
    ("cpus.*.idle_states.*.disabled", Class::Runtime),
    ("cpus.*.idle_states", Class::Firmware),
    ("clock.available", Class::Hardware),
    ("rt_tasks", Class::Load),
    ("placement", Class::Volatile),
    ("isolation.counters", Class::Volatile),
    ("isolation.uptime_ms", Class::Volatile),
    ("irqs.unhandled", Class::Volatile),
    ("irqs.*.count", Class::Volatile),
    ("irqs.*.actions", Class::Hardware),
    ("irqs.*.chip", Class::Hardware),
    ("limits", Class::Process),
    ("settings.cpufreq-minmax-hardware", Class::Hardware),
    ("settings.laptop-chassis", Class::Identity),
    ("settings.laptop-lid", Class::Identity),
    ("settings.laptop-supply", Class::Identity),
    ("settings.laptop-supply-scope", Class::Identity),
    ("settings.pci-runtime-pm-class", Class::Hardware),
    ("settings.rapl-limit-design", Class::Hardware),
    ("settings.usb-autosuspend-class", Class::Hardware),
    ("rights", Class::Process),
    ("memory.swaps.*.used_bytes", Class::Volatile),
    ("memory.available_bytes", Class::Volatile),
    ("resctrl.supported", Class::Hardware),
    ("resctrl.caches", Class::Hardware),
    ("net.interfaces.*.driver", Class::Hardware),
    ("net.interfaces.*.wireless", Class::Hardware),
    ("devices.graphics", Class::Hardware),
    ("devices.raspberry_pi", Class::Firmware),
    ("platform.vendor", Class::Hardware),
    ("platform.microcode", Class::Firmware),
    ("platform.tsc_flags", Class::Hardware),
    ("platform.smi_count", Class::Volatile),
    ("platform.uptime_s", Class::Volatile),
    ("platform.log", Class::Volatile),
    ("platform.boot", Class::Volatile),
    ("platform.sysctl", Class::Volatile),
    ("platform.firmware", Class::Volatile),
    ("virt.steal_ticks", Class::Volatile),
    ("virt.hypervisor", Class::Hardware),
];

/// Class of a key; what no line names is set at run time.
pub(super) fn class_of(key: &str) -> Class {
    let matches = |pattern: &str| {
        let mut parts = key.split('.');
        pattern.split('.').all(|part| parts.next().is_some_and(|k| part == "*" || part == k))
    };
    CLASSES.iter().find(|(pattern, _)| matches(pattern)).map_or(Class::Runtime, |line| line.1)
}
