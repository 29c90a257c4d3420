//! The house rules, as a test: `cargo xtask tidy`. A rule is a pure function from the files to what
//! is wrong; to add one, write it and add one line to [`RULES`].
//!
//! What the tree broke when a rule came is counted in `known.txt`, which may only shrink:
//! `cargo xtask tidy --keep-known` lowers its numbers and never raises one.

use std::{collections::BTreeMap, io::Write, process::ExitCode};

use anyhow::{Context, Result};

use crate::tree::{Complaint, Files, Tree, root};

mod bans;
mod certain;
mod circles;
mod docs;
mod floors;
mod lists;
mod names;
mod pages;
mod shape;

/// Every rule, in the order of CONTRIBUTING.md.
const RULES: &[fn(&Files<'_>) -> Vec<Complaint>] = &[
    // 1: crates stand on floors.
    floors::check,
    // 2: no circles between the files of a crate.
    circles::check,
    // 3: sizes and widths.
    shape::check,
    // 4: what a doc comment has to say; README and example of each crate.
    docs::check,
    // 5: words of the glossary.
    names::check_words,
    // 6: one name, one public type.
    names::check_types,
    // 7: unsafe code, and Clippy's bans.
    bans::check,
    // 8: changelog and links; `reference::stale` has the pages that are made.
    pages::check,
    // 9: no item is missing from its list.
    lists::check,
    // 10: certain is said in one place.
    certain::check,
];
/// The list of what is known.
const KNOWN: &str = "xtask/src/tidy/known.txt";

/// Runs every rule over the source tree. `keep_known`: lowers the numbers of `known.txt` instead.
pub(crate) fn run(keep_known: bool) -> Result<ExitCode> {
    let root = root();
    let tree = Tree::read(&root)?;
    let files = Files::of(&tree);
    let complaints: Vec<_> = RULES.iter().flat_map(|rule| rule(&files)).collect();
    let allowed = tree.text(KNOWN).map(counts);
    if keep_known {
        let list = kept(&complaints, allowed.as_ref());
        std::fs::write(root.join(KNOWN), list).context(KNOWN)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut complaints, known) = without_known(complaints, allowed.unwrap_or_default());
    #[cfg(feature = "reference")]
    complaints.extend(crate::reference::stale(&root)?);
    complaints.sort();
    let mut out = std::io::stdout().lock();
    for Complaint { path, line, text, .. } in &complaints {
        match line {
            0 => writeln!(out, "{path}: {text}")?,
            _ => writeln!(out, "{path}:{line}: {text}")?,
        }
    }
    let (files, rules, open) = (tree.paths().count(), RULES.len(), complaints.len());
    writeln!(out, "tidy: {files} files, {rules} rules, {open} complaints, {known} known")?;
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Numbers of a list, by name.
fn counts(list: &str) -> BTreeMap<String, usize> {
    let lines = list.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(count, name)| Some((name.to_owned(), count.parse().ok()?))).collect()
}

/// The list as it should be: never more than it allows now; where there is none, all that is wrong.
fn kept(complaints: &[Complaint], allowed: Option<&BTreeMap<String, usize>>) -> String {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for name in complaints.iter().filter_map(|complaint| complaint.known.as_ref()) {
        *counts.entry(name).or_default() += 1;
    }
    if let Some(allowed) = allowed {
        counts.retain(|name, count| {
            *count = (*count).min(allowed.get(*name).copied().unwrap_or(0));
            *count > 0
        });
    }
    counts.into_iter().map(|(name, count)| format!("{count} {name}\n")).collect()
}

/// Takes the known complaints away and counts them; adds one for each line of the list that is too
/// high.
fn without_known(
    complaints: Vec<Complaint>,
    mut allowed: BTreeMap<String, usize>,
) -> (Vec<Complaint>, usize) {
    let all = complaints.len();
    let is_new = |complaint: &Complaint| {
        let left = complaint.known.as_ref().and_then(|name| allowed.get_mut(name));
        left.filter(|left| **left > 0).map(|left| *left -= 1).is_none()
    };
    let mut left: Vec<_> = complaints.into_iter().filter(is_new).collect();
    let known = all - left.len();
    for (name, count) in allowed.into_iter().filter(|(_, count)| *count > 0) {
        let text = format!("{count} less of `{name}`: run `cargo xtask tidy --keep-known`");
        left.push(Complaint::about(KNOWN, text));
    }
    (left, known)
}

/// What a rule finds in a tree of texts: path, line, complaint.
#[cfg(test)]
fn found(
    rule: fn(&Files<'_>) -> Vec<Complaint>,
    files: &[(&str, &str)],
) -> Vec<(String, usize, String)> {
    let tree = Tree::of(files);
    let complaints = rule(&Files::of(&tree)).into_iter();
    complaints.map(|complaint| (complaint.path, complaint.line, complaint.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_passes_what_is_new_or_gone_does_not() {
        let told = |line| Complaint::at("a.rs", line, "`told`").known_as("word told");
        let wrong = [told(3), told(4), Complaint::about("b.rs", "too long")];
        let list = kept(&wrong, None);
        assert_eq!(list, "2 word told\n");
        let left = |complaints: Vec<Complaint>| without_known(complaints, counts(&list));
        assert_eq!(left(wrong.to_vec()), (wrong[2..].to_vec(), 2));
        assert_eq!(left(vec![told(5), told(6), told(7)]), (vec![told(7)], 2));
        let (less, known) = left(vec![told(5)]);
        assert_eq!((less.len(), known), (1, 1));
    }

    #[test]
    fn the_list_shrinks_and_never_grows() {
        let told = |line| Complaint::at("a.rs", line, "`told`").known_as("word told");
        let saw = Complaint::at("a.rs", 9, "`saw`").known_as("word saw");
        let allowed = counts("2 word told\n1 circle a: b, c\n");
        assert_eq!(kept(&[told(1), saw.clone()], Some(&allowed)), "1 word told\n");
        assert_eq!(kept(&[told(1), told(2), told(3)], Some(&allowed)), "2 word told\n");
        assert_eq!(kept(&[saw], Some(&BTreeMap::new())), "");
    }
}
