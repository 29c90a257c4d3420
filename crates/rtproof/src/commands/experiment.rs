//! `rtproof experiment`: which knob matters on this machine. Knobs of `tune` and options of
//! measuring are switched on and off in slices of time; nothing stays.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    Root,
    tune::{Journal, Machine},
};
use rtproof_judge::plan::Plan;
use rtproof_measure::{LiveTasks, loads::LoadSet};
use rtproof_record::{
    Effects,
    effects::{Decision, KnobResult},
};
use rtproof_run::{
    experiment::{
        self, Detectable, ExperimentInput, ExperimentSetup, Journaled,
        factors::{self, Factor},
        screening::ShownScreening,
    },
    parse,
    prove::{self, Output, Request, load_settings},
    tune::making,
};
use rtproof_stats::paired::PAIRS_MAX;

use super::tune::{self, RequestArgs};
use crate::commands::tune::apply::measured;
use crate::commands::tune::plan;
use crate::exit::TextOutput;
use crate::show::ExperimentProgress;
use crate::{answers, exit, next, show};

pub(super) const SCHEMA: &str = "rtproof/experiment/1";

/// Title of the journals of experiments.
const TITLE: &str = "experiment";

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExperimentDocument<'a> {
    pub(super) schema: &'static str,
    pub(super) record: String,
    pub(super) report: String,
    /// Smallest detectable change, and its basis.
    #[serde(rename = "seen")]
    detectable: &'a Detectable,
    /// The screening; null: there was none.
    screening: Option<&'a ShownScreening>,
    /// Numbers of the knobs that are worth having.
    pub(super) profile: &'a [usize],
    pub(super) effects: &'a Effects,
}

/// Arguments of `experiment`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  rtproof experiment --cpus 2-3
  rtproof experiment cpufreq-governor,thp irqbalance --slice 20s --profile-out good.json
  rtproof experiment /proc/sys/vm/stat_interval=120 dma-latency=0 priority=95 --yes
  rtproof experiment placebo --slice 2s --load idle --yes
  rtproof tune apply --plan good.json

What it can see and how long it takes is said before it starts. Everything is undone in the end and
on any exit; after a kill rtproof tune undo does it. Exit codes: 0 every knob is decided, 3 one
cannot be, 1 rtproof failed.")]
pub struct Args {
    /// Parameters of the kernel's command line, boot by boot
    #[command(subcommand)]
    pub command: Option<super::experiment_boots::BootsCommand>,

    /// What to try: checks of tune or sections of them, PATH=VALUE below /proc or /sys, an option
    /// (dma-latency=US, priority=N, policy=other|fifo|rr, load=LOAD), or placebo.
    /// Default: all that tune plan would change now
    #[arg(value_name = "KNOB")]
    pub knobs: Vec<String>,

    /// What the machine is for.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Pairs of slices for each knob, 6 to 24
    #[arg(long, value_name = "K", default_value_t = 12)]
    pub pairs: usize,

    /// Length of a slice: ten times longer than what comes and goes by itself
    #[arg(long = "slice", value_name = "TIME", default_value = "60s", value_parser = parse::time)]
    pub slice_ns: u64,

    /// One knob after the other, each alone: no screening of all at once
    #[arg(long)]
    pub one_by_one: bool,

    /// Take this for the spread of p99.9 from slice to slice, in percent, and measure no pilot
    #[arg(long, value_name = "PERCENT", value_parser = parse::spread)]
    pub spread: Option<f64>,

    /// Load of the whole time; default: cpu+memory+net+disk
    #[arg(long, value_name = "LOAD", value_parser = LoadSet::from_command_line)]
    pub load: Option<LoadSet>,

    /// Record kernel events, too: late wake-ups are explained, at a cost
    #[arg(long)]
    pub trace: bool,

    /// Write what helps as a plan for rtproof tune apply --plan
    #[arg(long, value_name = "FILE")]
    pub profile_out: Option<PathBuf>,

