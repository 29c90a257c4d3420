//! `rtproof experiment boots`, `resume`, `unit`, `end`: an experiment whose unit is the boot. The
//! machine is booted by its owner, or with --reboot by rtproof.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{Facts, Root, tune::Machine};
use rtproof_judge::units;
use rtproof_measure::{LiveTasks, loads::LoadSet};
use rtproof_record::Effects;
use rtproof_results::Answer;
use rtproof_run::{
    experiment::{
        LOAD,
        analyse::Untried,
        boots::{self, Boot, BootsState, Pilot, SPREAD},
        conduct::Conduct,
        cut_short, is_open, seed,
    },
    parse,
    prove::{self, Output, Request},
    tune::boot::of_plan,
};

use super::tune::{RequestArgs, RootArgs};
use super::{prove as prove_command, tune};
use crate::commands::tune::plan;
use crate::commands::tune::trial::reboot;
use crate::exit::TextOutput;
use crate::show::ProgressBar;
use crate::{answers, exit, next as hints, open_root};

const SCHEMA: &str = "rtproof/experiment-boots/1";

/// What to do with an experiment over boots.
#[derive(Clone, Debug, Subcommand)]
pub enum BootsCommand {
    /// Begin: boots with and without parameters of the kernel, at least six of each
    Boots(Box<BootsArgs>),
    /// Measure this boot and choose the next; what rtproof-experiment.service does
    Resume(Resume),
    /// Print a unit that resumes after each boot
    Unit(BootsUnitArgs),
    /// Abandon it: remove the boot entry, report what was measured
    End(Resume),
}

/// Arguments of `experiment boots`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof experiment boots nohz_full=2-3 rcu_nocbs=2-3 --cpus 2-3
  rtproof experiment boots --only isolcpus,nohz-full --cpus 2-3 --reboot --yes
  rtproof experiment unit >/etc/systemd/system/rtproof-experiment.service
  systemctl enable rtproof-experiment.service

All parameters are one knob. Each boot is chosen through the entry of rtproof tune trial, once: a
boot that fails falls back to the entry of now. Nothing is rebooted without --reboot.")]
pub struct BootsArgs {
    /// Kernel parameters; default: those of the plan
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,

    /// Only parameters that these checks ask for: ids, or sections, joined by commas
    #[arg(long, value_name = "ID,...", value_delimiter = ',', conflicts_with = "words")]
    pub only: Vec<String>,

    /// What the machine is for.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Which machine.
    #[command(flatten)]
    pub at: RootArgs,

    /// Boots of each kind, 6 to 20
    #[arg(long = "boots", value_name = "N", default_value_t = 8)]
    pub per_arm: usize,

    /// Length of the slice of each boot
    #[arg(long = "slice", value_name = "TIME", default_value = "60s", value_parser = parse::time)]
    pub slice_ns: u64,

    /// Spread of p99.9 from boot to boot, in percent, used to estimate the smallest detectable
    /// difference; default: 10
    #[arg(long, value_name = "PERCENT", value_parser = parse::spread)]
    pub spread: Option<f64>,

    /// Load of the whole time; default: cpu+memory+net+disk
    #[arg(long, value_name = "LOAD", value_parser = LoadSet::from_command_line)]
    pub load: Option<LoadSet>,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Reboot at once
    #[arg(long, conflicts_with = "root")]
    pub reboot: bool,
}

/// Arguments of `experiment resume` and `end`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof experiment resume
  rtproof experiment resume --reboot
  rtproof experiment end")]
pub struct Resume {
    /// Which machine.
    #[command(flatten)]
    pub at: RootArgs,

