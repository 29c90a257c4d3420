//! Parts of Markdown that several pages share.

/// First lines of every Markdown page.
pub(super) fn head(title: &str, about: &str) -> String {
    format!("<!-- Made by `cargo xtask reference`. Do not edit. -->\n\n# {title}\n\n{about}\n")
}

/// Text for a cell of a table: one line, no bar.
pub(super) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Text as a sentence: the lists write phrases, a page has room for more than one.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let stop = if text.is_empty() || text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_become_sentences() {
        assert_eq!(sentence("fully preemptible kernel"), "Fully preemptible kernel.");
        assert_eq!(sentence("Says so."), "Says so.");
        assert_eq!(sentence("`isolcpus` is set"), "`isolcpus` is set.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn cells_keep_to_their_line() {
        assert_eq!(cell("a\n  b | c"), "a b \\| c");
    }
}
