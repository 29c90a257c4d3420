//! Bisection over trial boots: the machine's own entry is not touched, and with --reboot a unit
//! goes on after each boot.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use rtproof_host::{
    boot::cmdline,
    tune::{Change, Item, Journal, Machine, Options, apply},
};
use rtproof_judge::plan::units;
use rtproof_measure::LiveTasks;
use rtproof_report::text::kernel_bisect as text_of;
use rtproof_results::kernel::bisect::KernelBisectNext;
use rtproof_run::{
    bisect::{self, TrialBoots},
    tune::{kernel::InitrdChoice, once, place},
};

use crate::{
    ask,
    commands::tune::{request::RootArgs, trial::reboot},
    exit,
    print::Text,
    root::open_root,
};

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
    pub(super) fn request(&self, append: &str) -> anyhow::Result<Option<TrialBoots>> {
        if !self.trial_boots {
            return match self.at.root {
                Some(_) => Err(exit::usage("--root belongs to --trial-boots")),
                None => Ok(None),
            };
        }
        let root = open_root(self.at.root.as_deref())?;
        if self.reboot {
            // A unit starts it at each boot.
            place::of(&root)?;
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

    /// Asks before the machine boots a kernel that nobody has booted.
    ///
    /// # Errors
    /// The user declines.
    pub(super) fn consent(&self, is_new: bool) -> anyhow::Result<()> {
        let question = "build kernels and boot each once on this machine, two reboots a kernel?";
        if !self.trial_boots || self.yes || !is_new || ask::consent(question)? {
            return Ok(());
        }
        anyhow::bail!("nothing was changed")
    }
}

/// What comes after the next boot; reboots, where that was asked for.
///
/// # Errors
/// The unit cannot be put in place, the reboot fails.
pub(super) fn next(
    args: &TrialArgs,
    trial: &TrialBoots,
    next: &KernelBisectNext,
    text: Text,
) -> anyhow::Result<u8> {
    if args.reboot {
        put_unit(&Machine::new(&trial.root, &LiveTasks)?, &next.folder)?;
    }
    text.print(|to| text_of::next(to, next, args.reboot))?;
    text.print_json(next)?;
    if args.reboot {
        reboot(&trial.root, next.reboot.as_deref())?;
    }
    Ok(exit::NOT_PROVEN)
}

/// The unit that runs this command after each boot, unless it is there.
fn put_unit(machine: &Machine<'_>, place: &str) -> anyhow::Result<()> {
    let title = title(place);
    match once::standing(machine, TITLE)?.first() {
        Some(standing) if *standing == title => return Ok(()),
        Some(other) => anyhow::bail!(
            "{}: this bisection has the unit that goes on after a boot; give it up first, with \
             rtproof tune undo --all",
            other.strip_prefix(TITLE).unwrap_or(other).trim()
        ),
        None => {}
    }
    let exe = place::of(machine.root())?;
    let words: Option<Vec<String>> =
        std::env::args_os().skip(1).map(|word| word.into_string().ok()).collect();
    let words = words.context("an argument is no UTF-8, which a unit cannot hold")?;
    let folder = std::env::current_dir().context("the working directory")?;
    let folder = folder.to_str().context("the working directory is no UTF-8")?;
    let changes: Vec<Change> = units::bisect_changes(
        &exe,
        &words,
        folder,
        &bisect::state(Path::new(place)).display().to_string(),
    );
    let items: Vec<Item> =
        changes.into_iter().map(|change| Item { change, checks: Vec::new() }).collect();
    let mut journal = Journal::begin(machine, title, &items)?;
    apply(machine, &mut journal, &items, Options { keep_going: false }, &mut |_| {})?;
    Ok(())
}

/// Takes the unit away: nothing goes on by itself any more.
///
/// # Errors
/// It cannot be taken away.
pub(super) fn end(trial: &TrialBoots, place: &Path) -> anyhow::Result<()> {
    let machine = Machine::new(&trial.root, &LiveTasks)?;
    let title = title(&place.display().to_string());
    match once::standing(&machine, TITLE)?.contains(&title) {
        true => once::undo(&machine, &title),
        false => Ok(()),
    }
}

fn title(place: &str) -> String {
    format!("{TITLE} {place}")
}