    /// Reboot into the next one at once
    #[arg(long, conflicts_with = "root")]
    pub reboot: bool,

    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `experiment unit`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Example:
  rtproof experiment unit >/etc/systemd/system/rtproof-experiment.service")]
pub struct BootsUnitArgs {
    /// The unit reboots the machine after each boot until the experiment is over
    #[arg(long)]
    pub reboot: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExperimentBootsDocument<'a> {
    schema: &'static str,
    /// Boots that were measured, of those that were planned.
    boots: [usize; 2],
    /// What they say so far.
    effects: &'a Effects,
}

pub fn run_boots(command: &BootsCommand) -> anyhow::Result<u8> {
    match command {
        BootsCommand::Boots(args) => begin(args),
        BootsCommand::Resume(args) => resume(args),
        BootsCommand::Unit(args) => unit(args),
        BootsCommand::End(args) => end(args),
    }
}

fn begin(args: &BootsArgs) -> anyhow::Result<u8> {
    if !(6..=20).contains(&args.per_arm) {
        return Err(exit::usage("--boots: from 6, below which nothing can be decided, to 20"));
    }
    let mut words = boots::parse_words(&args.words)?;
    tune::named_checks(&args.only)?;
    let folder = args.at.root.as_deref();
    let root = open_root(folder)?;
    let machine = Machine::new(&root, &LiveTasks)?;
    if let Some(state) = BootsState::read(folder)? {
        anyhow::bail!(
            "an experiment with {} is under way, {} of {} boots measured: rtproof experiment \
             resume, or end",
            state.words.join(" "),
            state.boots.len(),
            state.order.len()
        );
    }
    if words.is_empty() {
        let (_, _, plan) = plan::plan_of(&root, &args.request, &args.only)?;
        words = plan.boot.iter().map(|word| of_plan(word).parameter).collect();
    }
    if words.is_empty() {
        return Err(exit::usage("nothing to try: the plan has no kernel parameter; name one"));
    }
    if boots::has_words(&root, &words) {
        anyhow::bail!(
            "{}: on the command line already, so that no boot is without; boot the entry without \
             first",
            words.join(" ")
        );
    }
    let seed = seed()?;
    let order = boots::order(seed, args.per_arm);
    let mut state = BootsState::new(seed, words, order, args.slice_ns, prove_words(args));
    // What cannot be measured is reported now, not after the first boot.
    prove::resolve_options(&measured(&state)?, &Facts::read(&Root::live()))?;
    let text = TextOutput::new(false);
    let sentence = boots::sentence(&state, args.spread.unwrap_or(SPREAD));
    text.print(|to| rtproof_render::sections::effects::experiment(to, &sentence))?;
    if !args.yes && !crate::consent("make the entry and begin?")? {
        anyhow::bail!("nothing was changed");
    }
    let first = state.next().unwrap_or(false);
    let argument = boots::choose(&machine, &state.words, first)?;
    state.last_boot_id = rtproof_run::tune::boot_id(&root)?;
    state.write(folder)?;
    next(text, &root, &state, argument.as_deref(), args.reboot)
}

/// Further words of `prove`.
fn prove_words(args: &BootsArgs) -> Vec<String> {
    let request = &args.request;
    let options = [
        ("--cpus", request.cpus.clone()),
        ("--profile", request.intent.profile.clone()),
        ("--priority", request.priority.map(|priority| priority.to_string())),
        ("--period", request.period_ns.map(|ns| format!("{ns}ns"))),
        ("--budget", request.budget_ns.map(|ns| format!("{ns}ns"))),
        ("--load", args.load.as_ref().map(ToString::to_string)),
    ];
    let given = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
    given.flatten().collect()
}

/// Words of `prove`, as the state of an experiment keeps them.
#[derive(Debug, clap::Parser)]
struct Prove {
    #[command(flatten)]
    args: prove_command::Args,
}

/// The run that measures the slice of a boot.
fn measured(state: &BootsState) -> anyhow::Result<Request> {
    let ns =
        (2 * (state.slice_ns + state.settle_ns) + 30_000_000_000).next_multiple_of(1_000_000_000);
    let mut words =
        vec!["prove".to_owned(), "--no-trace".into(), "--for".into(), format!("{ns}ns")];
    words.extend(state.args.iter().cloned());
    let mut args = <Prove as clap::Parser>::try_parse_from(words)?.args.request();
    if args.load.is_none() {
        args.load = Some(LOAD.parse()?);
    }
    Ok(args)
}

fn resume(args: &Resume) -> anyhow::Result<u8> {
    let folder = args.at.root.as_deref();
    let root = open_root(folder)?;
    let machine = Machine::new(&root, &LiveTasks)?;
    let mut state = BootsState::of(folder)?;
    let text = TextOutput::new(args.json);
    let boot_id = rtproof_run::tune::boot_id(&root)?;
    if boot_id == state.last_boot_id {
        anyhow::bail!("this boot is no new one: reboot, then run rtproof experiment resume");
    }
    if let Some(with) = state.next() {
        if boots::has_words(&root, &state.words) != with {
            // Chosen again: the next boot may be it.
            let argument = boots::choose(&machine, &state.words, with)?;
            state.last_boot_id = boot_id;
            state.write(folder)?;
            let has = if with { "lacks" } else { "has" };
            text.print(|to| {
                let words = state.words.join(" ");
                let line = format!("this boot {has} {words} and was not measured; chosen again");
                rtproof_render::sections::effects::line(to, &line)
            })?;
            return next(text, &root, &state, argument.as_deref(), args.reboot);
        }
        let boot = measure(&state, folder, boot_id.clone(), with)?;
        state.boots.push(boot);
        state.last_boot_id = boot_id;
        state.write(folder)?;
    }
    match state.next() {
        Some(with) => {
            let argument = boots::choose(&machine, &state.words, with)?;
            next(text, &root, &state, argument.as_deref(), args.reboot)
        }
        None => {
            boots::take_back(&machine)?;
            BootsState::forget(folder)?;
            print_state(text, &state)
        }
    }
}

/// Measures the slice of this boot.
fn measure(
    state: &BootsState,
    folder: Option<&Path>,
    boot_id: String,
    with: bool,
) -> anyhow::Result<Boot> {
    let live = Root::live();
    let facts = Facts::read(&live);
    let args = measured(state)?;
    let options = prove::resolve_options(&args, &facts)?;
    let name = format!("boot-{:x}-{:02}", state.seed, state.boots.len());
    let stem = boots::folder(folder).join(name);
    // A resume that was killed left a record that holds no slice.
    let left: PathBuf = stem.with_extension("rtproof");
    if left.exists() {
        std::fs::remove_file(&left)?;
    }
    let output = Output::choose(&stem, &facts)?;
    let (schedule, trial) = Pilot::settled(state.slice_ns, state.settle_ns);
    let mut nothing = NoSwitch;
    let mut silent = |_| {};
    let mut conduct = Conduct::new(
        &mut nothing,
        &mut silent,
        Vec::new(),
        Box::new(schedule),
        trial,
        Untried::new(),
        options.cpus.len(),
    );
    let load_dir = args.load_dir.as_deref();
    let mut progress = ProgressBar::new(options.duration_ns);
    let finishing =
        prove::measure(&live, facts, &options, load_dir, &output, &mut conduct, &mut progress)?;
    let slice = conduct.slices().first().cloned();
    drop(conduct);
    if let Some(why) = cut_short(&finishing.run) {
        anyhow::bail!("{why}: this boot was not measured; run rtproof experiment resume again");
    }
    let Some(slice) = slice else {
        anyhow::bail!("the slice was not measured to its end: run rtproof experiment resume again");
    };
    let report = rtproof_judge::Report::new(&finishing.run, &finishing.integrity());
    if let Some(failure) = finishing.seal(&report)?.failure {
        return Err(failure);
    }
    Ok(Boot {
        boot_id,
        with,
        record: output.record.display().to_string(),
        to_ns: slice.to_ns,
        scheduled: slice.scheduled,
        p999_ns: slice.p999_ns,
        max_ns: slice.max_ns,
        missed: slice.missed,
    })
}

/// Nothing is switched while a boot is measured.
struct NoSwitch;

impl rtproof_run::experiment::Switch for NoSwitch {
    fn on(&mut self, _: &[rtproof_host::tune::Item]) -> anyhow::Result<()> {
        Ok(())
    }

