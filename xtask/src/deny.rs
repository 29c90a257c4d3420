//! The policy on dependencies, read from deny.toml: licences, sources, wildcards, duplicates, and
//! the oldest Rust. deny.toml is also what `cargo deny` reads; this job needs nothing installed.
//! What it cannot tell without the registry's help: yanked versions and advisories.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::metadata::{Graph, Package};
use crate::spdx;
use crate::tree::root;

/// The registry as Cargo names it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// deny.toml, as far as it is read here.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    #[serde(default)]
    skip: Vec<Skip>,
    #[serde(default)]
    deny: Vec<Deny>,
}

/// A version that may stand beside another, and why.
#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    name: String,
}

/// A crate that is not used, and why.
#[derive(Deserialize)]
struct Deny {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

/// Checks every dependency.
pub(crate) fn run() -> Result<ExitCode> {
    let root = root();
    let policy = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let policy: Policy = toml::from_str(&policy).context("deny.toml")?;
    let graph = Graph::read(&root)?;
    let oldest = rust_version(&root)?;
    let mut complaints = Vec::new();
    complaints.extend(licences(&policy.licenses.allow, &graph));
    complaints.extend(sources(&graph));
    complaints.extend(wildcards(&graph));
    complaints.extend(duplicates(&policy.bans.skip, &graph));
    complaints.extend(banned(&policy.bans.deny, &graph));
    complaints.extend(newer_than(&oldest, &graph));
    complaints.sort();

    let mut out = std::io::stdout().lock();
    for complaint in &complaints {
        writeln!(out, "{complaint}")?;
    }
    let shipped = graph.shipped_with("rtproof");
    let unstated = shipped.iter().filter(|package| package.rust_version.is_none()).count();
    writeln!(
        out,
        "deny: {} crates, {} of them in the binary or its build ({unstated} without a stated \
         oldest Rust), {} complaints",
        graph.packages.len(),
        shipped.len(),
        complaints.len()
    )?;
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn rust_version(root: &Path) -> Result<String> {
    let text = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let manifest: toml::Table = toml::from_str(&text).context("Cargo.toml")?;
    let version = manifest.get("workspace").and_then(|table| table.get("package"));
    let version = version.and_then(|table| table.get("rust-version")).and_then(|v| v.as_str());
    Ok(version.context("Cargo.toml: no workspace.package.rust-version")?.to_owned())
}

fn licences(allow: &[String], graph: &Graph) -> Vec<String> {
    let is_allowed = |licence: &str| allow.iter().any(|allowed| allowed == licence);
    let mut complaints = Vec::new();
    for package in graph.packages.values() {
        let name = full_name(package);
        match package.license.as_deref().map(|text| spdx::is_satisfied(text, is_allowed)) {
            Some(Some(true)) => {}
            Some(Some(false)) => complaints.push(format!(
                "{name}: licence {} is not allowed: replace the crate, or decide and add the \
                 licence to deny.toml",
                package.license.as_deref().unwrap_or_default()
            )),
            Some(None) => complaints.push(format!(
                "{name}: licence {:?} is not an SPDX expression: read its licence files",
                package.license.as_deref().unwrap_or_default()
            )),
            None => complaints.push(format!("{name}: states no licence: read its licence files")),
        }
    }
    complaints
}

fn sources(graph: &Graph) -> Vec<String> {
    let outside = graph.packages.values().filter_map(|package| {
        let source = package.source.as_deref()?;
        let text = "only crates.io is a source: use a published version";
        (source != CRATES_IO).then(|| format!("{} comes from {source}: {text}", full_name(package)))
    });
    outside.collect()
}

fn wildcards(graph: &Graph) -> Vec<String> {
    let members = graph.members.iter().filter_map(|id| graph.packages.get(id));
    let wild = members.flat_map(|package| {
        let wild = package.dependencies.iter().filter(|dep| dep.req == "*" && dep.path.is_none());
        wild.map(|dep| format!("{} asks for any {}: state a version", package.name, dep.name))
    });
    wild.collect()
}

fn duplicates(skip: &[Skip], graph: &Graph) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in graph.packages.values() {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let mut complaints = Vec::new();
    for (name, versions) in &mut versions {
        versions.sort_by_key(|version| Reverse(numbers(version)));
        let unknown: Vec<_> = versions.iter().filter(|v| !is_skipped(skip, name, v)).collect();
        if unknown.len() > 1 {
            complaints.push(format!(
                "{name} is in the tree as {}: move to one, or name the older one with a reason \
                 under [bans] skip in deny.toml",
                versions.join(" and ")
            ));
        }
    }
    for Skip { name } in skip {
        let (name, version) = name.split_once('@').unwrap_or((name, ""));
        let used = versions
            .get(name)
            .is_some_and(|found| found.len() > 1 && found.iter().any(|v| v.starts_with(version)));
        if !used {
            complaints.push(format!("deny.toml skips {name}, which has one version: remove it"));
        }
    }
    complaints
}

/// Whether a version is known to stand beside another. `syn@2` means every 2.x.
fn is_skipped(skip: &[Skip], name: &str, version: &str) -> bool {
    skip.iter().any(|skip| {
        let (skipped, wanted) = skip.name.split_once('@').unwrap_or((&skip.name, ""));
        let rest = version.strip_prefix(wanted);
        skipped == name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn banned(deny: &[Deny], graph: &Graph) -> Vec<String> {
    let found = deny.iter().filter_map(|Deny { name, reason }| {
        let package = graph.packages.values().find(|package| package.name == *name)?;
        Some(format!("{} is banned: {reason}", full_name(package)))
    });
    found.collect()
}

fn newer_than(oldest: &str, graph: &Graph) -> Vec<String> {
    let newer = graph.shipped_with("rtproof").into_iter().filter_map(|package| {
        let wanted = package.rust_version.as_deref()?;
        (numbers(wanted) > numbers(oldest)).then(|| {
            format!(
                "{} needs Rust {wanted}, the workspace states {oldest}: pin an older version, or \
                 raise rust-version",
                full_name(package)
            )
        })
    });
    newer.collect()
}

fn full_name(package: &Package) -> String {
    format!("{} {}", package.name, package.version)
}

/// The numbers of a version, for comparing: `1.89` is `[1, 89, 0]`.
fn numbers(version: &str) -> [u64; 3] {
    let stable = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = stable.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metadata::{Dependency, Import};

    fn package(name: &str, version: &str) -> Package {
        Package {
            id: format!("{name}@{version}"),
            name: name.into(),
            version: version.into(),
            license: Some("MIT".into()),
            source: Some(CRATES_IO.into()),
            rust_version: Some("1.60".into()),
            manifest_path: String::new(),
            dependencies: Vec::new(),
        }
    }

    fn graph(packages: Vec<Package>, imports: &[(&str, &str, bool)]) -> Graph {
        let mut graph = Graph {
            packages: packages.into_iter().map(|package| (package.id.clone(), package)).collect(),
            members: BTreeSet::from(["rtproof@1.0.0".to_owned()]),
            imports: BTreeMap::new(),
        };
        for (from, to, only_tests) in imports {
            let import = Import { id: (*to).into(), only_tests: *only_tests };
            graph.imports.entry((*from).into()).or_default().insert(import);
        }
        graph
    }

    #[test]
    fn licences_are_evaluated() {
        let mut gpl = package("a", "1.0.0");
        gpl.license = Some("GPL-2.0-only OR MIT".into());
        let allow = ["MIT".to_owned()];
        assert_eq!(licences(&allow, &graph(vec![gpl.clone()], &[])).len(), 0);
        for licence in [Some("GPL-2.0-only"), Some("see file"), None] {
            gpl.license = licence.map(Into::into);
            assert_eq!(licences(&allow, &graph(vec![gpl.clone()], &[])).len(), 1, "{licence:?}");
        }
    }

    #[test]
    fn other_sources_and_wildcards_are_found() {
        let mut git = package("a", "1.0.0");
        git.source = Some("git+https://example.org/a".into());
        let mut ours = package("rtproof", "1.0.0");
        ours.source = None;
        let dependency = |name: &str, path: Option<&str>| Dependency {
            name: name.into(),
            req: "*".into(),
            path: path.map(Into::into),
        };
        ours.dependencies = vec![dependency("a", None), dependency("b", Some("crates/b"))];
        let graph = graph(vec![git, ours], &[]);
        assert_eq!(sources(&graph).len(), 1);
        assert_eq!(wildcards(&graph), ["rtproof asks for any a: state a version"]);
    }

    #[test]
    fn only_known_duplicates_pass() {
        let skip = |name: &str| [Skip { name: name.into() }];
        let two = graph(vec![package("syn", "2.0.1"), package("syn", "3.0.0")], &[]);
        assert_eq!(duplicates(&[], &two).len(), 1);
        assert_eq!(duplicates(&skip("syn@2"), &two).len(), 0);
        // 2 is not 20, and a skip that is no longer needed goes.
        let two = graph(vec![package("syn", "20.0.0"), package("syn", "3.0.0")], &[]);
        assert_eq!(duplicates(&skip("syn@2.0"), &two).len(), 2);
        let one = graph(vec![package("syn", "2.0.1")], &[]);
        assert_eq!(duplicates(&skip("syn@2"), &one).len(), 1);
    }

    #[test]
    fn the_oldest_rust_is_that_of_what_is_shipped() {
        let mut new = package("new", "1.0.0");
        new.rust_version = Some("1.90".into());
        let mut only_tests = package("t", "1.0.0");
        only_tests.rust_version = Some("1.95".into());
        let packages = vec![package("rtproof", "1.0.0"), new, only_tests];
        let imports = [("rtproof@1.0.0", "new@1.0.0", false), ("rtproof@1.0.0", "t@1.0.0", true)];
        let graph = graph(packages, &imports);
        assert_eq!(newer_than("1.90.0", &graph).len(), 0);
        assert_eq!(newer_than("1.89", &graph).len(), 1);
    }

    #[test]
    fn banned_crates_are_found() {
        let deny = [Deny { name: "openssl".into(), reason: "no C".into() }];
        assert_eq!(banned(&deny, &graph(vec![package("openssl", "1.0.0")], &[])).len(), 1);
        assert_eq!(banned(&deny, &graph(vec![package("rustls", "1.0.0")], &[])).len(), 0);
    }
}
