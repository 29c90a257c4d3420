//! The newest version of packages in one suite of Debian: the last resort when pins have vanished.

use std::{cmp::Ordering, collections::HashMap, fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::package::{Archive, Located, complaint, file_name, hex};
use crate::cache::Cache;

/// A suite of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suite {
    Bullseye,
    Bookworm,
    BookwormBackports,
    BookwormSecurity,
    Trixie,
    TrixieBackports,
}

impl Suite {
    /// Its name in Debian.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bullseye => "bullseye",
            Self::Bookworm => "bookworm",
            Self::BookwormBackports => "bookworm-backports",
            Self::BookwormSecurity => "bookworm-security",
            Self::Trixie => "trixie",
            Self::TrixieBackports => "trixie-backports",
        }
    }

    /// The archive that has it.
    pub fn archive(self) -> Archive {
        if self == Self::BookwormSecurity { Archive::Security } else { Archive::Debian }
    }
}

/// What to take when no pin can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    pub suite: Suite,
    /// Debian's name of the architecture.
    pub architecture: &'static str,
    /// Package names; `*` stands for the same text in all of them (the version in the name of a
    /// kernel package).
    pub names: &'static [&'static str],
}

/// Finds the packages, or takes what was found the last time.
pub(super) fn resolve(cache: &Cache, wanted: &Newest) -> Result<Vec<Located>> {
    let suite = wanted.suite.name();
    let asked = format!("{suite} {} {}", wanted.architecture, wanted.names.join(" "));
    let key = &hex(&Sha256::digest(&asked))[..16];
    let entry = cache.entry("newest", key, |place| {
        let index = index(wanted)?;
        let set = choose(&parse(&index), wanted.names).with_context(|| {
            format!("{suite} ({}): no complete set of {:?}", wanted.architecture, wanted.names)
        })?;
        let mut text = String::new();
        for stanza in set {
            text.push_str(&format!(
                "{}/{} {} {}\n",
                wanted.suite.archive().url(),
                stanza.path,
                file_name(stanza.path),
                stanza.sha256
            ));
        }
        fs::write(place, text).with_context(|| format!("{}: cannot be written", place.display()))
    })?;
    let text = fs::read_to_string(&entry)
        .with_context(|| format!("{}: cannot be read", entry.display()))?;
    let mut found = Vec::new();
    for line in text.lines() {
        let parts: Vec<_> = line.split(' ').collect();
        let [url, file_name, sha256] = parts[..] else {
            anyhow::bail!(
                "{}: {line:?} is not 'URL FILE SHA256'; remove the file",
                entry.display()
            );
        };
        found.push(Located {
            url: url.to_owned(),
            file_name: file_name.to_owned(),
            sha256: sha256.to_owned(),
        });
    }
    Ok(found)
}

/// All package records of the suite, by an apt with its own state, sources and keys.
fn index(wanted: &Newest) -> Result<String> {
    let dir = tempfile::tempdir().context("no temporary folder for apt's lists")?;
    let at = |name: &str| dir.path().join(name);
    for name in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(at(name))
            .with_context(|| format!("{}: cannot make", at(name).display()))?;
    }
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    ensure!(Path::new(keys).exists(), "{keys} is missing: install debian-archive-keyring");
    let sources = format!(
        "deb [signed-by={keys}] {} {} main\n",
        wanted.suite.archive().url(),
        wanted.suite.name()
    );
    fs::write(at("sources.list"), sources).context("apt's private sources.list")?;
    fs::write(at("state/status"), "").context("apt's private status")?;

    let apt = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        for (name, value) in [
            ("Dir::State", at("state")),
            ("Dir::State::status", at("state/status")),
            ("Dir::Cache", at("cache")),
            ("Dir::Etc::sourcelist", at("sources.list")),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::Etc::preferences", "-".into()),
            ("Dir::Etc::preferencesparts", "-".into()),
            ("APT::Architecture", wanted.architecture.into()),
            ("APT::Architectures", wanted.architecture.into()),
            ("Acquire::Languages", "none".into()),
            ("Acquire::Retries", "3".into()),
            ("APT::Sandbox::User", "root".into()),
            // Suites of releases past their end are not signed anew.
            ("Acquire::Check-Valid-Until", "false".into()),
        ] {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        }
        let output =
            command.args(arguments).output().with_context(|| format!("cannot run {program}"))?;
        ensure!(output.status.success(), "{program} {arguments:?}: {}", complaint(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    apt("apt-get", &["-q", "--error-on=any", "update"])?;
    apt("apt-cache", &["dumpavail"])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stanza<'a> {
    name: &'a str,
    version: &'a str,
    path: &'a str,
    sha256: &'a str,
}

fn parse(index: &str) -> Vec<Stanza<'_>> {
    let stanza = |text| {
        let fields: HashMap<&str, &str> =
            str::lines(text).filter_map(|line: &str| line.split_once(": ")).collect();
        let field = |name| fields.get(name).copied();
        Some(Stanza {
            name: field("Package")?,
            version: field("Version")?,
            path: field("Filename")?,
            sha256: field("SHA256")?,
        })
    };
    index.split("\n\n").filter_map(stanza).collect()
}

