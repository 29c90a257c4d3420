//! Packages, where they are, and what apt and digests say of them.

use std::process::Output;

/// Which archive has it: one of Debian's, or Ubuntu's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Archive {
    /// `debian`: releases and backports.
    Debian,
    Security,
    Ubuntu,
}

impl Archive {
    /// Address without a slash at its end. `RTPROOF_LAB_MIRROR` takes the place of Debian's server.
    pub fn url(self) -> String {
        let server = std::env::var("RTPROOF_LAB_MIRROR").ok().filter(|server| !server.is_empty());
        let server = server.unwrap_or_else(|| "http://deb.debian.org".to_owned());
        let server = server.trim_end_matches('/');
        match self {
            Self::Debian => format!("{server}/debian"),
            Self::Security => format!("{server}/debian-security"),
            Self::Ubuntu => "http://archive.ubuntu.com/ubuntu".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    pub name: &'static str,
    /// Version, for messages and for whoever renews the pin.
    pub version: &'static str,
    /// Path in the archive: `pool/main/...deb`.
    pub path: &'static str,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: &'static str,
    pub archive: Archive,
}

impl Package {
    /// Name of its file in the cache.
    pub fn file_name(&self) -> String {
        file_name(self.path)
    }

    pub(super) fn located(&self) -> Located {
        Located {
            url: format!("{}/{}", self.archive.url(), self.path),
            file_name: self.file_name(),
            sha256: self.sha256.to_owned(),
        }
    }
}

/// A package file and where it is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) url: String,
    pub(crate) file_name: String,
    pub(crate) sha256: String,
}

/// The error lines of apt in one line.
pub(super) fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    if lines.is_empty() { format!("{} {}", output.status, text.trim()) } else { lines.join(", ") }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last part of an address, with `%2b` and the like put back.
pub(super) fn file_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.replace("%2b", "+").replace("%7e", "~").replace("%3a", ":")
}
