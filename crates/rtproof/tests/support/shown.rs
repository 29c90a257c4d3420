//! Commands as texts show them, and the files that have them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{CommandFactory, error::ErrorKind};
use rtproof::Cli;

/// Files below a folder with one of these endings; folders of these names are left out.
pub(crate) fn files(folder: &Path, endings: &[&str], but: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && !but.contains(&name.as_str()) {
            files(&path, endings, but, found);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// Words as a shell takes them, up to the first thing that is not of this command.
pub(crate) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(c),
        }
    }
    words.push(word);
    let ends = |word: &String| {
        word.starts_with('>')
            || ["&&", "|", "2>", "#", ";", "&", "…", "...", ""].contains(&word.as_str())
    };
    let count = words.iter().position(ends).unwrap_or(words.len());
    words.truncate(count);
    words
}

/// What is wrong with a command; values may be placeholders.
pub(crate) fn wrong(command: &str) -> Option<String> {
    let error = Cli::command().try_get_matches_from(words(command)).err()?;
    let is_of_names = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand | ErrorKind::ArgumentConflict
    );
    is_of_names.then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}
