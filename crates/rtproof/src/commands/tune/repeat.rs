//! `rtproof tune apply --from FILE` and `undo --from FILE`: what `rtproof.service` runs.

use std::{io::Write as _, path::Path};

use rtproof_host::tune::Machine;
use rtproof_results::tune::outcome::{Made, TakenBackOutcome, UNDONE, Undone};
use rtproof_run::tune::{
    config::{Absent, Config},
    making, repeat,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{answers, ask, exit, print::Text, show::making::Making};

const SCHEMA: &str = "rtproof/tune-repeated/1";

/// The JSON form of `tune apply --from`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Document {
    /// Version of this form: `rtproof/tune-repeated/1`.
    pub schema: &'static str,
    pub file: String,
    /// The journal; `null`: nothing was to be done.
    pub path: Option<String>,
    /// What became of each change, in the order of the file.
    pub changes: Vec<Made>,
    /// What the file names and this boot has not.
    pub absent: Vec<Absent>,
    /// What is there under another name than the file says.
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
    text: Text,
) -> anyhow::Result<u8> {
    let config = Config::open(path, accept_owner)?;
    if !yes {
        let prepared = repeat::prepare(machine, &config);
        text.print(|to| prepared.write(to, path))?;
        let question = format!("set these {}?", making::count(prepared.items.len()));
        anyhow::ensure!(ask::consent(&question)?, "nothing was changed");
    }
    let repeated = repeat::apply(machine, path, &config)?;
    let ended = repeated.ended();
    text.print(|to| repeated.write(to, path))?;
    text.print_json(&Document {
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
pub(super) fn undo(machine: &Machine<'_>, path: &Path, text: Text) -> anyhow::Result<u8> {
    let journals = repeat::undo(machine, path, &mut Making::new())?;
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
    let still_open = super::journals::not_closed(machine)?;
    let undone = Undone { schema: UNDONE, journals, unusable: Vec::new(), still_open };
    text.print_json(&answers::tune::undone(&undone, None).with(&undone))?;
    Ok(exit::of(ended))
}
