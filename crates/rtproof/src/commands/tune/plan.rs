//! `rtproof tune plan`: what would be changed, as a diff with reasons. Changes nothing, needs no
//! rights, works on a captured machine.

use std::path::PathBuf;

use rtproof_host::{Facts, Root, tune::Machine};
use rtproof_judge::{
    checks,
    plan::{self, Selection},
};
use rtproof_measure::LiveTasks;
use rtproof_report::text::Sheet;
use rtproof_results::tune::plan::Document;
use rtproof_run::tune::{place, preview};

use super::request::{self, RequestArgs};
use crate::{exit, manners, next, print::Text, root::open_root};

/// Arguments of `tune plan`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune plan
  rtproof tune plan --cpus 2-3 --profile busy-poll -v
  rtproof tune plan cpufreq-governor,thp irqbalance
  rtproof tune plan --json >plan.json && rtproof tune apply --plan plan.json
  rtproof capture machine.txt && rtproof tune plan --root machine.txt")]
pub struct Args {
    /// Checks, or sections of them (power, memory ...), whose findings to plan for; default: all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,

    /// What the machine is for.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Plan for a captured machine: a file of `rtproof capture`, or a folder that holds its /proc,
    /// /sys, /etc and /boot
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// Usage: a root, CPUs or checks that are not there.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    let document = make(&Machine::for_reading(&root, &LiveTasks), &args.request, &args.ids)?;
    let text = Text::new(args.json);
    text.print(|to| {
        rtproof_report::text::plan(to, &document, manners::is_verbose())?;
        next(to, &document, args)
    })?;
    text.print_json(&document)?;
    Ok(exit::ACCEPTED)
}

/// Makes the plan of a machine.
pub(super) fn make(
    machine: &Machine<'_>,
    wish: &RequestArgs,
    ids: &[String],
) -> anyhow::Result<Document> {
    let (facts, intent, plan) = plan_of(machine.root(), wish, ids)?;
    Ok(preview::document(machine, &facts, &intent, plan))
}

/// Facts, intent and plan of a machine.
pub(crate) fn plan_of(
    root: &Root,
    wish: &RequestArgs,
    ids: &[String],
) -> anyhow::Result<(Facts, rtproof_judge::Intent, plan::Plan)> {
    let ids = request::named(ids)?;
    let facts = Facts::read(root);
    let intent = wish.intent(&facts)?;
    let is_ours = |cpu: u32| intent.rt_cpus.contains(cpu);
    let online = facts.cpus.online.value();
    let selection = Selection {
        ids,
        level: wish.level.level(),
        has_own_cpus: online.is_some_and(|online| !online.iter().all(is_ours)),
        risky: wish.risky,
        durable: wish.durable,
        exe: place::of(root).unwrap_or_else(|_| place::USUAL.into()),
    };
    let findings = checks::judge_all(&facts, &intent);
    let plan = plan::make(&facts, &findings, &intent, &selection);
    Ok((facts, intent, plan))
}

/// What to do next.
fn next(to: &mut Sheet, document: &Document, args: &Args) -> std::io::Result<()> {
    // A file of `capture` is a machine that is not here.
    let root = args.root.as_deref();
    if root.is_some_and(|root| !root.is_dir()) || !document.conflicts.is_empty() {
        return Ok(());
    }
    let root = root.map_or_else(String::new, |root| format!(" --root {}", next::path(root)));
    let command = |name: &str| format!("rtproof {}{root}", args.request.title(name, &args.ids));
    let mut commands = Vec::new();
    if !document.steps.is_empty() {
        commands.push(format!("now: {} --confirm 60s", command("tune apply")));
    }
    // A trial takes words to add, not checks.
    let can_try = args.ids.is_empty() || !document.boot.words.iter().any(|word| word.removes);
    if !document.boot.words.is_empty() && document.boot.refused.is_none() && can_try {
        let words = document.boot.words.iter().map(|word| next::quoted(&word.parameter));
        let words: Vec<String> = if args.ids.is_empty() { Vec::new() } else { words.collect() };
        let trial = args.request.title("tune trial", &words);
        commands.push(format!("for one boot: rtproof {trial}{root}"));
    }
    rtproof_report::text::hint(to, &commands)
}
