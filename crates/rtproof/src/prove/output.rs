//! Where record and report go, decided and tried before anything is measured.

use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::{Timestamp, tz::TimeZone};
use rtproof_host::Facts;

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Record.
    pub record: PathBuf,
    /// Report.
    pub html: PathBuf,
}

impl Output {
    /// `prove-HOST-TIME.*` in a folder, or the name given.
    ///
    /// # Errors
    /// When the folder is not there.
    pub fn choose(path: &Path, facts: &Facts) -> anyhow::Result<Self> {
        let named = || match path.extension().and_then(|extension| extension.to_str()) {
            Some("rtproof" | "html") => path.with_extension(""),
            _ => path.to_owned(),
        };
        let stem = if path.is_dir() { path.join(default_stem(facts)) } else { named() };
        let folder = match stem.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let metadata = folder.metadata().with_context(|| {
            format!(
                "{}: cannot write there; make the folder or choose another with --output",
                folder.display()
            )
        })?;
        anyhow::ensure!(
            metadata.is_dir(),
            "{}: not a folder; choose another with --output",
            folder.display()
        );
        let with = |extension: &str| {
            let mut name = stem.clone().into_os_string();
            name.push(extension);
            PathBuf::from(name)
        };
        Ok(Self { record: with(".rtproof"), html: with(".html") })
    }

    /// The folder of the record.
    #[must_use]
    pub fn folder(&self) -> &Path {
        match self.record.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}

fn default_stem(facts: &Facts) -> String {
    let host = facts.identity.hostname.value().map_or("host", String::as_str);
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    let host: String = host.chars().map(safe).take(64).collect();
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    format!("prove-{host}-{}", now.strftime("%Y%m%dT%H%M%S"))
}