    fn off(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn keep(&mut self, _: &[rtproof_host::tune::Item]) -> anyhow::Result<()> {
        Ok(())
    }
}

/// What comes next; reboots if it was asked for.
fn next(
    text: TextOutput,
    root: &Root,
    state: &BootsState,
    argument: Option<&str>,
    reboots: bool,
) -> anyhow::Result<u8> {
    let with = if state.next() == Some(true) { "with" } else { "without" };
    let (done, all) = (state.boots.len(), state.order.len());
    let how = match (reboots, argument) {
        (true, _) => "rebooting, then rtproof experiment resume".to_owned(),
        (false, Some(argument)) => format!("reboot '{argument}', then rtproof experiment resume"),
        (false, None) => "reboot, then rtproof experiment resume".into(),
    };
    let answer = Answer {
        result: format!(
            "{done} of {all} boots measured; the next one is {with} {}: {how}",
            state.words.join(" ")
        ),
        ..Answer::default()
    };
    text.print(|to| rtproof_render::page::answer_text(to, &answer))?;
    text.print_json(&answer.clone().with(&ExperimentBootsDocument {
        schema: SCHEMA,
        boots: [done, all],
        effects: &boots::effects(state),
    }))?;
    if reboots {
        reboot(root, argument)?;
    }
    Ok(exit::ACCEPTED)
}

fn print_state(text: TextOutput, state: &BootsState) -> anyhow::Result<u8> {
    let effects = boots::effects(state);
    let words: Vec<String> = state.words.iter().map(|word| hints::quoted(word)).collect();
    let missing = state.order.len() - state.boots.len();
    let cut_short =
        (missing > 0).then(|| format!("{} not measured", units::count(missing, "boot")));
    let trial = |names: &[&str]| {
        (!names.is_empty()).then(|| format!("rtproof tune trial {}", words.join(" ")))
    };
    let answer = answers::experiment_answer(&effects, cut_short.as_deref(), trial);
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::sections::effects::table_text(to, &effects)?;
        let records = units::count(state.boots.len(), "record");
        let line = match state.boots.first() {
            Some(boot) => format!(
                "{records} in {}",
                Path::new(&boot.record).parent().unwrap_or(Path::new("/")).display()
            ),
            None => "no boot was measured".into(),
        };
        rtproof_render::sections::effects::line(to, &line)
    })?;
    text.print_json(&answer.with(&ExperimentBootsDocument {
        schema: SCHEMA,
        boots: [state.boots.len(), state.order.len()],
        effects: &effects,
    }))?;
    Ok(if is_open(&effects) { exit::NOT_PROVEN } else { exit::ACCEPTED })
}

