//! `rtproof tune undo`: undoes what was applied, in reverse. What something else has changed since
//! is left alone and reported.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    Facts, Root,
    boot::{self, OwnEntryState},
    idle, task,
    tune::{
        Journal, JournalError, Machine, Outcome, State, UndoError,
        staging::{self, Confirmation},
    },
};
use rtproof_judge::plan::units;
use rtproof_measure::LiveTasks;
use rtproof_results::{
    Ended,
    tune::{EntryKernel, UNDONE, Undone, Unusable},
};
use rtproof_run::tune::{
    boot as entry, limit_us,
    making::{self, ARMED},
    until_ended,
};

use super::trial::all_or_none;
use crate::answers::tune;
use crate::exit::TextOutput;
use crate::show::{ApplyProgress, manager_line};
use crate::{exit, next, open_root};

/// Arguments of `tune undo`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune undo
  rtproof tune undo --all
  rtproof tune undo --journal 3
  rtproof tune undo --journal /root/0003.journal

Exit codes: 0 all is undone. 1 something could not be restored: it stays in the journal, and undo can
be run again. 2 something was left alone: another program changed it since, or a journal is damaged
or of another machine. 3 something is applied, and its journal is missing.")]
pub struct Args {
    /// Journal to undo: its number, or a file (a copy will do); default: the newest open one
    #[arg(long, value_name = "FILE|NUMBER", conflicts_with = "all")]
    pub journal: Option<String>,

    /// Undo every open journal, the newest first
    #[arg(long)]
    pub all: bool,

    /// Undo what was set from this file: what `systemctl stop rtproof.service` does
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "journal"])]
    pub from: Option<PathBuf>,

    /// Undo what can be verified of a damaged journal, and put it aside
    #[arg(long, requires = "journal")]
    pub damaged: bool,

    /// Undo a journal that another user owns or can write, after a look at what it would write
    #[arg(long, requires = "journal")]
    pub accept_owner: bool,

    /// Do not ask
    #[arg(short, long, requires = "accept_owner")]
    pub yes: bool,

    /// Which machine.
    #[command(flatten)]
    pub at: super::RootArgs,

    /// Print what was done as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed; a journal that is not there, damaged, or another machine's.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.at.root.as_deref())?;
    let mut machine = Machine::to_undo(&root, &LiveTasks)?.showing(&manager_line);
    if let Some(path) = &args.from {
        return super::persist::undo(&machine, path, TextOutput::new(args.json));
    }
    if args.accept_owner {
        machine = machine.obeying_others();
    }
    if args.damaged {
        machine = machine.taking_damaged();
    }
    let mut undone = Undone {
        schema: UNDONE,
        journals: Vec::new(),
        unusable: Vec::new(),
        still_open: Vec::new(),
    };
    let text = TextOutput::new(args.json);
    let ended = undo_requested(&machine, args, &mut undone);
    // Changes undone before an error are reported nevertheless.
    if ended.is_ok() || !undone.journals.is_empty() {
        undone.still_open = super::not_closed(&machine)?;
        undone.still_open.retain(|open| !undone.unusable.iter().any(|it| it.journal == *open));
        let answer = tune::undone(&undone, args.at.root.as_deref());
        text.print(|to| {
            rtproof_render::page::answer_text(to, &answer)?;
            rtproof_render::page::undone(to, &undone)?;
            rtproof_render::page::answer_again(to, &answer)
        })?;
        text.print_json(&answer.with(&undone))?;
    }
    // Kernel files staged by a killed trial.
    machine.sweep_staging()?;
    making::sweep_marks(&machine)?;
    ended?;
    let ended = making::undo_ended(&undone.journals);
    Ok(match ended {
        Ended::Done if undone.unusable.iter().any(|it| !it.missing) => exit::REFUSED,
        Ended::Done if !undone.unusable.is_empty() => exit::NOT_PROVEN,
        ended => exit::of(ended),
    })
}

