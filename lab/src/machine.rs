//! The made-up machine that a case runs on: kernel, command line, processors, memory, devices, and
//! how QEMU keeps time; and the QEMU arguments that build it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rtproof_guest::{Arch, Emulator, GuestHardware};

pub use rtproof_guest::GuestMode;

use crate::cache::Cache;
use crate::kernels::{Kernel, Ready};
use crate::{emulator, kernels, tables};

/// How files get in and out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A folder of the host, mounted.
    NineP,
    /// In with the initramfs, out over the serial line: for kernels without 9p.
    Serial,
}

/// What the firmware starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A kernel of the table with the lab's initramfs.
    Kernel,
    /// The Debian disk image through its GRUB.
    Grub,
    /// The Debian disk image, its kernel started past GRUB: sooner, and under icount.
    Disk,
}

impl Boot {
    /// Whether the disk image is needed.
    pub const fn has_disk(self) -> bool {
        matches!(self, Self::Grub | Self::Disk)
    }
}

#[derive(Clone, Debug)]
pub struct Machine {
    /// Kernel of the table.
    pub kernel: &'static str,
    /// Added to the kernel's command line.
    pub command_line: String,
    pub cpus: u32,
    /// Hardware threads of a core.
    pub threads: u32,
    pub nodes: u32,
    pub memory_mib: u32,
    pub mode: GuestMode,
    /// How files get in and out.
    pub share: Share,
    pub boot: Boot,
    /// Idle states and frequencies through ACPI or the device tree.
    pub power_states: bool,
    /// A thermal zone that the script heats, by the lab's module.
    pub heat: bool,
    /// A network card and a disk, each with a queue for each CPU.
    pub devices: bool,
    /// An empty ext4 disk, `/dev/vda`, which all boots of a case share.
    pub store: bool,
    /// Whether a state saved after boot may be used instead of booting.
    pub snapshot: bool,
}

impl Machine {
    /// One CPU under icount.
    pub fn new(kernel: &'static str) -> Self {
        Self {
            kernel,
            command_line: String::new(),
            cpus: 1,
            threads: 1,
            nodes: 1,
            memory_mib: 512,
            mode: GuestMode::Icount,
            share: Share::NineP,
            boot: Boot::Kernel,
            power_states: false,
            heat: false,
            devices: false,
            store: false,
            snapshot: true,
        }
    }

