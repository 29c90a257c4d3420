//! `cargo xtask lab shell KERNEL`: a prompt in a guest.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use rtproof_guest::process;

use crate::kernels;
use crate::machine::{Machine, share_of};
use crate::run::Bench;

/// What to boot.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kernel of the table, e.g. rt-6.1
    kernel: String,
    /// CPUs
    #[arg(long, default_value_t = 1)]
    cpus: u32,
    /// Hardware threads of a core
    #[arg(long, default_value_t = 1)]
    threads: u32,
    /// NUMA nodes
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// Memory, MiB
    #[arg(long, default_value_t = 512)]
    memory: u32,
    /// Kernel parameters, e.g. "isolcpus=1 nohz_full=1"
    #[arg(long, default_value = "")]
    command_line: String,
    /// Virtual time that counts instructions; without it time is the host's
    #[arg(long)]
    icount: bool,
    /// Idle states and frequencies
    #[arg(long)]
    power_states: bool,
    /// Programs of this machine to take along, e.g. cyclictest
    #[arg(long)]
    program: Vec<String>,
}

/// Boots and attaches the terminal. Ctrl-A X ends QEMU.
///
/// # Errors
/// The kernel or QEMU cannot be had.
pub fn run(args: &Args, dir: &Path) -> Result<()> {
    let kernel = kernels::named(&args.kernel)?;
    let mut machine = Machine::new(kernel.id)
        .cpus(args.cpus)
        .threads(args.threads)
        .nodes(args.nodes)
        .memory_mib(args.memory)
        .command_line(&args.command_line);
    if !args.icount {
        machine = machine.multi_threaded();
    }
    machine.power_states = args.power_states;
    let bench = Bench::open(dir.to_path_buf(), None)?;
    let share = share_of(&dir.join("shell"));
    if share.exists() {
        fs::remove_dir_all(&share).with_context(|| format!("{}: remove", share.display()))?;
    }
    let programs: Vec<&str> = args.program.iter().map(String::as_str).collect();
    bench.fill(kernel, &programs, &share)?;
    fs::write(share.join("prelude.sh"), crate::run::PRELUDE)?;
    let emulator = machine.emulator(&bench.cache)?;
    let ready = kernel.ready(&bench.cache)?;
    let mut arguments = machine.hardware(&emulator, &bench.cache)?;
    arguments.extend(machine.kernel_arguments(&ready, &ready.initramfs, "labshell")?);
    arguments.extend(Machine::share_arguments(&share));
    println!("lab: {}; Ctrl-A X ends it", machine.describe());
    println!("lab: in the guest, `. /host/prelude.sh` brings rtproof and lab-plant into PATH");
    println!("lab: /host is {}", share.display());
    process::interactive(&emulator, &arguments)
}
