//! `rtproof tune undo`: undoes what was applied, in reverse. What something else has changed since
//! is left alone and reported.

use std::path::{Path, PathBuf};

use rtproof_host::tune::{Journal, Machine};
use rtproof_measure::LiveTasks;
use rtproof_results::tune::outcome::{JournalUndone, UNDONE, Undone};
use rtproof_run::tune::making;

use crate::{exit, print::Text, root::open_root, show::making::Making};

/// Arguments of `tune undo`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune undo
  rtproof tune undo --all
  rtproof tune undo --journal 3
  rtproof tune undo --journal /root/0003.journal

Exit codes: 0 nothing of that is left, 2 something was left alone because it was changed by something
else since, 1 something could not be restored: it stays in the journal, and undo can be run again.")]
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
    let machine = Machine::new(&root, &LiveTasks)?;
    if let Some(path) = &args.from {
        return super::repeat::undo(&machine, path, Text::new(args.json));
    }
    let mut undone = Undone { schema: UNDONE, journals: Vec::new(), still_open: Vec::new() };
    let ended = take_back(&machine, args, &mut undone.journals);
    let text = Text::new(args.json);
    // What was undone before an error is reported all the same.
    if ended.is_ok() || !undone.journals.is_empty() {
        undone.still_open = super::journals::not_closed(&machine)?;
        text.print(|to| rtproof_report::text::undone(to, &undone))?;
        text.print_json(&undone)?;
    }
    ended?;
    Ok(exit::of(making::undo_ended(&undone.journals)))
}

/// Undoes what was requested, the newest first.
fn take_back(
    machine: &Machine<'_>,
    args: &Args,
    undone: &mut Vec<JournalUndone>,
) -> anyhow::Result<()> {
    // One that is named does not wait for another that is damaged.
    if let Some(name) = &args.journal {
        let mut journal = named(machine, name)?;
        making::refuse_older(machine, &journal)?;
        undone.push(making::take_back(machine, &mut journal, &mut Making::new())?);
        return Ok(());
    }
    let open = super::journals::open(machine)?;
    for number in open.into_iter().rev().take(if args.all { usize::MAX } else { 1 }) {
        let mut journal = Journal::open_number(machine, number)?;
        making::refuse_older(machine, &journal)?;
        undone.push(making::take_back(machine, &mut journal, &mut Making::new())?);
    }
    Ok(())
}

/// A journal by its number, or a file of it.
fn named(machine: &Machine<'_>, name: &str) -> anyhow::Result<Journal> {
    Ok(match name.parse() {
        Ok(number) => Journal::open_number(machine, number)?,
        Err(_) => Journal::open(machine, Some(Path::new(name)))?,
    })
}
