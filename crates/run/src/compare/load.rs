//! Files for a comparison: records, and result files of other tools, by how they begin.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use rtproof_judge::compare::Side;
use rtproof_record::import::{self, Hints, ImportError};

use crate::{opened, usage::usage};

/// How a record begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// A file with the name that the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Name; `None`: from the file's.
    pub name: Option<String>,
    pub path: PathBuf,
}

/// Opens the files that are compared.
#[derive(Clone, Debug, Default)]
pub struct Loader {
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

impl Named {
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

impl Loader {
    /// A run, and what must be said of its file.
    ///
    /// # Errors
    /// A file that cannot be read, is no record and no result file, or was altered.
    pub fn side(&self, path: &Path, label: &str) -> anyhow::Result<(Side, Option<String>)> {
        let source = path.display().to_string();
        if is_record(path)? {
            let (opened, banner) = opened::open(path, self.accept_altered)?;
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
    rtproof_host::input::open(path).with_context(|| cannot(path))
}

fn cannot(path: &Path) -> String {
    format!("{}: cannot be read", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_off_where_no_file_has_them() {
        let of = |text: &str| Named::of(Path::new(text));
        let named = of("stock=/nowhere/a.log");
        assert_eq!((named.name.as_deref(), named.path), (Some("stock"), "/nowhere/a.log".into()));
        for plain in ["a.log", "/x=y/a.log", "=a.log"] {
            assert_eq!(of(plain), Named { name: None, path: plain.into() });
        }
    }
}
