//! What `compare` does before it compares: files opened, runs named and grouped.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;

use rtproof_host::door::usage;
use rtproof_judge::compare::{Side, UnusedFile};
use rtproof_record::import::{self, Hints, ImportError};
use rtproof_results::record_state;

// Files for a comparison: records, and result files of other tools, by how they begin.

/// How a record begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// A file with the name that the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Name; `None`: from the file's.
    pub name: Option<String>,
    pub path: PathBuf,
}

/// Opens the files that are compared.
#[derive(Clone, Debug, Default)]
pub struct FileLoader {
    /// Whether a record that was changed after it was sealed is taken.
    pub accept_altered: bool,
    /// Format of the files of other tools; `None`: by content.
    pub format: Option<String>,
    /// Period of their wake-ups, where they do not say it.
    pub period_ns: Option<u64>,
    /// How long they measured, where they do not say it.
    pub duration_ns: Option<u64>,
    /// Nanoseconds in one unit of their values, where they do not say it.
    pub unit_ns: Option<u64>,
}

impl NamedFile {
    /// `FILE`, or `NAME=FILE` where no file has the whole of it as its name.
    pub fn of(text: &Path) -> Self {
        let split = text.to_str().filter(|_| !text.exists()).and_then(|text| text.split_once('='));
        match split {
            Some((name, path)) if !name.is_empty() && !name.contains('/') => {
                Self { name: Some(name.into()), path: path.into() }
            }
            _ => Self { name: None, path: text.into() },
        }
    }
}

impl FileLoader {
    /// A run, and what must be said of its file.
    ///
    /// # Errors
    /// A file that cannot be read, is no record and no result file, or was altered.
    pub fn side(&self, path: &Path, label: &str) -> anyhow::Result<(Side, Option<String>)> {
        let source = path.display().to_string();
        if is_record(path)? {
            let (opened, banner) = record_state::open_shown(path, self.accept_altered)?;
            return Ok((Side::of_run(&opened.run, label, &source), banner));
        }
        let hints = Hints {
            name: path.file_name().map_or(source.clone(), |name| name.to_string_lossy().into()),
            format: self.format.clone(),
            period_ns: self.period_ns,
            duration_ns: self.duration_ns,
            unit_ns: self.unit_ns,
            command: None,
        };
        let imported = import::read_file(path, &hints).map_err(|error| match error {
            ImportError::UnknownFormat { .. } => usage(error.to_string()),
            error => error.into(),
        })?;
        Ok((Side::of_import(&imported, label, &source), None))
    }
}

fn is_record(path: &Path) -> anyhow::Result<bool> {
    let mut begins = Vec::new();
    let read = open(path)?.take(SQLITE.len() as u64).read_to_end(&mut begins);
    read.with_context(|| cannot(path))?;
    Ok(begins == SQLITE)
}

fn open(path: &Path) -> anyhow::Result<File> {
    rtproof_host::door::read(path).with_context(|| cannot(path))
}

fn cannot(path: &Path) -> String {
    format!("{}: cannot be read", path.display())
}

/// Names for files: their stems without the words that all of them begin or end with, which are
/// separated by `-`, `_` or `.`. Where nothing would be left of one, all keep their stems; those
/// that are alike after all have a number.
pub fn short_names(paths: &[&Path]) -> Vec<String> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let words: Vec<Vec<&str>> =
        stems.iter().map(|stem| stem.split(['-', '_', '.']).collect()).collect();
    let least = words.iter().map(Vec::len).min().unwrap_or(0);
    let same = |at: &dyn Fn(&Vec<&str>) -> String| {
        words.windows(2).all(|pair| at(&pair[0]) == at(&pair[1]))
    };
    let from = (0..least).take_while(|&i| same(&|words| words[i].into())).count();
    let to = (0..least).take_while(|&i| same(&|words| words[words.len() - 1 - i].into())).count();
    let trimmed: Vec<String> = stems
        .iter()
        .zip(&words)
        .map(|(stem, words)| {
            let begin: usize = words.iter().take(from).map(|word| word.len() + 1).sum();
            let end: usize = words.iter().rev().take(to).map(|word| word.len() + 1).sum();
            stem.get(begin..stem.len().saturating_sub(end)).unwrap_or_default().to_owned()
        })
        .collect();
    let usable =
        paths.len() > 1 && from + to < least && trimmed.iter().all(|name| !name.is_empty());
    numbered(if usable { trimmed } else { stems })
}