/// Undoes what was requested, the newest first. What cannot be used does not keep the others from
/// being undone.
fn undo_requested(machine: &Machine<'_>, args: &Args, undone: &mut Undone) -> anyhow::Result<()> {
    if let Some(name) = &args.journal {
        let mut journal = match named(machine, name) {
            Ok(journal) => journal,
            Err(
                error @ (JournalError::Corrupt { .. }
                | JournalError::Foreign { .. }
                | JournalError::Lost(_)),
            ) => {
                let missing = matches!(error, JournalError::Lost(_));
                let (journal, why) = (name.parse().unwrap_or(0), error.to_string());
                undone.unusable.push(Unusable { journal, why, missing });
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        making::refuse_older(machine, &journal)?;
        if args.accept_owner {
            show_undo(&journal)?;
            let question = "write this?";
            anyhow::ensure!(args.yes || crate::consent(question)?, "nothing was undone");
        }
        let done = making::take_back(machine, &mut journal, &mut ApplyProgress::new())?;
        let is_all = making::undo_ended(std::slice::from_ref(&done)) == Ended::Done;
        undone.journals.push(done);
        if journal.is_damaged() && is_all {
            journal.put_aside(machine)?;
        }
        return Ok(());
    }
    let mut left = if args.all { usize::MAX } else { 1 };
    for summary in Journal::list(machine)?.into_iter().rev().filter(|summary| !summary.closed) {
        if left == 0 {
            break;
        }
        let number = summary.number;
        let undo = || {
            let mut journal = Journal::open_number(machine, number)?;
            making::refuse_older(machine, &journal)?;
            making::take_back(machine, &mut journal, &mut ApplyProgress::new())
        };
        match summary.problem {
            Some(why) => {
                let missing = summary.is_missing;
                undone.unusable.push(Unusable { journal: number, why, missing });
            }
            None => {
                undone.journals.push(undo()?);
                left -= 1;
            }
        }
    }
    Ok(())
}

/// A journal by its number, or a file of it.
fn named(machine: &Machine<'_>, name: &str) -> Result<Journal, JournalError> {
    match name.parse() {
        Ok(number) => Journal::open_number(machine, number),
        Err(_) => Journal::open(machine, Some(Path::new(name))),
    }
}

/// Shows what an undo would write: on stderr, for whoever is asked.
fn show_undo(journal: &Journal) -> anyhow::Result<()> {
    for entry in journal.entries().iter().rev().filter(|entry| !entry.is_settled()) {
        let Some(before) = &entry.before else { continue };
        let change = &entry.item.change;
        let owner = match before {
            State::File { uid, gid, mode, .. } => format!(" (mode {mode:04o}, owner {uid}:{gid})"),
            _ => String::new(),
        };
        let (target, old) = (change.target(), change.before(before));
        crate::stderr_line(&format!("{target}: {} → {old}{owner}", change.after()))?;
    }
    Ok(())
}

// `rtproof tune confirm`: what was on trial stays. The boot entry becomes the default once the
// running boot has every word of it; changes applied with --confirm are no longer undone.

const SCHEMA: &str = "rtproof/tune-confirmed/1";

/// Arguments of `tune confirm`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune confirm
  rtproof tune verify && rtproof tune confirm")]
pub struct ConfirmArgs {
    /// Make the entry the default though the running boot lacks words of it, or has another kernel
    #[arg(long)]
    pub force: bool,

    /// Which machine.
    #[command(flatten)]
    pub at: super::RootArgs,

    /// Print what was kept as JSON
    #[arg(long)]
    pub json: bool,
}

/// What `tune confirm --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Confirmed {
    /// Version of this form: `rtproof/tune-confirmed/1`.
    pub schema: &'static str,
    /// Journals whose changes are kept.
    pub journals: Vec<u32>,
    /// Whether the boot entry was made the default.
    pub boot_entry: bool,
}

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed; nothing that waits for a confirmation; time that was up; a
/// running boot that is not the trial.
pub fn run_confirm(args: &ConfirmArgs) -> anyhow::Result<u8> {
    let root = open_root(args.at.root.as_deref())?;
    let machine = Machine::new(&root, &LiveTasks)?;
    let text = TextOutput::new(args.json);
    let mut journals = Vec::new();
    // One that is damaged does not keep another from being confirmed.
    for number in super::not_closed(&machine)? {
        if staging::confirmation_of(&root, number) == Some(Confirmation::Expired) {
            anyhow::bail!("journal {number}: its time was up; it is being taken back");
        }
        if staging::confirm(&machine, number)? {
            making::dismiss(&root, number);
            journals.push(number);
            text.print(|to| writeln!(to, "journal {number}: kept"))?;
        }
    }
    let boot_entry = match entry_is_confirmed(args, &machine, text) {
        // Only journals may be confirmed: an entry that is not booted yet stays.
        Err(error) if !journals.is_empty() && !args.force => {
            crate::stderr_line(&format!("the boot entry is not confirmed: {error:#}"))?;
            false
        }
        confirmed => confirmed?,
    };
    anyhow::ensure!(
        boot_entry || !journals.is_empty(),
        "nothing waits for a confirmation; rtproof tune status tells what is applied"
    );
    text.print_json(&Confirmed { schema: SCHEMA, journals, boot_entry })?;
    Ok(exit::ACCEPTED)
}

/// Makes the entry the default; `false`: there is none, or it is the default already.
fn entry_is_confirmed(
    args: &ConfirmArgs,
    machine: &Machine<'_>,
    text: TextOutput,
) -> anyhow::Result<bool> {
    let root = machine.root();
    let loader = boot::detect(root)?;
    if matches!(loader.entry_state(root)?, OwnEntryState::Absent | OwnEntryState::Default) {
        return Ok(false);
    }
    let verified = entry::verified(root, &Facts::read(root), &entry::requested_words(root)?);
    text.print(|to| rtproof_render::page::parameters(to, &verified))?;
    let missing = entry::missing(&verified);
    anyhow::ensure!(
        missing.is_empty() || args.force,
        "this boot is not the trial: its command line lacks {}; boot the entry first (rtproof tune \
         trial --reboot), or give --force",
        missing.join(" ")
    );
    let kernel = entry::kernel(root, &loader)?;
    let other = kernel.as_ref().filter(|it| it.is_running() == Some(false));
    anyhow::ensure!(
        other.is_none() || args.force,
        "this boot is not the trial: the entry's kernel is {}; boot the entry first (rtproof tune \
         trial --kernel ... --reboot), or give --force",
        other.map_or_else(String::new, EntryKernel::text)
    );
    // First of all: whatever fails after it, the watch does not reboot the machine.
    let mut changes = match root.exists(&format!("{}/{}", units::FOLDER, units::TRIAL_TIMER)) {
        true => units::trial_ended(),
        false => Vec::new(),
    };
    changes.extend(loader.confirm(root)?);
    let applied = all_or_none(machine, "tune confirm".into(), changes.iter())?;
    text.print(|to| {
        rtproof_render::page::applied(to, &applied, &next::root(args.at.root.as_deref()))?;
        writeln!(to, "the entry is the default of {} from now on", loader.name)
    })?;
    Ok(true)
}

// `rtproof tune guard`: not for users. Undoes what was not confirmed; started by
// `tune apply --confirm` or by its timer; or what `rtproof run` changed, when it was killed.

/// Arguments of `tune guard`.
#[derive(Clone, Debug, clap::Args)]
pub struct GuardArgs {
    /// Number of the journal
    #[arg(long, value_name = "N")]
    pub journal: u32,

    /// Wait so long for a confirmation; without, time is up
    #[arg(long, value_name = "MS")]
    pub after_ms: Option<u64>,

    /// Wait until stdin ends, and then for the program that it named
    #[arg(long, conflicts_with = "after_ms")]
    pub program: bool,

    /// Hold this limit meanwhile
    #[arg(long, value_name = "US", requires = "program")]
    pub dma_latency_us: Option<u32>,

    /// Folder of the machine
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Time between two looks at the confirmation and at the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time between two tries to put back what could not be.
const AGAIN: Duration = Duration::from_millis(200);

/// Runs the command.
///
/// # Errors
/// It cannot begin to wait. From then on it ends when everything is as it was, or was confirmed,
/// and not before.
pub fn run_guard(args: &GuardArgs) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    // Whether it lives is asked by this lock.
    let _lock = staging::guard(&root, args.journal);
    if let Some(after) = args.after_ms.map(Duration::from_millis) {
        let until = Instant::now() + after;
        leave_terminal()?;
        while Instant::now() < until && !is_settled(&root, args.journal) {
            thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
    }
    if args.program {
        let held = args.dma_latency_us.map(|us| idle::hold(&root, us));
        leave_terminal()?;
        wait_for_program(&root, args.journal);
        drop(held);
    }
    let is_there = || args.root.as_deref().is_none_or(Path::exists);
    while !is_settled(&root, args.journal) && is_there() {
        // A journal that is locked or cannot be read, a value that cannot be written: later.
        match undo_all(&root, args.journal) {
            Ok(true) => break,
            Ok(false) | Err(_) => thread::sleep(AGAIN),
        }
    }
    Ok(exit::ACCEPTED)
}

/// Waits until whoever started the program is gone, and then, where that did not see it end, for
/// the program itself: `PID TICKS` is the line that names it. What is left in its control group
/// and the groups below, which a third word names, is waited for, too.
fn wait_for_program(root: &Root, journal: u32) {
    let mut input = String::new();
    // An error says as much as the end.
    let _ = std::io::stdin().read_to_string(&mut input);
    let mut words = input.lines().last().unwrap_or_default().split_whitespace();
    let (Some(pid), Some(ticks)) = (words.next(), words.next()) else { return };
    let (Ok(pid), Ok(ticks)) = (pid.parse(), ticks.parse()) else { return };
    let group = words.next();
    let is_left = || group.is_some_and(|group| !task::in_group(root, group).is_empty());
    while !is_settled(root, journal) && (task::is_running(&Root::live(), pid, ticks) || is_left()) {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Away from the terminal and the session that started it, and says so.
fn leave_terminal() -> anyhow::Result<()> {
    // It leads no group yet: it was started without one of its own.
    rustix::process::setsid()?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{ARMED}")?;
    stdout.flush()?;
    // A reader of the output must not wait for the rollback timer.
    #[expect(clippy::disallowed_methods, reason = "a device of every system")]
    let null = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(null)?)
}

/// Whether nothing is left to undo: confirmed, or undone. A mark that is missing, with a journal
/// that is open or cannot be read, says neither.
fn is_settled(root: &Root, number: u32) -> bool {
    match staging::confirmation_of(root, number) {
        Some(Confirmation::Confirmed) => true,
        Some(Confirmation::Pending | Confirmation::Expired) => false,
        Some(Confirmation::Running) | None => Machine::to_undo(root, &LiveTasks)
            .ok()
            .and_then(|machine| Journal::open_number(&machine, number).ok())
            .is_some_and(|journal| journal.is_closed()),
    }
}

/// Undoes everything; `false`: a value could not be put back. A mark that cannot be written is no
/// reason to wait.
fn undo_all(root: &Root, number: u32) -> anyhow::Result<bool> {
    let machine = Machine::to_undo(root, &LiveTasks)?;
    let mut journal = Journal::open_number(&machine, number)?;
    if staging::is_of_program(root, number) {
        // What a newer journal has changed since is put back first.
        making::refuse_older(&machine, &journal)?;
    }
    if matches!(staging::expire(&machine, number), Ok(false)) && is_settled(root, number) {
        return Ok(true);
    }
    let undone = match rtproof_host::tune::undo(&machine, &mut journal, &mut |_| {}) {
        // Changes are undone even if the journal cannot be written.
        Err(UndoError::Unrecorded { undone, .. }) => undone,
        undone => undone?,
    };
    // What was left alone is for the user: the mark says that it was not confirmed.
    if journal.is_closed() {
        let _ = staging::clear(&machine, number);
    }
    Ok(!undone.iter().any(|it| matches!(it.outcome, Outcome::Failed { .. })))
}

// `rtproof tune hold`: keeps a limit on the exit latency of the idle states in force until it is
// stopped. It is the program of `rtproof-latency.service`.

/// Arguments of `tune hold`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune hold --latency 0us
  rtproof tune hold --latency 20us

The limit is in force until Ctrl-C or SIGTERM. rtproof-latency.service runs this.")]
pub struct HoldArgs {
    /// Longest exit from idle that is allowed to any CPU, in whole microseconds; 0us: the CPUs poll
    /// or halt and sleep no deeper
    #[arg(long = "latency", value_name = "TIME", value_parser = limit_us)]
    pub limit_us: u32,
}

/// Runs the command.
///
/// # Errors
/// The limit cannot be held, or is not in force; the service manager cannot be reached.
pub fn run_hold(args: &HoldArgs) -> anyhow::Result<u8> {
    until_ended(args.limit_us, crate::stderr_line)?;
    Ok(exit::ACCEPTED)
}
