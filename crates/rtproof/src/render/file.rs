//! The HTML report as a file: whole or not there.

use std::{ffi::OsString, fs, path::Path};

use anyhow::Context;
use rtproof_judge::Report;
use rtproof_record::Run;

use super::html::{self, Extra};

/// Writes the HTML report of a run. A file of that name is replaced.
///
/// # Errors
/// When the file cannot be written; a file of that name is left as it was.
pub fn write_html(
    path: &Path,
    run: &Run,
    report: &Report,
    banner: Option<String>,
) -> anyhow::Result<()> {
    let page = html::render(run, report, &Extra { banner });
    let mut beside = OsString::from(path);
    beside.push(".part");
    #[expect(clippy::disallowed_methods, reason = "the user's own file")]
    let written = fs::write(&beside, page).and_then(|()| fs::rename(&beside, path));
    written.with_context(|| {
        // What was begun is of no use.
        let _ = fs::remove_file(&beside);
        format!("{}: the report cannot be written; the record is complete", path.display())
    })
}
