//! Clippy's bans are only as good as the files that hold them: each list keeps its entries, and the
//! crates that say they are pure have the longer list.

use serde::Deserialize;

use crate::tree::{Complaint, Tree};

/// What no crate calls.
const EVERYWHERE: &[&str] = &[
    "std::fs::canonicalize",
    "std::fs::read",
    "std::fs::read_dir",
    "std::fs::read_link",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::fs::File::open",
    "std::fs::OpenOptions::open",
    "std::process::exit",
];
/// What a pure crate calls neither.
const PURE: &[&str] = &[
    "std::env::var",
    "std::io::stdout",
    "std::process::Command::new",
    "std::thread::sleep",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
];
/// The lists, and whether they are for a pure crate.
const LISTS: &[(&str, bool)] = &[
    ("clippy.toml", false),
    ("crates/checks/clippy.toml", true),
    ("crates/judge/clippy.toml", true),
    ("crates/report/clippy.toml", true),
    ("crates/results/clippy.toml", true),
    ("crates/stats/clippy.toml", true),
    ("crates/trace/clippy.toml", true),
];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Clippy {
    msrv: String,
    disallowed_methods: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    path: String,
}

/// Checks every list.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let rust_version = rust_version(tree);
    let mut complaints = Vec::new();
    for &(path, is_pure) in LISTS {
        let parsed = tree.text(path).map(toml::from_str::<Clippy>);
        let clippy = match parsed {
            None => {
                complaints.push(Complaint::about(path, "is missing: restore it"));
                continue;
            }
            Some(Err(error)) => {
                complaints.push(Complaint::about(path, error.message()));
                continue;
            }
            Some(Ok(clippy)) => clippy,
        };
        let pure = if is_pure { PURE } else { &[] };
        for wanted in EVERYWHERE.iter().chain(pure) {
            if !clippy.disallowed_methods.iter().any(|ban| ban.path == *wanted) {
                complaints.push(Complaint::about(path, format!("does not ban `{wanted}`: add it")));
            }
        }
        if rust_version.as_ref().is_some_and(|version| *version != clippy.msrv) {
            let text = format!("msrv is {}: make it `rust-version` of Cargo.toml", clippy.msrv);
            complaints.push(Complaint::about(path, text));
        }
    }
    for path in tree.paths().filter(|path| is_crate_list(path)) {
        if !LISTS.iter().any(|(known, _)| *known == path) {
            let text = "takes the workspace's bans away from this crate: name it in tidy's LISTS";
            complaints.push(Complaint::about(path, text));
        }
    }
    complaints
}

fn is_crate_list(path: &str) -> bool {
    path.starts_with("crates/") && (path.ends_with("clippy.toml"))
}

fn rust_version(tree: &Tree) -> Option<String> {
    let manifest: toml::Table = toml::from_str(tree.text("Cargo.toml")?).ok()?;
    Some(manifest.get("workspace")?.get("package")?.get("rust-version")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[&[&str]]) -> String {
        let bans: Vec<_> = paths.concat().iter().map(|p| format!("{{ path = \"{p}\" }}")).collect();
        format!("msrv = \"1.89\"\ndisallowed-methods = [{}]\n", bans.join(", "))
    }

    #[test]
    fn full_lists_pass() {
        let all = list(&[EVERYWHERE]);
        let pure = list(&[EVERYWHERE, PURE]);
        let cargo = "[workspace.package]\nrust-version = \"1.89\"\n";
        let files = [
            ("clippy.toml", &*all),
            ("crates/checks/clippy.toml", &*pure),
            ("crates/judge/clippy.toml", &*pure),
            ("crates/report/clippy.toml", &*pure),
            ("crates/results/clippy.toml", &*pure),
            ("crates/stats/clippy.toml", &*pure),
            ("crates/trace/clippy.toml", &*pure),
            ("Cargo.toml", cargo),
        ];
        assert_eq!(check(&Tree::of(&files)), []);
    }

    #[test]
    fn a_missing_entry_list_or_version_is_found() {
        let all = list(&[&EVERYWHERE[1..]]);
        let pure = list(&[EVERYWHERE]);
        let cargo = "[workspace.package]\nrust-version = \"1.90\"\n";
        let files = [
            ("clippy.toml", &*all),
            ("crates/judge/clippy.toml", &*pure),
            ("crates/host/clippy.toml", ""),
            ("Cargo.toml", cargo),
        ];
        let complaints = check(&Tree::of(&files));
        let has = |path: &str, text: &str| {
            complaints.iter().any(|c| c.path == path && c.text.contains(text))
        };
        assert!(has("clippy.toml", "std::fs::canonicalize"));
        assert!(has("clippy.toml", "rust-version"));
        assert!(has("crates/judge/clippy.toml", "std::time::Instant::now"));
        assert!(has("crates/stats/clippy.toml", "missing"));
        assert!(has("crates/host/clippy.toml", "LISTS"));
    }
}