fn end(args: &Resume) -> anyhow::Result<u8> {
    let folder = args.at.root.as_deref();
    let root = open_root(folder)?;
    let machine = Machine::new(&root, &LiveTasks)?;
    boots::take_back(&machine)?;
    // A damaged state is given up, too.
    let state = BootsState::read(folder);
    BootsState::forget(folder)?;
    match state {
        Ok(Some(state)) => print_state(TextOutput::new(args.json), &state),
        Ok(None) => Err(exit::usage("no experiment over boots is under way")),
        Err(error) => {
            let why = "abandoned; no result";
            Err(error.context(why))
        }
    }
}

fn unit(args: &BootsUnitArgs) -> anyhow::Result<u8> {
    let exe = rtproof_run::tune::making::program_path(&Root::live())?;
    let reboot = if args.reboot { " --reboot" } else { "" };
    let unit = format!(
        "[Unit]\nDescription=Experiment of rtproof over boots: measure this one, choose the next\n\
         After=multi-user.target\nConditionPathExists=/var/lib/rtproof/experiment/state.json\n\n\
         [Service]\nType=oneshot\nExecStart={exe} experiment resume{reboot}\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    );
    write!(anstream::stdout().lock(), "{unit}")?;
    Ok(exit::ACCEPTED)
}
