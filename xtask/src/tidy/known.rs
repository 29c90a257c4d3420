//! What is wrong in the tree and known: circles and words that stood there when their rules came.
//! `known.txt` counts them; none may be added, and one that is gone leaves the list.

use std::collections::BTreeMap;

use crate::tree::{Complaint, Tree};

/// The list.
pub(super) const LIST: &str = "xtask/src/tidy/known.txt";

/// Takes the known complaints away, and adds one for each line of the list that no longer holds.
pub(super) fn without(tree: &Tree, complaints: Vec<Complaint>) -> Vec<Complaint> {
    let mut allowed = read(tree.text(LIST).unwrap_or_default());
    let mut left: Vec<Complaint> = complaints
        .into_iter()
        .filter(|complaint| match allowed.get_mut(&key(complaint)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
        .collect();
    for (key, count) in allowed.into_iter().filter(|(_, count)| *count > 0) {
        let text = format!("{count} less of `{key}`: run `cargo xtask tidy --keep-known`");
        left.push(Complaint::about(LIST, text));
    }
    left
}

/// The list of these complaints, as a text.
pub(super) fn list(complaints: &[Complaint]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for complaint in complaints.iter().filter(|complaint| is_counted(complaint)) {
        *counts.entry(key(complaint)).or_default() += 1;
    }
    counts.into_iter().map(|(key, count)| format!("{count} {key}\n")).collect()
}

/// Whether it is of a rule that the tree broke when the rule came.
fn is_counted(complaint: &Complaint) -> bool {
    let signs = [" import each other", "docs/glossary.md", "` stands in ", "a sentence of "];
    signs.iter().any(|sign| complaint.text.contains(sign))
}

fn read(list: &str) -> BTreeMap<String, usize> {
    let lines = list.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(count, key)| Some((key.to_owned(), count.parse().ok()?))).collect()
}

/// What stays the same when lines move: a circle's place and members, a word's file.
fn key(complaint: &Complaint) -> String {
    match complaint.text.split_once(" import each other") {
        Some((circle, _)) => format!("circle {circle}"),
        None => {
            let text = complaint.text.split(" in ").next().unwrap_or_default();
            format!("{} {text}", complaint.path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_passes_what_is_new_or_gone_does_not() {
        let told = |line| Complaint::at("a.rs", line, "`told`: see `report` in docs/glossary.md");
        let circle = Complaint::at("a.rs", 1, "a: b, c import each other: move: b -> c (a.rs:1)");
        let list = list(&[told(3), told(4), circle]);
        assert_eq!(list, "2 a.rs `told`: see `report`\n1 circle a: b, c\n");
        let tree = Tree::of(&[(LIST, &list)]);
        let moved = Complaint::at("a.rs", 9, "a: b, c import each other: move: b -> c (a.rs:9)");
        assert_eq!(without(&tree, vec![told(5), told(6), moved]), []);
        assert_eq!(without(&tree, vec![told(5), told(6), told(7)]).len(), 2);
        assert_eq!(without(&tree, vec![]).len(), 2);
    }
}