    #[must_use]
    pub const fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// Hardware threads of a core.
    #[must_use]
    pub const fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    #[must_use]
    pub const fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = nodes;
        self
    }

    #[must_use]
    pub const fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    #[must_use]
    pub fn command_line(mut self, parameters: &str) -> Self {
        parameters.clone_into(&mut self.command_line);
        self
    }

    /// One host thread per CPU.
    #[must_use]
    pub const fn multi_threaded(mut self) -> Self {
        self.mode = GuestMode::Threads;
        self
    }

    /// With idle states and frequencies.
    #[must_use]
    pub const fn power_states(mut self) -> Self {
        self.power_states = true;
        self
    }

    /// With a thermal zone of the lab's module.
    #[must_use]
    pub const fn heat(mut self) -> Self {
        self.heat = true;
        self
    }

    /// With a network card and a disk.
    #[must_use]
    pub const fn devices(mut self) -> Self {
        self.devices = true;
        self
    }

    /// With a disk that keeps what is written from boot to boot. Booted anew each time.
    #[must_use]
    pub const fn store(mut self) -> Self {
        self.store = true;
        self.snapshot = false;
        self
    }

    /// Files over the serial line.
    #[must_use]
    pub const fn serial_share(mut self) -> Self {
        self.share = Share::Serial;
        self.snapshot = false;
        self
    }

    /// Booted anew each time.
    #[must_use]
    pub const fn without_snapshot(mut self) -> Self {
        self.snapshot = false;
        self
    }

    /// The Debian disk image through its GRUB, on two CPUs in the host's time: for what reboots.
    pub fn grub() -> Self {
        let machine = Self::new("rt-6.1").memory_mib(1024).without_snapshot();
        Self { boot: Boot::Grub, cpus: 2, mode: GuestMode::Threads, ..machine }
    }

    /// The Debian disk image on one CPU under icount: for latencies.
    pub fn disk() -> Self {
        let machine = Self::new("rt-6.1").memory_mib(1024).without_snapshot();
        Self { boot: Boot::Disk, ..machine }
    }

    /// One line: kernel, CPUs, mode, parameters.
    pub fn describe(&self) -> String {
        let what = match self.boot {
            Boot::Kernel => self.kernel,
            Boot::Disk => "the Debian disk image",
            Boot::Grub => "the Debian disk image through GRUB",
        };
        let mode = match self.mode {
            GuestMode::Icount => "icount",
            GuestMode::Threads | GuestMode::Kvm => "multi-threaded",
        };
        let mut text = format!("{what}, {mode}, {} CPUs", self.cpus);
        let parts = [
            (self.threads > 1, format!("{} threads a core", self.threads)),
            (self.nodes > 1, format!("{} nodes", self.nodes)),
            (self.power_states, "power states".to_owned()),
            (self.devices, "a network card and a disk".to_owned()),
            (self.store, "a disk that stays".to_owned()),
            (self.share == Share::Serial, "files over the console".to_owned()),
            (!self.command_line.is_empty(), self.command_line.clone()),
        ];
        for (_, part) in parts.iter().filter(|(is_so, _)| *is_so) {
            text.push_str(", ");
            text.push_str(part);
        }
        text
    }

    pub fn kernel_row(&self) -> Result<&'static Kernel> {
        kernels::named(self.kernel)
    }

    /// Host threads that the guest keeps busy.
    pub const fn host_threads(&self) -> u32 {
        match self.mode {
            GuestMode::Icount => 1,
            GuestMode::Threads | GuestMode::Kvm => self.cpus,
        }
    }

    /// The QEMU for it.
    ///
    /// # Errors
    /// None can be had.
    pub fn emulator(&self, cache: &Cache) -> Result<Emulator> {
        let arch = self.kernel_row()?.arch;
        if self.mode == GuestMode::Icount && self.cpus > 1 {
            return emulator::recent(arch, cache);
        }
        Emulator::installed(arch)
    }

    /// Arguments that make the machine, without its kernel: they, the kernel and the command line
    /// decide whether a saved state fits.
    ///
    /// # Errors
    /// The topology is impossible, or a firmware table cannot be made.
    pub fn hardware(&self, emulator: &Emulator, cache: &Cache) -> Result<Vec<String>> {
        let arch = self.kernel_row()?.arch;
        let hardware = GuestHardware {
            arch,
            mode: self.mode,
            cpus: self.cpus,
            threads: self.threads,
            nodes: self.nodes,
            memory_mib: self.memory_mib,
            // A disk would be from the future.
            fixed_date: !self.boot.has_disk(),
        };
        let mut a = hardware.arguments()?;
        let mut add = |args: &[&str]| a.extend(args.iter().map(ToString::to_string));
        if arch == Arch::X86_64 {
            add(&["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        }
        if self.devices {
            add(&["-netdev", "hubport,id=n,hubid=0"]);
            let vectors = 2 * self.cpus + 2;
            let queues = "virtio-net-pci,netdev=n,romfile=,vectors=";
            add(&["-device", &format!("{queues}{vectors}")]);
            add(&["-drive", "driver=null-co,if=none,id=d,size=16M,read-zeroes=on"]);
            let queues = self.cpus;
            add(&["-device", &format!("virtio-blk-pci,drive=d,num-queues={queues}")]);
        }
        if self.power_states {
            match arch {
                Arch::X86_64 => {
                    let table = tables::ssdt(self.cpus, cache)?;
                    add(&["-acpitable", &format!("file={}", table.display())]);
                    add(&["-device", "pc-testdev"]);
                }
                Arch::Armv7 => {
                    bail!("{}: no tables with power states are made for it", arch.name())
                }
                Arch::Aarch64 => {
                    let tree = tables::device_tree(emulator, self.cpus, self.memory_mib, cache)?;
                    add(&["-dtb", &tree.display().to_string()]);
                }
            }
        }
        Ok(a)
    }

    /// Arguments that share a folder by 9p.
    pub fn share_arguments(folder: &Path) -> Vec<String> {
        // A comma in a value is written twice.
        let folder = folder.display().to_string().replace(',', ",,");
        vec![
            "-fsdev".into(),
            format!("local,id=h,path={folder},security_model=none"),
            "-device".into(),
            "virtio-9p-pci,fsdev=h,mount_tag=host".into(),
        ]
    }

    /// The whole command line of the kernel; `extra` is for init.
    pub fn kernel_command_line(&self, extra: &str) -> Result<String> {
        let base = match self.kernel_row()?.arch {
            Arch::X86_64 => {
                "console=ttyS0 panic=-1 quiet tsc=reliable mitigations=off nokaslr no_timer_check \
                 cryptomgr.notests audit=0"
            }
            Arch::Aarch64 | Arch::Armv7 => {
                "console=ttyAMA0 panic=-1 quiet mitigations=off nokaslr audit=0"
            }
        };
        let parts = [base, &self.command_line, extra];
        Ok(parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" "))
    }

    /// Arguments that start the kernel directly.
    pub fn kernel_arguments(
        &self,
        ready: &Ready,
        initramfs: &Path,
        extra: &str,
    ) -> Result<Vec<String>> {
        let path = |path: &PathBuf| path.display().to_string();
        Ok(vec![
            "-kernel".into(),
            path(&ready.image),
            "-initrd".into(),
            path(&initramfs.to_path_buf()),
            "-append".into(),
            self.kernel_command_line(extra)?,
        ])
    }
}

/// The folder of one guest's files under the target folder.
pub fn share_of(dir: &Path) -> PathBuf {
    dir.join("host")
}
