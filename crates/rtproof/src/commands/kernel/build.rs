//! `rtproof kernel build`: a kernel from a source, out of tree. Installs nothing.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    time::Instant,
};

use rtproof_host::{Capture, Facts, Root};
use rtproof_judge::plan::Selection;
use rtproof_kernel::{
    boot::{self, BootRequest},
    config::{self, Base, Request},
    make::{self, Make, Product},
    source,
    tool::{OnProgress, WorkProgress},
};
use rtproof_render::sections::kernel as text_of;
use rtproof_results::kernel::Booted;
use rtproof_run::{intent::IntentOptions, parse, prove::Signals};

use super::{GuestArgs, MakeArgs};
use crate::exit::TextOutput;
use crate::{IntentArgs, exit, open_root};

/// Arguments of `kernel build`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel build --source linux-6.12 out
  rtproof kernel build --source /usr/src/linux-source-6.1.tar.xz --patches debian/patches-rt out
  rtproof kernel build --source distribution --deb --user builder /home/builder/out
  rtproof kernel build --source linux-6.12 --test allnoconfig,tinyconfig tests

The objects go to FOLDER/build, all output to FOLDER/build.log. A build that was cut off is continued \
by the same command. Nothing is installed. Exit code 1 where the build fails, 2 where one of --test \
does.")]
pub struct BuildArgs {
    /// Folder of the build; made where it is not there
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Source: a folder, a git tree, a tarball, or `distribution` for the newest linux-source
    /// package in /usr/src
    #[arg(long, value_name = "PATH")]
    pub source: PathBuf,

    /// Configuration; default: the one that `kernel config` made in the folder
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Apply patches to a copy of the source first: a folder with a `series` file, or with *.patch
    /// files in sorted order, or one file; also .gz and .xz
    #[arg(long, value_name = "PATH")]
    pub patches: Option<PathBuf>,

    /// Build Debian packages
    #[arg(long, conflicts_with = "test")]
    pub deb: bool,

    /// Test whether configurations build: targets of the source's makefile, separated by commas
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    pub test: Vec<String>,

    /// Commands that make runs at once; default: one for each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,

    /// What both commands take.
    #[command(flatten)]
    pub make: MakeArgs,
}

/// A target that makes a configuration.
fn target(name: &str) -> anyhow::Result<()> {
    let is_plain = name.ends_with("config")
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if is_plain && !name.starts_with(['-', '.']) {
        return Ok(());
    }
    Err(exit::usage(format!("--test {name}: no target such as allnoconfig or tinyconfig")))
}

/// Runs the command.
///
/// # Errors
/// The source, a patch, the configuration, a program that is missing, whatever the build says.
pub fn run_build(args: &BuildArgs) -> anyhow::Result<u8> {
    if let Some(code) = super::again(args.make.user.as_deref())? {
        return Ok(code);
    }
    args.test.iter().try_for_each(|name| target(name))?;
    let place = rtproof_kernel::build_folder(&args.folder)?;
    let mut observer = super::show_progress();
    let outcome = made(args, &place, &mut observer);
    super::clear_progress();
    outcome
}

fn made(args: &BuildArgs, place: &Path, observer: OnProgress<'_>) -> anyhow::Result<u8> {
    let tree = source::open(&args.source, place, args.patches.as_deref(), observer)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cpus, usize::from);
    let objects = place.join("build");
    let make = Make { tree: tree.path.clone(), objects, variables: args.make.variables.clone() };
    let text = TextOutput::new(args.make.json);
    if !args.test.is_empty() {
        let tests = make::test(&tree, &make, place, &args.test, jobs, observer)?;
        super::clear_progress();
        text.print(|to| text_of::build_tests(to, &tests))?;
        text.print_json(&tests)?;
        let all = tests.rows.iter().all(|row| row.builds);
        return Ok(if all { exit::ACCEPTED } else { exit::REFUSED });
    }
    if let Some(config) = &args.config {
        rtproof_kernel::build_folder(&make.objects)?;
        make::take_config(config, &make.objects)?;
    }
    let product = if args.deb { Product::Deb } else { Product::Image };
    let built = make::build(&tree, make, place, product, jobs, observer)?;
    super::clear_progress();
    text.print(|to| text_of::built(to, &built))?;
    text.print_json(&built)?;
    Ok(exit::ACCEPTED)
}

