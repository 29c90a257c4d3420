//! `rtproof tune apply`: makes the changes of a plan that take effect at once. All of them or, when
//! one cannot be made, none.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::tune::{
    ApplyOptions, Item, Journal, Machine,
    staging::{self, Confirmation},
};
use rtproof_judge::plan::LeftOut;
use rtproof_measure::LiveTasks;
use rtproof_record::Effects;
use rtproof_results::{
    Answer,
    tune::{APPLIED, Applied, Made, Previewed},
};
use rtproof_run::{
    experiment::{Journaled, plan as prove},
    parse,
    prove::{Request, Signals},
    tune::{
        boot,
        making::{self, RollbackTimer},
    },
};

use super::{RequestArgs, RootArgs, persist, plan};
use crate::answers::tune;
use crate::exit::TextOutput;
use crate::show::{ApplyProgress, ExperimentProgress, manager_line};
use crate::{answers, exit, next, open_root, show};

/// Arguments of `tune apply`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune apply --cpus 2-3 --confirm 60s
  rtproof tune apply cpufreq-governor,rt-throttling --yes
  rtproof tune plan --json >plan.json && rtproof tune apply --plan plan.json --yes
  rtproof tune apply --cpus 2-3 --prove 10m

What was there is written to a journal first; rtproof tune undo restores it. When one change
cannot be made, those before it are undone and the exit code is 1. Boot parameters are
not applied: rtproof tune trial tries them.")]
pub struct Args {
    /// Checks, or sections of them (power, memory ...), whose findings to act on; default: all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,

    /// What the machine is for.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Which machine.
    #[command(flatten)]
    pub at: RootArgs,

    /// Apply the plan in this file to the letter (tune plan --json; `-`: stdin), or nothing when
    /// the machine is no longer what it was made for
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ids", "risky", "cpus", "profile"])]
    pub plan: Option<PathBuf>,

    /// Set what this file says, as rtproof.service does at each boot from /etc/rtproof.toml. If
    /// something is missing, the rest is set all the same, and the exit code is 3
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["ids", "plan", "confirm_ns", "prove_ns", "cpus", "profile"]
    )]
    pub from: Option<PathBuf>,

    /// Take a file of --plan or --from that another user owns or can write: look at what is shown
    #[arg(long)]
    pub accept_owner: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Make the other changes when one cannot be made; exit code 2 then
    #[arg(long)]
    pub keep_going: bool,

    /// Undo everything unless rtproof tune confirm, or ENTER on the terminal, comes within this
    /// time, even if the terminal, the session or rtproof is gone by then
    #[arg(long = "confirm", value_name = "TIME", value_parser = parse::confirm_within)]
    pub confirm_ns: Option<u64>,

    /// Measure with and without the changes for this time, keep what helps, undo the rest
    #[arg(
        long = "prove",
        value_name = "TIME",
        value_parser = parse::run_duration,
        conflicts_with_all = ["plan", "confirm_ns", "root"]
    )]
    pub prove_ns: Option<u64>,

    /// Print what was done as JSON
    #[arg(long)]
    pub json: bool,
}

/// The answer, with the options that were given.
fn answer(args: &Args, applied: &Applied) -> Answer {
    let prove = args.request.given().prove();
    tune::applied(applied, &prove, &trial(args), args.at.root.as_deref())
}

/// What tries the boot parameters that are left.
fn trial(args: &Args) -> String {
    let root = next::root(args.at.root.as_deref());
    // A trial takes words, not checks: with checks named, the plan shows which.
    match args.ids.is_empty() && args.plan.is_none() {
        true => format!("rtproof {}{root}", args.request.title("tune trial", &[])),
        false => format!("rtproof {}{root}", args.request.title("tune plan", &args.ids)),
    }
}

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed, a plan that does not hold, a change that could not be made
/// (the others are undone then).
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.at.root.as_deref())?;
    // Before the machine is read: a usage error needs no rights.
    let named = super::named_checks(&args.ids)?;
    let machine = Machine::new(&root, &LiveTasks)?.showing(&manager_line);
    if let Some(path) = &args.from {
        let taken = (args.yes, args.accept_owner);
        return persist::apply(&machine, path, taken, TextOutput::new(args.json));
    }
    let todo = todo(args, &machine)?;
    let text = TextOutput::new(args.json);
    making::allows(&root, todo.steps.iter().map(|it| &it.step.change))?;
    if let Some(LeftOut { check, why, .. }) = todo.unknown_check(&named) {
        anyhow::bail!(
            "{check}: {why}; nothing was changed; rtproof check -v tells more, or leave {check} out"
        );
    }
    if todo.steps.is_empty() {
        let applied = nothing(todo.boot_parameters);
        let answer = answer(args, &applied);
        text.print(|to| rtproof_render::page::answer_text(to, &answer))?;
        text.print_json(&answer.with(&applied))?;
        return Ok(exit::ACCEPTED);
    }
    let installs = todo.steps.iter().any(|it| super::installs(&it.step.change));
    if installs && (args.confirm_ns.is_some() || args.prove_ns.is_some()) {
        let option = if args.prove_ns.is_some() { "prove" } else { "confirm" };
        anyhow::bail!(
            "--{option} is for changes that act at once; a package takes minutes and acts at the \
             next boot: leave --{option} out; nothing was changed"
        );
    }
    text.print(|to| {
        rtproof_render::page::steps(to, &todo.steps, false)?;
        rtproof_render::page::hint(to, &todo.then)
    })?;
    let question = format!("apply these {}?", making::count(todo.steps.len()));
    if !args.yes && !crate::consent(&question)? {
        anyhow::bail!("nothing was changed");
    }
    match args.prove_ns {
        Some(ns) => run_prove(&args.request, &args.ids, args.json, &machine, ns),
        None => make(args, &machine, todo, text),
    }
}

