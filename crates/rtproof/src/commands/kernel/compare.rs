//! `rtproof kernel compare`: two kernels in the same guest, measured by counted instructions.

use std::{cell::RefCell, path::PathBuf, time::Instant};

use rtproof_host::Root;
use rtproof_report::text::kernel_compare as text_of;
use rtproof_run::{
    kernel::{boot::BootRequest, compare, tool::Progress},
    prove::signals::Signals,
};

use super::{boot, guest::GuestArgs, progress};
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

    /// The guests.
    #[command(flatten)]
    pub guest: GuestArgs,

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
        ..args.guest.counted(step.clone())
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