/// The set whose first package is the newest, of those where every name is there.
fn choose<'a>(all: &[Stanza<'a>], names: &[&str]) -> Option<Vec<Stanza<'a>>> {
    let (first, _) = names.split_first()?;
    let named = |name: &str| {
        let same = all.iter().filter(|stanza| stanza.name == name);
        same.copied().max_by(|a, b| newer(a.version, b.version))
    };
    let mut sets: Vec<Vec<Stanza<'a>>> = Vec::new();
    let mut tried = std::collections::HashSet::new();
    for stanza in all {
        let Some(text) = filled(first, stanza.name) else { continue };
        if tried.insert(text) {
            sets.extend(
                names
                    .iter()
                    .map(|name| named(&name.replace('*', text)))
                    .collect::<Option<Vec<_>>>(),
            );
        }
    }
    sets.into_iter().max_by(|a, b| newer(a[0].version, b[0].version))
}

/// What `*` stands for in `pattern` when it is to give `name`. A kernel's version begins with a
/// digit.
fn filled<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once('*') else {
        return (pattern == name).then_some("");
    };
    let text = name.strip_prefix(before)?.strip_suffix(after)?;
    let is_version = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '~' | '-');
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_version);
    // "6.1.0-50-cloud" is another flavour, not another version.
    let has_flavour =
        text.split('-').skip(1).any(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()));
    (is_plain && !has_flavour).then_some(text)
}

/// Debian's order of versions.
fn newer(a: &str, b: &str) -> Ordering {
    let is = |relation| {
        let status = Command::new("dpkg").args(["--compare-versions", a, relation, b]).status();
        status.is_ok_and(|status| status.success())
    };
    if a == b {
        Ordering::Equal
    } else if is("gt") {
        Ordering::Greater
    } else {
        Ordering::Less
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_complete_set_is_chosen() {
        let stanza = |name: &str, abi: &str, file: &str| {
            let version = abi.replace("0-", "");
            format!(
                "Package: linux-{name}-{abi}-rt-amd64\nVersion: {version}\n\
                 Filename: pool/{file}{abi}.deb\nSHA256: aa\n\n"
            )
        };
        let index = ["6.1.0-9", "6.1.0-50", "6.1.0-51"].map(|abi| stanza("image", abi, "i"));
        let headers = ["6.1.0-9", "6.1.0-50"].map(|abi| stanza("headers", abi, "h"));
        let index = index.concat() + &headers.concat();
        let all = parse(&index);
        assert_eq!(all.len(), 5);
        let names = ["linux-image-*-rt-amd64", "linux-headers-*-rt-amd64"];
        let chosen = choose(&all, &names).unwrap();
        assert_eq!([chosen[0].path, chosen[1].path], ["pool/i6.1.0-50.deb", "pool/h6.1.0-50.deb"]);
        assert_eq!(choose(&all, &["linux-image-*-cloud-amd64"]), None);
    }

    #[test]
    fn a_flavour_is_not_a_version() {
        let pattern = "linux-image-*-amd64-unsigned";
        assert_eq!(filled(pattern, "linux-image-6.1.0-50-amd64-unsigned"), Some("6.1.0-50"));
        assert_eq!(filled(pattern, "linux-image-6.1.0-50-rt-amd64-unsigned"), None);
        assert_eq!(
            filled(pattern, "linux-image-7.2.12+deb13-amd64-unsigned"),
            Some("7.2.12+deb13")
        );
        assert_eq!(filled("busybox-static", "busybox-static"), Some(""));
    }
}