/// What is to be done.
struct Todo {
    steps: Vec<Previewed>,
    boot_parameters: Vec<String>,
    left_out: Vec<LeftOut>,
    /// What is left for the user once packages are installed.
    then: Vec<String>,
}

impl Todo {
    /// A requested check whose answer is unknown and that therefore gives nothing to do: that is
    /// not "nothing to do".
    fn unknown_check(&self, named: &[String]) -> Option<&LeftOut> {
        let gives =
            |check: &String| self.steps.iter().any(|it| it.step.reason.checks.contains(check));
        let is_unknown =
            |it: &&LeftOut| it.is_unknown && named.contains(&it.check) && !gives(&it.check);
        self.left_out.iter().find(is_unknown)
    }
}

fn todo(args: &Args, machine: &Machine<'_>) -> anyhow::Result<Todo> {
    let mut then = Vec::new();
    let (steps, boot, conflicts, left_out) = match &args.plan {
        Some(path) => {
            let stored = boot::read_plan(path, args.accept_owner)?;
            (stored.steps, stored.boot, stored.conflicts, Vec::new())
        }
        None => {
            let document = plan::make(machine, &args.request, &args.ids)?;
            let installs = document.steps.iter().filter(|it| super::installs(&it.step.change));
            let checks: Vec<_> = installs.map(|it| &it.step.reason.checks).collect();
            let those = document.instructions.iter();
            let those = those.filter(|it| checks.contains(&&it.reason.checks));
            then.extend(those.map(|it| it.text.clone()));
            (document.steps, document.boot, document.conflicts, document.left_out)
        }
    };
    if let Some(conflict) = conflicts.first() {
        anyhow::bail!(
            "{}: {} contradict each other; leave one of them out (--skip ID=REASON); \
             rtproof tune plan shows all; nothing was changed",
            conflict.target,
            conflict
                .requests
                .iter()
                .map(|(check, _)| check.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    let steps = match args.plan {
        Some(_) => boot::still_to_do(machine, steps)?,
        None => steps,
    };
    let boot_parameters = boot.words.into_iter().map(|word| word.parameter).collect();
    Ok(Todo { steps, boot_parameters, left_out, then })
}

fn nothing(boot_parameters: Vec<String>) -> Applied {
    Applied {
        schema: APPLIED,
        journal: None,
        path: None,
        changes: Vec::new(),
        rolled_back: false,
        boot_parameters,
        confirm_within_ns: None,
        kernel: None,
    }
}

fn make(args: &Args, machine: &Machine<'_>, todo: Todo, text: TextOutput) -> anyhow::Result<u8> {
    let signals = Signals::catch(machine.root())?;
    let what = match &args.plan {
        Some(path) => format!("tune apply --plan {}", path.display()),
        None => args.request.title("tune apply", &args.ids),
    };
    let items: Vec<Item> = todo.steps.iter().map(item).collect();
    let mut journal = Journal::begin(machine, what, &items)?;
    let number = making::number(&journal);
    let armed = Instant::now();
    let guardian = match args.confirm_ns {
        None => None,
        Some(ns) => {
            staging::set_confirmation(machine, number)?;
            let after = Duration::from_nanos(ns);
            let root = args.at.root.as_deref();
            let guardian = making::arm(machine.root(), root, number, after);
            // Nothing was changed yet: an empty journal and its mark go again.
            Some(guardian.inspect_err(|_| {
                let _ = rtproof_host::tune::undo(machine, &mut journal, &mut |_| {});
                let _ = staging::clear(machine, number);
            })?)
        }
    };
    let planned: Vec<Made> = todo.steps.iter().map(planned).collect();
    let options = ApplyOptions { keep_going: args.keep_going };
    let made = making::apply(machine, &mut journal, &items, options, &mut ApplyProgress::new());
    let interrupted = signals.received();
    let taken_back = match interrupted.is_some() && made.is_ok() {
        true => Some(making::take_back(machine, &mut journal, &mut ApplyProgress::new())?),
        false => None,
    };
    let mut applied = Applied {
        journal: Some(number),
        path: Some(journal.path().to_owned()),
        changes: making::outcomes(planned, journal.entries(), made.as_ref().ok()),
        rolled_back: made.is_err() || interrupted.is_some(),
        confirm_within_ns: args.confirm_ns,
        kernel: None,
        ..nothing(todo.boot_parameters)
    };
    // Whoever takes it back next needs the lock.
    drop(journal);
    if applied.rolled_back {
        if guardian.is_some() {
            staging::clear(machine, number)?;
            making::dismiss(machine.root(), number);
        }
        applied.confirm_within_ns = None;
    }
    let answer = answer(args, &applied);
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::page::applied(to, &applied, &next::root(args.at.root.as_deref()))?;
        if !applied.rolled_back {
            rtproof_render::page::boot_left(to, &applied.boot_parameters, &trial(args))?;
        }
        rtproof_render::page::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&applied))?;
    let made = made?;
    if let (Some(signal), Some(undone)) = (interrupted, taken_back) {
        anyhow::bail!("{signal} came: {}", making::undo_phrase(&undone.changes));
    }
    if let (Some(guardian), Some(ns)) = (guardian, args.confirm_ns) {
        let left = Duration::from_nanos(ns).saturating_sub(armed.elapsed());
        wait(machine, &guardian, number, left, &signals)?;
        let is_kept =
            staging::confirmation_of(machine.root(), number) == Some(Confirmation::Confirmed);
        let next = is_kept.then(|| args.request.given().prove());
        text.print(|to| rtproof_render::page::next_text(to, next.as_deref()))?;
    }
    Ok(exit::of(making::ended(&made)))
}

fn item(it: &Previewed) -> Item {
    Item { change: it.step.change.clone(), checks: it.step.reason.checks.clone() }
}

fn planned(it: &Previewed) -> Made {
    let checks = it.step.reason.checks.clone();
    Made::of(it.step.change.clone(), checks, it.before.as_ref())
}

/// Waits for ENTER on a terminal; elsewhere the rollback timer waits alone.
fn wait(
    machine: &Machine<'_>,
    guardian: &RollbackTimer,
    number: u32,
    left: Duration,
    signals: &Signals,
) -> anyhow::Result<()> {
    let seconds = left.as_secs_f64().ceil();
    if !crate::is_terminal() {
        crate::stderr_line(&format!(
            "keep it with: rtproof tune confirm, within {seconds} s; else {} takes it back",
            guardian.text()
        ))?;
        return Ok(());
    }
    crate::stderr_write(&format!("press ENTER within {seconds} s to keep it: "))?;
    let received = crate::enter_within(left, || signals.received().is_some());
    if received && staging::confirm(machine, number)? {
        making::dismiss(machine.root(), number);
        crate::stderr_line("kept")?;
        return Ok(());
    }
    crate::stderr_line("")?;
    if let Some(signal) = signals.received() {
        let undone = making::take_back(
            machine,
            &mut Journal::open_number(machine, number)?,
            &mut ApplyProgress::new(),
        )?;
        anyhow::bail!("{signal} came: {}", making::undo_phrase(&undone.changes));
    }
    // The confirmation may have come from elsewhere.
    let is_open = !Journal::open_number(machine, number)?.is_closed();
    if is_open && staging::confirmation_of(machine.root(), number) == Some(Confirmation::Confirmed)
    {
        crate::stderr_line("confirmed elsewhere: kept")?;
        return Ok(());
    }
    anyhow::bail!("nobody confirmed: {} takes everything back", guardian.text())
}

// `tune apply --prove`: measures a plan and keeps what helps.

const SCHEMA: &str = "rtproof/effects/1";

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TuneProveDocument<'a> {
    schema: &'static str,
    record: String,
    report: String,
    effects: &'a Effects,
}

