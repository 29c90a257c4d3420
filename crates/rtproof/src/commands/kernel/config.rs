//! `rtproof kernel config`: options for real-time work, resolved by the source's own kconfig.

use std::path::{Path, PathBuf};

use rtproof_host::{Capture, Facts, Root};
use rtproof_judge::plan::Selection;
use rtproof_report::text::kernel as text_of;
use rtproof_run::{
    intent::IntentOptions,
    kernel::{
        self,
        config::{self, Base, Request},
        make::Make,
        source,
        tool::OnProgress,
    },
    parse,
};

use super::{MakeArgs, progress, user};
use crate::{exit, intent::IntentArgs, print::Text, root::open_root};

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
pub struct Args {
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

    /// Real-time CPUs; default: those that the machine keeps free, else all
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
    pub purpose: Option<Purpose>,

    /// Machine: a file of `rtproof capture`, a folder, or the configuration of its kernel
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// What both commands take.
    #[command(flatten)]
    pub make: MakeArgs,
}

/// What else than the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// A guest.
    Guest,
}

/// Runs the command. 2: an option was dropped.
///
/// # Errors
/// The base, the source or the folder cannot be used; kconfig fails.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(code) = user::again(args.make.user.as_deref())? {
        return Ok(code);
    }
    let root = open_root(args.root.as_deref())?;
    let is_guest = args.purpose.is_some();
    // Nothing is known of a guest that is not there yet.
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
    let place = kernel::place(&args.folder)?;
    let mut observer = progress::shown();
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
    progress::end();
    let configured = outcome?;
    let text = Text::new(args.make.json);
    text.print(|to| text_of::configured(to, &configured, crate::manners::is_verbose()))?;
    text.print_json(&configured)?;
    Ok(if configured.dropped().next().is_some() { exit::REFUSED } else { exit::ACCEPTED })
}

fn base(args: &Args, root: &Root, facts: &Facts) -> anyhow::Result<Base> {
    if let Some(name) = &args.base {
        let is_target =
            !Path::new(name).exists() && name.ends_with("config") && !name.contains('/');
        return Ok(match is_target && !name.starts_with('-') {
            true => Base::Target(name.clone()),
            false => Base::File(name.into()),
        });
    }
    if args.purpose == Some(Purpose::Guest) {
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
