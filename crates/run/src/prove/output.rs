//! Where record and report go, decided and tried before anything is measured.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::Context;
use jiff::{Timestamp, tz::TimeZone};
use rtproof_host::Facts;

use crate::file;

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub record: PathBuf,
    pub html: PathBuf,
    /// Each single sample, where they are kept.
    pub samples: Option<PathBuf>,
}

impl Output {
    /// `prove-HOST-TIME.*` in a folder, or the name given. Both files are tried: that they are not
    /// there yet, and that they can be made.
    ///
    /// # Errors
    /// When the folder is not there, a file is, or none can be made.
    pub fn choose(path: &Path, facts: &Facts) -> anyhow::Result<Self> {
        Self::choose_for("prove", path, facts)
    }

    /// The same, of another command.
    ///
    /// # Errors
    /// As [`Output::choose`].
    pub fn choose_for(command: &str, path: &Path, facts: &Facts) -> anyhow::Result<Self> {
        let chosen = if path.is_dir() {
            Self::free(&path.join(default_name(command, facts)))
        } else {
            anyhow::ensure!(!means_folder(path), no_folder(path));
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("rtproof" | "html") => Self::of_stem(&path.with_extension("")),
                _ => Self::of_stem(path),
            }
        };
        let folder = chosen.folder();
        anyhow::ensure!(folder.is_dir(), no_folder(folder));
        try_new(&chosen.record, "a record")?;
        try_new(&chosen.html, "a report")?;
        Ok(chosen)
    }

    fn of_stem(stem: &Path) -> Self {
        let with = |extension: &str| {
            let mut name = stem.as_os_str().to_owned();
            name.push(extension);
            PathBuf::from(name)
        };
        Self { record: with(".rtproof"), html: with(".html"), samples: None }
    }

    /// With each single sample in a file beside the record.
    ///
    /// # Errors
    /// When that file is there, or cannot be made.
    pub fn keeping_samples(self) -> anyhow::Result<Self> {
        let samples = self.record.with_extension("samples.csv");
        try_new(&samples, "samples")?;
        Ok(Self { samples: Some(samples), ..self })
    }

    /// With a number where another run of the same second took the name.
    fn free(stem: &Path) -> Self {
        let mut output = Self::of_stem(stem);
        for number in 2..1000_u32 {
            if !is_taken(&output.record) && !is_taken(&output.html) {
                break;
            }
            let mut name = stem.as_os_str().to_owned();
            name.push(format!("-{number}"));
            output = Self::of_stem(Path::new(&name));
        }
        output
    }

    /// The folder of the record.
    pub fn folder(&self) -> &Path {
        match self.record.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}

/// Whether a path can only be a folder's.
fn means_folder(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.") || path.file_name().is_none()
}

/// Why nothing can be put there.
fn no_folder(path: &Path) -> String {
    let why = match path.metadata().map_err(|error| (error.kind(), error)) {
        Ok(_) | Err((ErrorKind::NotADirectory, _)) => "not a folder; choose another".into(),
        Err((ErrorKind::NotFound, _)) => "no such folder; make the folder or choose another".into(),
        Err((_, error)) => format!("cannot be looked into ({error}); choose another"),
    };
    format!("{}: {why} with --output", path.display())
}

/// Whether anything has the name, a link to nothing as well.
fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn try_new(path: &Path, what: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        !path.is_dir(),
        "{}: a folder has this name, and {what} must go there; choose another with --output or \
         move it away",
        path.display()
    );
    anyhow::ensure!(
        !is_taken(path),
        "{}: there already, and {what} is evidence that is never overwritten; choose another name \
         with --output or move it away",
        path.display()
    );
    file::try_new(path).with_context(|| {
        format!("{}: {what} cannot be made there; choose another with --output", path.display())
    })
}

/// A name that nothing has yet, with a number where need be.
pub fn free_name(wanted: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = wanted.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    let mut names = std::iter::once(wanted.to_owned()).chain((2..1000).map(numbered));
    names.find(|name| !is_taken(name)).unwrap_or_else(|| wanted.to_owned())
}

/// `COMMAND-HOST-TIME`.
pub fn default_name(command: &str, facts: &Facts) -> String {
    let host = facts.identity.hostname.value().map_or("host", String::as_str);
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    let host: String = host.chars().map(safe).take(64).collect();
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    format!("{command}-{host}-{}", now.strftime("%Y%m%dT%H%M%S"))
}
