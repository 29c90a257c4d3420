//! HTML pages written to files.

use std::path::Path;

use anyhow::Context;
use rtproof_judge::{Report, Standing};
use rtproof_record::{Run, import::Imported};
use rtproof_report::html::{self, Extra};
use rtproof_run::file::write_whole;

/// Writes the HTML report of a run; `next` is a command to go on with. A file of that name is
/// replaced.
///
/// # Errors
/// When the file cannot be written; a file of that name is left as it was.
pub(crate) fn write_html(
    path: &Path,
    run: &Run,
    report: &Report,
    banner: Option<String>,
    next: Option<&str>,
) -> anyhow::Result<()> {
    let page = html::render(run, report, &Extra { banner, next: next.map(str::to_owned) });
    write_whole(path, |to| Ok(to.write_all(page.as_bytes())?)).with_context(|| {
        let record = match report.record {
            Standing::Sealed => "; the record is complete",
            Standing::Torn | Standing::Altered { .. } => "",
        };
        format!("{}: the report cannot be written{record}", path.display())
    })
}

/// Writes the page of what was imported. A file of that name is replaced.
///
/// # Errors
/// When the file cannot be written; a file of that name is left as it was.
pub(crate) fn write_imported(
    path: &Path,
    imported: &Imported,
    banner: Option<&str>,
) -> anyhow::Result<()> {
    let page = html::imported(imported, banner);
    write_whole(path, |to| Ok(to.write_all(page.as_bytes())?))
        .with_context(|| format!("{}: the report cannot be written", path.display()))
}
