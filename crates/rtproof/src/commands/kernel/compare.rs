//! `rtproof kernel compare`: two kernels in the same guest, measured by counted instructions.

use std::{
    cell::RefCell,
    path::PathBuf,
    time::{Duration, Instant},
};

use rtproof_host::Root;
use rtproof_report::text::kernel_compare as text_of;
use rtproof_run::{
    kernel::{boot::BootRequest, compare, tool::Progress},
    parse,
    prove::signals::Signals,
};

use super::{boot, progress};
use crate::{exit, print::Text};

/// Arguments of `kernel compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel compare old/build/arch/x86/boot/bzImage out
  rtproof kernel compare 6.1.0-50-amd64 6.1.0-50-rt-amd64 --prove='--for 10s --load cpu'

Each kernel boots in an emulated machine whose time counts instructions. The same command gives the \
same figures each time. What a latency there says, and what it does not, stands below the tables. \
Exit code 0: both were measured, whatever was found.")]
pub struct Args {
    /// The first kernel: a file, an installed version, or the folder of a build
    #[arg(value_name = "A")]
    pub first: PathBuf,

    /// The second one
    #[arg(value_name = "B")]
    pub second: PathBuf,

    /// Arguments of `rtproof prove` in both guests
    #[arg(
        long,
        value_name = "ARGS",
        require_equals = true,
        default_value = "--for 5s --load idle",
        allow_hyphen_values = true
    )]
    pub prove: String,

    /// Configuration of the first kernel; default: inside of the image, beside it, or of the build
    #[arg(long, value_name = "FILE")]
    pub config_a: Option<PathBuf>,

    /// Configuration of the second one
    #[arg(long, value_name = "FILE")]
    pub config_b: Option<PathBuf>,

    /// Memory, MiB
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(64..=1_048_576)
    )]
    pub memory: u32,

    /// Parameters for both kernels' command lines
    #[arg(
        long,
        value_name = "PARAMETERS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub append: String,

    /// A static rtproof for the kernels' architecture; default: this program, with its libraries
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,

    /// Longest time of each guest from when init runs
    #[arg(long, value_name = "TIME", value_parser = parse::run_duration, default_value = "10m")]
    pub timeout: u64,

    /// New folder for all files
    #[arg(short, long, value_name = "DIR", default_value = "kernel-compare")]
    pub output: PathBuf,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// One of them cannot be booted, or nothing was measured in it.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let step = boot::proof(&args.prove)?;
    let request = |kernel: &PathBuf, config: &Option<PathBuf>| BootRequest {
        kernel: kernel.clone(),
        config: config.clone(),
        modules: None,
        load: Vec::new(),
        binary: args.binary.clone(),
        cpus: Some(1),
        memory_mib: args.memory,
        threads: 1,
        no_kvm: true,
        icount: true,
        append: args.append.clone(),
        steps: vec![step.clone()],
        programs: Vec::new(),
        files: Vec::new(),
        folder: None,
        limit: Duration::from_nanos(args.timeout),
    };
    let requests = [request(&args.first, &args.config_a), request(&args.second, &args.config_b)];
    let signals = Signals::catch(&Root::live())?;
    let began = Instant::now();
    let shown = RefCell::new(progress::shown());
    let interrupted = || {
        let step = "guests".to_owned();
        let _ = shown.borrow_mut()(&Progress { step, objects: 0, elapsed: began.elapsed() });
        signals.came().is_some()
    };
    let outcome = compare::compare(&requests, &args.output, &interrupted);
    progress::end();
    let compared = outcome?;
    let text = Text::new(args.json);
    text.print(|to| text_of::kernels_compared(to, &compared, crate::manners::is_verbose()))?;
    text.print_json(&compared)?;
    Ok(exit::ACCEPTED)
}
