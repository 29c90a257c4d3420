//! The house rules, as a test. Each rule is one file and a pure function over the tree; to add one,
//! write the file and add one line to [`RULES`].

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::tree::{Complaint, Tree, root};

mod bans;
mod binaries;
mod changelog;
mod circles;
mod floors;
mod glossary;
mod known;
mod links;
mod lists;
mod modules;
mod sentences;
mod text;
mod unsafe_code;
mod words;

/// A rule: reads the tree, returns what is wrong.
type Rule = fn(&Tree) -> Vec<Complaint>;

/// Every rule.
const RULES: &[Rule] = &[
    bans::check,
    binaries::check,
    changelog::check,
    circles::check,
    floors::check,
    glossary::check,
    links::check,
    lists::check,
    modules::check,
    sentences::check,
    text::check,
    unsafe_code::check,
    words::check,
];

/// Runs every rule over the source tree. `keep_known`: writes the list of
/// [`known`] instead.
pub(crate) fn run(keep_known: bool) -> Result<ExitCode> {
    let root = root();
    let tree = Tree::read(&root)?;
    let complaints: Vec<_> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    if keep_known {
        std::fs::write(root.join(known::LIST), known::list(&complaints)).context(known::LIST)?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = complaints.len();
    let mut complaints = known::without(&tree, complaints);
    let known = all.saturating_sub(complaints.len());
    #[cfg(feature = "reference")]
    complaints.extend(crate::reference::stale(&root)?);
    complaints.sort();
    let mut out = std::io::stdout().lock();
    for Complaint { path, line, text } in &complaints {
        match line {
            0 => writeln!(out, "{path}: {text}")?,
            _ => writeln!(out, "{path}:{line}: {text}")?,
        }
    }
    let files = tree.paths().count();
    let (rules, open) = (RULES.len(), complaints.len());
    writeln!(out, "tidy: {files} files, {rules} rules, {open} complaints, {known} known")?;
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