    /// Where record and report go: a folder, or a file name without extension
    #[arg(short, long, value_name = "PATH", default_value = ".")]
    pub output: PathBuf,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// Usage: unknown knobs, too many of them. A machine that cannot be changed, threads that
/// cannot run, a machine that could not be put back.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(command) = &args.command {
        return super::experiment_boots::run_boots(command);
    }
    let words: Vec<Factor> =
        args.knobs.iter().map(|word| factors::factor(word)).collect::<Result<_, _>>()?;
    let checks: Vec<String> = words
        .iter()
        .filter_map(|factor| match factor {
            Factor::Check(id) => Some(id.clone()),
            _ => None,
        })
        .collect();
    tune::named_checks(&checks)?;
    let root = Root::live();
    let machine = Machine::new(&root, &LiveTasks)?;
    refuse_left_over(&machine)?;
    let (facts, intent, mut plan) = plan::plan_of(&root, &args.request, &checks)?;
    if checks.is_empty() && !words.is_empty() {
        plan = Plan::default();
    }
    if let Some(conflict) = plan.conflicts.first() {
        anyhow::bail!("{}: several checks want it differently; name one of them", conflict.target);
    }
    for factor in &words {
        if let Factor::Values(name, values) = factor {
            plan.steps.extend(factors::steps(&root, name, values)?);
        }
    }
    making::allows(&root, plan.steps.iter().map(|step| &step.change))?;
    let (knobs, others) = factors::knobs_of(&plan, &words);
    let text = TextOutput::new(args.json);
    text.print(|to| {
        others.iter().try_for_each(|(name, why)| {
            rtproof_render::sections::effects::line(to, &format!("not tried: {name}: {why}"))
        })
    })?;
    if knobs.is_empty() {
        return Err(exit::usage(
            "nothing to try: the plan has no change that can be switched on and off; name knobs, \
             e.g. rtproof experiment dma-latency=0",
        ));
    }
    let given = prove_args(args)?;
    let options = prove::resolve_options(&given, &facts)?;
    let per_s = options.cpus.len() as f64 * 1e9 / options.period_ns as f64;
    let setup =
        ExperimentSetup::new(knobs.len(), args.pairs, args.slice_ns, args.one_by_one, per_s)?;
    let output = Output::choose(&args.output, &facts)?;
    if let Some(path) = &args.profile_out {
        anyhow::ensure!(!path.exists(), "{}: there already; name another file", path.display());
    }
    let names: Vec<&str> = knobs.iter().map(|knob| knob.name.as_str()).collect();
    let title = format!("{TITLE} {}", names.join(" "));
    let mut switch = Journaled::new(&machine, &title).with_loads(load_settings(
        &options,
        given.load_dir.as_deref(),
        &output,
        &facts,
    ));
    let wanted = ExperimentInput {
        root: &root,
        facts: &facts,
        knobs: &knobs,
        setup,
        args: &given,
        output: &output,
        spread: args.spread,
    };
    let detectable = experiment::before(&wanted, &mut switch, &mut ExperimentProgress::new(text))?;
    if !args.yes && !crate::consent("try them?")? {
        anyhow::bail!("nothing was changed");
    }
    let found = experiment::run_experiment(
        &wanted,
        &detectable,
        &mut switch,
        &mut ExperimentProgress::new(text),
    )?;
    let cut_short = found.results.cut_short();
    let has_steps = !experiment::plan_of(&plan, &knobs, &found.profile).steps.is_empty();
    // More pairs decide nothing of a knob that could not be tried.
    let undecided = |knob: &KnobResult| knob.decision == Decision::CannotDecide;
    let is_open = cut_short.is_none() && found.results.effects()?.knobs.iter().any(undecided);
    let apply = |names: &[&str]| match names {
        [] => is_open.then(|| again(args)).flatten(),
        _ => applied(args, names).filter(|_| has_steps),
    };
    let answer = answers::experiment_answer(found.results.effects()?, cut_short.as_deref(), apply);
    let html = show::show_experiment(&found.results, &answer, text, &output)?;
    text.print_json(&answer.with(&ExperimentDocument {
        schema: SCHEMA,
        record: output.record.display().to_string(),
        report: output.html.display().to_string(),
        detectable: &detectable,
        screening: found.screening.as_ref(),
        profile: &found.profile,
        effects: found.results.effects()?,
    }))?;
    let (profile, code) = (found.profile, show::experiment_code(found.results, html)?);
    if let Some(path) = &args.profile_out {
        let kept = experiment::plan_of(&plan, &knobs, &profile);
        let n = kept.steps.len();
        experiment::write_profile(path, &machine, &facts, &intent, kept)?;
        let settings: Vec<String> =
            experiment::settings(&knobs, &profile).into_iter().map(ToString::to_string).collect();
        text.print(|to| {
            let file = path.display();
            let line = match n {
                0 => format!("profile  {file}: nothing that a plan can hold helps"),
                n => format!(
                    "profile  {file}: {}; rtproof tune apply --plan {file}",
                    rtproof_judge::units::count(n, "change")
                ),
            };
            rtproof_render::sections::effects::line(to, &line)?;
            match settings.is_empty() {
                true => Ok(()),
                false => rtproof_render::sections::effects::line(
                    to,
                    &format!("helps, and is the application's to do: {}", settings.join(" ")),
                ),
            }
        })?;
    }
    Ok(code)
}

