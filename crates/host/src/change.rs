//! One change of a machine, as data: what is to be, and where. It is what a plan lists, a journal
//! keeps, `/etc/rtproof.toml` repeats at boot and an export translates.

pub use crate::knob::Compare;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CpuList;
use crate::text::hex;

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
        /// Wanted content; `None`: the file is removed.
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

// Bytes of values and files, as JSON keeps them.

/// Bytes that are text as a rule: JSON shows text as a string, other bytes as `{"hex": "..."}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written")]
pub struct Bytes(pub Vec<u8>);

/// How bytes are written.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    Text(String),
    Hex { hex: String },
}

impl TryFrom<Written> for Bytes {
    type Error = HexError;

    fn try_from(written: Written) -> Result<Self, HexError> {
        match written {
            Written::Text(text) => Ok(Self(text.into_bytes())),
            Written::Hex { hex } => {
                let pair = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
                let bytes = (0..hex.len()).step_by(2).map(pair);
                bytes.collect::<Option<_>>().map(Self).ok_or(HexError)
            }
        }
    }
}

impl From<Bytes> for Written {
    fn from(bytes: Bytes) -> Self {
        match String::from_utf8(bytes.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex { hex: hex(error.as_bytes()) },
        }
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Bytes {
    /// As text, bytes that are not UTF-8 replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

/// Digits that are no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not pairs of hexadecimal digits")]
pub struct HexError;

// Names of interrupts and tasks that hold when their numbers change.

/// An interrupt by what it is, not by its number.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TaskName {
    /// Thread id when it was named.
    pub tid: u32,
    /// Start in clock ticks since boot (field 22 of /proc/TID/stat): with the thread id unique.
    /// `None` where a plan names a task for every boot: then its name has to be enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    pub comm: String,
}

/// How a task is scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

// Packages of the distribution that a change adds: which manager adds them, and each by name,
// architecture and version, so that an undo removes these and no others.

/// What a kernel's package is called where rtproof installs one.
const KERNEL: &str = "linux-image-";

/// A package manager whose additions rtproof can undo exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PackageManager {
    /// apt-get and dpkg (Debian, Ubuntu).
    Apt,
}

/// One package that an installation adds.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct AddedPackage {
    pub name: String,
    /// Architecture, e.g. `amd64`, `all`.
    pub architecture: String,
    pub version: String,
}

impl AddedPackage {
    /// The name as apt and dpkg take it: of several architectures this one.
    pub fn qualified(&self) -> String {
        match self.architecture.as_str() {
            "all" => self.name.clone(),
            architecture => format!("{}:{architecture}", self.name),
        }
    }

    /// The kernel's release that it holds: `6.1.0-56-rt-amd64` of
    /// `linux-image-6.1.0-56-rt-amd64`; `None` for another package.
    pub fn release(&self) -> Option<&str> {
        let release = self.name.strip_prefix(KERNEL)?;
        let release = release.strip_prefix("unsigned-").unwrap_or(release);
        let release = release.strip_suffix("-unsigned").unwrap_or(release);
        let has_version = release.starts_with(|c: char| c.is_ascii_digit());
        (has_version && release.contains('.')).then_some(release)
    }
}

/// Looks whether rtproof adds such packages at all: a kernel, and what comes with it.
pub(crate) fn may_be_added(name: &str, adds: &[AddedPackage]) -> Result<(), String> {
    if !name.starts_with(KERNEL) || !is_name(name) {
        return Err(format!("package {name}: rtproof installs only kernels ({KERNEL}...)"));
    }
    if adds.is_empty() {
        return Err(format!("package {name}: the packages that it adds are not named"));
    }
    for one in adds {
        let is_version = one.version.starts_with(|c: char| c.is_ascii_alphanumeric())
            && one.version.chars().all(|c| c.is_ascii_alphanumeric() || ".+:~-".contains(c));
        if !is_name(&one.name) || !is_name(&one.architecture) || !is_version {
            return Err(format!("{} {}: no package and version", one.qualified(), one.version));
        }
    }
    match adds.iter().any(|one| one.name == name) {
        true => Ok(()),
        false => Err(format!("package {name}: it is not among the packages that are added")),
    }
}