/// What the names of a group's files have in common at their beginning; `None`: nothing to speak
/// of.
pub fn common_name(paths: &[&Path]) -> Option<String> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let first = stems.first()?;
    let shared =
        |stem: &String| first.chars().zip(stem.chars()).take_while(|(a, b)| a == b).count();
    let length = stems.iter().map(shared).min()?;
    let name: String = first.chars().take(length).collect();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_.".contains(c));
    (!name.is_empty()).then(|| name.to_owned())
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned())
}

fn numbered(names: Vec<String>) -> Vec<String> {
    let again = |at: usize| names[..at].iter().filter(|name| **name == names[at]).count();
    let name = |at: usize| match again(at) {
        0 => names[at].clone(),
        n => format!("{} ({})", names[at], n + 1),
    };
    (0..names.len()).map(name).collect()
}

// A folder of runs that are kept for reference: records and result files of other tools.

/// Files of a folder that are read, at most.
const FILES_MAX: usize = 2000;

/// The runs of a folder, and its other files. Folders in it are not entered.
///
/// # Errors
/// Not a folder, one that cannot be read, one with too many files.
pub fn folder(loader: &FileLoader, folder: &Path) -> anyhow::Result<(Vec<Side>, Vec<UnusedFile>)> {
    #[expect(clippy::disallowed_methods, reason = "the user's own folder")]
    let entries = std::fs::read_dir(folder).with_context(|| {
        format!("{}: the folder of references cannot be read", folder.display())
    })?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths =
        paths.with_context(|| format!("{}: its files cannot be listed", folder.display()))?;
    if paths.len() > FILES_MAX {
        let why = format!(
            "{}: {} files, {FILES_MAX} at most can be compared with; keep one run a machine",
            folder.display(),
            paths.len()
        );
        return Err(usage(why));
    }
    paths.sort_unstable();
    let (mut sides, mut unread) = (Vec::new(), Vec::new());
    for path in paths {
        let file = path.display().to_string();
        let label = path.file_stem().map_or(file.clone(), |stem| stem.to_string_lossy().into());
        if path.is_dir() {
            unread.push(UnusedFile { file, why: "it is a folder".into() });
            continue;
        }
        match loader.side(&path, &label) {
            // A torn record is no reference.
            Ok((_, Some(why))) => unread.push(UnusedFile { file, why }),
            // Seconds do not affect a rank, and many files have many.
            Ok((side, None)) => {
                sides.push(Side { rows: Vec::new(), over: None, spikes: None, ..side });
            }
            Err(error) => unread.push(UnusedFile { file, why: format!("{error:#}") }),
        }
    }
    Ok((sides, unread))
}

#[cfg(test)]
mod load_tests {
    use super::*;

    #[test]
    fn names_are_taken_off_where_no_file_has_them() {
        let of = |text: &str| NamedFile::of(Path::new(text));
        let named = of("stock=/nowhere/a.log");
        assert_eq!((named.name.as_deref(), named.path), (Some("stock"), "/nowhere/a.log".into()));
        for plain in ["a.log", "/x=y/a.log", "=a.log"] {
            assert_eq!(of(plain), NamedFile { name: None, path: plain.into() });
        }
    }
}

#[cfg(test)]
mod names_tests {
    use super::*;

    fn short_of(names: &[&str]) -> Vec<String> {
        short_names(&names.iter().map(Path::new).collect::<Vec<_>>())
    }

    #[test]
    fn what_all_share_is_left_out() {
        assert_eq!(
            short_of(&["d/stress-cyclictest.log", "rt-stress-no-multipathd-cyclictest.log"]),
            ["stress", "rt-stress-no-multipathd"]
        );
        assert_eq!(short_of(&["prove-pi-1.rtproof", "prove-pi-2.rtproof"]), ["1", "2"]);
        assert_eq!(short_of(&["a.log"]), ["a"]);
        assert_eq!(short_of(&["x/run.log", "y/run.log"]), ["run", "run (2)"]);
        assert_eq!(short_of(&["rt.log", "rt-stress.log"]), ["rt", "rt-stress"]);
        assert_eq!(short_of(&["µ-größe.log", "µ-kleine.log"]), ["größe", "kleine"]);
        assert!(short_of(&[]).is_empty());
    }

    #[test]
    fn a_group_has_the_name_of_its_files() {
        let of = |names: &[&str]| common_name(&names.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(of(&["tuned-1.rtproof", "tuned-2.rtproof"]).as_deref(), Some("tuned"));
        assert_eq!(of(&["a1.log", "b1.log"]), None);
        assert_eq!(of(&["1.log", "12.log"]), None);
    }
}
