//! No dead files: every file under `src/` is a module that its parent names.

use crate::source::Source;
use crate::tree::{Complaint, Tree};

/// Checks every Rust file of every package.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, _) in tree.rust() {
        let Some((parents, name)) = parents(path) else {
            continue;
        };
        let declared = parents.iter().filter_map(|parent| tree.text(parent)).any(|text| {
            let code = Source::parse(text).code;
            code.contains(&format!("mod {name};")) || text.contains(&format!("{name}.rs\"]"))
        });
        if !declared {
            let text = format!("no parent says `mod {name};`: add it there, or delete this file");
            complaints.push(Complaint::about(path, text));
        }
    }
    complaints
}

/// The files that may name a module, and the module's name; `None` for the root of a crate and for
/// what is not under `src/`.
fn parents(path: &str) -> Option<(Vec<String>, &str)> {
    let (package, inside) = path.split_once("/src/")?;
    let inside = inside.strip_suffix(".rs")?;
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    let (folder, name) = match inside.rsplit_once('/') {
        Some(("bin", _)) => return None,
        Some((folder, name)) => (format!("{package}/src/{folder}"), name),
        None if matches!(inside, "lib" | "main") => return None,
        None => (format!("{package}/src"), inside),
    };
    let roots = ["lib.rs", "main.rs", "mod.rs"].map(|root| format!("{folder}/{root}"));
    Some((roots.into_iter().chain([format!("{folder}.rs")]).collect(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_modules_and_roots_pass() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! A.\npub mod b;\nmod c;\n"),
            ("crates/a/src/b.rs", ""),
            ("crates/a/src/c/mod.rs", "mod d;\n"),
            ("crates/a/src/c/d.rs", ""),
            ("crates/a/src/bin/e.rs", ""),
            ("crates/a/tests/f.rs", ""),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn a_file_that_nobody_names_is_found() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! A.\n// mod b;\nmod c;\n"),
            ("crates/a/src/b.rs", ""),
            ("crates/a/src/c/mod.rs", ""),
            ("crates/a/src/c/d.rs", ""),
        ]);
        let paths: Vec<_> = check(&tree).into_iter().map(|complaint| complaint.path).collect();
        assert_eq!(paths, ["crates/a/src/b.rs", "crates/a/src/c/d.rs"]);
    }
}
