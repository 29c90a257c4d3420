//! From the text of the file to [`Config`]; errors have line and column.

mod raw;

use std::{io::Read as _, path::Path};

use rtproof_host::{Root, trusted};

use self::raw::Wrong;
use super::{Config, PATH, VERSION};

const BYTES_MAX: u64 = 1 << 20;

/// Why a file is refused. Nothing of it is applied then.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub path: String,
    /// Line and column, from 1; `None`: the file as a whole.
    pub at: Option<(usize, usize)>,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, at, what } = self;
        match at {
            Some((line, column)) => write!(f, "{path}:{line}:{column}: {what}"),
            None => write!(f, "{path}: {what}"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a file of the live machine, as `--from FILE` names it; `accept_owner`: also one that
    /// another user owns or can write.
    ///
    /// # Errors
    /// It cannot be read, another user could have written it, or it is wrong; with line and
    /// column.
    pub fn open(path: &Path, accept_owner: bool) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let read = || {
            let file = trusted::open_if(path, accept_owner)?;
            let mut text = String::new();
            file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|error: std::io::Error| ConfigError {
            path: name.clone(),
            at: None,
            what: format!("cannot be read: {error}"),
        })?;
        Self::parse(&text, &name)
    }

    /// Reads the file of a machine, be it a folder.
    ///
    /// # Errors
    /// It cannot be read, or is wrong; with line and column.
    pub fn of_machine(root: &Root) -> Result<Self, ConfigError> {
        let text = root.read_text(PATH);
        match text.value() {
            Some(text) => Self::parse(text, PATH),
            None => {
                let what = text.why_unknown().unwrap_or_default();
                Err(ConfigError { path: PATH.into(), at: None, what })
            }
        }
    }

    /// Reads a text; `path` is its name in errors.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn parse(text: &str, path: &str) -> Result<Self, ConfigError> {
        let error = |wrong: Wrong| ConfigError {
            path: path.into(),
            at: Some(place(text, wrong.at.start)),
            what: wrong.what,
        };
        if text.len() as u64 > BYTES_MAX {
            let what = "larger than 1 MiB; this is not a file of rtproof".into();
            return Err(ConfigError { path: path.into(), at: None, what });
        }
        let file: raw::File = toml::from_str(text).map_err(|wrong| {
            error(Wrong::new(wrong.span().unwrap_or(0..0), wrong.message().replace('\n', ", ")))
        })?;
        match &file.version {
            Some(version) if *version.get_ref() == i64::from(VERSION) => {}
            Some(version) => {
                let what = format!("version {VERSION} is what this rtproof knows");
                return Err(error(Wrong::new(version.span(), what)));
            }
            None => return Err(error(Wrong::new(0..0, format!("no `version = {VERSION}`")))),
        }
        let intent = file.intent.meant().map_err(error)?;
        let mut changes = Vec::with_capacity(file.change.len());
        for change in file.change {
            let at = change.get_ref().kind.as_ref().map_or_else(|| change.span(), |k| k.span());
            let mut repeated = change.into_inner().repeated(at.clone()).map_err(error)?;
            repeated.line = place(text, at.start).0;
            repeated.reason = comment_above(text, at.start);
            changes.push(repeated);
        }
        Ok(Self { intent, changes })
    }
}

/// Line and column of a byte, from 1.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..byte.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// The comment right above the table in which a byte is.
fn comment_above(text: &str, byte: usize) -> Vec<String> {
    let head = text.get(..byte).and_then(|head| head.rfind("[[change]]").map(|at| &text[..at]));
    let mut lines: Vec<String> = head
        .unwrap_or_default()
        .lines()
        .rev()
        .map_while(|line| line.trim_start().strip_prefix('#'))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned())
        .collect();
    lines.reverse();
    lines
}
