//! One change of a machine, as data: what is to be, and where. It is what a plan lists, a journal
//! keeps, `/etc/rtproof.toml` repeats at boot and an export translates.

use serde::{Deserialize, Serialize};

pub use crate::compare::Compare;

use super::state::Bytes;
use crate::CpuList;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Change {
    /// A value of the running kernel: a file of /proc, /sys or a control group. Lost at reboot.
    Value {
        /// The file.
        path: String,
        /// What is written, without the line's end.
        value: String,
        /// How what is read back is compared with what was written.
        #[serde(default)]
        compare: Compare,
        /// Files whose values move with it: saved before, restored after.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        couples: Vec<String>,
    },
    /// The CPUs of an interrupt (`/proc/irq/N/smp_affinity_list`). Lost at reboot, and when its
    /// driver asks for the interrupt anew.
    Irq {
        /// Which interrupt: its number changes from boot to boot.
        irq: IrqName,
        /// CPUs.
        cpus: CpuList,
    },
    /// Policy, priority or CPUs of a task. Lost when it ends.
    Task {
        /// Which task.
        task: TaskName,
        /// What is set; what is `None` stays.
        set: Scheduling,
    },
    /// A CPU taken out of or into operation through `/sys/devices/system/cpu/cpuN/online` or
    /// `smt/control`: what the kernel moves away with it (affinity of tasks and interrupts) is
    /// saved before, and restored after.
    Hotplug {
        /// The file.
        path: String,
        /// What is written: `0`, `1`, `off`, `on`.
        value: String,
    },
    /// A folder: a control group, or one of ours under /etc. Undone by removing it when empty.
    Folder {
        /// The folder.
        path: String,
    },
    /// A file under /etc, /boot, /run: the whole content.
    File {
        /// The file.
        path: String,
        /// What it is to hold; `None`: it is to be away.
        content: Option<Bytes>,
        /// Permissions; `None`: as they are, 0644 for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A variable of GRUB's environment block, the other variables untouched.
    GrubEnv {
        /// The block, e.g. `/boot/grub/grubenv`.
        path: String,
        /// Variable, e.g. `next_entry`.
        key: String,
        /// Its value.
        value: String,
    },
    /// A variable of the EFI firmware that the boot loader reads, e.g. `LoaderEntryOneShot`.
    EfiVariable {
        /// Name with the vendor's GUID, as in efivarfs.
        name: String,
        /// Text, written as UTF-16 with its NUL.
        value: String,
    },
    /// The state of a systemd unit.
    Unit {
        /// Unit, e.g. `irqbalance.service`.
        unit: String,
        /// What is wanted of it.
        want: UnitWish,
    },
    /// A property of a systemd unit, set at run time (`systemctl set-property --runtime`).
    Property {
        /// Unit, e.g. `system.slice`.
        unit: String,
        /// Property, e.g. `AllowedCPUs`.
        property: String,
        /// Value; empty: the unit's own.
        value: String,
    },
}

/// An interrupt by what it is, not by its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IrqName {
    /// Number when it was named: a hint.
    pub number: u32,
    /// Names of its handlers, as in /sys/kernel/irq/N/actions; empty without any.
    pub actions: String,
    /// Number in its interrupt controller, as in /sys/kernel/irq/N/hwirq; empty without one.
    pub hwirq: String,
    /// Its interrupt controller, as in /sys/kernel/irq/N/chip_name.
    pub chip: String,
}

/// A task by what it is, not by its number alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskName {
    /// Thread id when it was named.
    pub tid: u32,
    /// Start in clock ticks since boot (field 22 of /proc/TID/stat): with the thread id unique.
    /// `None` where a plan names a task for every boot: then its name has to be enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    /// Its name.
    pub comm: String,
}

/// How a task is scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scheduling {
    /// `other`, `fifo`, `rr`, `batch`, `idle`, `deadline`, `ext`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Priority, 1 to 99, with `fifo` and `rr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Nice value, with `other` and `batch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Runtime, deadline, period in nanoseconds, with `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<[u64; 3]>,
    /// `SCHED_FLAG_RESET_ON_FORK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_on_fork: Option<bool>,
    /// CPUs on which it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuList>,
}

/// What is wanted of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum UnitWish {
    /// Not running until the next boot.
    Stopped,
    /// Not running, and not started at boot.
    Disabled,
    /// Not running, and not to be started by anyone.
    Masked,
    /// Running until the next boot.
    Started,
    /// Running, and started at boot.
    Enabled,
}

impl Change {
    /// What it is about, in a word that no other change of a plan has: two changes with the same
    /// target contradict each other or are one.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            // Features and controllers are one file with a word for each.
            Self::Value { path, value, compare: Compare::Word, .. } => {
                format!("{path} {}", value.trim_start_matches("NO_"))
            }
            Self::Value { path, value, compare: Compare::Controller, .. } => {
                format!("{path} {}", value.trim_start_matches(['+', '-']))
            }
            Self::Value { path, .. }
            | Self::Hotplug { path, .. }
            | Self::Folder { path }
            | Self::File { path, .. } => path.clone(),
            Self::Irq { irq, .. } => format!("/proc/irq/{}/smp_affinity_list", irq.number),
            Self::Task { task, .. } => format!("task {} ({})", task.tid, task.comm),
            Self::GrubEnv { path, key, .. } => format!("{path} {key}"),
            Self::EfiVariable { name, .. } => format!("EFI variable {name}"),
            Self::Unit { unit, .. } => unit.clone(),
            Self::Property { unit, property, .. } => format!("{unit} {property}"),
        }
    }

    /// Whether a file of a control group that is not there yet comes with it: the group is made, or
    /// its parent hands the controller down.
    #[must_use]
    pub fn brings(&self, file: &str) -> bool {
        let Some((group, file)) = file.rsplit_once('/') else { return false };
        let is_group = |path: &str| path.starts_with("/sys/fs/cgroup/");
        match self {
            Self::Folder { path } => is_group(path) && group == path,
            Self::Value { path, value, compare: Compare::Controller, .. } => {
                let parent = path.rsplit_once('/').map(|(parent, _)| parent);
                let is_of =
                    |name| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
                is_group(path)
                    && group.rsplit_once('/').map(|(parent, _)| parent) == parent
                    && value.trim().strip_prefix('+').is_some_and(is_of)
            }
            _ => false,
        }
    }

    /// Whether it is still there after a reboot.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        match self {
            Self::Value { .. } | Self::Irq { .. } | Self::Task { .. } | Self::Hotplug { .. } => {
                false
            }
            Self::Folder { path } | Self::File { path, .. } => {
                !["/proc/", "/sys/", "/run/", "/dev/"].iter().any(|top| path.starts_with(top))
            }
            Self::GrubEnv { .. } | Self::EfiVariable { .. } => true,
            Self::Unit { want, .. } => !matches!(want, UnitWish::Stopped | UnitWish::Started),
            Self::Property { .. } => false,
        }
    }
}
