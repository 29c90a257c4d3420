//! `rtproof tune`: plan changes, apply and undo them, try them at the next boot. To add a command:
//! its arguments and function in a file here, and a row of [`TuneCommand`].

pub mod apply;
pub mod persist;
pub mod plan;
pub mod trial;
pub mod undo;

use std::path::PathBuf;

use rtproof_host::{
    Facts, Root,
    tune::{Change, Journal, JournalSummary, Machine},
};
use rtproof_judge::{
    Intent,
    plan::{PlanLevel, Selection},
    report,
    verify::WordEffect,
};
use rtproof_measure::LiveTasks;
use rtproof_results::tune::{EntryKernel, StandingChange, VERIFIED_SCHEMA, VerifiedDocument};
use rtproof_run::{
    intent::IntentOptions,
    parse,
    tune::{
        self, boot,
        watch::{self, DriftEvent},
    },
};

use crate::exit::TextOutput;
use crate::next::GivenOptions;
use crate::{IntentArgs, exit, open_root};

/// Arguments of `tune`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A session:
  rtproof tune plan --cpus 2-3
  rtproof tune apply --cpus 2-3 --confirm 60s
  rtproof tune confirm
  rtproof tune trial --cpus 2-3 --reboot
  rtproof tune verify && rtproof tune confirm
  rtproof tune status
  rtproof tune undo --all

Nothing is changed but by apply, undo, trial and confirm. What was there is written to a journal in
/var/lib/rtproof/tune before anything new is, so that undo works after a kill or a power cut, too.")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: TuneCommand,
}

commands! {
    TuneCommand:

    /// Show what would be changed, and why; changes nothing
    Plan(plan::Args, plan::run),
    /// Make the changes of the plan that take effect at once
    Apply(apply::Args, apply::run),
    /// Undo what was applied
    Undo(undo::Args, undo::run),
    /// Show what is applied, what has changed since, which journals are open
    Status(StatusArgs, run_status),
    /// Make a boot entry with the plan's kernel parameters, or another kernel, and boot it once
    Trial(trial::Args, trial::run),
    /// After a boot: show what became of each parameter and of each change
    Verify(VerifyArgs, run_verify),
    /// Keep what is on trial: the boot entry, and changes applied with --confirm
    Confirm(undo::ConfirmArgs, undo::run_confirm),
    /// Repeat at each boot what is applied now: /etc/rtproof.toml and rtproof.service
    Persist(persist::Args, persist::run),
    /// Write the plan for those who manage machines otherwise: tuned, Ansible, systemd, kernel
    /// configuration, Yocto, Buildroot
    Export(plan::TuneExportArgs, plan::run_export),
    /// Hold a limit on the exit latency of the idle states until stopped
    Hold(undo::HoldArgs, undo::run_hold),
    /// Not for users: undo changes that were not confirmed in time
    #[command(hide = true)]
    Guard(undo::GuardArgs, undo::run_guard),
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    args.command.run()
}

/// Numbers of the journals that are open as far as they can be read, ascending; a damaged one may
/// be.
///
/// # Errors
/// They cannot be listed.
fn not_closed(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    Ok(open_of(&Journal::list(machine)?))
}

/// Numbers of the journals that have something to undo, ascending.
///
/// # Errors
/// They cannot be read, or one of them is damaged.
pub(crate) fn open_journals(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    let list = Journal::list(machine)?;
    match list.iter().find_map(|journal| journal.problem.clone()) {
        Some(problem) => anyhow::bail!(problem),
        None => Ok(open_of(&list)),
    }
}

fn open_of(list: &[JournalSummary]) -> Vec<u32> {
    list.iter().filter(|journal| !journal.closed).map(|journal| journal.number).collect()
}

// What `tune plan`, `apply` and `trial` request: the same options as `check`, and which findings a
// plan is made for.

/// Which machine.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct RootArgs {
    /// Work on the machine in a folder that holds its /proc, /sys, /etc, /boot and /var
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// [`PlanLevel`], on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LevelArg {
    /// What is bad
    Safe,
    /// And what keeps the rest of the machine away from the CPUs of --cpus
    #[default]
    Standard,
    /// And what is doubtful: whether it helps depends on what the machine does
    Max,
}

impl LevelArg {
    pub const fn level(self) -> PlanLevel {
        match self {
            Self::Safe => PlanLevel::Safe,
            Self::Standard => PlanLevel::Standard,
            Self::Max => PlanLevel::Max,
        }
    }
}

