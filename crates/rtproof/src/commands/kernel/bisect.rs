//! `rtproof kernel bisect`: the commit or the options with which a latency begins.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;

use rtproof_host::{
    Root,
    boot::cmdline,
    door::write_whole,
    tune::{ApplyOptions, Change, Item, Journal, Machine, apply},
};
use rtproof_judge::{causes::CAUSES, checks, plan::units};
use rtproof_kernel::{KernelError, boot::BootRequest, tool::WorkProgress};
use rtproof_measure::LiveTasks;
use rtproof_render::sections::bisect as text_of;
use rtproof_results::kernel::KernelBisectNext;
use rtproof_run::{
    bisect::{self, BisectRange, BisectRequest, Criterion, TrialBoots},
    prove::Signals,
    tune::{self, kernel::InitrdChoice, making},
};

use super::{GuestArgs, MakeArgs, build};
use crate::commands::tune::RootArgs;
use crate::commands::tune::trial::reboot;
use crate::exit::TextOutput;
use crate::{exit, open_root};

/// Arguments of `prove` in a guest, whose time counts instructions.
const IN_GUEST: &str = "--for 5s --load idle";

/// And on the machine itself.
const ON_MACHINE: &str = "--for 60s --load idle";

/// Arguments of `kernel bisect`.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("test").required(true))]
#[command(after_help = "\
Examples:
  rtproof kernel bisect --source linux --good v6.12 --bad v6.13 --config out/build/.config \
--longest found
  rtproof kernel bisect --source linux --good v6.12 --bad HEAD --config small.config --cause irqs-off \
--prove='--for 3s --load cpu --threshold 50us' found
  rtproof kernel bisect --source linux --good-config a --bad-config b --longest=20000 found
  rtproof kernel bisect --source linux --good v6.12 --bad HEAD --config c found -- ./my-test
  rtproof kernel bisect --source linux --good v6.12 --bad HEAD --config my.config \
--trial-boots --reboot --verdict --prove='--for 5m --budget 100us' found

Each kernel is built in FOLDER/build and boots in an emulated machine whose time counts instructions; \
with --trial-boots it boots on this machine. Your tree is not written to. The same command goes on \
where it was cut off, and after a reboot. Exit code 0: found. 2: only candidates, because others could \
not be tested, or the answer was not reproduced. 3: a reboot comes next.")]
pub struct Args {
    /// Folder of everything; new, or that of a bisection which goes on
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Source: a git tree for commits; for configurations also a folder, a tarball or
    /// `distribution`
    #[arg(long, value_name = "PATH")]
    pub source: PathBuf,

    /// A commit, tag or branch that is good
    #[arg(long, value_name = "REV", requires_all = ["bad", "config"])]
    #[arg(required_unless_present = "good_config", conflicts_with = "good_config")]
    pub good: Option<String>,

    /// One that is bad
    #[arg(long, value_name = "REV", requires = "good", conflicts_with = "bad_config")]
    pub bad: Option<String>,

    /// Configuration of all commits, as `kernel config --for guest` makes one
    #[arg(long, value_name = "FILE", requires = "good")]
    pub config: Option<PathBuf>,

    /// A configuration that is good
    #[arg(long, value_name = "FILE", requires = "bad_config")]
    pub good_config: Option<PathBuf>,

    /// One that is bad: a smallest set of its options is looked for that makes the good one bad
    #[arg(long, value_name = "FILE", requires = "good_config")]
    pub bad_config: Option<PathBuf>,

    /// Bad: wake-ups have stretches of this cause, e.g. irqs-off
    #[arg(long, value_name = "NAME", group = "test")]
    pub cause: Option<String>,

    /// Bad only if there are more stretches than this
    #[arg(long, value_name = "COUNT", requires = "cause", default_value_t = 0)]
    pub above: u64,

    /// Bad: the longest way from due to run has more instructions than this; default: the middle of
    /// both ends
    #[arg(
        long,
        value_name = "INSTRUCTIONS",
        num_args = 0..=1,
        require_equals = true,
        group = "test"
    )]
    pub longest: Option<Option<u64>>,

    /// Let --longest be about the longest stretch of this cause
    #[arg(long, value_name = "CAUSE", requires = "longest")]
    pub stretch: Option<String>,

    /// Bad: this check has another status than at the good end
    #[arg(long, value_name = "ID", group = "test")]
    pub check: Option<String>,

    /// Bad: `rtproof prove` refuses; what it does not decide is skipped
    #[arg(long, group = "test", requires = "trial_boots")]
    pub verdict: bool,

    /// Arguments of `rtproof prove` in each kernel; default: `--for 5s --load idle`, with
    /// --trial-boots `--for 60s --load idle`
    #[arg(long, value_name = "ARGS", require_equals = true, allow_hyphen_values = true)]
    pub prove: Option<String>,

    /// Trial boots.
    #[command(flatten)]
    pub trial: TrialArgs,

    /// Take a program of this machine along, with its libraries: it is in /bin
    #[arg(long = "program", value_name = "PROGRAM", requires = "command")]
    pub programs: Vec<PathBuf>,

    /// Take a file along: it is in the command's working folder
    #[arg(long = "file", value_name = "FILE", requires = "command")]
    pub files: Vec<PathBuf>,

    /// The guests.
    #[command(flatten)]
    pub guest: GuestArgs,

    /// Commands that make runs at once; default: one for each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,

    /// How make runs.
    #[command(flatten)]
    pub make: MakeArgs,

    /// Bad: this program of this machine ends with 1 to 127 in the kernel; 0 is good, 125 skips
    #[arg(last = true, value_name = "COMMAND", group = "test")]
    pub command: Vec<String>,
}

