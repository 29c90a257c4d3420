//! Crates stand on floors and import only from lower ones: docs/adr/0001-house-of-crates.md.

use crate::tree::{Complaint, Files};

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
    ("rtproof-kernel", 7),
    ("rtproof-render", 8),
    ("rtproof-report", 8),
    ("rtproof-run", 8),
    ("rtproof", 9),
    // Tools stand on the roof and nobody imports them; but the benchmark of causes judges its
    // spikes as the lab does.
    ("rtproof-fuzz", 10),
    ("rtproof-lab", 10),
    ("rtproof-lab-plant", 10),
    ("xtask", 10),
    ("rtproof-bench", 11),
];
/// Who imports what never, though it is lower, and why.
const NEVER: &[(&str, &[&str], &str)] = &[
    ("rtproof-checks", &["rtproof-measure"], "checks is pure"),
    ("rtproof-judge", &["rtproof-measure"], "judge is pure"),
    ("rtproof-results", &["rtproof-measure", "rtproof-guest"], "results is data"),
    ("rtproof-report", &["rtproof-measure", "rtproof-guest", "rtproof-kernel"], SHOWS),
    ("rtproof-render", &["rtproof-measure", "rtproof-guest", "rtproof-kernel"], SHOWS),
];
const SHOWS: &str = "render shows results, and makes none";
/// Sections of a manifest that import.
const SECTIONS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Checks every manifest.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in files.tree.texts().filter(|(path, _)| path.ends_with("/Cargo.toml")) {
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
    let imports = SECTIONS
        .iter()
        .filter_map(|section| manifest.get(*section)?.as_table())
        .flat_map(toml::Table::keys);
    let mut complain = |text: String| complaints.push(Complaint::about(path, text));
    let unknown = |name: &str| format!("`{name}` has no floor: add it to xtask/src/tidy/floors.rs");
    let Some(floor) = floor(name) else { return complain(unknown(name)) };
    for import in imports {
        let is_ours = import.starts_with("rtproof") || import == "xtask";
        let banned = NEVER.iter().find(|(of, never, _)| *of == name && never.contains(&&**import));
        match self::floor(import) {
            Some(below) if below < floor => {
                if let Some((_, _, why)) = banned {
                    complain(format!("`{name}` imports `{import}`: {why}; move it higher"));
                }
            }
            Some(other) => complain(format!(
                "`{name}` (floor {floor}) imports `{import}` (floor {other}): imports go down; \
                 move the shared part below both"
            )),
            None if is_ours => complain(unknown(import)),
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
    use crate::tidy::found;

    fn complaints(name: &str, import: &str) -> usize {
        let text = format!("[package]\nname = \"{name}\"\n{import}.workspace = true\n");
        found(check, &[("crates/x/Cargo.toml", &text)]).len()
    }

    #[test]
    fn imports_go_down() {
        assert_eq!(complaints("rtproof-measure", "[dependencies]\nrtproof-host"), 0);
        assert_eq!(complaints("rtproof-kernel", "[dependencies]\nrtproof-results"), 0);
        assert_eq!(complaints("rtproof-run", "[dependencies]\nrtproof-kernel"), 0);
        assert_eq!(complaints("rtproof-measure", "[dependencies]\nlibc"), 0);
        assert_eq!(complaints("rtproof-measure", "[dependencies]\nrtproof-record"), 1);
        assert_eq!(complaints("rtproof-render", "[dependencies]\nrtproof-run"), 1);
        assert_eq!(complaints("rtproof-measure", "[dev-dependencies]\nrtproof-judge"), 1);
    }

    #[test]
    fn what_is_lower_may_still_be_banned() {
        assert_eq!(complaints("rtproof-judge", "[dependencies]\nrtproof-record"), 0);
        assert_eq!(complaints("rtproof-judge", "[dependencies]\nrtproof-measure"), 1);
        assert_eq!(complaints("rtproof-render", "[dependencies]\nrtproof-kernel"), 1);
    }

    #[test]
    fn a_crate_without_a_floor_is_found() {
        assert_eq!(complaints("rtproof-new", "[dependencies]\nlibc"), 1);
        assert_eq!(complaints("rtproof", "[dependencies]\nrtproof-new"), 1);
    }
}