/// What the machine is for.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct RequestArgs {
    /// Profile and checks left out.
    #[command(flatten)]
    pub intent: IntentArgs,

    /// Real-time CPUs; default: those that the machine keeps free, else a proposal
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Real-time priority of the application (SCHED_FIFO); default: 80
    #[arg(long, value_name = "N", value_parser = parse::priority)]
    pub priority: Option<u32>,

    /// Period of its loop; default: 1ms
    #[arg(long = "period", value_name = "TIME", value_parser = parse::period)]
    pub period_ns: Option<u64>,

    /// Latency budget of the application
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// User that the application runs as, for the checks of its rights (limits-rtprio,
    /// limits-memlock); default: who asks through sudo
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Include what can do harm: less security, less notice of broken hardware. Checks named
    /// explicitly are always included
    #[arg(long)]
    pub risky: bool,

    /// How much to change: safe (bad findings), standard (also what keeps the rest of the machine
    /// away from the real-time CPUs, where others are left), max (also doubtful findings). Whether
    /// doubtful ones help depends on what the machine does. Checks named explicitly are
    /// always included
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub level: LevelArg,

    /// Include files and boot parameters that make permanent what a change does until the next boot
    #[arg(long)]
    pub durable: bool,
}

impl RequestArgs {
    /// The request as it is written on the command line: the title of a journal.
    pub fn title(&self, command: &str, ids: &[String]) -> String {
        let mut title = format!("{command}{}", self.given().options());
        match self.level {
            LevelArg::Safe => title += " --level safe",
            LevelArg::Standard => {}
            LevelArg::Max => title += " --level max",
        }
        let switches = [("--risky", self.risky), ("--durable", self.durable)];
        for (name, _) in switches.into_iter().filter(|&(_, is_on)| is_on) {
            title += &format!(" {name}");
        }
        for id in ids {
            title += &format!(" {id}");
        }
        title
    }

    /// What the machine is for, as it was given.
    pub(crate) fn given(&self) -> GivenOptions<'_> {
        GivenOptions {
            intent: &self.intent,
            cpus: self.cpus.as_deref(),
            priority: self.priority,
            period_ns: self.period_ns,
            budget_ns: self.budget_ns,
            user: self.user.as_deref(),
        }
    }

    /// The intent: from the command line, else the profile's file, else the machine.
    ///
    /// # Errors
    /// Usage: a profile, checks or CPUs that are not there; no name of a user.
    pub fn intent(&self, root: &Root, facts: &Facts) -> anyhow::Result<Intent> {
        let stated = IntentOptions {
            cpus: self.cpus.clone(),
            priority: self.priority,
            period_ns: self.period_ns,
            budget_ns: self.budget_ns,
            ..IntentOptions::default()
        };
        let user = rtproof_run::intent::user(root, self.user.as_deref())?;
        let intent = self.intent.requested().resolve()?.intent(stated, facts)?;
        Ok(Intent { user, ..intent })
    }
}

/// Whether a change installs packages.
const fn installs(change: &Change) -> bool {
    matches!(change, Change::Package { .. })
}

/// Checks and sections named, each of which is there.
///
/// # Errors
/// Usage: one that is not, with names like it.
pub(crate) fn named_checks(ids: &[String]) -> anyhow::Result<Vec<String>> {
    let words = ids.iter().flat_map(|ids| ids.split(',')).map(str::trim);
    let words: Vec<String> = words.filter(|id| !id.is_empty()).map(str::to_owned).collect();
    let selection = Selection { ids: words, ..Selection::default() };
    match selection.unknown().next() {
        None => Ok(selection.ids.clone()),
        Some(id) => {
            let why = rtproof_run::intent::known(id).err().unwrap_or_default();
            Err(exit::usage(format!("{id}: {why}")))
        }
    }
}

// `rtproof tune status`: what is applied now, and whether it is still as it was applied.

/// Arguments of `tune status`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune status
  rtproof tune status --json
  rtproof tune status --watch --every 30s

Exit codes: 0 everything applied is as it was applied, or nothing is; 2 something has changed since;
3 something cannot be read, or is applied and its journal is missing.")]
pub struct StatusArgs {
    /// Look at the machine in a folder that holds its /proc, /sys, /etc, /boot and /var
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Go on looking, and print a line when something is no longer as it was applied, with who may
    /// have changed it; with --json a line of JSON
    #[arg(long)]
    pub watch: bool,

