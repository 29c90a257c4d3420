//! The boot part of tuning: the words of a plan as the boot loader's entry takes them, and the words
//! of the entry that is there.

use rtproof_host::{
    Facts, Root,
    boot::{self, Word},
};
use rtproof_judge::{plan::BootWord, verify::Asked};

use super::preview::BootPreview;
use crate::exit;

/// A word as the boot loader's entry takes it.
#[must_use]
pub fn of_plan(word: &BootWord) -> Word {
    match (word.removes, word.parameter.contains('=')) {
        (true, true) => Word::set(&word.parameter),
        (true, false) => Word::remove(&word.parameter),
        (false, _) => Word::add(&word.parameter),
    }
}

/// Where the words of a plan would go. Nothing is asked of the boot loader without words.
#[must_use]
pub fn preview(root: &Root, facts: &Facts, words: Vec<BootWord>) -> BootPreview {
    if words.is_empty() {
        return BootPreview::default();
    }
    let now = facts.kernel.cmdline.value().map(|line| line.text.clone());
    let wanted: Vec<Word> = words.iter().map(of_plan).collect();
    let mut preview = BootPreview { words, ..BootPreview::default() };
    match now.as_deref().map(|now| boot::edited(now, &wanted)) {
        Some(Ok(then)) => preview.then = Some(then),
        Some(Err(error)) => preview.refused = Some(error.to_string()),
        None => {}
    }
    preview.now = now;
    match boot::detect(root) {
        Ok(loader) => {
            preview.loader = Some(loader.to_string());
            preview.entry = Some(boot::TITLE.into());
        }
        Err(error) => preview.refused = Some(error.to_string()),
    }
    preview
}

/// A word of the command line of `tune trial` and `tune verify`.
///
/// # Errors
/// Usage: it is none.
pub fn word(text: &str) -> anyhow::Result<Asked> {
    let key = text.split('=').next().unwrap_or_default();
    if key.is_empty() || key.contains(char::is_whitespace) {
        let why = "no kernel parameter; write name or name=value, e.g. isolcpus=2-3";
        return Err(exit::usage(format!("{text}: {why}")));
    }
    Ok(Asked { parameter: boot::shortened(text), removes: false })
}
