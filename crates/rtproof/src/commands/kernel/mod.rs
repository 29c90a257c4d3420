//! `rtproof kernel`: find, configure, build, boot, compare and bisect real-time kernels. To add a
//! command: its arguments and function in a file here, and a row of [`KernelCommand`].

pub mod bisect;
pub mod build;

use std::{
    cell::RefCell,
    io::IsTerminal,
    ops::ControlFlow,
    path::PathBuf,
    process,
    time::{Duration, Instant},
};

use anyhow::Context;

use rtproof_host::{Root, trusted};
use rtproof_kernel::{
    KernelError,
    boot::BootRequest,
    compare,
    find::{self, FindError},
    rebase::{self, RebaseAction},
    tool::WorkProgress,
};
use rtproof_render::sections::kernel as text_of;
use rtproof_run::{parse, prove::Signals};

use crate::exit::{self, TextOutput};

/// Arguments of `kernel`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A session, on Debian:
  rtproof kernel find
  rtproof kernel config --source linux-6.12 --profile periodic out
  rtproof kernel build --source linux-6.12 out
  rtproof kernel boot out --check

Nothing is installed. Everything that is made lies in the folder given.")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: KernelCommand,
}

/// How make is run; `config` and `build` take these.
#[derive(Clone, Debug, clap::Args)]
pub struct MakeArgs {
    /// Pass a variable to make, e.g. ARCH=arm64, CROSS_COMPILE=aarch64-linux-gnu-, CC=gcc-12
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<String>,

    /// Do all of it as this user, where rtproof runs as root
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// A variable of make.
fn variable(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match text.split_once('=') {
        // The folder of the objects is ours.
        Some(("O" | "KBUILD_OUTPUT" | "MAKEFLAGS", _)) => Err("is set by rtproof".into()),
        Some((name, _)) if is_name(name) => Ok(text.to_owned()),
        _ => Err("not NAME=VALUE".into()),
    }
}

commands! {
    KernelCommand:

    /// Show the real-time kernels that the distribution offers, with the command to install each
    Find(FindArgs, run_find),
    /// Configure a kernel for real-time work; show which options survive and why others do not
    Config(build::ConfigArgs, build::run_config),
    /// Build a kernel out of tree: image and modules, or Debian packages
    Build(build::BuildArgs, build::run_build),
    /// Boot a kernel under QEMU, run rtproof or a command inside, bring out what they made
    Boot(build::BootArgs, build::run_boot),
    /// Compare two kernels in the same guest: length of the wake-up path, causes, checks, options
    Compare(CompareArgs, run_compare),
    /// Find the commit or the options with which a latency begins: build, boot and test in turns
    Bisect(bisect::Args, bisect::run),
    /// Carry local commits of a kernel's git tree over to a newer version
    Rebase(RebaseArgs, run_rebase),
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    args.command.run()
}

// `rtproof kernel compare`: two kernels in the same guest, measured by counted instructions.

/// Arguments of `kernel compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel compare old/build/arch/x86/boot/bzImage out
  rtproof kernel compare 6.1.0-50-amd64 6.1.0-50-rt-amd64 --prove='--for 10s --load cpu'

Each kernel boots in an emulated machine whose time counts instructions. The same command gives the \
same figures each time. What a latency there says, and what it does not, stands below the tables. \
Exit code 0: both were measured, whatever was found.")]
pub struct CompareArgs {
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
pub fn run_compare(args: &CompareArgs) -> anyhow::Result<u8> {
    let step = build::proof(&args.prove)?;
    let request = |kernel: &PathBuf, config: &Option<PathBuf>| BootRequest {
        kernel: kernel.clone(),
        config: config.clone(),
        ..args.guest.counted(step.clone())
    };
    let requests = [request(&args.first, &args.config_a), request(&args.second, &args.config_b)];
    let signals = Signals::catch(&Root::live())?;
    let began = Instant::now();
    let shown = RefCell::new(show_progress());
    let interrupted = || {
        let step = "guests".to_owned();
        let _ = shown.borrow_mut()(&WorkProgress { step, objects: 0, elapsed: began.elapsed() });
        signals.received().is_some()
    };
    let outcome = compare::compare(&requests, &args.output, &interrupted);
    clear_progress();
    let compared = outcome?;
    let text = TextOutput::new(args.json);
    text.print(|to| text_of::kernels_compared(to, &compared, crate::is_verbose()))?;
    text.print_json(&compared)?;
    Ok(exit::ACCEPTED)
}

// `rtproof kernel find`: what the distribution offers. Changes nothing.

/// Arguments of `kernel find`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel find
  rtproof kernel find --all --json

The package manager is asked as it stands: apt-get update, or its like, is yours to run before. Exit \
code 2 where it offers none, 3 where no package manager is known.")]
pub struct FindArgs {
    /// Show packages of a single version, too
    #[arg(long)]
    pub all: bool,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The package manager fails.
pub fn run_find(args: &FindArgs) -> anyhow::Result<u8> {
    let offers = match find::find() {
        Err(error @ FindError::NoManager(_)) => {
            crate::stderr_line(&error.to_string())?;
            return Ok(exit::NOT_PROVEN);
        }
        found => found?,
    };
    let text = TextOutput::new(args.json);
    text.print(|to| text_of::offers(to, &offers, args.all))?;
    text.print_json(&offers)?;
    Ok(if offers.packages.is_empty() { exit::REFUSED } else { exit::ACCEPTED })
}

// The guest that a kernel boots in: what `boot`, `compare` and `bisect` take of it.

/// Arguments of a guest.
#[derive(Clone, Debug, clap::Args)]
pub struct GuestArgs {
    /// Memory, MiB
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(64..=1_048_576)
    )]
    pub memory: u32,

