//! What Cargo knows about the dependencies: the part of `cargo metadata` that the policy reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The platforms that a binary is made for.
pub(crate) const PLATFORMS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Every package that is in use, by id.
pub(crate) struct Graph {
    /// Packages.
    pub(crate) packages: BTreeMap<String, Package>,
    /// Ids of the members of the workspace.
    pub(crate) members: BTreeSet<String>,
    /// What each package imports, tests and build scripts included.
    pub(crate) imports: BTreeMap<String, BTreeSet<Import>>,
}

/// One package.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    /// Id.
    pub(crate) id: String,
    /// Name.
    pub(crate) name: String,
    /// Version.
    pub(crate) version: String,
    /// SPDX expression.
    pub(crate) license: Option<String>,
    /// Where it comes from; `None` for a package of the workspace.
    pub(crate) source: Option<String>,
    /// Oldest Rust that it says it builds with.
    pub(crate) rust_version: Option<String>,
    /// Its Cargo.toml.
    pub(crate) manifest_path: String,
    /// What its manifest asks for.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a manifest's dependencies.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    /// Name.
    pub(crate) name: String,
    /// Version wanted.
    pub(crate) req: String,
    /// Folder, for a package of the workspace.
    pub(crate) path: Option<String>,
}

/// One edge of the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    /// Id of the package imported.
    pub(crate) id: String,
    /// Whether only tests import it.
    pub(crate) only_tests: bool,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<NodeDep>,
}

#[derive(Deserialize)]
struct NodeDep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    kind: Option<String>,
}

impl Graph {
    /// Asks Cargo, for every platform.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut graph =
            Self { packages: BTreeMap::new(), members: BTreeSet::new(), imports: BTreeMap::new() };
        for platform in PLATFORMS {
            graph.add(metadata(root, platform)?);
        }
        Ok(graph)
    }

    fn add(&mut self, metadata: Metadata) {
        let mut used = BTreeSet::new();
        for node in metadata.resolve.nodes {
            used.insert(node.id.clone());
            let imports = node.deps.into_iter().map(|dep| Import {
                id: dep.pkg,
                only_tests: dep.dep_kinds.iter().all(|kind| kind.kind.as_deref() == Some("dev")),
            });
            self.imports.entry(node.id).or_default().extend(imports);
        }
        self.members.extend(metadata.workspace_members);
        let packages = metadata.packages.into_iter().filter(|package| used.contains(&package.id));
        self.packages.extend(packages.map(|package| (package.id.clone(), package)));
    }

    /// Packages that are needed to build a member: no test needs them alone.
    pub(crate) fn shipped_with(&self, member: &str) -> Vec<&Package> {
        let member = self.packages.values().find(|package| package.name == member);
        let mut found = BTreeSet::new();
        let mut open: Vec<_> = member.map(|package| package.id.as_str()).into_iter().collect();
        while let Some(id) = open.pop() {
            if found.insert(id) {
                let imports = self.imports.get(id).into_iter().flatten();
                open.extend(imports.filter(|dep| !dep.only_tests).map(|dep| dep.id.as_str()));
            }
        }
        found.into_iter().filter_map(|id| self.packages.get(id)).collect()
    }
}

fn metadata(root: &Path, platform: &str) -> Result<Metadata> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--all-features"])
        .args(["--filter-platform", platform])
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {}", stderr.trim());
    serde_json::from_slice(&output.stdout).context("cargo metadata printed something unexpected")
}
