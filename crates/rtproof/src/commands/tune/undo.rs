//! `rtproof tune undo`: takes back what was applied, in reverse. What somebody else has changed
//! since is left alone and told.

use std::path::{Path, PathBuf};

use rtproof_host::tune::{self, Journal, Machine, mark};
use rtproof_measure::LiveTasks;

use crate::{
    commands::check::open_root,
    exit,
    render::{self, text::Text},
    tune::{
        guardian,
        making::{self, Making},
        outcome::{JournalUndone, TakenBackOutcome, UNDONE, Undone},
    },
};

/// Arguments of `tune undo`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune undo
  rtproof tune undo --all
  rtproof tune undo --journal 3
  rtproof tune undo --journal /root/0003.journal

Exit codes: 0 nothing of that is left, 2 something was left alone because somebody else has changed
it since, 1 something could not be put back: it stays in the journal, and undo can be run again.")]
pub struct Args {
    /// Journal to undo: its number, or a file (a copy will do); default: the newest open one
    #[arg(long, value_name = "FILE|NUMBER", conflicts_with = "all")]
    pub journal: Option<String>,

    /// Undo every open journal, the newest first
    #[arg(long)]
    pub all: bool,

    /// Take back what was set from this file: what `systemctl stop rtproof.service` does
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "journal", "json"])]
    pub from: Option<PathBuf>,

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
    let machine = Machine::new(&root, &LiveTasks)?;
    if let Some(path) = &args.from {
        return super::repeat::undo(&machine, path);
    }
    let open = super::open_journals(&machine)?;
    let journals = match (&args.journal, args.all) {
        (Some(name), _) => vec![named(&machine, name)?],
        (None, true) => {
            let newest_first = open.iter().rev();
            newest_first
                .map(|number| Journal::open_number(&machine, *number))
                .collect::<Result<_, _>>()?
        }
        (None, false) => match open.last() {
            Some(number) => vec![Journal::open_number(&machine, *number)?],
            None => Vec::new(),
        },
    };
    let mut undone = Undone { schema: UNDONE, journals: Vec::new(), still_open: Vec::new() };
    for mut journal in journals {
        undone.journals.push(take_back(&machine, &mut journal)?);
    }
    undone.still_open = super::open_journals(&machine)?;
    let text = Text::new(args.json);
    text.print(|to| render::text::undone(to, &undone))?;
    text.print_json(&undone)?;
    Ok(code(&undone))
}

/// A journal by its number, or a file of it.
fn named(machine: &Machine<'_>, name: &str) -> anyhow::Result<Journal> {
    Ok(match name.parse() {
        Ok(number) => Journal::open_number(machine, number)?,
        Err(_) => Journal::open(machine, Some(Path::new(name)))?,
    })
}

/// Takes one journal back.
pub(super) fn take_back(
    machine: &Machine<'_>,
    journal: &mut Journal,
) -> anyhow::Result<JournalUndone> {
    let mut making = Making::new(journal.entries().len());
    let undone = tune::undo(machine, journal, &mut |it| making.tell(&it.change));
    making.end();
    let undone = undone?;
    let entries = journal.entries();
    let number = making::number(journal);
    if journal.is_closed() && number > 0 {
        mark::clear(machine, number)?;
        guardian::dismiss(machine.root(), number);
    }
    Ok(JournalUndone {
        journal: number,
        path: journal.path().to_owned(),
        title: journal.header().what.clone(),
        changes: undone.iter().map(|it| making::taken_back(entries, it)).collect(),
    })
}

fn code(undone: &Undone) -> u8 {
    let any = |outcome| {
        let all = undone.journals.iter().flat_map(|journal| &journal.changes);
        all.into_iter().any(|it| it.outcome == outcome)
    };
    match () {
        () if any(TakenBackOutcome::Failed) => exit::FAILED,
        () if any(TakenBackOutcome::LeftAlone) => exit::REFUSED,
        () => exit::ACCEPTED,
    }
}