/// A package's name in Debian's form (Debian Policy, 5.6.1): neither an option nor a path.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
        // Of apt-get the last character may be a command: install or remove.
        && !name.ends_with(['+', '-'])
}

// Where a change may write, whoever asks for it: a plan, a journal and `/etc/rtproof.toml` are
// files like others.

/// Values of the running kernel. Control groups are below /sys.
const VALUES: &[&str] = &["/proc/sys/", "/proc/irq/", "/sys/"];

/// Files and folders: what systems are set up and started with.
const FILES: &[&str] = &["/etc/", "/boot/", "/efi/", "/run/", "/var/lib/rtproof/"];

/// Where the images of kernels on trial are: no `update-grub` and no `kernel-install` lists them.
pub const OWN_KERNELS: &str = "/boot/rtproof";

/// Where the files of such a kernel are prepared.
pub const STAGING: &str = "/var/lib/rtproof/tune/kernel";

/// Programs that make the initial RAM disk of a kernel, in the order of looking: initramfs-tools
/// (Debian, Ubuntu), Arch's, Fedora's, tiny-initramfs.
pub const INITRD_PROGRAMS: &[&str] = &["mkinitramfs", "mkinitcpio", "dracut", "mktirfs"];

/// Where the modules of kernels are.
pub(crate) const MODULES: &str = "/lib/modules/";

/// The configuration of a kernel, as every distribution names it.
const CONFIG: &str = "/boot/config-";

/// Values that name a program which the kernel starts as root: none of them makes a machine faster.
const PROGRAMS: &[&str] = &[
    "/core_pattern",
    "/kernel/modprobe",
    "/kernel/hotplug",
    "/poweroff_cmd",
    "/release_agent",
    "/uevent_helper",
];

/// Permissions that a file may get: without set-user-id, set-group-id and the sticky bit.
pub(crate) const MODE_MAX: u32 = 0o777;

/// Files of a kernel on trial: below [`OWN_KERNELS`] or, of its modules, [`MODULES`].
pub(crate) fn placed(path: &str) -> Result<(), String> {
    let name = path.strip_prefix(OWN_KERNELS).and_then(|rest| rest.strip_prefix('/'));
    let name = [CONFIG, MODULES].iter().find_map(|top| path.strip_prefix(top)).or(name);
    match name.is_some_and(is_release) {
        true => Ok(()),
        false => Err(format!(
            "{path}: rtproof puts the files of a kernel only into {OWN_KERNELS} and {MODULES}, and \
             its configuration to {CONFIG}RELEASE"
        )),
    }
}

/// Whether a name can be that of a kernel's release: of what `make kernelrelease` allows, what
/// every boot loader takes as it is.
pub(crate) fn is_release(name: &str) -> bool {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    (1..=64).contains(&name.len()) && !name.starts_with(['-', '.']) && name.chars().all(is_taken)
}

/// Looks whether rtproof makes a file there.
pub(crate) fn check_file(path: &str) -> Result<(), String> {
    below(path, FILES)
}

/// Looks whether rtproof writes such a value of the kernel.
pub(crate) fn check_value(path: &str) -> Result<(), String> {
    below(path, VALUES)?;
    match PROGRAMS.iter().any(|name| path.ends_with(name)) {
        true => Err(format!("{path}: names a program that the kernel runs as root: never written")),
        false => Ok(()),
    }
}

fn below(path: &str, tops: &[&str]) -> Result<(), String> {
    check_plain(path)?;
    match tops.iter().any(|top| path.starts_with(top)) {
        true => Ok(()),
        false => {
            let tops: Vec<&str> = tops.iter().map(|top| top.trim_end_matches('/')).collect();
            Err(format!("{path}: rtproof writes such a thing only below {}", tops.join(", ")))
        }
    }
}

