//! Words of the kernel's command line for boot loaders' files, each word whole and quoted right.

use rtproof_judge::plan::BootWord;

use super::{
    format::{Missed, Source},
    text,
};

/// The words of a plan, sorted.
#[derive(Debug, Default)]
pub(super) struct Words<'a> {
    pub added: Vec<&'a BootWord>,
    /// Names of which every word is taken away first.
    pub removed: Vec<(&'a str, &'a BootWord)>,
    /// Words that a boot loader's file would not take as they are.
    pub missed: Vec<Missed>,
}

impl<'a> Words<'a> {
    /// Sorts the words of a plan.
    pub(super) fn of(source: &Source<'a>) -> Self {
        let mut words = Self::default();
        for word in &source.plan.boot {
            // Blanks part words; $ ; & | < > { } quotes and backslashes are GRUB's own.
            let is_safe = |c: char| c.is_ascii_alphanumeric() || "_.,:=@/+%-~^!".contains(c);
            if word.parameter.is_empty() || !word.parameter.chars().all(is_safe) {
                words.missed.push(Missed {
                    what: format!("boot word {}", text::one_line(&word.parameter)),
                    why: "it has characters that boot loaders read as their own; add it by hand"
                        .into(),
                });
                continue;
            }
            let name = word.parameter.split('=').next().unwrap_or(&word.parameter);
            if word.removes {
                words.removed.push((name, word));
            }
            // The name of a parameter alone takes it away.
            if !word.removes || word.parameter.contains('=') {
                words.added.push(word);
            }
        }
        words
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// The words to have, blanks between.
    pub(super) fn text(&self) -> String {
        let words: Vec<&str> = self.added.iter().map(|word| word.parameter.as_str()).collect();
        words.join(" ")
    }

    /// Why, a comment a word.
    pub(super) fn comments(&self) -> String {
        let added = self
            .added
            .iter()
            .map(|word| format!("# {}: {}\n", word.parameter, text::why(&word.reason)));
        let removed = self.removed.iter().map(|(name, word)| {
            format!("# every {name} that was there goes: {}\n", text::why(&word.reason))
        });
        removed.chain(added).collect()
    }

    /// What a pattern of `case` has to match to take the removed words away.
    pub(super) fn removed_pattern(&self) -> Option<String> {
        let names: Vec<String> = self.removed.iter().map(|(name, _)| either(name)).collect();
        (!names.is_empty()).then(|| names.join(" | "))
    }

    /// A file for /etc/default/grub.d, which the shell reads: the words after those that are there,
    /// a blank between, whatever the variable held.
    pub(super) fn grub(&self, source: &Source<'_>, format: &str) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut file = text::head(source, format) + &self.comments();
        if let Some(pattern) = self.removed_pattern() {
            file += &format!(
                "rtproof_without() (\n    set -f\n    kept=\n    for word in $1; do\n        \
                 case \"$word\" in\n        {pattern}) ;;\n        *) kept=\"${{kept:+$kept }}$word\" \
                 ;;\n        esac\n    done\n    printf '%s' \"$kept\"\n)\n"
            );
            for variable in ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"] {
                file += &format!("{variable}=\"$(rtproof_without \"${{{variable}:-}}\")\"\n");
            }
        }
        if !self.added.is_empty() {
            file += &format!(
                "GRUB_CMDLINE_LINUX_DEFAULT=\"${{GRUB_CMDLINE_LINUX_DEFAULT}} {}\"\n",
                self.text()
            );
        }
        Some(file)
    }
}

/// A parameter with and without value, as the kernel reads names: - and _ are one.
fn either(name: &str) -> String {
    let class = |c: char| if "-_".contains(c) { "[-_]".to_owned() } else { c.to_string() };
    let name: String = name.chars().map(class).collect();
    format!("{name} | {name}=*")
}
