//! `rtproof tune undo`: undoes what was applied, in reverse. What something else has changed since
//! is left alone and reported.

use std::path::{Path, PathBuf};

use rtproof_host::tune::{Journal, JournalError, Machine, State};
use rtproof_measure::LiveTasks;
use rtproof_results::{
    Ended,
    tune::outcome::{UNDONE, Undone, Unusable},
};
use rtproof_run::tune::making;

use crate::{
    answers, ask, exit,
    print::Text,
    root::open_root,
    show::making::{Making, manager_line},
};

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
or of another machine.")]
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
    pub at: super::request::RootArgs,

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
        return super::repeat::undo(&machine, path, Text::new(args.json));
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
    let text = Text::new(args.json);
    let ended = take_back(&machine, args, &mut undone);
    // What was undone before an error is reported all the same.
    if ended.is_ok() || !undone.journals.is_empty() {
        undone.still_open = super::journals::not_closed(&machine)?;
        undone.still_open.retain(|open| !undone.unusable.iter().any(|it| it.journal == *open));
        let answer = answers::tune::undone(&undone, args.at.root.as_deref());
        text.print(|to| {
            rtproof_report::text::answer(to, &answer)?;
            rtproof_report::text::undone(to, &undone)?;
            rtproof_report::text::answer_again(to, &answer)
        })?;
        text.print_json(&answer.with(&undone))?;
    }
    // What a trial that was killed had prepared of a kernel.
    machine.sweep_staging()?;
    making::sweep_marks(&machine)?;
    ended?;
    let ended = making::undo_ended(&undone.journals);
    Ok(match ended {
        Ended::Done if !undone.unusable.is_empty() => exit::REFUSED,
        ended => exit::of(ended),
    })
}

/// Undoes what was requested, the newest first. What cannot be used does not keep the others from
/// being undone.
fn take_back(machine: &Machine<'_>, args: &Args, undone: &mut Undone) -> anyhow::Result<()> {
    if let Some(name) = &args.journal {
        let mut journal = match named(machine, name) {
            Ok(journal) => journal,
            Err(why @ (JournalError::Corrupt { .. } | JournalError::Foreign { .. })) => {
                let (journal, why) = (name.parse().unwrap_or(0), why.to_string());
                undone.unusable.push(Unusable { journal, why });
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        making::refuse_older(machine, &journal)?;
        if args.accept_owner {
            look(&journal)?;
            let question = "write this?";
            anyhow::ensure!(args.yes || ask::consent(question)?, "nothing was undone");
        }
        let done = making::take_back(machine, &mut journal, &mut Making::new())?;
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
            making::take_back(machine, &mut journal, &mut Making::new())
        };
        match summary.problem {
            Some(why) => undone.unusable.push(Unusable { journal: number, why }),
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
fn look(journal: &Journal) -> anyhow::Result<()> {
    for entry in journal.entries().iter().rev().filter(|entry| !entry.is_settled()) {
        let Some(before) = &entry.before else { continue };
        let change = &entry.item.change;
        let owner = match before {
            State::File { uid, gid, mode, .. } => format!(" (mode {mode:04o}, owner {uid}:{gid})"),
            _ => String::new(),
        };
        let (target, old) = (change.target(), change.before(before));
        crate::stderr::line(&format!("{target}: {} → {old}{owner}", change.after()))?;
    }
    Ok(())
}
