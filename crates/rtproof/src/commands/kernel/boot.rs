//! `rtproof kernel boot`: a kernel under QEMU, with rtproof inside.

use std::{cell::RefCell, path::PathBuf, time::Instant};

use rtproof_host::Root;
use rtproof_report::text::kernel_boot as text_of;
use rtproof_results::kernel::boot::Booted;
use rtproof_run::{
    kernel::{
        boot::{self, BootRequest},
        tool::Progress,
    },
    prove::signals::Signals,
};

use super::{guest::GuestArgs, progress};
use crate::{exit, print::Text};

/// Arguments of `kernel boot`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel boot 6.12.95+deb12-rt-amd64 --check
  rtproof kernel boot out --prove='--for 20s --budget 100us'
  rtproof kernel boot /boot/vmlinuz-6.1.0-50-rt-amd64 --icount -- uname -a
  rtproof kernel boot Image --binary rtproof-aarch64 --check

The guest has rtproof and what is named here, and nothing else: no shell, no network, no disk. All \
files go to a new folder, the console's log among them. Nothing is installed. Exit code 0: the kernel \
booted and all that ran inside ended with 0. Else it is the first other code from inside. 1: it did \
not boot, or a signal ended a command.")]
pub struct Args {
    /// A kernel: bzImage, Image or vmlinuz; an installed version, as in /boot/vmlinuz-VERSION; or
    /// the folder of a build
    #[arg(value_name = "FILE|VERSION|DIR")]
    pub kernel: PathBuf,

    /// Run `rtproof check` in the guest
    #[arg(long)]
    pub check: bool,

    /// Run `rtproof prove` in the guest, with these arguments; the record comes out
    #[arg(
        long,
        value_name = "ARGS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        allow_hyphen_values = true
    )]
    pub prove: Option<String>,

    /// Let the guest's time count instructions (4 ns each), in an emulated processor
    #[arg(long)]
    pub icount: bool,

    /// Emulate the processor where KVM would be used
    #[arg(long, conflicts_with = "icount")]
    pub no_kvm: bool,

    /// CPUs; default: 2, with --icount 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: Option<u32>,

    /// Hardware threads of each core
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=8)
    )]
    pub threads: u32,

    /// The kernel's configuration; default: the one inside of the image, beside it, or of the build
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Load modules at boot, with what they depend on
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub load: Vec<String>,

    /// Folder of the kernel's modules; default: /lib/modules/VERSION, or the build
    #[arg(long, value_name = "DIR", requires = "load")]
    pub modules: Option<PathBuf>,

    /// Take a program of this machine along, with its libraries: it is in /bin
    #[arg(long = "program", value_name = "PROGRAM")]
    pub programs: Vec<PathBuf>,

    /// Take a file along: it is in the commands' working folder
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The guest.
    #[command(flatten)]
    pub guest: GuestArgs,

    /// New folder for all files; default: boot-RELEASE here
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// A program of this machine, to run in the guest, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The kernel cannot be booted, or the guest did not come to its end.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let request = request(args)?;
    let signals = Signals::catch(&Root::live())?;
    let began = Instant::now();
    let shown = RefCell::new(progress::shown());
    let interrupted = || {
        let step = "guest".to_owned();
        let _ = shown.borrow_mut()(&Progress { step, objects: 0, elapsed: began.elapsed() });
        signals.came().is_some()
    };
    let outcome = boot::boot(&request, &interrupted);
    progress::end();
    let booted = outcome?;
    let text = Text::new(args.json);
    text.print(|to| text_of::booted(to, &booted))?;
    text.print_json(&booted)?;
    Ok(code(&booted))
}

fn request(args: &Args) -> anyhow::Result<BootRequest> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut steps = Vec::new();
    if args.check {
        steps.push(("check".to_owned(), words("rtproof check")));
        steps.push(("check-json".to_owned(), words("rtproof check --json")));
    }
    steps.extend(args.prove.as_deref().map(proof).transpose()?);
    if !args.command.is_empty() {
        steps.push(("command".to_owned(), args.command.clone()));
    }
    Ok(BootRequest {
        kernel: args.kernel.clone(),
        config: args.config.clone(),
        modules: args.modules.clone(),
        load: args.load.clone(),
        cpus: args.cpus,
        threads: args.threads,
        no_kvm: args.no_kvm,
        icount: args.icount,
        programs: args.programs.clone(),
        files: args.files.clone(),
        folder: args.output.clone(),
        ..args.guest.request(steps)
    })
}

/// The step that runs `prove` with these arguments.
pub(super) fn proof(arguments: &str) -> anyhow::Result<(String, Vec<String>)> {
    let is_output = |word: &str| word.starts_with("-o") || word.starts_with("--output");
    if arguments.split_whitespace().any(is_output) {
        return Err(exit::usage("--prove: --output is set here; the record comes out"));
    }
    let command = ["rtproof", "prove", "--output", "/out/prove"].into_iter();
    let command = command.chain(arguments.split_whitespace()).map(str::to_owned).collect();
    Ok(("prove".to_owned(), command))
}

/// The first code that is not 0.
fn code(booted: &Booted) -> u8 {
    let codes = booted.steps.iter().map(|step| match step.exit {
        Some(code) => u8::try_from(code).unwrap_or(exit::FAILED),
        None => exit::FAILED,
    });
    codes.into_iter().find(|code| *code != exit::ACCEPTED).unwrap_or(exit::ACCEPTED)
}
