//! Pages of the documentation: relative links lead somewhere, the index of decisions names every
//! one, CHANGELOG.md has the form of <https://keepachangelog.com/en/1.1.0/>. Pages that are made
//! from the crates are compared by `reference`.

use crate::tree::{Complaint, Files, Tree, is_fixture};

const CHANGELOG: &str = "CHANGELOG.md";
/// Kinds of change that the form knows.
const KINDS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
const ADR_FOLDER: &str = "docs/adr/";
const ADR_INDEX: &str = "docs/adr/README.md";

/// Checks every Markdown file.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    let tree = files.tree;
    let mut complaints = changelog(tree);
    for (path, text) in tree.texts() {
        if path.ends_with(".md") && !is_fixture(path) {
            check_links(tree, path, text, &mut complaints);
        }
    }
    let index = tree.text(ADR_INDEX).unwrap_or_default();
    for path in tree.paths() {
        let Some(name) = path.strip_prefix(ADR_FOLDER).filter(|name| *name != "README.md") else {
            continue;
        };
        if !index.contains(&format!("({name})")) {
            complaints.push(Complaint::about(path, format!("is not in {ADR_INDEX}: add a line")));
        }
    }
    complaints
}

fn check_links(tree: &Tree, path: &str, text: &str, complaints: &mut Vec<Complaint>) {
    for (line, target) in links(text) {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let Some(file) = resolve(path, file) else {
            complaints.push(Complaint::at(path, line, format!("`{target}` leaves the tree")));
            continue;
        };
        if !tree.exists(&file) {
            let text = format!("`{target}` leads nowhere: there is no {file}");
            complaints.push(Complaint::at(path, line, text));
        } else if !anchor.is_empty()
            && file.ends_with(".md")
            && !tree.text(&file).is_some_and(|text| has_heading(text, anchor))
        {
            let text = format!("`{target}`: {file} has no heading `{anchor}`");
            complaints.push(Complaint::at(path, line, text));
        }
    }
}

/// Relative links outside code: line from 1, and target without a title.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (line, prose) in prose(text) {
        // Every second part is inside back quotes.
        for part in prose.split('`').step_by(2) {
            for (start, _) in part.match_indices("](") {
                let rest = &part[start + 2..];
                let target = rest.split([')', ' ']).next().unwrap_or_default();
                let is_outside = target.contains("://") || target.starts_with("mailto:");
                if !is_outside && !target.is_empty() {
                    links.push((line, target));
                }
            }
        }
    }
    links
}

/// Lines outside fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((index + 1, line))
    })
}

/// Path from the root of the tree of a link found in `from`; `None` when it leaves the tree.
fn resolve(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.to_owned());
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = if link.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether a document has a heading with this anchor, made as forges make it.
fn has_heading(text: &str, anchor: &str) -> bool {
    prose(text).any(|(_, line)| {
        let heading = line.trim_start_matches('#');
        heading.len() < line.len() && slug(heading.trim()) == anchor
    })
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn changelog(tree: &Tree) -> Vec<Complaint> {
    let Some(text) = tree.text(CHANGELOG) else {
        return vec![Complaint::about(CHANGELOG, "is missing: restore it")];
    };
    let mut complaints = Vec::new();
    if text.lines().next() != Some("# Changelog") {
        complaints.push(Complaint::at(CHANGELOG, 1, "begin with `# Changelog`"));
    }
    let mut versions = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(version) = line.strip_prefix("## ") {
            versions += 1;
            if versions == 1 && version != "[Unreleased]" {
                let text = "the first section is `## [Unreleased]`: put it here";
                complaints.push(Complaint::at(CHANGELOG, number, text));
            } else if versions > 1 && !is_release(version) {
                let text = "write a release as `## [1.2.3] - 2026-12-31`";
                complaints.push(Complaint::at(CHANGELOG, number, text));
            }
        } else if let Some(kind) = line.strip_prefix("### ")
            && !KINDS.contains(&kind)
        {
            let text = format!("`{kind}` is not one of {}", KINDS.join(", "));
            complaints.push(Complaint::at(CHANGELOG, number, text));
        }
    }
    if versions == 0 {
        complaints.push(Complaint::about(CHANGELOG, "has no section: add `## [Unreleased]`"));
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
    use crate::tidy::found;

    fn lines(text: &str) -> Vec<usize> {
        let all = found(check, &[(CHANGELOG, text)]).into_iter();
        all.map(|(_, line, _)| line).collect()
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
        assert_eq!(found(check, &[]).len(), 1);
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let tree = [
            (CHANGELOG, "# Changelog\n## [Unreleased]\n"),
            (
                "README.md",
                "[a](docs/guide.md#two-words) [b](docs/) [c](https://x/y) [d](#here)\n# Here\n",
            ),
            (
                "docs/guide.md",
                "## Two words\n[up](../README.md)\n```\n[x](nowhere)\n```\n`[x](no)`\n",
            ),
        ];
        assert_eq!(found(check, &tree), []);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let tree = [
            (CHANGELOG, "# Changelog\n## [Unreleased]\n"),
            ("docs/guide.md", "[a](no.md)\n[b](../../x.md)\n\n[c](guide.md#no)\n# Yes\n"),
            ("docs/adr/0001-a.md", "# 1\n"),
            ("docs/adr/README.md", "[2](0002-b.md)\n"),
        ];
        let lines: Vec<_> = found(check, &tree).into_iter().map(|(p, l, _)| (p, l)).collect();
        let wanted = [
            ("docs/adr/README.md", 1),
            ("docs/guide.md", 1),
            ("docs/guide.md", 2),
            ("docs/guide.md", 4),
            ("docs/adr/0001-a.md", 0),
        ];
        assert_eq!(lines, wanted.map(|(path, line)| (path.to_owned(), line)));
    }
}
