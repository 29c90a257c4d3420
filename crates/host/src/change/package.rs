//! Packages of the distribution that a change adds: which manager adds them, and each by name,
//! architecture and version, so that an undo removes these and no others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a kernel's package is called where rtproof installs one.
const KERNEL: &str = "linux-image-";

/// A package manager whose additions rtproof can undo exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PackageManager {
    /// apt-get and dpkg (Debian, Ubuntu).
    Apt,
}

/// One package that an installation adds.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct AddedPackage {
    pub name: String,
    /// Architecture, e.g. `amd64`, `all`.
    pub architecture: String,
    pub version: String,
}

impl AddedPackage {
    /// The name as apt and dpkg take it: of several architectures this one.
    pub fn qualified(&self) -> String {
        match self.architecture.as_str() {
            "all" => self.name.clone(),
            architecture => format!("{}:{architecture}", self.name),
        }
    }

    /// The kernel's release that it holds: `6.1.0-56-rt-amd64` of
    /// `linux-image-6.1.0-56-rt-amd64`; `None` for another package.
    pub fn release(&self) -> Option<&str> {
        let release = self.name.strip_prefix(KERNEL)?;
        let release = release.strip_prefix("unsigned-").unwrap_or(release);
        let release = release.strip_suffix("-unsigned").unwrap_or(release);
        let has_version = release.starts_with(|c: char| c.is_ascii_digit());
        (has_version && release.contains('.')).then_some(release)
    }
}

/// Looks whether rtproof adds such packages at all: a kernel, and what comes with it.
pub(crate) fn may_be_added(name: &str, adds: &[AddedPackage]) -> Result<(), String> {
    if !name.starts_with(KERNEL) || !is_name(name) {
        return Err(format!("package {name}: rtproof installs only kernels ({KERNEL}...)"));
    }
    if adds.is_empty() {
        return Err(format!("package {name}: the packages that it adds are not named"));
    }
    for one in adds {
        let is_version = one.version.starts_with(|c: char| c.is_ascii_alphanumeric())
            && one.version.chars().all(|c| c.is_ascii_alphanumeric() || ".+:~-".contains(c));
        if !is_name(&one.name) || !is_name(&one.architecture) || !is_version {
            return Err(format!("{} {}: no package and version", one.qualified(), one.version));
        }
    }
    match adds.iter().any(|one| one.name == name) {
        true => Ok(()),
        false => Err(format!("package {name}: it is not among the packages that are added")),
    }
}

/// A package's name in Debian's form (Debian Policy, 5.6.1): neither an option nor a path.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
        // Of apt-get the last character may be a command: install or remove.
        && !name.ends_with(['+', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(name: &str, version: &str) -> AddedPackage {
        AddedPackage { name: name.into(), architecture: "amd64".into(), version: version.into() }
    }

    #[test]
    fn only_kernels_and_what_comes_with_them() {
        let name = "linux-image-rt-amd64";
        let adds = [added(name, "6.1.192-2"), added("linux-base", "1:4.9~deb12+b1")];
        assert_eq!(may_be_added(name, &adds), Ok(()));
        assert!(may_be_added(name, &[]).is_err());
        assert!(may_be_added(name, &adds[1..]).is_err());
        assert!(may_be_added("nginx", &[added("nginx", "1")]).is_err());
        for (name, version) in [
            ("-o", "1"),
            ("a/b", "1"),
            ("a-", "1"),
            ("a", "-1"),
            ("a", "1 2"),
            ("a", ""),
            ("", "1"),
        ] {
            let adds = [added("linux-image-rt-amd64", "1"), added(name, version)];
            assert!(may_be_added("linux-image-rt-amd64", &adds).is_err(), "{name} {version}");
        }
    }

    #[test]
    fn the_release_is_in_the_name() {
        let release = |name: &str| added(name, "1").release().map(str::to_owned);
        assert_eq!(release("linux-image-6.1.0-56-rt-amd64").as_deref(), Some("6.1.0-56-rt-amd64"));
        assert_eq!(
            release("linux-image-unsigned-6.8.1-1015-realtime").as_deref(),
            Some("6.8.1-1015-realtime")
        );
        assert_eq!(release("linux-image-rt-amd64"), None);
        assert_eq!(release("linux-base"), None);
    }
}
