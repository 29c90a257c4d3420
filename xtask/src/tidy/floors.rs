//! The house has floors and imports only go down: see docs/adr/0001-house-of-crates.md.

use crate::tree::{Complaint, Tree};

/// Each package and its floor. One floor does not import from itself.
const FLOORS: &[(&str, u32)] = &[
    ("rtproof-stats", 0),
    ("rtproof-trace", 0),
    // For applications; imports none of ours.
    ("rtproof-mark", 0),
    ("rtproof-host", 1),
    ("rtproof-guest", 2),
    ("rtproof-model", 2),
    ("rtproof-measure", 3),
    ("rtproof-record", 3),
    ("rtproof-checks", 4),
    ("rtproof-judge", 5),
    ("rtproof-results", 6),
    ("rtproof-report", 7),
    ("rtproof-run", 7),
    ("rtproof", 8),
    // Tools stand on the roof and nobody imports them; but the benchmark of causes judges its
    // spikes as the lab does.
    ("rtproof-fuzz", 9),
    ("rtproof-lab", 9),
    ("rtproof-lab-plant", 9),
    ("xtask", 9),
    ("rtproof-bench", 10),
];
/// Sections of a manifest that import.
const SECTIONS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Checks every manifest.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with("/Cargo.toml")) {
        match toml::from_str::<toml::Table>(text) {
            Ok(manifest) => check_manifest(path, &manifest, &mut complaints),
            Err(error) => complaints.push(Complaint::about(path, error.message())),
        }
    }
    complaints
}

fn check_manifest(path: &str, manifest: &toml::Table, complaints: &mut Vec<Complaint>) {
    let package = manifest.get("package");
    let name = package.and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    let Some(name) = name else { return };
    let Some(floor) = floor(name) else {
        let text = format!("`{name}` has no floor: add it to FLOORS in xtask/src/tidy/floors.rs");
        complaints.push(Complaint::about(path, text));
        return;
    };
    let imports = SECTIONS
        .iter()
        .filter_map(|section| manifest.get(*section)?.as_table())
        .flat_map(toml::Table::keys);
    for import in imports {
        let is_ours = import.starts_with("rtproof") || import == "xtask";
        match self::floor(import) {
            Some(below) if below < floor => {}
            Some(other) => {
                let text = format!(
                    "`{name}` (floor {floor}) imports `{import}` (floor {other}): imports go down; \
                     move the shared part below both"
                );
                complaints.push(Complaint::about(path, text));
            }
            None if is_ours => {
                let text = format!("`{import}` has no floor: add it to FLOORS in xtask");
                complaints.push(Complaint::about(path, text));
            }
            None => {}
        }
    }
}

fn floor(package: &str) -> Option<u32> {
    FLOORS.iter().find(|(name, _)| *name == package).map(|(_, floor)| *floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, imports: &str) -> usize {
        let text = format!("[package]\nname = \"{name}\"\n{imports}");
        check(&Tree::of(&[("crates/x/Cargo.toml", &text)])).len()
    }

    #[test]
    fn imports_go_down() {
        let down = "[dependencies]\nrtproof-host.workspace = true\nlibc = \"0.2\"\n";
        assert_eq!(complaints("rtproof-measure", down), 0);
        let sideways = "[dependencies]\nrtproof-record.workspace = true\n";
        assert_eq!(complaints("rtproof-measure", sideways), 1);
        let up = "[dev-dependencies]\nrtproof-judge.workspace = true\n";
        assert_eq!(complaints("rtproof-measure", up), 1);
    }

    #[test]
    fn a_crate_without_a_floor_is_found() {
        assert_eq!(complaints("rtproof-new", ""), 1);
        assert_eq!(complaints("rtproof", "[dependencies]\nrtproof-new.workspace = true\n"), 1);
    }
}
