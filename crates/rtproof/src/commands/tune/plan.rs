//! `rtproof tune plan`: what would be changed, as a diff with reasons. Changes nothing, needs no
//! rights, works on a captured machine.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::builder::PossibleValuesParser;

use rtproof_host::{
    Facts, Root,
    door::write_whole,
    tune::{Machine, NotTunable},
};
use rtproof_judge::{
    Finding, Intent, checks,
    plan::{self, Selection, build_options},
};
use rtproof_kernel::rebase;
use rtproof_measure::LiveTasks;
use rtproof_results::tune::{EXPORTED_SCHEMA, ExportedDocument, PlanDocument};
use rtproof_run::tune::{
    boot,
    export::{self, ExportFormat, ExportSource, Exported, FORMATS},
    making,
};

use super::RequestArgs;
use crate::answers::tune;
use crate::exit::TextOutput;
use crate::{exit, next, open_root};

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
    let text = TextOutput::new(args.json);
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
    let mut answer = tune::plan(&document, now.or_else(|| trial.clone()));
    answer.why = match (answer.why, refused) {
        (Some(why), Some(refused)) => Some(format!("{why}; {refused}")),
        (why, refused) => why.or(refused),
    };
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::page::plan(to, &document, crate::is_verbose())?;
        let trial = trial.filter(|_| both).map(|trial| format!("for one boot: {trial}"));
        rtproof_render::page::hint(to, trial.as_slice())?;
        rtproof_render::page::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&document))?;
    Ok(exit::ACCEPTED)
}

/// Makes the plan of a machine.
pub(super) fn make(
    machine: &Machine<'_>,
    args: &RequestArgs,
    ids: &[String],
) -> anyhow::Result<PlanDocument> {
    let offer = |findings: &mut [Finding]| rebase::replace_advice(machine.root(), findings);
    let (facts, intent, plan) = plan_with(machine.root(), args, ids, &offer)?;
    Ok(boot::document(machine, &facts, &intent, plan))
}

/// Facts, intent and plan of a machine.
pub(crate) fn plan_of(
    root: &Root,
    args: &RequestArgs,
    ids: &[String],
) -> anyhow::Result<(Facts, Intent, plan::Plan)> {
    plan_with(root, args, ids, &|_| {})
}

/// As [`plan_of`], with what is offered for findings that the plan is about.
fn plan_with(
    root: &Root,
    args: &RequestArgs,
    ids: &[String],
    offer: &dyn Fn(&mut [Finding]),
) -> anyhow::Result<(Facts, Intent, plan::Plan)> {
    let ids = super::named_checks(ids)?;
    let facts = Facts::read(root);
    let intent = args.intent(root, &facts)?;
    let is_ours = |cpu: u32| intent.rt_cpus.contains(cpu);
    let online = facts.cpus.online.value();
    let selection = Selection {
        ids,
        level: args.level.level(),
        has_own_cpus: online.is_some_and(|online| !online.iter().all(is_ours)),
        risky: args.risky,
        durable: args.durable,
        exe: making::program_path(root).unwrap_or_else(|_| making::USUAL.into()),
    };
    let mut findings = checks::judge_all(&facts, &intent);
    if selection.includes(rebase::CHECK) {
        offer(&mut findings);
    }
    let plan = plan::make(&facts, &findings, &intent, &selection);
    Ok((facts, intent, plan))
}

