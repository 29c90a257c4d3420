//! Kernels under QEMU.
#![doc = include_str!("../README.md")]
#![expect(
    clippy::disallowed_methods,
    reason = "kernel images, modules and programs that the caller names; results in its own folder"
)]

pub mod image;
pub mod inside;
pub mod modules;
pub mod process;

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use rtproof_host::trusted;

/// Processor architecture of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    X86_64,
    Aarch64,
    /// 32-bit ARM from version 7 on, with floating point.
    Armv7,
}

impl Arch {
    pub const ALL: &[Self] = &[Self::X86_64, Self::Aarch64, Self::Armv7];

    /// That of this program; `None`: no guest of it can be made.
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else if cfg!(target_arch = "arm") {
            Some(Self::Armv7)
        } else {
            None
        }
    }

    /// As people write it, and as folders of the cache are named.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
            Self::Armv7 => "armv7",
        }
    }

    /// As Rust names its target.
    pub const fn target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
            Self::Armv7 => "armv7-unknown-linux-gnueabihf",
        }
    }

    /// As Debian's compilers and libraries name it.
    pub const fn gnu(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
            Self::Armv7 => "arm-linux-gnueabihf",
        }
    }

    /// The kernel's name of its serial console under QEMU.
    pub const fn console(self) -> &'static str {
        match self {
            Self::X86_64 => "ttyS0",
            Self::Aarch64 | Self::Armv7 => "ttyAMA0",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.iter().map(|arch| arch.name()).collect::<Vec<_>>().join(", ");
        let found = Self::ALL.iter().find(|arch| arch.name() == text);
        found.copied().ok_or_else(|| format!("expected one of {}", names()))
    }
}

// The installed QEMU.

/// The first version that brings up several CPUs under icount; 7.2 hangs there.
pub const RECENT: (u32, u32, u32) = (10, 0, 0);

/// A QEMU that can be started.
#[derive(Clone, Debug)]
pub struct Emulator {
    pub program: PathBuf,
    /// Arguments that come first (`-L` folders of an unpacked one).
    pub arguments: Vec<String>,
    /// Version, e.g. (10, 0, 2).
    pub version: (u32, u32, u32),
}

/// The program that emulates an architecture, and the Debian package that has it.
pub const fn program_and_package(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
        Arch::Armv7 => ("qemu-system-arm", "qemu-system-arm"),
    }
}

impl Emulator {
    /// Finds the installed QEMU of an architecture.
    ///
    /// # Errors
    /// None is installed; names the package that has it.
    pub fn installed(arch: Arch) -> Result<Self> {
        let (name, package) = program_and_package(arch);
        let program = trusted::find_program(name).with_context(|| {
            format!("QEMU for {arch} is missing; on Debian: apt-get install {package}")
        })?;
        let version = version(&program)
            .with_context(|| format!("no working {name}; on Debian: apt-get install {package}"))?;
        Ok(Self { program, arguments: Vec::new(), version })
    }
}

/// Starts it once and reads its version.
///
/// # Errors
/// It cannot be run, or prints no version.
pub fn version(program: &Path) -> Result<(u32, u32, u32)> {
    let output = trusted::command_at(program)
        .arg("--version")
        .output()
        .with_context(|| format!("{}: cannot be run", program.display()))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    if let Some(package) = missing_library(&complaint) {
        bail!("{}: {}; install {package}", program.display(), complaint.trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    parse_version(&text).with_context(|| {
        format!("{} --version: {:?} has no version; {}", program.display(), text, complaint.trim())
    })
}

/// `QEMU emulator version 10.0.2 (Debian ...)`.
fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let text = text.split("version ").nth(1)?;
    let text = text.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
}

/// The package of the shared library that the loader misses, by Debian's rule for their names:
/// `libpmem.so.1` is in libpmem1, `libfuse3.so.3` in libfuse3-3.
fn missing_library(complaint: &str) -> Option<String> {
    let (_, rest) = complaint.split_once("error while loading shared libraries: ")?;
    let (library, _) = rest.split_once(": cannot open")?;
    let (name, version) = library.split_once(".so.")?;
    let hyphen = if name.ends_with(|c: char| c.is_ascii_digit()) { "-" } else { "" };
    Some(format!("{name}{hyphen}{version}"))
}

// QEMU's arguments for a guest's processors, memory and clock.

/// How the guest's time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestMode {
    /// Virtual time counts instructions (`-icount shift=2,sleep=off`): latencies do not depend on
    /// the host's load, idle time is skipped. Several CPUs take turns on one host thread.
    Icount,
    /// One host thread per CPU, time is the host's: functions only, no statement about latency.
    Threads,
    /// KVM; QEMU emulates where it cannot use it. Time is the host's.
    Kvm,
}

/// Virtual nanoseconds of one instruction under [`GuestMode::Icount`]: 2 to the power of `shift`.
pub const INSTRUCTION_NS: u64 = 4;

/// Processors, memory and clock.
#[derive(Clone, Copy, Debug)]
pub struct GuestHardware {
    pub arch: Arch,
    pub mode: GuestMode,
    pub cpus: u32,
    /// Hardware threads of a core.
    pub threads: u32,
    pub nodes: u32,
    pub memory_mib: u32,
    /// Whether the guest's date is the same each time.
    pub fixed_date: bool,
}

/// Whether KVM can be used for guests of an architecture; else why not.
pub fn kvm(arch: Arch) -> Result<()> {
    if Arch::native() != Some(arch) {
        bail!("the kernel is of another architecture than this machine");
    }
    let path = "/dev/kvm";
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(path);
    opened.map(drop).with_context(|| format!("{path} cannot be opened"))
}