/// An absolute path that leads where it says.
pub(crate) fn check_plain(path: &str) -> Result<(), String> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    let parts = path.strip_prefix('/');
    match parts.is_some_and(|parts| parts.split('/').all(is_part)) && !path.contains('\0') {
        true => Ok(()),
        false => Err(format!("{path}: expected a path from / without . and ..")),
    }
}

/// Looks whether it is a name: neither a path nor an option of a program.
pub(crate) fn check_name(name: &str, of: &str) -> Result<(), String> {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || ":_.@\\-".contains(c);
    match !name.is_empty() && !name.starts_with(['-', '.']) && name.chars().all(is_taken) {
        true => Ok(()),
        false => Err(format!("{name}: no name of {of}")),
    }
}

#[cfg(test)]
mod bytes_tests {
    use super::Bytes;

    #[test]
    fn bytes_are_kept_whatever_they_are() {
        for bytes in [&b"performance\n"[..], b"", b"\xff\x00\x80", b"{\"hex\":\"00\"}"] {
            let bytes = Bytes(bytes.to_vec());
            let json = serde_json::to_string(&bytes).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), bytes, "{json}");
        }
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"0g\"}").is_err());
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"000\"}").is_err());
        assert!(serde_json::from_str::<Bytes>("{\"hex\":\"é0\"}").is_err());
    }
}

#[cfg(test)]
mod package_tests {
    use super::*;

    fn added(name: &str, version: &str) -> AddedPackage {
        AddedPackage { name: name.into(), architecture: "amd64".into(), version: version.into() }
    }

    #[test]
    fn only_kernels_and_what_comes_with_them() {
        let name = "linux-image-rt-amd64";
        let adds = [added(name, "6.1.192-2"), added("linux-base", "1:4.9~deb12+b1")];
        assert_eq!(may_be_added(name, &adds), Ok(()));
        assert!(may_be_added(name, &[]).is_err());
        assert!(may_be_added(name, &adds[1..]).is_err());
        assert!(may_be_added("nginx", &[added("nginx", "1")]).is_err());
        for (name, version) in [
            ("-o", "1"),
            ("a/b", "1"),
            ("a-", "1"),
            ("a", "-1"),
            ("a", "1 2"),
            ("a", ""),
            ("", "1"),
        ] {
            let adds = [added("linux-image-rt-amd64", "1"), added(name, version)];
            assert!(may_be_added("linux-image-rt-amd64", &adds).is_err(), "{name} {version}");
        }
    }

    #[test]
    fn the_release_is_in_the_name() {
        let release = |name: &str| added(name, "1").release().map(str::to_owned);
        assert_eq!(release("linux-image-6.1.0-56-rt-amd64").as_deref(), Some("6.1.0-56-rt-amd64"));
        assert_eq!(
            release("linux-image-unsigned-6.8.1-1015-realtime").as_deref(),
            Some("6.8.1-1015-realtime")
        );
        assert_eq!(release("linux-image-rt-amd64"), None);
        assert_eq!(release("linux-base"), None);
    }
}

#[cfg(test)]
mod places_tests {
    use super::*;
    use crate::knob::Compare;

    fn value(path: &str) -> Change {
        let path = path.into();
        Change::Value { path, value: "1".into(), compare: Compare::Text, couples: Vec::new() }
    }

    fn file(path: &str, mode: Option<u32>) -> Change {
        Change::File { path: path.into(), content: Some(Bytes(Vec::new())), mode }
    }