// `rtproof kernel boot`: a kernel under QEMU, with rtproof inside.

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
pub struct BootArgs {
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
pub fn run_boot(args: &BootArgs) -> anyhow::Result<u8> {
    let request = request(args)?;
    let signals = Signals::catch(&Root::live())?;
    let began = Instant::now();
    let shown = RefCell::new(super::show_progress());
    let interrupted = || {
        let step = "guest".to_owned();
        let _ = shown.borrow_mut()(&WorkProgress { step, objects: 0, elapsed: began.elapsed() });
        signals.received().is_some()
    };
    let outcome = boot::boot(&request, &interrupted);
    super::clear_progress();
    let booted = outcome?;
    let text = TextOutput::new(args.json);
    text.print(|to| text_of::booted(to, &booted))?;
    text.print_json(&booted)?;
    Ok(code(&booted))
}

fn request(args: &BootArgs) -> anyhow::Result<BootRequest> {
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

// `rtproof kernel config`: options for real-time work, resolved by the source's own kconfig.

/// Arguments of `kernel config`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel config --source linux-6.12 --cpus 2-3 out
  rtproof kernel config --source linux-6.12 --minimal out
  rtproof kernel config --source linux-6.12 --for guest out
  rtproof kernel config --root config-6.1.0-rt.gz out

The base is the configuration of the machine (--root, else the running one), or --base. FOLDER gets \
rtproof.config (the fragment, each option with its reason) and build/.config (resolved). Exit code 2 \
where an option was dropped.")]
pub struct ConfigArgs {
    /// Folder to write to; made where it is not there
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Source of the kernel: a folder, a tarball, or `distribution`; without one there is the
    /// fragment alone
    #[arg(long, value_name = "PATH")]
    pub source: Option<PathBuf>,

    /// Apply patches to a copy of the source first, as `kernel build` does
    #[arg(long, value_name = "PATH", requires = "source")]
    pub patches: Option<PathBuf>,

    /// Begin with this configuration: a file (also .gz and .xz), or a target of the source such as
    /// defconfig
    #[arg(long, value_name = "FILE|TARGET")]
    pub base: Option<String>,

    /// What the machine is for.
    #[command(flatten)]
    pub intent: IntentArgs,

    /// Real-time CPUs; default: those that the machine keeps free, else a proposal
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Period of the application's loop; default: 1ms
    #[arg(long = "period", value_name = "TIME", value_parser = parse::period)]
    pub period_ns: Option<u64>,

    /// Ask for core scheduling (SCHED_CORE), too
    #[arg(long)]
    pub core_sched: bool,

    /// Keep only the modules that the machine has loaded, as localmodconfig does
    #[arg(long, requires = "source", conflicts_with = "purpose")]
    pub minimal: bool,

    /// Configure for something else than this machine: a small guest under QEMU, with a serial
    /// console and an initrd, from tinyconfig
    #[arg(long = "for", value_name = "WHAT", value_enum, requires = "source")]
    pub purpose: Option<ConfigPurpose>,

    /// Machine: a file of `rtproof capture`, a folder, or the configuration of its kernel
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// What both commands take.
    #[command(flatten)]
    pub make: MakeArgs,
}

/// What else than the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ConfigPurpose {
    /// A guest.
    Guest,
}

/// Runs the command. 2: an option was dropped.
///
/// # Errors
/// The base, the source or the folder cannot be used; kconfig fails.
pub fn run_config(args: &ConfigArgs) -> anyhow::Result<u8> {
    if let Some(code) = super::again(args.make.user.as_deref())? {
        return Ok(code);
    }
    let root = open_root(args.root.as_deref())?;
    let is_guest = args.purpose.is_some();
    // A guest that does not exist yet has no facts.
    let facts = if is_guest && args.root.is_none() {
        Facts::read(&Root::captured(Capture::of_files([])))
    } else {
        Facts::read(&root)
    };
    let stated = IntentOptions {
        cpus: args.cpus.clone(),
        period_ns: args.period_ns,
        ..IntentOptions::default()
    };
    let intent = args.intent.requested().resolve()?.intent(stated, &facts)?;
    let base = base(args, &root, &facts)?;
    let modules = args.minimal.then(|| modules(&root)).transpose()?;
    let place = rtproof_kernel::build_folder(&args.folder)?;
    let mut observer = super::show_progress();
    let outcome = (|observer: OnProgress<'_>| -> anyhow::Result<_> {
        let make = match &args.source {
            None => None,
            Some(from) => {
                let tree = source::open(from, &place, args.patches.as_deref(), observer)?;
                let variables = args.make.variables.clone();
                Some(Make { tree: tree.path, objects: place.join("build"), variables })
            }
        };
        let request = Request {
            base,
            make,
            place: &place,
            facts: &facts,
            intent: &intent,
            selection: &Selection::default(),
            guest: is_guest,
            core_sched: args.core_sched,
            modules,
        };
        Ok(config::configure(&request, observer)?)
    })(&mut observer);
    super::clear_progress();
    let configured = outcome?;
    let text = TextOutput::new(args.make.json);
    text.print(|to| text_of::configured(to, &configured, crate::is_verbose()))?;
    text.print_json(&configured)?;
    Ok(if configured.dropped().next().is_some() { exit::REFUSED } else { exit::ACCEPTED })
}

fn base(args: &ConfigArgs, root: &Root, facts: &Facts) -> anyhow::Result<Base> {
    if let Some(name) = &args.base {
        let is_target =
            !Path::new(name).exists() && name.ends_with("config") && !name.contains('/');
        return Ok(match is_target && !name.starts_with('-') {
            true => Base::Target(name.clone()),
            false => Base::File(name.into()),
        });
    }
    if args.purpose == Some(ConfigPurpose::Guest) {
        return Ok(Base::Target("tinyconfig".into()));
    }
    let config = &facts.kernel.config;
    let read = root.read_bytes(&config.path);
    match (config.value(), read.value()) {
        (Some(_), Some(bytes)) => {
            let name = match &args.root {
                Some(path) => format!("{} of {}", config.path, path.display()),
                None => config.path.clone(),
            };
            Ok(Base::Bytes(bytes.clone(), name))
        }
        _ => Err(exit::usage(format!(
            "{}: the configuration of this machine's kernel cannot be read; give --base FILE, or \
             --base defconfig with --source",
            config.path
        ))),
    }
}

fn modules(root: &Root) -> anyhow::Result<Vec<u8>> {
    let read = root.read_bytes("/proc/modules");
    match read.value() {
        Some(bytes) if !bytes.is_empty() => Ok(bytes.clone()),
        Some(_) => Err(exit::usage(
            "--minimal: /proc/modules is empty: this kernel loaded no module, so nothing tells \
             what the machine needs"
                .to_owned(),
        )),
        None => Err(exit::usage(
            "--minimal: /proc/modules of this machine cannot be read: which modules it needs is \
             unknown"
                .to_owned(),
        )),
    }
}
