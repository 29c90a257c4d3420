//! A folder of runs that are kept for reference: records and result files of other tools.

use std::path::Path;

use anyhow::Context;
use rtproof_judge::compare::{LeftOut, Side};

use super::Loader;
use crate::usage::usage;

/// Files of a folder that are read, at most.
const FILES_MAX: usize = 2000;

/// The runs of a folder, and the files that are none. Folders in it are not entered.
///
/// # Errors
/// Not a folder, one that cannot be read, one with too many files.
pub fn folder(loader: &Loader, folder: &Path) -> anyhow::Result<(Vec<Side>, Vec<LeftOut>)> {
    #[expect(clippy::disallowed_methods, reason = "the user's own folder")]
    let entries = std::fs::read_dir(folder).with_context(|| {
        format!("{}: the folder of references cannot be read", folder.display())
    })?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths =
        paths.with_context(|| format!("{}: its files cannot be listed", folder.display()))?;
    if paths.len() > FILES_MAX {
        let why = format!(
            "{}: {} files, {FILES_MAX} at most can be compared with; keep one run a machine",
            folder.display(),
            paths.len()
        );
        return Err(usage(why));
    }
    paths.sort_unstable();
    let (mut sides, mut unread) = (Vec::new(), Vec::new());
    for path in paths {
        let file = path.display().to_string();
        let label = path.file_stem().map_or(file.clone(), |stem| stem.to_string_lossy().into());
        if path.is_dir() {
            unread.push(LeftOut { file, why: "it is a folder".into() });
            continue;
        }
        match loader.side(&path, &label) {
            // A torn record is no reference.
            Ok((_, Some(why))) => unread.push(LeftOut { file, why }),
            // Seconds say nothing of a rank, and many files have many.
            Ok((side, None)) => {
                sides.push(Side { rows: Vec::new(), over: None, spikes: None, ..side });
            }
            Err(error) => unread.push(LeftOut { file, why: format!("{error:#}") }),
        }
    }
    Ok((sides, unread))
}
