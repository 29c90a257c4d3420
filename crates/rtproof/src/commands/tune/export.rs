//! `rtproof tune export`: the plan as files for those who manage machines otherwise. Changes
//! nothing on the machine; what a format cannot express is listed.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use rtproof_host::tune::Machine;
use rtproof_judge::plan::{Selection, build_options};
use rtproof_measure::LiveTasks;
use rtproof_results::tune::exported::{SCHEMA, Written};
use rtproof_run::{
    file::write_whole,
    tune::{
        export::{self, Exported, FORMATS, Format, Source},
        preview,
    },
};

use super::{
    plan,
    request::{self, RequestArgs},
};
use crate::{exit, print::Text, root::open_root};

/// Arguments of `tune export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune export --format ansible --cpus 2-3 ansible-out
  rtproof tune export --format tuned --root machine.txt --cpus 2-3 tuned-out

NOTES.md in the folder says how to use the files, and what of the plan is not in them; exit code 2
where something is not.")]
pub struct Args {
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
    let value = |format: &Format| clap::builder::PossibleValue::new(format.id).help(format.title);
    PossibleValuesParser::new(FORMATS.iter().map(value))
}

/// Runs the command.
///
/// # Errors
/// Usage: a root, CPUs or checks that are not there; a plan that contradicts itself; a folder that
/// cannot be written.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    let machine = Machine::for_reading(&root, &LiveTasks);
    let (facts, intent, mut plan) = plan::plan_of(&root, &args.request, &args.ids)?;
    let selection = Selection { ids: request::named(&args.ids)?, ..Selection::default() };
    let build = build_options(&facts, &intent, &selection);
    // The machine tells interrupts of one name apart.
    for step in &mut plan.steps {
        if let Ok(named) = machine.named(step.change.clone()) {
            step.change = named;
        }
    }
    let document = preview::document(&machine, &facts, &intent, plan.clone());
    let before: BTreeMap<_, _> = document
        .steps
        .into_iter()
        .filter_map(|it| Some((it.step.change.target(), it.before?)))
        .collect();
    let shown = document.machine;
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "?".into());
    let about = format!("Linux {} {}", or_unknown(shown.kernel), or_unknown(shown.arch));
    let source = Source {
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
    let written = Written {
        schema: SCHEMA,
        folder: args.folder.display().to_string(),
        files: exported.files.iter().map(|file| file.path.clone()).collect(),
        missed: exported.missed.into_iter().map(|it| (it.what, it.why)).collect(),
    };
    let text = Text::new(args.json);
    text.print(|to| rtproof_report::text::exported(to, &written))?;
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
        let said = || format!("{}: cannot be written", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(said)?;
        }
        write_whole(path, |to| Ok(to.write_all(file.content.as_bytes())?)).with_context(said)?;
        fs::set_permissions(path, fs::Permissions::from_mode(file.mode)).with_context(said)?;
    }
    Ok(())
}
