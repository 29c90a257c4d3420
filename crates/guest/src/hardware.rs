//! QEMU's arguments for a guest's processors, memory and clock.

use anyhow::{Context, Result, bail};

use crate::arch::Arch;

/// How the guest's time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Virtual time counts instructions (`-icount shift=2,sleep=off`): latencies do not depend on
    /// the host's load, idle time is skipped. Several CPUs take turns on one host thread.
    Icount,
    /// One host thread per CPU, time is the host's: functions only, no statement about latency.
    Threads,
    /// KVM; QEMU emulates where it cannot use it. Time is the host's.
    Kvm,
}

/// Virtual nanoseconds of one instruction under [`Mode::Icount`]: 2 to the power of `shift`.
pub const INSTRUCTION_NS: u64 = 4;

/// Processors, memory and clock.
#[derive(Clone, Copy, Debug)]
pub struct Hardware {
    pub arch: Arch,
    pub mode: Mode,
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

impl Hardware {
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
            Mode::Icount => add(&["-accel", "tcg,thread=single", "-icount", "shift=2,sleep=off"]),
            Mode::Threads => add(&["-accel", "tcg,thread=multi"]),
            Mode::Kvm => add(&["-accel", "kvm", "-accel", "tcg,thread=multi"]),
        }
        let machine = match (self.arch, self.mode) {
            (Arch::X86_64, _) => "q35",
            // Whichever interrupt controller the host has.
            (Arch::Aarch64, Mode::Kvm) => "virt,gic-version=max",
            (Arch::Aarch64, _) => "virt",
            // Debian's kernel has 32-bit physical addresses (no LPAE).
            (Arch::Armv7, _) => "virt,highmem=off",
        };
        let cpu = match (self.arch, self.mode) {
            (_, Mode::Kvm) => "max",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_is_divided_or_refused() {
        let hardware = Hardware {
            arch: Arch::X86_64,
            mode: Mode::Icount,
            cpus: 8,
            threads: 2,
            nodes: 2,
            memory_mib: 512,
            fixed_date: true,
        };
        let text = hardware.arguments().unwrap().join(" ");
        assert!(text.contains("-smp 8,sockets=2,cores=2,threads=2 "), "{text}");
        assert!(text.contains("memdev=m1,cpus=4-7"), "{text}");
        assert!(Hardware { cpus: 6, ..hardware }.arguments().is_err());
    }
}
