//! Imports go one way inside a crate, too: at every folder the modules below it, and the folder's
//! own file, can be put into an order in which each takes only from those before it. A module that
//! re-exports a name takes nothing by that; tests may look wherever they like.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Complaint, Tree, is_test_file};
use modules::{Arrow, Modules, Name};

mod modules;
mod paths;

/// Name of a folder's own file among the modules below it.
const OWN: &str = "mod.rs";

/// Checks every crate.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let sources = tree.rust().filter_map(|(path, _)| Some(path.split_once("/src/")?.0));
    let packages: BTreeSet<&str> = sources.collect();
    packages.into_iter().flat_map(|package| check_package(tree, package)).collect()
}

fn check_package(tree: &Tree, package: &str) -> Vec<Complaint> {
    let src = format!("{package}/src");
    let is_product = |path: &str| !is_test_file(path) && !path.contains("/bin/");
    let modules = Modules::read(&src, tree.rust().filter(|(path, _)| is_product(path)));
    let arrows = modules.arrows();
    let mut levels: BTreeMap<&[String], Vec<(&str, &str, &Arrow)>> = BTreeMap::new();
    for arrow in &arrows {
        let (folder, from, to) = meeting(&arrow.from, &arrow.to);
        levels.entry(folder).or_default().push((from, to, arrow));
    }
    let mut complaints = Vec::new();
    for (folder, arrows) in levels {
        for circle in circles(&arrows) {
            let inside = |(from, to, _): &&(&str, &str, &Arrow)| {
                from != to && circle.contains(from) && circle.contains(to)
            };
            let Some((_, _, first)) = arrows.iter().find(inside) else { continue };
            let each = arrows.iter().filter(inside).map(|(from, to, arrow)| {
                format!("{from} -> {to} ({}:{} {})", arrow.file, arrow.line, arrow.path)
            });
            let place = [&[package.to_owned()], folder].concat().join("::");
            let names: Vec<&str> = circle.iter().copied().collect();
            let text = format!(
                "{place}: {} import each other: move what both need into a module below both: {}",
                names.join(", "),
                each.collect::<Vec<_>>().join("; ")
            );
            complaints.push(Complaint::at(&first.file, first.line, text));
        }
    }
    complaints
}

/// The folder in which two modules meet, and what each is called there.
fn meeting<'a>(from: &'a Name, to: &'a Name) -> (&'a [String], &'a str, &'a str) {
    let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let name = |of: &'a Name| of.get(common).map_or(OWN, String::as_str);
    (&from[..common], name(from), name(to))
}

/// The groups of names of which each can be reached from each other one.
fn circles<'a>(arrows: &[(&'a str, &'a str, &Arrow)]) -> Vec<BTreeSet<&'a str>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to, _) in arrows {
        reached.entry(from).or_default().insert(to);
    }
    let names: Vec<&str> = reached.keys().copied().collect();
    // Warshall's closure: folders are small.
    for via in &names {
        let further = reached[via].clone();
        for name in &names {
            if reached[name].contains(via) {
                reached.get_mut(name).expect("a name of its own").extend(&further);
            }
        }
    }
    let meets = |a: &str, b: &str| reached.get(a).is_some_and(|names| names.contains(b));
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for name in names.iter().copied().filter(|name| meets(name, name)) {
        match groups.iter_mut().find(|group| group.iter().all(|other| meets(name, other))) {
            Some(group) if group.iter().all(|other| meets(other, name)) => {
                group.insert(name);
            }
            _ => groups.push(BTreeSet::from([name])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|complaint| complaint.text).collect()
    }

    #[test]
    fn what_goes_one_way_passes() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\npub use b::B;"),
            ("a/src/b.rs", "use crate::c::C;\npub struct B(C);"),
            ("a/src/c.rs", "pub struct C;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
        ];
        assert_eq!(complaints(&files), [""; 0]);
    }

    #[test]
    fn two_that_import_each_other_are_found_through_a_re_export() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\npub use b::B;"),
            ("a/src/b.rs", "use crate::c::C;\npub struct B(C);"),
            ("a/src/c.rs", "pub struct C;\nfn f() -> crate::B { todo() }"),
        ];
        let found = complaints(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("b, c import each other"), "{found:?}");
    }

    #[test]
    fn folders_and_a_child_that_needs_its_parent_are_found() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;"),
            ("a/src/b/mod.rs", "mod d;\nmod e;\npub struct X;\nfn f() { d::g() }"),
            ("a/src/b/d.rs", "use super::X;\npub fn g() {}"),
            ("a/src/b/e.rs", "use crate::c::h;\npub struct E;"),
            ("a/src/c.rs", "pub fn h(e: crate::b::d::Y) {}"),
        ];
        let found = complaints(&files);
        assert!(found.iter().any(|text| text.contains("d, mod.rs import each other")), "{found:?}");
        assert!(found.iter().any(|text| text.contains("b, c import each other")), "{found:?}");
    }
}
