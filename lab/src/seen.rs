//! What came back from the guests of a case: files, exit codes, JSON, records, planted truth.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use rtproof_guest::process::GuestOutcome;

/// What one boot left.
#[derive(Clone, Debug)]
pub struct Boot {
    pub share: PathBuf,
    pub console: PathBuf,
    pub outcome: GuestOutcome,
}

/// What a case left.
#[derive(Debug)]
pub struct Evidence {
    boots: Vec<Boot>,
    /// The static rtproof of this machine's own architecture.
    rtproof: PathBuf,
    /// Release of the kernel that was booted.
    release: String,
    /// Folder for what is made of the results.
    reports: PathBuf,
}

/// A JSON document with access by path.
#[derive(Clone, Debug)]
pub struct Json {
    name: String,
    value: Value,
}

impl Boot {
    /// What the plants wrote down: one JSON document per line of truth.jsonl; nothing when there
    /// were none.
    ///
    /// # Errors
    /// A line is no JSON.
    pub fn truth(&self) -> Result<Vec<Json>> {
        let text = fs::read(self.share.join("truth.jsonl")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().map(|line| Json::parse("truth", line)).collect()
    }
}

impl Evidence {
    pub(crate) const fn new(
        boots: Vec<Boot>,
        rtproof: PathBuf,
        release: String,
        reports: PathBuf,
    ) -> Self {
        Self { boots, rtproof, release, reports }
    }

    /// Keeps a document that was made of the results: `target/lab/reports/NAME`.
    pub fn keep(&self, name: &str, text: &str) -> Result<()> {
        fs::create_dir_all(&self.reports)?;
        let path = self.reports.join(name);
        fs::write(&path, text).with_context(|| format!("{}: write", path.display()))
    }

    /// Release of the kernel that was booted, as the table has it.
    pub fn release(&self) -> &str {
        &self.release
    }

    pub fn boots(&self) -> &[Boot] {
        &self.boots
    }

    /// The newest file of this name.
    ///
    /// # Errors
    /// No boot left it; the files that there are are listed.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        let found = self.boots.iter().rev().map(|b| b.share.join(name)).find(|p| p.exists());
        found.ok_or_else(|| {
            let names = self.boots.iter().flat_map(|boot| names_in(&boot.share));
            anyhow!("{name} did not come back; there are: {}", names.collect::<Vec<_>>().join(" "))
        })
    }

    /// Text of a file.
    pub fn text(&self, name: &str) -> Result<String> {
        let path = self.path(name)?;
        let bytes = fs::read(&path).with_context(|| format!("{}: read", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Standard output of `run NAME ...`.
    pub fn out(&self, name: &str) -> Result<String> {
        self.text(&format!("{name}.out"))
    }

    /// Standard error of `run NAME ...`.
    pub fn err(&self, name: &str) -> Result<String> {
        self.text(&format!("{name}.err"))
    }

    /// Exit code of `run NAME ...`.
    ///
    /// # Errors
    /// It is not there or no number.
    pub fn rc(&self, name: &str) -> Result<i32> {
        let text = self.text(&format!("{name}.rc"))?;
        text.trim().parse().with_context(|| format!("{name}.rc holds {text:?}"))
    }

    /// Standard output of `run NAME ...` as JSON.
    ///
    /// # Errors
    /// It is not there or no JSON.
    pub fn json(&self, name: &str) -> Result<Json> {
        Json::parse(name, &self.out(name)?)
    }

    /// `rtproof report --json` of a record, by the host's own binary: NAME.rtproof. A record that
    /// was not accepted ends with another code than 0; that is no error here.
    ///
    /// # Errors
    /// The record is not there, or cannot be read.
    pub fn report(&self, name: &str) -> Result<Json> {
        let record = self.path(&format!("{name}.rtproof"))?;
        Json::parse(name, &self.rtproof(&["report", "--json"], &record)?)
    }

    /// Output of the host's own binary on a file that came back.
    ///
    /// # Errors
    /// It fails.
    pub fn rtproof(&self, arguments: &[&str], file: &Path) -> Result<String> {
        let output = Command::new(&self.rtproof)
            .args(arguments)
            .arg(file)
            .env("NO_COLOR", "1")
            .output()
            .with_context(|| format!("run {}", self.rtproof.display()))?;
        if output.status.code() == Some(1) || output.status.code().is_none() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("rtproof {} {}: {error}", arguments.join(" "), file.display());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What the plants of the last boot wrote down.
    ///
    /// # Errors
    /// A line is no JSON.
    pub fn truth(&self) -> Result<Vec<Json>> {
        self.boots.last().map_or(Ok(Vec::new()), Boot::truth)
    }
}

impl Json {
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        let value = serde_json::from_str(text).with_context(|| {
            format!("{name}: not JSON: {}", text.chars().take(200).collect::<String>())
        })?;
        Ok(Self { name: name.to_owned(), value })
    }

    /// The value at a JSON pointer; null where there is none.
    pub fn at(&self, pointer: &str) -> &Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// A whole number.
    ///
    /// # Errors
    /// There is none at this pointer.
    pub fn number(&self, pointer: &str) -> Result<i64> {
        self.at(pointer).as_i64().ok_or_else(|| self.wrong(pointer, "a whole number"))
    }

    /// A text; empty where there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// A list; empty where there is none.
    pub fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).as_array().map_or(&[], Vec::as_slice)
    }

    /// The finding of a check (`/findings` of check and report).
    ///
    /// # Errors
    /// The check has none.
    pub fn finding(&self, check: &str) -> Result<Self> {
        let found = self.list("/findings").iter().find(|finding| finding["check"] == check);
        let value =
            found.cloned().ok_or_else(|| anyhow!("{}: no finding of {check}", self.name))?;
        Ok(Self { name: format!("{} {check}", self.name), value })
    }

    /// The whole document as text, to look for words in.
    pub fn whole(&self) -> String {
        self.value.to_string()
    }

    fn wrong(&self, pointer: &str, wanted: &str) -> anyhow::Error {
        anyhow!("{}: {pointer} is {}, not {wanted}", self.name, self.at(pointer))
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}
