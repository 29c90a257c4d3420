//! One change of a machine, as data: what is to be, and where. It is what a plan lists, a journal
//! keeps, `/etc/rtproof.toml` repeats at boot and an export translates.

mod bytes;
mod name;
pub(crate) mod package;
pub(crate) mod places;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    bytes::Bytes,
    name::{IrqName, Scheduling, TaskName},
    package::{AddedPackage, PackageManager},
};
use crate::CpuList;
pub use crate::knob::Compare;

/// One change to the machine, as data: what plans and journals consist of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Change {
    /// A value of the running kernel: a file of /proc, /sys or a control group. Lost at reboot.
    Value {
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
        cpus: CpuList,
    },
    /// Policy, priority or CPUs of a task. Lost when it ends.
    Task {
        task: TaskName,
        /// What is set; what is `None` stays.
        set: Scheduling,
    },
    /// A CPU taken out of or into operation through `/sys/devices/system/cpu/cpuN/online` or
    /// `smt/control`: what the kernel moves away with it (affinity of tasks and interrupts) is
    /// saved before, and restored after.
    Hotplug {
        path: String,
        /// What is written: `0`, `1`, `off`, `on`.
        value: String,
    },
    /// A folder: a control group, or one of ours under /etc. Undone by removing it when empty.
    Folder { path: String },
    /// A file under /etc, /boot, /run: the whole content.
    File {
        path: String,
        /// What it is to hold; `None`: it is to be away.
        content: Option<Bytes>,
        /// Permissions; `None`: as they are, 0644 for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A file or folder that rtproof has prepared, put in place whole where nothing was: the image
    /// of a kernel on trial, its modules. Undone by removing what is still as it was put there.
    Placed {
        /// Where it is put.
        path: String,
        /// Where it is prepared.
        from: String,
        /// Names, sizes and times of what is in it, as one number.
        digest: String,
        files: usize,
        bytes: u64,
    },
    /// The initial RAM disk of a kernel on trial, made by the distribution's own program.
    Initrd {
        /// Where it is put.
        path: String,
        /// `uname -r` of the kernel.
        release: String,
        /// The program, e.g. `mkinitramfs`.
        program: String,
    },
    /// A variable of GRUB's environment block, the other variables untouched.
    GrubEnv {
        /// The block, e.g. `/boot/grub/grubenv`.
        path: String,
        /// Variable, e.g. `next_entry`.
        key: String,
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
        want: UnitState,
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
    /// A group of users, made with the machine's own tools. Undone only while it is as it was made.
    Group {
        /// Its name, one of [`RIGHTS_GROUPS`].
        name: String,
    },
    /// Membership of a user in such a group, from the next login of the user on.
    Member { group: String, user: String },
    /// A kernel of the distribution, installed by its package manager. Undone by removing the
    /// packages that came with it and are as they came.
    Package {
        manager: PackageManager,
        /// The package, e.g. `linux-image-rt-amd64`.
        name: String,
        /// Every package that is added, as the manager's own simulation names them. Empty in what
        /// asks for it, until the manager was asked.
        #[serde(default)]
        adds: Vec<AddedPackage>,
    },
}

impl Change {
    /// The release of the kernel that it installs.
    pub fn kernel(&self) -> Option<&str> {
        let Self::Package { adds, .. } = self else { return None };
        adds.iter().find_map(AddedPackage::release)
    }
}

/// Groups that rtproof makes, and makes users members of: those that by custom hold real-time
/// rights and nothing else. No other one: a group may be as good as root.
pub const RIGHTS_GROUPS: &[&str] = &["realtime", "jackuser", "pipewire"];

/// What is wanted of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnitState {
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

impl UnitState {
    /// Whether the unit is not to run.
    pub const fn stops(self) -> bool {
        matches!(self, Self::Stopped | Self::Disabled | Self::Masked)
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Disabled => "disabled",
            Self::Masked => "masked",
            Self::Started => "started",
            Self::Enabled => "enabled",
        }
    }
}