/// What makes the changes, else what shows that the machine is good enough; what tries the boot
/// parameters.
fn next(document: &PlanDocument, args: &Args) -> (Option<String>, Option<String>) {
    // A file of `capture` is a machine that is not here.
    let root = args.root.as_deref();
    if root.is_some_and(|root| !root.is_dir()) || !document.conflicts.is_empty() {
        return (None, None);
    }
    let is_here = root.is_none();
    let root = next::root(root);
    let command = |name: &str| format!("rtproof {}{root}", args.request.title(name, &args.ids));
    let mut now = None;
    let installs = document.steps.iter().any(|it| super::installs(&it.step.change));
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

// `rtproof tune export`: the plan as files for other configuration management. Changes
// nothing on the machine; what a format cannot express is listed.

/// Arguments of `tune export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune export --format ansible --cpus 2-3 ansible-out
  rtproof tune export --format tuned --root machine.txt --cpus 2-3 tuned-out

NOTES.md in the folder says how to use the files, and what of the plan is not in them; exit code 2
where something is not.")]
pub struct TuneExportArgs {
    /// Folder to write to; made where it is not there
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Checks, or sections of them (power, memory ...), whose findings to plan for; default: all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,

    /// Format
    #[arg(long, value_parser = formats())]
    pub format: String,

    /// What the machine is for.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Plan for a captured machine: a file of `rtproof capture`, or a folder that holds its /proc,
    /// /sys, /etc and /boot
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Replace files that are there
    #[arg(long)]
    pub force: bool,

    /// Print what was written as JSON
    #[arg(long)]
    pub json: bool,
}

fn formats() -> PossibleValuesParser {
    let value =
        |format: &ExportFormat| clap::builder::PossibleValue::new(format.id).help(format.title);
    PossibleValuesParser::new(FORMATS.iter().map(value))
}

/// Runs the command.
///
/// # Errors
/// Usage: a root, CPUs or checks that are not there; a plan that contradicts itself; a folder that
/// cannot be written.
pub fn run_export(args: &TuneExportArgs) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    let machine = Machine::for_reading(&root, &LiveTasks);
    let (facts, intent, mut plan) = plan_of(&root, &args.request, &args.ids)?;
    let selection = Selection { ids: super::named_checks(&args.ids)?, ..Selection::default() };
    let build = build_options(&facts, &intent, &selection);
    // Interrupts of one name are distinguished by the machine's numbers.
    for step in &mut plan.steps {
        if let Ok(named) = machine.named(step.change.clone()) {
            step.change = named;
        }
    }
    let document = boot::document(&machine, &facts, &intent, plan.clone());
    let before: BTreeMap<_, _> = document
        .steps
        .into_iter()
        .filter_map(|it| Some((it.step.change.target(), it.before?)))
        .collect();
    let shown = document.machine;
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "?".into());
    let about = format!("Linux {} {}", or_unknown(shown.kernel), or_unknown(shown.arch));
    let source = ExportSource {
        plan: &plan,
        machine: &about,
        realtime: &intent.rt_cpus,
        housekeeping: &intent.housekeeping,
        build: build.as_deref(),
        before: &before,
    };
    let format = export::format(&args.format).map_err(|error| exit::usage(error.to_string()))?;
    let exported = export::export(format, &source).map_err(|error| anyhow::anyhow!("{error}"))?;
    write(&args.folder, &exported, args.force)?;
    let written = ExportedDocument {
        schema: EXPORTED_SCHEMA,
        folder: args.folder.display().to_string(),
        files: exported.files.iter().map(|file| file.path.clone()).collect(),
        missed: exported.missed.into_iter().map(|it| (it.what, it.why)).collect(),
    };
    let text = TextOutput::new(args.json);
    text.print(|to| rtproof_render::page::exported(to, &written))?;
    text.print_json(&written)?;
    Ok(if written.missed.is_empty() { exit::ACCEPTED } else { exit::REFUSED })
}

/// Writes the files. None is replaced unless that was asked for, and then none is begun.
fn write(folder: &Path, exported: &Exported, force: bool) -> anyhow::Result<()> {
    let paths: Vec<PathBuf> = exported.files.iter().map(|file| folder.join(&file.path)).collect();
    if let Some(there) = paths.iter().find(|path| !force && fs::symlink_metadata(path).is_ok()) {
        anyhow::bail!(
            "{}: is there already; name another folder, or give --force",
            there.display()
        );
    }
    for (file, path) in exported.files.iter().zip(&paths) {
        let context = || format!("{}: cannot be written", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(context)?;
        }
        write_whole(path, |to| Ok(to.write_all(file.content.as_bytes())?)).with_context(context)?;
        fs::set_permissions(path, fs::Permissions::from_mode(file.mode)).with_context(context)?;
    }
    Ok(())
}
