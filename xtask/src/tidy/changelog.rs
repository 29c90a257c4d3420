//! CHANGELOG.md in the form of <https://keepachangelog.com/en/1.1.0/>.

use crate::tree::{Complaint, Tree};

const PATH: &str = "CHANGELOG.md";
/// Kinds of change that the form knows.
const KINDS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// Checks the changelog.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(text) = tree.text(PATH) else {
        return vec![Complaint::about(PATH, "is missing: restore it")];
    };
    let mut complaints = Vec::new();
    if text.lines().next() != Some("# Changelog") {
        complaints.push(Complaint::at(PATH, 1, "begin with `# Changelog`"));
    }
    let mut versions = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(version) = line.strip_prefix("## ") {
            versions += 1;
            if versions == 1 && version != "[Unreleased]" {
                let text = "the first section is `## [Unreleased]`: put it here";
                complaints.push(Complaint::at(PATH, number, text));
            } else if versions > 1 && !is_release(version) {
                let text = "write a release as `## [1.2.3] - 2026-12-31`";
                complaints.push(Complaint::at(PATH, number, text));
            }
        } else if let Some(kind) = line.strip_prefix("### ")
            && !KINDS.contains(&kind)
        {
            let text = format!("`{kind}` is not one of {}", KINDS.join(", "));
            complaints.push(Complaint::at(PATH, number, text));
        }
    }
    if versions == 0 {
        complaints.push(Complaint::about(PATH, "has no section: add `## [Unreleased]`"));
    }
    complaints
}

/// Whether a heading reads `[1.2.3] - 2026-12-31`.
fn is_release(heading: &str) -> bool {
    let Some((version, date)) = heading.strip_prefix('[').and_then(|rest| rest.split_once("] - "))
    else {
        return false;
    };
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let version: Vec<_> = version.split('.').collect();
    let date: Vec<_> = date.split('-').collect();
    version.len() == 3
        && version.iter().all(|part| is_number(part))
        && date.iter().map(|part| part.len()).eq([4, 2, 2])
        && date.iter().all(|part| is_number(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::of(&[(PATH, text)])).into_iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn the_form_passes() {
        let text =
            "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A.\n\n## [0.1.0] - 2026-12-01\n";
        assert!(lines(text).is_empty());
    }

    #[test]
    fn each_fault_is_found() {
        assert_eq!(lines("# Changes\n## [Unreleased]\n"), [1]);
        assert_eq!(lines("# Changelog\n## [0.1.0] - 2026-12-01\n"), [2]);
        assert_eq!(lines("# Changelog\n## [Unreleased]\n## 0.1.0\n### New\n"), [3, 4]);
        assert_eq!(lines("# Changelog\n"), [0]);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