    /// Time between two looks at values, which do not tell when they change; default: 10s
    #[arg(long = "every", value_name = "TIME", value_parser = watch::every, requires = "watch")]
    pub every_ns: Option<u64>,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A root that is no machine; journals that cannot be read.
pub fn run_status(args: &StatusArgs) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    if args.watch {
        return watch(&root, args.every_ns.unwrap_or(watch::EVERY_NS), args.json);
    }
    let machine = Machine::for_reading(&root, &LiveTasks);
    let status = tune::status(&machine)?;
    let text = TextOutput::new(args.json);
    let answer = crate::answers::tune::status(&status, args.root.as_deref());
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::page::status(to, &status)?;
        rtproof_render::page::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&status))?;
    let changes = || status.journals.iter().flat_map(|journal| &journal.changes);
    // Changes lost by the reboot are expected: the journal is of an earlier boot.
    Ok(match () {
        () if changes().any(StandingChange::is_changed) => exit::REFUSED,
        () if changes().any(StandingChange::is_unknown) || !status.unusable.is_empty() => {
            exit::NOT_PROVEN
        }
        () => exit::ACCEPTED,
    })
}

/// A line each, at once.
fn watch(root: &Root, every_ns: u64, json: bool) -> anyhow::Result<u8> {
    let mut report = |event: &DriftEvent<'_>| match event {
        DriftEvent::Drifts(drifts) => watch::write(&mut anstream::stdout().lock(), drifts, json),
        DriftEvent::Begun(watched, off) => {
            let seconds = every_ns / 1_000_000_000;
            crate::stderr_line(&format!(
                "{watched} changes watched, {off} not as applied; looking every {seconds} s and \
                 when devices come or go; Ctrl-C ends"
            ))
        }
    };
    Ok(exit::of(watch::run(root, every_ns, &mut report)?))
}

// `rtproof tune verify`: after a boot, what became of each parameter that was asked for, and
// whether each change of the running kernel is as it was applied.

/// Arguments of `tune verify`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune verify
  rtproof tune verify isolcpus=2-3 nohz_full=2-3
  rtproof tune verify --json

Exit codes: 0 everything is as requested, 2 something is not, 3 something is unknown. A parameter
whose effect the kernel does not show counts as requested: it is on the command line, and the kernel
did not reject it.")]
pub struct VerifyArgs {
    /// Parameters to look for; default: those of the boot entry that rtproof made
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,

    /// Look at a captured machine: a folder that holds its /proc, /sys, /etc, /boot and /var, or a
    /// file of `rtproof capture`, which holds no journals and needs WORDs
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A root that is no machine; journals that cannot be read. Usage: a capture, and no words.
pub fn run_verify(args: &VerifyArgs) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    let machine = Machine::for_reading(&root, &LiveTasks);
    let facts = Facts::read(&root);
    let asked = match args.words.as_slice() {
        [] if root.is_capture() => {
            return Err(exit::usage(
                "a capture holds neither journals nor the boot entry of rtproof: name the \
                 parameters to look for, e.g. isolcpus=2-3",
            ));
        }
        [] => boot::requested_words(&root)?,
        words => words.iter().map(|word| boot::word(word)).collect::<Result<_, _>>()?,
    };
    let kernel = match args.words.is_empty() {
        true => boot::kernel(&root, &rtproof_host::boot::detect(&root)?)?,
        false => None,
    };
    let document = VerifiedDocument {
        schema: VERIFIED_SCHEMA,
        machine: report::MachineSummary::of(&facts),
        kernel,
        parameters: boot::verified(&root, &facts, &asked),
        changes: if root.is_capture() { Vec::new() } else { tune::of_open(&machine)? },
    };
    let text = TextOutput::new(args.json);
    let boot = match args.words.is_empty() {
        true => tune::status(&machine)?.boot,
        false => None,
    };
    let answer = crate::answers::tune::verified(&document, boot.as_ref(), args.root.as_deref());
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::page::verified(to, &document)?;
        rtproof_render::page::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&document))?;
    Ok(code(&document))
}

fn code(document: &VerifiedDocument) -> u8 {
    let effects = || document.parameters.iter().map(|it| it.effect);
    let runs = document.kernel.as_ref().map(EntryKernel::is_running);
    if runs == Some(Some(false))
        || effects().any(WordEffect::is_bad)
        || document.changes.iter().any(StandingChange::is_bad)
    {
        exit::REFUSED
    } else if runs == Some(None)
        || effects().any(|it| it == WordEffect::CannotTell)
        || document.changes.iter().any(StandingChange::is_unknown)
    {
        exit::NOT_PROVEN
    } else {
        exit::ACCEPTED
    }
}
