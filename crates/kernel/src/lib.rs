//! Real-time kernels: found, configured, built, booted, compared.
#![doc = include_str!("../README.md")]

pub mod boot;
pub mod compare;
pub mod config;
pub mod find;
pub mod kconfig;
pub mod make;
pub mod rebase;
pub mod source;
pub mod tool;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rtproof_results::kernel::KernelBisectNext;

// What goes wrong with sources, patches, configurations and builds.

/// Bytes of a text of a source or a build: a configuration, a list, a patch that was rejected.
pub const CONFIG_MAX: u64 = 64 << 20;

/// An error of a kernel's source, configuration or build.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The source, the folder or a file cannot be used.
    #[error("{}: {why}", path.display())]
    Path {
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A file or a folder cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// Root would run what another user could have written.
    #[error("{why}; or do all of it as that user (--user)")]
    Distrusted {
        /// Which path, and why.
        why: io::Error,
    },
    /// A program that is needed is not here.
    #[error(
        "{program} is needed and missing ({why}); install it, on Debian: apt-get install {package}"
    )]
    Missing {
        program: String,
        why: String,
        /// The package that has it on Debian.
        package: String,
    },
    #[error(
        "{step} failed ({status}){hint}:\n{}\nlog: {}",
        indented(lines), log.display()
    )]
    Failed {
        step: String,
        /// How the program ended.
        status: String,
        /// The reason as far as known, with its own punctuation.
        hint: String,
        /// The program's own lines.
        lines: Vec<String>,
        /// Everything that it wrote.
        log: PathBuf,
    },
    /// A patch does not apply.
    #[error("{0}")]
    Patch(Box<PatchFailure>),
    /// QEMU, a guest or its output.
    #[error("{0:#}")]
    Guest(#[from] anyhow::Error),
    /// Not an error: the work goes on in the next boot of this machine.
    #[error("the work goes on after a reboot")]
    Reboots(Box<KernelBisectNext>),
    /// `git rebase` stopped at a conflict.
    #[error("{text}")]
    Conflict {
        /// Which commit, which files, how to go on.
        text: String,
    },
}

/// A patch that does not apply.
#[derive(Debug)]
pub struct PatchFailure {
    pub patch: PathBuf,
    pub applied: usize,
    /// The source, which is not changed.
    pub origin: PathBuf,
    pub lines: Vec<String>,
    /// Hunks that were rejected.
    pub rejected: Vec<String>,
    pub log: PathBuf,
}

impl std::fmt::Display for PatchFailure {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            to,
            "{}: does not apply ({} before it did); the source in {} is as before:\n{}\n\
             rejected:\n{}\nlog: {}",
            self.patch.display(),
            self.applied,
            self.origin.display(),
            indented(&self.lines),
            indented(&self.rejected),
            self.log.display()
        )
    }
}

impl KernelError {
    /// A path that cannot be used.
    pub fn path(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Path { path: path.into(), why: why.into() }
    }

    /// An error of the file system.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { path, error }
    }
}

fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

// What a kernel needs to boot under QEMU with a serial console and an initrd and nothing else.

/// Name of an option, with its value where that is not y, and why.
type Row = (&'static str, &'static str);

const CONSOLE: &str = "the console of the guest, on its serial line";

const INITRD: &str = "the guest starts from an initrd";

const FILES: &str = "programs read /proc, /sys and /dev, and lock what they write";

const RUN: &str = "programs of the initrd run";

const HOST: &str = "the host's clock and idle loop, instead of emulated ones";

const DEVICES: &str = "the host ends the guest, and finds its devices";

/// All of them; an architecture ignores what it has not.
const OPTIONS: &[(&str, &[&str])] = &[
    (
        RUN,
        &[
            "64BIT",
            "SMP",
            // A configuration without SMP has 1, from which kconfig makes 2.
            "NR_CPUS=64",
            "MULTIUSER",
            "BINFMT_ELF",
            "BINFMT_SCRIPT",
            "FUTEX",
            "POSIX_TIMERS",
            "EPOLL",
            "SIGNALFD",
            "TIMERFD",
            "EVENTFD",
            "ADVISE_SYSCALLS",
            "MEMBARRIER",
            "UNIX",
            "NET",
            "INET",
            "SYSCTL",
            "PROC_SYSCTL",
            "CGROUPS",
        ],
    ),
    (CONSOLE, &["PRINTK", "TTY", "SERIAL_8250", "SERIAL_8250_CONSOLE"]),
    (INITRD, &["BLK_DEV_INITRD", "RD_GZIP"]),
    (
        FILES,
        &[
            "FILE_LOCKING",
            "PROC_FS",
            "SYSFS",
            "SHMEM",
            "TMPFS",
            "DEVTMPFS",
            "DEVTMPFS_MOUNT",
            "IKCONFIG",
            "IKCONFIG_PROC",
        ],
    ),
    (HOST, &["HYPERVISOR_GUEST", "PARAVIRT", "KVM_GUEST"]),
    (DEVICES, &["PCI", "ACPI", "VIRTIO_MENU", "VIRTIO_PCI", "HW_RANDOM", "HW_RANDOM_VIRTIO"]),
];

fn guest_rows() -> impl Iterator<Item = Row> {
    OPTIONS.iter().flat_map(|(why, names)| names.iter().map(move |name| (*name, *why)))
}

// Kernels: which the distribution offers, how one is configured and built.

/// The folder of a configuration or build, made where it is not there, as an absolute path: make
/// works in another directory.
#[expect(clippy::disallowed_methods, reason = "the user's own folder")]
pub fn build_folder(folder: &Path) -> Result<PathBuf, KernelError> {
    fs::create_dir_all(folder).map_err(KernelError::io(folder))?;
    let path = folder.canonicalize().map_err(KernelError::io(folder))?;
    // make splits its arguments there, and kbuild refuses such folders late.
    if path.to_string_lossy().contains([' ', ':', '#']) {
        return Err(KernelError::path(path, "kbuild takes no folder with a blank, ':' or '#'"));
    }
    Ok(path)
}