/// The command that sets what helps; `None`: no single one does.
fn applied(args: &Args, names: &[&str]) -> Option<String> {
    if let Some(path) = &args.profile_out {
        return Some(format!("rtproof tune apply --plan {} --confirm 60s", next::path(path)));
    }
    let ids: Vec<String> =
        names.iter().flat_map(|name| name.split(' ')).map(str::to_owned).collect();
    let is_known = tune::named_checks(&ids).is_ok();
    is_known.then(|| format!("rtproof {} --confirm 60s", args.request.title("tune apply", &ids)))
}

/// The same with twice the pairs, or where there are no more, with slices twice as long; `None`:
/// the file of `--profile-out` is there now.
fn again(args: &Args) -> Option<String> {
    let words: Vec<String> = args.knobs.iter().map(|word| next::quoted(word)).collect();
    let (pairs, slice_ns) = match args.pairs {
        PAIRS_MAX => (PAIRS_MAX, args.slice_ns * 2),
        pairs => (PAIRS_MAX.min(pairs * 2), args.slice_ns),
    };
    let mut command = format!(
        "rtproof {} --pairs {pairs} --slice {}",
        args.request.title("experiment", &words),
        next::time(slice_ns)
    );
    if let Some(load) = &args.load {
        command += &format!(" --load {}", next::quoted(&load.to_string()));
    }
    let switches = [("--one-by-one", args.one_by_one), ("--trace", args.trace)];
    switches
        .iter()
        .filter(|(_, is_on)| *is_on)
        .for_each(|(name, _)| command += &format!(" {name}"));
    args.profile_out.is_none().then_some(command)
}

/// What an experiment that was killed left on has to go first.
fn refuse_left_over(machine: &Machine<'_>) -> anyhow::Result<()> {
    let left = Journal::list(machine)?.into_iter().find(|journal| {
        !journal.closed && journal.problem.is_none() && journal.what.starts_with(TITLE)
    });
    match left {
        None => Ok(()),
        Some(journal) => anyhow::bail!(
            "{}: an earlier experiment was killed, and what it tried is still on; run rtproof tune \
             undo --journal {} first",
            journal.path,
            journal.number
        ),
    }
}

/// The run that is requested.
fn prove_args(args: &Args) -> anyhow::Result<Request> {
    let mut given = measured(&args.request, 60_000_000_000);
    given.load = match &args.load {
        Some(load) => Some(load.clone()),
        // One load for the whole time: slices are to be alike.
        None => Some(experiment::LOAD.parse()?),
    };
    given.trace = args.trace;
    given.output.clone_from(&args.output);
    Ok(given)
}