    /// Parameters for the kernel's command line
    #[arg(
        long,
        value_name = "PARAMETERS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub append: String,

    /// A static rtproof for the kernel's architecture; default: this program, with its libraries
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,

    /// Longest time of a guest from when init runs; until then it has 3 minutes
    #[arg(long, value_name = "TIME", value_parser = parse::run_duration, default_value = "10m")]
    pub timeout: u64,
}

impl GuestArgs {
    /// A boot with these steps. The kernel is named later.
    fn request(&self, steps: Vec<(String, Vec<String>)>) -> BootRequest {
        BootRequest {
            kernel: PathBuf::new(),
            config: None,
            modules: None,
            load: Vec::new(),
            binary: self.binary.clone(),
            cpus: None,
            threads: 1,
            memory_mib: self.memory,
            no_kvm: false,
            icount: false,
            append: self.append.clone(),
            steps,
            programs: Vec::new(),
            files: Vec::new(),
            folder: None,
            limit: Duration::from_nanos(self.timeout),
        }
    }

    /// The same on one CPU whose time counts instructions.
    fn counted(&self, step: (String, Vec<String>)) -> BootRequest {
        BootRequest { cpus: Some(1), no_kvm: true, icount: true, ..self.request(vec![step]) }
    }
}

// Progress of long work on a terminal's stderr: what is done, objects so far, time. How many
// objects there will be is not known, so no part of a whole is shown.

/// Shows progress; elsewhere than on a terminal a line each minute.
fn show_progress() -> impl FnMut(&WorkProgress) -> ControlFlow<()> {
    let is_terminal = std::io::stderr().is_terminal();
    let mut minute = 0;
    move |progress| {
        let seconds = progress.elapsed.as_secs();
        let objects = match progress.objects {
            0 => String::new(),
            objects => format!(", {objects} objects"),
        };
        let text = format!("{}: {}:{:02}{objects}", progress.step, seconds / 60, seconds % 60);
        // A stderr that cannot be written is no reason to stop.
        if is_terminal {
            let _ = crate::rewrite("\r\x1b[K", &text);
        } else if seconds / 60 != minute {
            minute = seconds / 60;
            let _ = crate::stderr_line(&text);
        }
        ControlFlow::Continue(())
    }
}

fn clear_progress() {
    if std::io::stderr().is_terminal() {
        // As above.
        let _ = crate::rewrite("\r\x1b[K", "");
    }
}

// `rtproof kernel rebase`: local commits of a git tree onto a newer version.

/// Arguments of `kernel rebase`.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("action").required(true))]
#[command(after_help = "\
Examples:
  rtproof kernel rebase linux --onto v6.12.8-rt2
  rtproof kernel rebase linux --onto v6.12.8-rt2 --from v6.12.1-rt1
  rtproof kernel rebase linux --continue

git does the work, in the tree itself, and stops at a conflict: exit code 2. Resolve it, `git add`, \
--continue; or --abort, after which all is as before.")]
pub struct RebaseArgs {
    /// The git tree, with the branch of the local commits checked out
    #[arg(value_name = "TREE")]
    pub tree: PathBuf,

