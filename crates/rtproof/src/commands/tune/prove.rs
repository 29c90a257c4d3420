//! `tune apply --prove`: the arguments of apply as those of `prove`, and the engine as its switch.

use rtproof_host::tune::Machine;

use super::{WishArgs, apply, plan};
use crate::{
    cli::{Cli, Command},
    tune::prove::{self, Journaled},
};

/// Measures a plan and keeps what helps.
pub(super) fn run(args: &apply::Args, machine: &Machine<'_>, ns: u64) -> anyhow::Result<u8> {
    let root = machine.root();
    let (facts, _, plan) = plan::plan_of(root, &args.wish, &args.ids)?;
    let title = args.wish.title("tune apply --prove", &args.ids);
    let mut switch = Journaled::new(machine, &title);
    prove::run(root, facts, &plan, &measured(&args.wish, ns, args.json)?, &mut switch)
}

/// The arguments of `prove` that say the same.
pub(crate) fn measured(
    wish: &WishArgs,
    ns: u64,
    json: bool,
) -> anyhow::Result<crate::commands::prove::Args> {
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
    if json {
        words.push("--json".into());
    }
    match <Cli as clap::Parser>::try_parse_from(words)?.command {
        Command::Prove(args) => Ok(*args),
        _ => anyhow::bail!("prove is not to be had"),
    }
}