/// Measures a plan and keeps what helps.
pub(super) fn run_prove(
    request: &RequestArgs,
    ids: &[String],
    json: bool,
    machine: &Machine<'_>,
    ns: u64,
) -> anyhow::Result<u8> {
    let root = machine.root();
    let (facts, _, plan) = plan::plan_of(root, request, ids)?;
    let title = request.title("tune apply --prove", ids);
    let mut switch = Journaled::new(machine, &title);
    let (run, text) = (measured(request, ns), TextOutput::new(json));
    let mut trying = ExperimentProgress::of_plan(text);
    let (results, output) = prove::run(root, facts, &plan, &run, &mut switch, &mut trying)?;
    let cut_short = results.cut_short();
    // What helps is kept: what is left is the proof.
    let prove = |names: &[&str]| (!names.is_empty()).then(|| request.given().prove());
    let answer = answers::experiment_answer(results.effects()?, cut_short.as_deref(), prove);
    let html = show::show_experiment(&results, &answer, text, &output)?;
    text.print_json(&answer.with(&TuneProveDocument {
        schema: SCHEMA,
        record: output.record.display().to_string(),
        report: output.html.display().to_string(),
        effects: results.effects()?,
    }))?;
    show::experiment_code(results, html)
}

/// The run that is requested.
pub(crate) fn measured(request: &RequestArgs, ns: u64) -> Request {
    Request {
        cpus: request.cpus.clone(),
        intent: request.intent.requested(),
        priority: request.priority,
        period_ns: request.period_ns,
        budget_ns: request.budget_ns,
        ..Request::new(ns, ".")
    }
}