    /// Version to carry them to: a tag, branch or commit
    #[arg(long, value_name = "REV", group = "action")]
    pub onto: Option<String>,

    /// Version that the local commits begin after; default: what both have in common
    #[arg(long, value_name = "REV", requires = "onto")]
    pub from: Option<String>,

    /// Go on after a conflict was resolved
    #[arg(long = "continue", group = "action")]
    pub go_on: bool,

    /// Give up: everything as before
    #[arg(long, group = "action")]
    pub abort: bool,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. 2: it stopped at a conflict.
///
/// # Errors
/// No git tree, no such version, changes that are not committed.
pub fn run_rebase(args: &RebaseArgs) -> anyhow::Result<u8> {
    let action = match (&args.onto, args.abort) {
        (Some(onto), _) => RebaseAction::Onto { onto: onto.clone(), from: args.from.clone() },
        (None, true) => RebaseAction::Abort,
        (None, false) => RebaseAction::Continue,
    };
    match rebase::rebase(&args.tree, &action) {
        Ok(rebased) => {
            let text = TextOutput::new(args.json);
            text.print(|to| text_of::rebased(to, &rebased))?;
            text.print_json(&rebased)?;
            Ok(exit::ACCEPTED)
        }
        Err(error @ KernelError::Conflict { .. }) => {
            crate::stderr_line(&error.to_string())?;
            Ok(exit::REFUSED)
        }
        Err(error) => Err(error.into()),
    }
}

// `--user`: the whole command again, as an ordinary user. Then nothing that the makefile does, and
// nothing that the user's folder holds, happens as root.

/// Runs this command line as the user; `None`: no user is named, or it is ours.
///
/// # Errors
/// Not root, no such user.
fn again(user: Option<&str>) -> anyhow::Result<Option<u8>> {
    let Some(user) = user else { return Ok(None) };
    if user.is_empty() || user.starts_with('-') {
        return Err(exit::usage(format!("--user {user}: no name of a user")));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(exit::usage("--user: only root becomes another user; leave it out".to_owned()));
    }
    let mut words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let joined = format!("--user={user}");
    let at = words.iter().position(|word| *word == *joined || word == "--user");
    let at = at.context("--user is on the command line")?;
    let own = if words[at] == *joined { 1 } else { 2 };
    words.drain(at..at + own);
    let exe = std::env::current_exe().context("the path of rtproof")?;
    let mut command: process::Command =
        trusted::command("runuser").context("--user needs runuser")?;
    // What says how it prints.
    let manners = ["TERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"];
    let manners = manners.iter().filter_map(|&name| Some((name, std::env::var_os(name)?)));
    let status = command
        .envs(manners)
        .args(["-u", user, "--"])
        .arg(exe)
        .args(words)
        .status()
        .context("runuser cannot be started")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Some(code.unwrap_or(exit::FAILED)))
}
