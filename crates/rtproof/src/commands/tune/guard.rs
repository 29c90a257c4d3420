//! `rtproof tune guard`: not for users. Undoes what was not confirmed; started by
//! `tune apply --confirm` or by its timer.

use std::{
    io::Write,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use rtproof_host::{
    Root,
    tune::{self, Journal, JournalError, Machine, UndoError, confirmation},
};
use rtproof_measure::LiveTasks;
use rtproof_run::tune::rollback::ARMED;

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

    /// Folder of the machine
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Time between two looks at the confirmation and at the lock.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed, a journal that cannot be read, what could not be undone.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    if let Some(after) = args.after_ms.map(Duration::from_millis) {
        let until = Instant::now() + after;
        leave_terminal()?;
        if !wait(&root, args.journal, until) {
            return Ok(exit::ACCEPTED);
        }
    }
    let machine = Machine::new(&root, &LiveTasks)?;
    take_back(&machine, args.journal)
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

/// Waits until time is up; `false`: the changes were confirmed.
fn wait(root: &Root, journal: u32, until: Instant) -> bool {
    while Instant::now() < until {
        if confirmation::of(root, journal).is_none() {
            return false;
        }
        thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
    }
    true
}

/// Undoes everything, unless a confirmation came in the last moment.
fn take_back(machine: &Machine<'_>, number: u32) -> anyhow::Result<u8> {
    if !confirmation::expire(machine, number)? {
        return Ok(exit::ACCEPTED);
    }
    let mut journal = Journal::open_number(machine, number)?;
    loop {
        match tune::undo(machine, &mut journal, &mut |_| {}) {
            // Whoever holds the lock works or dies.
            Err(UndoError::Journal(JournalError::Locked { .. })) => thread::sleep(LOOK),
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    // What is left is for the user: the mark says that nobody confirmed it.
    if journal.is_closed() {
        confirmation::clear(machine, number)?;
    }
    Ok(exit::ACCEPTED)
}