/// Runs the command. 2: only candidates, or not reproduced. 3: a reboot comes next.
///
/// # Errors
/// The ends are not as stated, another bisection is in the folder, this machine lacks something.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(code) = super::again(args.make.user.as_deref())? {
        return Ok(code);
    }
    let criterion = criterion(args)?;
    let trial = args.trial.request(&args.guest.append)?;
    args.trial.consent(!bisect::state_file(&args.folder).exists())?;
    let is_new = !args.folder.exists();
    let place = rtproof_kernel::build_folder(&args.folder)?;
    let request = request(args, criterion, place, trial)?;
    let signals = Signals::catch(&Root::live())?;
    let mut shown = super::show_progress();
    let mut observer = |of: &WorkProgress| match signals.received() {
        Some(_) => ControlFlow::Break(()),
        None => shown(of),
    };
    let opened = bisect::open(&request, &mut observer);
    if opened.is_err() && is_new {
        // Nothing was begun where it is empty.
        let _ = std::fs::remove_dir(&request.place);
    }
    let mut bisection = opened?;
    let outcome = bisection.run();
    super::clear_progress();
    let text = TextOutput::new(args.make.json);
    let mut ended = Ok(());
    if let Some(trial) = &request.trial {
        if let Err(KernelError::Reboots(next)) = &outcome {
            return after_boot(&args.trial, trial, next, text);
        }
        // A machine that is shut down goes on when it is up again.
        if signals.received() != Some("SIGTERM") {
            ended = remove_unit(trial, &request.place);
        }
    }
    let bisected = outcome?;
    let page = request.place.join("bisect.html");
    write_whole(&page, |to| Ok(to.write_all(text_of::page(&bisected).as_bytes())?))?;
    text.print(|to| text_of::kernel_bisected(to, &bisected, &page.display().to_string()))?;
    text.print_json(&bisected)?;
    ended?;
    let is_sure = bisected.is_found && bisected.is_reproduced != Some(false);
    Ok(if is_sure { exit::ACCEPTED } else { exit::REFUSED })
}

/// What makes a kernel bad.
fn criterion(args: &Args) -> anyhow::Result<Criterion> {
    let cause = |name: &str| match CAUSES.iter().any(|cause| cause.id == name) {
        true => Ok(name.to_owned()),
        false => {
            let all: Vec<&str> = CAUSES.iter().map(|cause| cause.id).collect();
            Err(exit::usage(format!("no cause {name:?}; there are {}", all.join(", "))))
        }
    };
    if let Some(name) = &args.cause {
        return Ok(Criterion::Cause(cause(name)?, args.above));
    }
    if let Some(limit) = args.longest {
        return Ok(match &args.stretch {
            Some(name) => Criterion::Stretch(cause(name)?, limit),
            None => Criterion::Longest(limit),
        });
    }
    if let Some(id) = &args.check {
        if checks::by_id(id).is_none() {
            return Err(exit::usage(format!(
                "no check {id:?}; `rtproof check explain` lists them"
            )));
        }
        return Ok(Criterion::Check(id.clone()));
    }
    if args.verdict {
        return Ok(Criterion::Verdict);
    }
    Ok(Criterion::Command(args.command.clone()))
}

