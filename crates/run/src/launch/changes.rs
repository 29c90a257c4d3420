//! What is changed of the machine while a program runs: under a journal, with a guard that undoes
//! it when this process is killed.

use std::{
    io::Write as _,
    path::Path,
    process::{Child, ChildStdin},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rtproof_host::{
    Root, counts,
    tune::{self, Item, Journal, Machine, Options as HowApplied, confirmation},
};
use rtproof_results::{
    launch::Cannot,
    tune::{outcome::JournalUndone, plan::Previewed},
};

use crate::tune::{
    making::{self, Silent},
    rollback,
};

/// How long another rtproof may keep the journals locked.
const LOCKED_MAX: Duration = Duration::from_secs(10);
/// Time between two tries.
const AGAIN: Duration = Duration::from_millis(50);

/// Changes that are in force.
#[derive(Debug)]
pub(super) struct Changes {
    number: u32,
    guard: Guard,
    /// The line that names the program.
    program: String,
    /// How many were made.
    pub(super) count: usize,
}

/// The process that undoes them when this one is killed. Its stdin ends with this process.
#[derive(Debug)]
struct Guard {
    process: Child,
    stdin: Option<ChildStdin>,
}

/// What a guard is started with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guarding<'a> {
    pub(super) folder: Option<&'a Path>,
    pub(super) latency_us: Option<u32>,
}

impl Guard {
    fn start(number: u32, of: Guarding<'_>) -> anyhow::Result<Self> {
        let mut process = rollback::arm_for_program(of.folder, number, of.latency_us)?;
        let stdin = process.stdin.take();
        Ok(Self { process, stdin })
    }
}

/// Makes the changes; all of them or, with `keep_going`, those that can be made.
///
/// # Errors
/// One could not be made; everything is as it was then.
pub(super) fn make(
    machine: &Machine<'_>,
    title: &str,
    steps: &[Previewed],
    keep_going: bool,
    guarding: Guarding<'_>,
) -> anyhow::Result<(Changes, Vec<Cannot>)> {
    let item = |it: &Previewed| Item {
        change: it.step.change.clone(),
        checks: it.step.reason.checks.clone(),
    };
    let items: Vec<Item> = steps.iter().map(item).collect();
    let mut journal = within(|| Ok(Journal::begin(machine, title.to_owned(), &items)?))?;
    let number = making::number(&journal);
    let armed = confirmation::set_running(machine, number)
        .with_context(|| format!("the mark of {}", journal.path()))
        .and_then(|()| Guard::start(number, guarding));
    // Nothing was changed yet: an empty journal and its mark go again.
    let guard = armed.inspect_err(|_| drop_journal(machine, &mut journal, number))?;
    let how = HowApplied { keep_going };
    let applied = match making::apply(machine, &mut journal, &items, how, &mut Silent) {
        Ok(applied) => applied,
        Err(error) => {
            drop_journal(machine, &mut journal, number);
            return Err(error.into());
        }
    };
    let cannot = applied.failed.iter().chain(&applied.left_out);
    let cannot = cannot.map(|(change, why)| Cannot { what: change.title(), why: why.clone() });
    let cannot = cannot.collect();
    let count = applied.done;
    Ok((Changes { number, guard, program: String::new(), count }, cannot))
}

fn drop_journal(machine: &Machine<'_>, journal: &mut Journal, number: u32) {
    let _ = tune::undo(machine, journal, &mut |_| {});
    if journal.is_closed() {
        let _ = confirmation::clear(machine, number);
    }
}

impl Changes {
    /// Tells the guard which program it has to wait for when this process is killed.
    pub(super) fn name_program(&mut self, root: &Root, pid: u32, group: Option<&str>) {
        let Some(ticks) = counts::start_ticks(root, pid) else { return };
        self.program = format!("{pid} {ticks} {}\n", group.unwrap_or_default());
        self.tell();
    }

    fn tell(&mut self) {
        if let Some(stdin) = &mut self.guard.stdin {
            // A guard that has died is seen by `mend`.
            let _ = stdin.write_all(self.program.as_bytes());
        }
    }

    /// The guard's process id.
    pub(super) fn guard(&self) -> u32 {
        self.guard.process.id()
    }

    /// Looks whether the guard lives, and starts another where it does not; whether that was so.
    pub(super) fn mend(&mut self, guarding: Guarding<'_>) -> anyhow::Result<bool> {
        if self.guard.process.try_wait()?.is_none() {
            return Ok(false);
        }
        self.guard = Guard::start(self.number, guarding)?;
        self.tell();
        Ok(true)
    }

    /// Undoes them.
    ///
    /// # Errors
    /// The journal cannot be read or locked: the guard outlives this process and goes on trying.
    pub(super) fn undo(mut self, machine: &Machine<'_>) -> anyhow::Result<JournalUndone> {
        let number = self.number;
        let undone = within(|| {
            let mut journal = Journal::open_number(machine, number)?;
            making::refuse_older(machine, &journal)?;
            making::take_back(machine, &mut journal, &mut Silent)
        });
        // The guard looks at the journal, and ends where nothing is left.
        drop(self.guard.stdin.take());
        let is_closed = Journal::open_number(machine, number).is_ok_and(|of| of.is_closed());
        if is_closed {
            let _ = self.guard.process.wait();
        }
        undone
    }
}

/// Undoes what a run left behind that was killed together with its guard. Returns the numbers of
/// such journals.
pub(super) fn recover(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    making::sweep_marks(machine)?;
    let root = machine.root();
    let is_left = |number: u32| {
        confirmation::is_of_program(root, number) && !confirmation::is_guarded(root, number)
    };
    let mut recovered = Vec::new();
    for summary in Journal::list(machine)?.into_iter().rev() {
        if summary.closed || summary.problem.is_some() || !is_left(summary.number) {
            continue;
        }
        let mut journal = Journal::open_number(machine, summary.number)?;
        making::refuse_older(machine, &journal)?;
        making::take_back(machine, &mut journal, &mut Silent)?;
        recovered.push(summary.number);
    }
    Ok(recovered)
}

/// Refuses a second run that counts on the machine being set: whichever ends first would put back
/// what the other needs.
///
/// # Errors
/// The journal of the other run.
pub(super) fn refuse_second(machine: &Machine<'_>) -> anyhow::Result<()> {
    for summary in Journal::list(machine)? {
        let number = summary.number;
        if summary.closed || !confirmation::is_of_program(machine.root(), number) {
            continue;
        }
        anyhow::bail!(
            "another run has set the machine, and puts that back at its end (journal {number}, \
             {}). Wait for that, or start this one with --tune none --place affinity. Nothing was \
             changed or started",
            summary.what
        );
    }
    Ok(())
}

/// Tries again while another rtproof has the journals.
fn within<T>(mut work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let end = Instant::now() + LOCKED_MAX;
    loop {
        match work() {
            Err(error) if is_locked(&error) && Instant::now() < end => thread::sleep(AGAIN),
            done => return done,
        }
    }
}

fn is_locked(error: &anyhow::Error) -> bool {
    let of_journal = |error: &(dyn std::error::Error + 'static)| {
        matches!(error.downcast_ref(), Some(tune::JournalError::Locked { .. }))
    };
    error.chain().any(of_journal)
}
