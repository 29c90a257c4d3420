//! `rtproof tune apply --from FILE` and `undo --from FILE`: what `rtproof.service` runs.

use std::path::Path;

use rtproof_host::tune::{Machine, Outcome};

use crate::{
    render::text::Text,
    tune::{ask, config::Config, making, repeat},
};

/// Sets what the file says.
///
/// # Errors
/// A file that is wrong; a journal that cannot be written. Nothing is changed then.
pub(super) fn apply(machine: &Machine<'_>, path: &Path, yes: bool) -> anyhow::Result<u8> {
    let config = Config::open(path)?;
    let text = Text::new(false);
    if !yes {
        let prepared = repeat::prepare(machine, &config);
        text.print(|to| prepared.write(to, path))?;
        let question = format!("set these {}?", making::count(prepared.items.len()));
        anyhow::ensure!(ask::consent(&question)?, "nothing was changed");
    }
    let repeated = repeat::apply(machine, path, &config)?;
    text.print(|to| repeated.write(to, path))?;
    Ok(repeated.code())
}

/// Takes back what was set from the file.
///
/// # Errors
/// A journal that cannot be read or written.
pub(super) fn undo(machine: &Machine<'_>, path: &Path) -> anyhow::Result<u8> {
    let undone = repeat::undo(machine, path)?;
    Text::new(false).print(|to| {
        for it in &undone {
            let target = it.change.target();
            match &it.outcome {
                Outcome::Failed { why } => writeln!(to, "not taken back: {target}: {why}")?,
                Outcome::LeftAlone { .. } => {
                    writeln!(to, "left alone, somebody has changed it since: {target}")?;
                }
                Outcome::Restored | Outcome::WasBefore | Outcome::Gone { .. } => {}
            }
        }
        writeln!(to, "{} looked at", making::count(undone.len()))
    })?;
    Ok(repeat::undo_code(&undone))
}