fn request(
    args: &Args,
    criterion: Criterion,
    place: PathBuf,
    trial: Option<TrialBoots>,
) -> anyhow::Result<BisectRequest> {
    let default = if trial.is_some() { ON_MACHINE } else { IN_GUEST };
    let prove = args.prove.clone().unwrap_or_else(|| default.to_owned());
    let range = match (&args.good, &args.bad, &args.config, &args.good_config, &args.bad_config) {
        (Some(good), Some(bad), Some(config), ..) => {
            BisectRange::Commits { good: good.clone(), bad: bad.clone(), config: config.clone() }
        }
        (.., Some(good), Some(bad)) => {
            BisectRange::Options { good: good.clone(), bad: bad.clone() }
        }
        _ => return Err(exit::usage("both ends are needed".to_owned())),
    };
    let step = match &criterion {
        Criterion::Command(words) => ("command".to_owned(), words.clone()),
        _ => build::proof(&prove)?,
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(BisectRequest {
        source: args.source.clone(),
        boot: BootRequest {
            programs: args.programs.clone(),
            files: args.files.clone(),
            ..args.guest.counted(step)
        },
        place,
        range,
        criterion,
        prove,
        trial,
        variables: args.make.variables.clone(),
        jobs: args.jobs.map_or(cpus, usize::from),
    })
}

// Bisection over trial boots: the machine's own entry is not touched, and with --reboot a unit
// goes on after each boot.

/// Title of the journal of the unit; not that of the boot entry, which comes and goes.
const TITLE: &str = "resume kernel bisect";

/// The machine has settled so long after its start.
const SETTLE: Duration = Duration::from_secs(60);

/// Arguments about trial boots.
#[derive(Clone, Debug, clap::Args)]
pub struct TrialArgs {
    /// Boot each kernel on this machine, once, as `tune trial --kernel` does, and test it there
    #[arg(long, conflicts_with_all = ["user", "memory", "binary", "programs", "files", "longest"])]
    pub trial_boots: bool,

    /// Initial RAM disk of the kernels: a file, or none; default: made by the distribution's
    /// program
    #[arg(long, value_name = "FILE|none", requires = "trial_boots")]
    pub initrd: Option<PathBuf>,

    /// Reboot at once, and let a unit go on after each boot
    #[arg(long, requires = "trial_boots", conflicts_with = "root")]
    pub reboot: bool,

    /// Do not ask
    #[arg(short, long, requires = "trial_boots")]
    pub yes: bool,

    /// Which machine.
    #[command(flatten)]
    pub at: RootArgs,
}

impl TrialArgs {
    /// What they ask for.
    ///
    /// # Errors
    /// Usage: a folder that is no machine.
    fn request(&self, append: &str) -> anyhow::Result<Option<TrialBoots>> {
        if !self.trial_boots {
            return match self.at.root {
                Some(_) => Err(exit::usage("--root belongs to --trial-boots")),
                None => Ok(None),
            };
        }
        let root = open_root(self.at.root.as_deref())?;
        if self.reboot {
            // A unit starts it at each boot.
            making::program_path(&root)?;
        }
        let settle = if root.is_live() { SETTLE } else { Duration::ZERO };
        let words = cmdline::split(append).into_iter().map(|token| token.text).collect();
        Ok(Some(TrialBoots {
            root,
            initrd: InitrdChoice::of(self.initrd.as_deref()),
            words,
            settle,
        }))
    }

    /// Asks before the machine boots an untested kernel.
    ///
    /// # Errors
    /// The user declines.
    fn consent(&self, is_new: bool) -> anyhow::Result<()> {
        let question = "build kernels and boot each once on this machine, two reboots a kernel?";
        if !self.trial_boots || self.yes || !is_new || crate::consent(question)? {
            return Ok(());
        }
        anyhow::bail!("nothing was changed")
    }
}

/// What comes after the next boot; reboots, where that was asked for.
///
/// # Errors
/// The unit cannot be put in place, the reboot fails.
fn after_boot(
    args: &TrialArgs,
    trial: &TrialBoots,
    next: &KernelBisectNext,
    text: TextOutput,
) -> anyhow::Result<u8> {
    if args.reboot {
        put_unit(&Machine::new(&trial.root, &LiveTasks)?, &next.folder)?;
    }
    text.print(|to| text_of::next_step(to, next, args.reboot))?;
    text.print_json(next)?;
    if args.reboot {
        reboot(&trial.root, next.reboot.as_deref())?;
    }
    Ok(exit::NOT_PROVEN)
}

/// The unit that runs this command after each boot, unless it is there.
fn put_unit(machine: &Machine<'_>, place: &str) -> anyhow::Result<()> {
    let title = title(place);
    match tune::in_force(machine, TITLE)?.first() {
        Some(in_force) if *in_force == title => return Ok(()),
        Some(other) => anyhow::bail!(
            "{}: this bisection has the unit that goes on after a boot; give it up first, with \
             rtproof tune undo --all",
            other.strip_prefix(TITLE).unwrap_or(other).trim()
        ),
        None => {}
    }
    let exe = making::program_path(machine.root())?;
    let words: Option<Vec<String>> =
        std::env::args_os().skip(1).map(|word| word.into_string().ok()).collect();
    let words = words.context("an argument is no UTF-8, which a unit cannot hold")?;
    let folder = std::env::current_dir().context("the working directory")?;
    let folder = folder.to_str().context("the working directory is no UTF-8")?;
    let changes: Vec<Change> = units::bisect_changes(
        &exe,
        &words,
        folder,
        &bisect::state_file(Path::new(place)).display().to_string(),
    );
    let items: Vec<Item> =
        changes.into_iter().map(|change| Item { change, checks: Vec::new() }).collect();
    let mut journal = Journal::begin(machine, title, &items)?;
    apply(machine, &mut journal, &items, ApplyOptions { keep_going: false }, &mut |_| {})?;
    Ok(())
}

/// Takes the unit away: nothing goes on by itself any more.
///
/// # Errors
/// It cannot be taken away.
fn remove_unit(trial: &TrialBoots, place: &Path) -> anyhow::Result<()> {
    let machine = Machine::new(&trial.root, &LiveTasks)?;
    let title = title(&place.display().to_string());
    match tune::in_force(&machine, TITLE)?.contains(&title) {
        true => tune::undo(&machine, &title),
        false => Ok(()),
    }
}

fn title(place: &str) -> String {
    format!("{TITLE} {place}")
}
