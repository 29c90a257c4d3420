//! `rtproof tune guard`: not for users. Undoes what was not confirmed; started by
//! `tune apply --confirm` or by its timer; or what `rtproof run` changed, when it was killed.

use std::{
    io::{Read as _, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rtproof_host::{
    Root, counts, pm_qos,
    tune::{
        self, Journal, Machine, Outcome, UndoError,
        confirmation::{self, Confirmation},
    },
};
use rtproof_measure::LiveTasks;
use rtproof_run::tune::{making, rollback::ARMED};

use crate::{exit, root::open_root};

/// Arguments of `tune guard`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
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
const LOOK: Duration = Duration::from_millis(50);

/// Time between two tries to put back what could not be.
const AGAIN: Duration = Duration::from_millis(200);

/// Runs the command.
///
/// # Errors
/// It cannot begin to wait. From then on it ends when everything is as it was, or was confirmed,
/// and not before.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    // Whether it lives is asked by this lock.
    let _lock = confirmation::guard(&root, args.journal);
    if let Some(after) = args.after_ms.map(Duration::from_millis) {
        let until = Instant::now() + after;
        leave_terminal()?;
        while Instant::now() < until && !is_settled(&root, args.journal) {
            thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
    if args.program {
        let held = args.dma_latency_us.map(|us| pm_qos::hold(&root, us));
        leave_terminal()?;
        wait_for_program(&root, args.journal);
        drop(held);
    }
    let is_there = || args.root.as_deref().is_none_or(Path::exists);
    while !is_settled(&root, args.journal) && is_there() {
        // A journal that is locked or cannot be read, a value that cannot be written: later.
        match take_back(&root, args.journal) {
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
    let mut said = String::new();
    // An error says as much as the end.
    let _ = std::io::stdin().read_to_string(&mut said);
    let mut words = said.lines().last().unwrap_or_default().split_whitespace();
    let (Some(pid), Some(ticks)) = (words.next(), words.next()) else { return };
    let (Ok(pid), Ok(ticks)) = (pid.parse(), ticks.parse()) else { return };
    let group = words.next();
    let is_left = || group.is_some_and(|group| !counts::in_group(root, group).is_empty());
    while !is_settled(root, journal) && (counts::is_running(&Root::live(), pid, ticks) || is_left())
    {
        thread::sleep(LOOK);
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
    match confirmation::of(root, number) {
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
fn take_back(root: &Root, number: u32) -> anyhow::Result<bool> {
    let machine = Machine::to_undo(root, &LiveTasks)?;
    let mut journal = Journal::open_number(&machine, number)?;
    if confirmation::is_of_program(root, number) {
        // What a newer journal has changed since is put back first.
        making::refuse_older(&machine, &journal)?;
    }
    if matches!(confirmation::expire(&machine, number), Ok(false)) && is_settled(root, number) {
        return Ok(true);
    }
    let undone = match tune::undo(&machine, &mut journal, &mut |_| {}) {
        // What cannot be written down is undone all the same.
        Err(UndoError::Unrecorded { undone, .. }) => undone,
        undone => undone?,
    };
    // What was left alone is for the user: the mark says that nobody confirmed it.
    if journal.is_closed() {
        let _ = confirmation::clear(&machine, number);
    }
    Ok(!undone.iter().any(|it| matches!(it.outcome, Outcome::Failed { .. })))
}
