//! Debian packages by name, version and digest, without root and without installing anything.
//!
//! apt's own downloader is used, so that the machine's proxy settings hold. Debian takes old
//! versions out of its pool at each point release; then the next pin is tried, and in the end the
//! newest version of the suite, found by a private apt that checks Debian's signatures.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use newest::resolve;

mod newest;
mod package;

pub use newest::{Newest, Suite};
pub(crate) use package::hex;
pub use package::{Archive, Package};

use package::{Located, complaint};

/// Cache kind of the packages.
pub const DEBS: &str = "debs";

/// Packages that belong together and are all there.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Files in the order in which they were requested.
    pub debs: Vec<PathBuf>,
    /// Digest over their digests.
    pub digest: String,
}

/// Fetches the first set of which every package can be had; failing that, the newest of a suite.
/// A set that is in the cache is used without asking the network.
///
/// # Errors
/// No set can be had; says why, for each.
pub fn fetch_set(
    cache: &Cache,
    alternatives: &[&[Package]],
    newest: Option<&Newest>,
) -> Result<Fetched> {
    let sets: Vec<Vec<Located>> =
        alternatives.iter().map(|set| set.iter().map(Package::located).collect()).collect();
    let is_cached = |set: &Vec<Located>| {
        set.iter().all(|package| cache.existing(DEBS, &package.file_name).is_some())
    };
    if let Some(set) = sets.iter().find(|set| is_cached(set)) {
        return download_all(cache, set);
    }
    let mut failures = Vec::new();
    for set in &sets {
        match download_all(cache, set) {
            Ok(found) => return Ok(found),
            Err(failure) => failures.push(format!("{failure:#}")),
        }
    }
    if let Some(newest) = newest {
        match resolve(cache, newest).and_then(|set| Ok((download_all(cache, &set)?, set))) {
            Ok((found, set)) => {
                let names: Vec<_> = set.iter().map(|package| package.file_name.as_str()).collect();
                eprintln!(
                    "lab: the pinned versions have gone from Debian ({}); using {} instead. \
                     Renew lab/src/kernels/pins.txt or lab/src/binaries/pins.rs.",
                    failures.join("; "),
                    names.join(" ")
                );
                return Ok(found);
            }
            Err(failure) => failures.push(format!("{failure:#}")),
        }
    }
    bail!(
        "none of the pinned packages can be had: {}. Is the network (or apt's proxy) up? If Debian \
         has dropped these versions, renew the pins",
        failures.join("; ")
    )
}

fn download_all(cache: &Cache, set: &[Located]) -> Result<Fetched> {
    let mut digest = Sha256::new();
    let mut debs = Vec::new();
    for package in set {
        digest.update(&package.sha256);
        debs.push(download(cache, package)?);
    }
    Ok(Fetched { debs, digest: hex(&digest.finalize()) })
}

fn download(cache: &Cache, package: &Located) -> Result<PathBuf> {
    let Located { url, file_name, sha256 } = package;
    cache.entry(DEBS, file_name, |place| {
        eprintln!("lab: fetching {url}");
        let output = Command::new("/usr/lib/apt/apt-helper")
            .env("LC_ALL", "C")
            // As root, apt would switch to a user who cannot write into the cache.
            .args(["-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"])
            .args(["-o", "Acquire::http::Timeout=60", "download-file", url])
            .arg(place)
            .arg(format!("SHA256:{sha256}"))
            .output()
            .context("/usr/lib/apt/apt-helper cannot be run: the lab needs Debian's apt")?;
        // It keeps what it refused under another name.
        let _ = fs::remove_file(format!("{}.FAILED", place.display()));
        ensure!(output.status.success(), "{url}: {}", complaint(&output));
        let found = sha256_of(place)?;
        ensure!(&found == sha256, "{url}: has SHA-256 {found}, expected {sha256}");
        Ok(())
    })
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256_of(path: &Path) -> Result<String> {
    let failed = |error: io::Error| anyhow!("{}: cannot be read: {error}", path.display());
    let mut digest = Sha256::new();
    let mut file = fs::File::open(path).map_err(failed)?;
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).map_err(failed)? {
            0 => return Ok(hex(&digest.finalize())),
            n => digest.update(&block[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::package::file_name;

    const ONE: Package = Package {
        name: "one",
        version: "1",
        path: "pool/main/o/one/one_1_all.deb",
        sha256: "00",
        archive: Archive::Debian,
    };

    #[test]
    fn a_cached_alternative_needs_no_network() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let two = Package { path: "pool/main/o/one/one_2_all.deb", version: "2", ..ONE };
        let made = cache.entry(DEBS, "one_2_all.deb", |path| Ok(fs::write(path, "x")?)).unwrap();
        assert_eq!(fetch_set(&cache, &[&[ONE], &[two]], None).unwrap().debs, [made]);
    }

    #[test]
    fn file_names_are_plain() {
        assert_eq!(
            file_name("pool/b/busybox_1.37.0-6%2bb9_arm64.deb"),
            "busybox_1.37.0-6+b9_arm64.deb"
        );
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        assert!(sha256_of(&path).unwrap().starts_with("ba7816bf8f01cfea"));
    }

    #[test]
    #[ignore = "asks Debian's servers: `make lab-all` and CI run it"]
    fn a_vanished_pin_gives_way_to_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let newest = Newest {
            suite: Suite::Bookworm,
            architecture: "arm64",
            names: &["linux-headers-6.1.*-rt-arm64", "linux-kbuild-6.1"],
        };
        let error = format!("{:#}", fetch_set(&cache, &[&[ONE]], None).unwrap_err());
        assert!(error.contains("pool/main/o/one/one_1_all.deb: Failed to fetch"), "{error}");
        for _ in 0..2 {
            let found = fetch_set(&cache, &[&[ONE]], Some(&newest)).unwrap();
            let name = found.debs[0].file_name().unwrap().to_string_lossy().into_owned();
            assert!(name.starts_with("linux-headers-6.1.0-") && name.ends_with("_arm64.deb"));
            assert_eq!(found.debs.len(), 2);
        }
        assert!(fetch_set(&cache, &[&[Package { sha256: "ff", ..ONE }]], None).is_err());
    }
}