impl GuestHardware {
    /// The arguments. There is no device but the serial line that the caller adds.
    ///
    /// # Errors
    /// The topology is impossible.
    pub fn arguments(&self) -> Result<Vec<String>> {
        let Self { cpus, threads, nodes, memory_mib, .. } = *self;
        if !cpus.is_multiple_of(threads * nodes) {
            bail!("{cpus} CPUs cannot have {threads} threads a core on {nodes} nodes");
        }
        let mut a: Vec<String> = Vec::new();
        let mut add = |args: &[&str]| a.extend(args.iter().map(ToString::to_string));
        match self.mode {
            GuestMode::Icount => {
                add(&["-accel", "tcg,thread=single", "-icount", "shift=2,sleep=off"])
            }
            GuestMode::Threads => add(&["-accel", "tcg,thread=multi"]),
            GuestMode::Kvm => add(&["-accel", "kvm", "-accel", "tcg,thread=multi"]),
        }
        let machine = match (self.arch, self.mode) {
            (Arch::X86_64, _) => "q35",
            // Whichever interrupt controller the host has.
            (Arch::Aarch64, GuestMode::Kvm) => "virt,gic-version=max",
            (Arch::Aarch64, _) => "virt",
            // Debian's kernel has 32-bit physical addresses (no LPAE).
            (Arch::Armv7, _) => "virt,highmem=off",
        };
        let cpu = match (self.arch, self.mode) {
            (_, GuestMode::Kvm) => "max",
            // GenuineIntel: SMT can be switched off and the TSC is trusted.
            (Arch::X86_64, _) => "max,vendor=GenuineIntel",
            (Arch::Aarch64, _) => "cortex-a57",
            (Arch::Armv7, _) => "cortex-a15",
        };
        add(&["-M", machine, "-cpu", cpu]);
        let cores = cpus / threads / nodes;
        let smp = format!("{cpus},sockets={nodes},cores={cores},threads={threads}");
        add(&["-smp", &smp, "-m", &memory_mib.to_string()]);
        if nodes > 1 {
            let (cpus, size) = (cpus / nodes, memory_mib / nodes);
            for node in 0..nodes {
                add(&["-object", &format!("memory-backend-ram,size={size}M,id=m{node}")]);
                let (first, last) = (node * cpus, node * cpus + cpus - 1);
                add(&["-numa", &format!("node,memdev=m{node},cpus={first}-{last}")]);
            }
        }
        add(&["-nodefaults", "-display", "none", "-no-reboot", "-nic", "none"]);
        if self.fixed_date {
            add(&["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        }
        Ok(a)
    }
}

// What init does in a guest of `rtproof kernel boot`, and what it says of it afterwards.

/// Where init finds its plan.
pub const PATH: &str = "/plan.json";

/// Folder of what goes back to the host.
pub const OUT: &str = "/out";

/// The file there with a [`RanCommand`] for each step.
pub const RAN: &str = "steps.json";

/// The file there with the kernel's log.
pub const LOG: &str = "dmesg.txt";

/// The file there with the configuration that the kernel itself holds.
pub const CONFIG: &str = "config.gz";

/// The command of the binary that is init in a guest.
pub const COMMAND: &str = "guest-init";

/// What `init` does in the guest: loads modules, then runs commands in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPlan {
    /// Modules in /modules, in the order in which they are loaded.
    pub modules: Vec<String>,
    /// Commands, one after the other.
    pub steps: Vec<GuestCommand>,
}

/// A command that the guest runs, as one step of its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestCommand {
    /// Its output goes to `NAME.out` and `NAME.err`.
    pub name: String,
    pub command: Vec<String>,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanCommand {
    pub name: String,
    /// Exit code; `None`: not started, or ended by a signal.
    pub exit: Option<i32>,
    /// Why there is no exit code.
    pub why: Option<String>,
    /// Time of the guest that it took.
    pub seconds: f64,
}

#[cfg(test)]
mod emulator_tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let text = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright";
        assert_eq!(parse_version(text), Some((7, 2, 22)));
        assert_eq!(parse_version("QEMU emulator version 11.0\n"), Some((11, 0, 0)));
        assert_eq!(parse_version("no"), None);
    }

    #[test]
    fn a_missing_library_is_named_by_its_package() {
        let complaint = |library: &str| {
            format!(
                "qemu: error while loading shared libraries: {library}: cannot open shared object"
            )
        };
        assert_eq!(missing_library(&complaint("libpmem.so.1")).unwrap(), "libpmem1");
        assert_eq!(missing_library(&complaint("libfuse3.so.3")).unwrap(), "libfuse3-3");
        assert_eq!(missing_library("Segmentation fault"), None);
    }
}

#[cfg(test)]
mod hardware_tests {
    use super::*;

    #[test]
    fn a_topology_is_divided_or_refused() {
        let hardware = GuestHardware {
            arch: Arch::X86_64,
            mode: GuestMode::Icount,
            cpus: 8,
            threads: 2,
            nodes: 2,
            memory_mib: 512,
            fixed_date: true,
        };
        let text = hardware.arguments().unwrap().join(" ");
        assert!(text.contains("-smp 8,sockets=2,cores=2,threads=2 "), "{text}");
        assert!(text.contains("memdev=m1,cpus=4-7"), "{text}");
        assert!(GuestHardware { cpus: 6, ..hardware }.arguments().is_err());
    }
}
