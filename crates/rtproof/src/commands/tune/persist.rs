//! `rtproof tune persist`: what is applied now is repeated at each boot. Writes /etc/rtproof.toml
//! and rtproof.service under a journal of their own; `rtproof tune undo` takes them away.

use std::{io::Write as _, path::Path};

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    Facts,
    tune::{Change, Item, Journal, Machine, Standing},
};
use rtproof_judge::{checks, plan::units};
use rtproof_measure::task::LiveTasks;
use rtproof_results::tune::{Made, TakenBackOutcome, UNDONE, Undone};
use rtproof_run::tune::{
    config::{self, AbsentTarget, Config, ConfigIntent, NotRepeated},
    making, repeat,
};

use super::trial::all_or_none;
use super::{RequestArgs, RootArgs};
use crate::answers::tune;
use crate::exit::TextOutput;
use crate::show::ApplyProgress;
use crate::{exit, next, open_root};

/// Arguments of `tune persist`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune apply --cpus 2-3 && rtproof tune persist --cpus 2-3
  systemctl stop rtproof.service
  rtproof tune undo

Boot parameters and files last by themselves and are not repeated. The file may be edited; a boot
with rtproof.skip on the kernel's command line leaves it out. Exit code 3: something that is applied
cannot be repeated, and is named.")]
pub struct Args {
    /// What the machine is for: written into the file.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Which machine.
    #[command(flatten)]
    pub at: RootArgs,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Print what was done as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed; nothing that could be repeated; a program that a unit cannot
/// name.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.at.root.as_deref())?;
    let machine = Machine::new(&root, &LiveTasks)?;
    let exe = making::program_path(&root)?;
    let intent = ConfigIntent::from(&args.request.intent(&root, &Facts::read(&root))?);
    let applied = in_force(&machine)?;
    let items = applied.iter().map(|it| (&it.change, it.checks.as_slice(), reasons(&it.checks)));
    let (config, left_out) = Config::of(&root, intent, items);
    anyhow::ensure!(
        !config.changes.is_empty(),
        "nothing that a reboot takes away is applied; rtproof tune apply first"
    );
    let mut changes = vec![config.change()];
    changes.extend(units::boot_changes(&exe, config::PATH, &config.units()));
    let text = TextOutput::new(args.json);
    text.print(|to| {
        for change in &changes {
            writeln!(to, "{}: {}", change.target(), change.after())?;
        }
        for NotRepeated { change, why } in &left_out {
            writeln!(to, "not repeated: {}: {why}", change.target())?;
        }
        Ok(())
    })?;
    let question = format!("repeat {} at each boot?", making::count(config.changes.len()));
    anyhow::ensure!(args.yes || crate::consent(&question)?, "nothing was changed");
    let done = all_or_none(&machine, "tune persist".into(), changes.iter())?;
    text.print(|to| {
        rtproof_render::page::applied(to, &done, &next::root(args.at.root.as_deref()))
    })?;
    text.print_json(&tune::written(&done, "boot").with(&done))?;
    Ok(if left_out.is_empty() { exit::ACCEPTED } else { exit::NOT_PROVEN })
}

/// What is in force now of the open journals, in the order in which it was made; of a target the
/// last change.
fn in_force(machine: &Machine<'_>) -> anyhow::Result<Vec<Item>> {
    let mut items: Vec<Item> = Vec::new();
    for number in super::open_journals(machine)? {
        let journal = Journal::open_number(machine, number)?;
        for status in rtproof_host::tune::status(machine, &journal) {
            if status.standing != Standing::AsApplied {
                continue;
            }
            let target = |change: &Change| change.target();
            items.retain(|item| target(&item.change) != target(&status.change));
            items.push(Item { change: status.change, checks: status.checks });
        }
    }
    Ok(items)
}

/// Why checks ask for something, a line each.
fn reasons(ids: &[String]) -> Vec<String> {
    let reason = |id: &String| checks::by_id(id).map(|check| format!("{id}: {}", check.why));
    ids.iter().filter_map(reason).collect()
}

// `rtproof tune apply --from FILE` and `undo --from FILE`: what `rtproof.service` runs.

const SCHEMA: &str = "rtproof/tune-repeated/1";

/// The JSON form of `tune apply --from`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RepeatDocument {
    /// Version of this form: `rtproof/tune-repeated/1`.
    pub schema: &'static str,
    pub file: String,
    /// The journal; `null`: nothing was to be done.
    pub path: Option<String>,
    /// What became of each change, in the order of the file.
    pub changes: Vec<Made>,
    /// What the file names and this boot has not.
    pub absent: Vec<AbsentTarget>,
    /// Targets found under another name than in the file.
    pub notes: Vec<String>,
}

/// Sets what the file says.
///
/// # Errors
/// A file that is wrong; a journal that cannot be written. Nothing is changed then.
pub(super) fn apply(
    machine: &Machine<'_>,
    path: &Path,
    (yes, accept_owner): (bool, bool),
    text: TextOutput,
) -> anyhow::Result<u8> {
    let config = Config::open(path, accept_owner)?;
    if !yes {
        let prepared = repeat::prepare(machine, &config);
        text.print(|to| prepared.write(to, path))?;
        let question = format!("set these {}?", making::count(prepared.items.len()));
        anyhow::ensure!(crate::consent(&question)?, "nothing was changed");
    }
    let repeated = repeat::apply(machine, path, &config)?;
    let ended = repeated.ended();
    text.print(|to| repeated.write(to, path))?;
    text.print_json(&RepeatDocument {
        schema: SCHEMA,
        file: path.display().to_string(),
        path: repeated.journal,
        changes: repeated.changes,
        absent: repeated.absent,
        notes: repeated.notes,
    })?;
    Ok(exit::of(ended))
}

/// Undoes what was set from the file.
///
/// # Errors
/// A journal that cannot be read or written.
pub(super) fn undo(machine: &Machine<'_>, path: &Path, text: TextOutput) -> anyhow::Result<u8> {
    let journals = repeat::undo(machine, path, &mut ApplyProgress::new())?;
    let ended = making::undo_ended(&journals);
    text.print(|to| {
        let all = || journals.iter().flat_map(|journal| &journal.changes);
        for it in all() {
            let target = it.change.target();
            match it.outcome {
                TakenBackOutcome::Failed => {
                    let why = it.why.as_deref().unwrap_or_default();
                    writeln!(to, "not taken back: {target}: {why}")?;
                }
                TakenBackOutcome::LeftAlone => {
                    writeln!(to, "left alone, somebody has changed it since: {target}")?;
                }
                TakenBackOutcome::Unnoted => {
                    writeln!(to, "not taken back: {target}: {}", it.why.as_deref().unwrap_or("?"))?;
                }
                TakenBackOutcome::Restored
                | TakenBackOutcome::WasBefore
                | TakenBackOutcome::Gone => {}
            }
        }
        writeln!(to, "{} looked at", making::count(all().count()))
    })?;
    let still_open = super::not_closed(machine)?;
    let undone = Undone { schema: UNDONE, journals, unusable: Vec::new(), still_open };
    text.print_json(&tune::undone(&undone, None).with(&undone))?;
    Ok(exit::of(ended))
}
