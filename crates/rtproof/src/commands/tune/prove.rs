//! `tune apply --prove`: the engine as the switch that the measuring turns on and off, with a journal
//! for each time.

use rtproof_host::tune::{self, Item, Journal, Machine, Options, Title};

use super::{apply, plan};
use crate::{
    cli::{Cli, Command},
    tune::prove::{self, Switch},
};

/// The engine.
struct Engine<'a, 'm> {
    machine: &'a Machine<'m>,
    on: Option<Journal>,
}

impl Engine<'_, '_> {
    fn make(&self, items: &[Item]) -> anyhow::Result<Journal> {
        let what = "tune apply --prove".to_owned();
        let mut journal = Journal::begin(self.machine, Title { what })?;
        let options = Options { keep_going: false };
        tune::apply(self.machine, &mut journal, items, options, &mut |_| {})?;
        Ok(journal)
    }
}

impl Switch for Engine<'_, '_> {
    fn on(&mut self, items: &[Item]) -> anyhow::Result<()> {
        self.on = Some(self.make(items)?);
        Ok(())
    }

    fn keep(&mut self, items: &[Item]) -> anyhow::Result<()> {
        // The journal stays open: tune undo takes it back.
        self.make(items).map(drop)
    }

    fn off(&mut self) -> anyhow::Result<()> {
        let Some(mut journal) = self.on.take() else { return Ok(()) };
        tune::undo(self.machine, &mut journal, &mut |_| {})?;
        if !journal.is_closed() {
            let path = journal.path().to_owned();
            self.on = Some(journal);
            anyhow::bail!("{path}: not everything could be taken back; rtproof tune status");
        }
        Ok(())
    }
}

/// Measures a plan and keeps what helps.
pub(super) fn run(args: &apply::Args, machine: &Machine<'_>, ns: u64) -> anyhow::Result<u8> {
    let root = machine.root();
    let (facts, _, plan) = plan::plan_of(root, &args.wish, &args.ids)?;
    let args = measured(args, ns)?;
    let mut engine = Engine { machine, on: None };
    prove::run(root, facts, &plan, &args, &mut engine)
}

/// The arguments of `prove` that say the same.
fn measured(args: &apply::Args, ns: u64) -> anyhow::Result<crate::commands::prove::Args> {
    let wish = &args.wish;
    let mut words = vec!["rtproof".to_owned(), "prove".into(), "--for".into(), format!("{ns}ns")];
    let mut give = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    give("--cpus", wish.cpus.clone());
    give("--profile", wish.wishes.profile.clone());
    give("--priority", wish.priority.map(|priority| priority.to_string()));
    give("--period", wish.period_ns.map(|ns| format!("{ns}ns")));
    give("--budget", wish.budget_ns.map(|ns| format!("{ns}ns")));
    for skip in &wish.wishes.skip {
        give("--skip", Some(skip.clone()));
    }
    if args.json {
        words.push("--json".into());
    }
    match <Cli as clap::Parser>::try_parse_from(words)?.command {
        Command::Prove(args) => Ok(*args),
        _ => anyhow::bail!("prove is not to be had"),
    }
}