    #[test]
    fn places_of_the_kernel_and_of_the_system_alone() {
        for path in ["/proc/sys/vm/swappiness", "/proc/irq/7/smp_affinity_list", "/sys/x/y"] {
            assert_eq!(value(path).may_be_made(), Ok(()), "{path}");
        }
        for path in [
            "/proc/self/root/etc/x",
            "/proc/1/mem",
            "/proc/sysrq-trigger",
            "/proc/sys/../self/root/etc/x",
            "/proc/sys//kernel/x",
            "/sys/./x",
            "/sys/x\0y",
            "/sys",
            "sys/x",
            "/etc/x",
            "/dev/sda",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/sys/kernel/uevent_helper",
            "/sys/fs/cgroup/cpu/release_agent",
        ] {
            assert!(value(path).may_be_made().is_err(), "{path}");
        }
        let mut with_couple = value("/proc/sys/vm/x");
        let Change::Value { couples, .. } = &mut with_couple else { return };
        couples.push("/root/x".into());
        assert!(with_couple.may_be_made().is_err());
        for path in ["/etc/x", "/boot/loader/x", "/run/x", "/var/lib/rtproof/x"] {
            assert_eq!(file(path, Some(0o755)).may_be_made(), Ok(()), "{path}");
            assert!(file(path, Some(0o4755)).may_be_made().is_err(), "{path}");
        }
        for path in ["/usr/bin/x", "/root/.bashrc", "/etc/../root/x", "/home/x", "/x", ""] {
            assert!(file(path, None).may_be_made().is_err(), "{path}");
            assert!(Change::Folder { path: path.into() }.may_be_made().is_err(), "{path}");
        }
        let unit = |unit: &str| Change::Unit { unit: unit.into(), want: UnitState::Stopped };
        assert_eq!(unit("getty@tty1.service").may_be_made(), Ok(()));
        assert_eq!(unit("dev-disk-by\\x2duuid.swap").may_be_made(), Ok(()));
        for name in ["--root=/x", "", "../x.service", "/etc/x.service", "a b"] {
            assert!(unit(name).may_be_made().is_err(), "{name}");
        }
        let placed = |path: &str, from: &str| {
            let (path, from, digest) = (path.into(), from.into(), String::new());
            Change::Placed { path, from, digest, files: 1, bytes: 1 }.may_be_made()
        };
        let from = format!("{STAGING}/vmlinuz");
        for path in
            ["/boot/config-6.1", "/boot/rtproof/vmlinuz-6.1+", "/lib/modules/6.1.0-50-rt-amd64"]
        {
            assert_eq!(placed(path, &from), Ok(()), "{path}");
            for from in ["/etc/shadow", STAGING, &format!("{STAGING}/../x"), &format!("{STAGING}/")]
            {
                assert!(placed(path, from).is_err(), "{from}");
            }
        }
        for path in [
            "/boot/vmlinuz-6.1",
            "/lib/modules/6.1/x",
            "/lib/modules/",
            "/etc/x",
            "/boot/rtproof/.x",
        ] {
            assert!(placed(path, &from).is_err(), "{path}");
        }
        let initrd = |path: &str, release: &str, program: &str| {
            let (path, release, program) = (path.into(), release.into(), program.into());
            Change::Initrd { path, release, program }.may_be_made()
        };
        let path = "/boot/rtproof/initrd.img-6.1";
        assert_eq!(initrd(path, "6.1", "mkinitramfs"), Ok(()));
        assert!(initrd(path, "6.1", "sh").is_err() && initrd(path, "-c", "mkinitramfs").is_err());
        assert!(initrd("/etc/x", "6.1", "mkinitramfs").is_err());
        let name = "LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f".to_owned();
        let variable = |name: String| Change::EfiVariable { name, value: String::new() };
        assert_eq!(variable(name).may_be_made(), Ok(()));
        assert!(variable("../x".into()).may_be_made().is_err());
        let member = |group: &str, user: &str| {
            Change::Member { group: group.into(), user: user.into() }.may_be_made()
        };
        assert_eq!(member("realtime", "alice"), Ok(()));
        for (group, user) in [("sudo", "alice"), ("realtime", "--root=/x"), ("realtime", "a:b")] {
            assert!(member(group, user).is_err(), "{group} {user}");
        }
        assert!(Change::Group { name: "docker".into() }.may_be_made().is_err());
    }
}
