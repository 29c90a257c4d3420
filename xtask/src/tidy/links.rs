//! Relative links of the documents lead somewhere, and the ADR index names every ADR.

use crate::tree::{Complaint, Tree, is_fixture};

const ADR_FOLDER: &str = "docs/adr/";
const ADR_INDEX: &str = "docs/adr/README.md";

/// Checks every Markdown file.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_somewhere_pass() {
        let tree = Tree::of(&[
            (
                "README.md",
                "[a](docs/guide.md#two-words) [b](docs/) [c](https://x/y) [d](#here)\n# Here\n",
            ),
            (
                "docs/guide.md",
                "## Two words\n[up](../README.md)\n```\n[x](nowhere)\n```\n`[x](no)`\n",
            ),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let tree = Tree::of(&[
            ("docs/guide.md", "[a](no.md)\n[b](../../x.md)\n\n[c](guide.md#no)\n# Yes\n"),
            ("docs/adr/0001-a.md", "# 1\n"),
            ("docs/adr/README.md", "[2](0002-b.md)\n"),
        ]);
        let lines: Vec<_> = check(&tree).into_iter().map(|c| (c.path, c.line)).collect();
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
