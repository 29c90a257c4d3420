//! `rtproof tune plan`: what would be changed, as a diff with reasons. Changes nothing, needs no
//! rights, works on a captured machine.

use std::path::PathBuf;

use rtproof_host::{
    Facts, Root,
    tune::{Machine, NotTunable},
};
use rtproof_judge::{
    Finding, Intent, checks,
    plan::{self, Selection},
};
use rtproof_measure::LiveTasks;
use rtproof_results::tune::plan::Document;
use rtproof_run::{
    kernel::offer,
    tune::{place, preview},
};

use super::request::{self, RequestArgs};
use crate::{answers, exit, manners, next, print::Text, root::open_root};

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
    let (mut now, mut trial) = next(&document, args);
    let refused = match Machine::to_undo(&root, &LiveTasks) {
        Err(error @ NotTunable::Container { .. }) => Some(error.to_string()),
        _ => None,
    };
    if refused.is_some() && !(document.steps.is_empty() && document.boot.words.is_empty()) {
        (now, trial) = (None, None);
    }
    // A command of this plan alone: what is left of it follows below.
    let both = now.is_some() && trial.is_some();
    let mut answer = answers::tune::plan(&document, now.or_else(|| trial.clone()));
    answer.why = match (answer.why, refused) {
        (Some(why), Some(refused)) => Some(format!("{why}; {refused}")),
        (why, refused) => why.or(refused),
    };
    text.print(|to| {
        rtproof_report::text::answer(to, &answer)?;
        rtproof_report::text::plan(to, &document, manners::is_verbose())?;
        let trial = trial.filter(|_| both).map(|trial| format!("for one boot: {trial}"));
        rtproof_report::text::hint(to, trial.as_slice())?;
        rtproof_report::text::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&document))?;
    Ok(exit::ACCEPTED)
}

/// Makes the plan of a machine.
pub(super) fn make(
    machine: &Machine<'_>,
    wish: &RequestArgs,
    ids: &[String],
) -> anyhow::Result<Document> {
    let offer = |findings: &mut [Finding]| offer::put(machine.root(), findings);
    let (facts, intent, plan) = plan_with(machine.root(), wish, ids, &offer)?;
    Ok(preview::document(machine, &facts, &intent, plan))
}

/// Facts, intent and plan of a machine.
pub(crate) fn plan_of(
    root: &Root,
    wish: &RequestArgs,
    ids: &[String],
) -> anyhow::Result<(Facts, Intent, plan::Plan)> {
    plan_with(root, wish, ids, &|_| {})
}

/// As [`plan_of`], with what is offered for findings that the plan is about.
fn plan_with(
    root: &Root,
    wish: &RequestArgs,
    ids: &[String],
    offer: &dyn Fn(&mut [Finding]),
) -> anyhow::Result<(Facts, Intent, plan::Plan)> {
    let ids = request::named(ids)?;
    let facts = Facts::read(root);
    let intent = wish.intent(root, &facts)?;
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
    let mut findings = checks::judge_all(&facts, &intent);
    if selection.takes(offer::CHECK) {
        offer(&mut findings);
    }
    let plan = plan::make(&facts, &findings, &intent, &selection);
    Ok((facts, intent, plan))
}

/// What makes the changes, else what shows that the machine is good enough; what tries the boot
/// parameters.
fn next(document: &Document, args: &Args) -> (Option<String>, Option<String>) {
    // A file of `capture` is a machine that is not here.
    let root = args.root.as_deref();
    if root.is_some_and(|root| !root.is_dir()) || !document.conflicts.is_empty() {
        return (None, None);
    }
    let is_here = root.is_none();
    let root = next::root(root);
    let command = |name: &str| format!("rtproof {}{root}", args.request.title(name, &args.ids));
    let mut now = None;
    let installs = document.steps.iter().any(|it| request::installs(&it.step.change));
    if !document.steps.is_empty() {
        // An installation takes minutes, and acts at the next boot.
        let confirm = if installs { "" } else { " --confirm 60s" };
        now = Some(format!("{}{confirm}", command("tune apply")));
    } else if is_here && document.boot.words.is_empty() && document.instructions.is_empty() {
        now = Some(args.request.given().prove());
    }
    let mut trial = None;
    // A trial takes words to add, not checks.
    let can_try = args.ids.is_empty() || !document.boot.words.iter().any(|word| word.removes);
    if !document.boot.words.is_empty() && document.boot.refused.is_none() && can_try {
        let words = document.boot.words.iter().map(|word| next::quoted(&word.parameter));
        let words: Vec<String> = if args.ids.is_empty() { Vec::new() } else { words.collect() };
        let title = args.request.title("tune trial", &words);
        trial = Some(format!("rtproof {title}{root}"));
    }
    (now, trial)
}
