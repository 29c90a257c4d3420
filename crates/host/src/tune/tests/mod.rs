//! The engine on folders: what it makes, what it leaves alone, what it puts back.

mod accounts;
mod damage;
mod deaths;
mod kinds;
mod packages;
mod played;
mod records;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
};

use played::{PlayedAccounts, PlayedTasks, PlayedUnits};

use super::script::JournalLine;
use super::*;
use crate::testing::Tree;
use crate::{CpuList, Root};

/// Every entry of a tree but what the engine keeps for itself: kind, mode, owner, bytes, and for
/// files outside of /proc and /sys when they were last changed.
fn snapshot(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("/{}", path.strip_prefix(root).unwrap().display());
            if name.starts_with("/var") {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            let what = if meta.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else if meta.is_dir() {
                todo.push(path.clone());
                format!("folder {:o}", meta.mode())
            } else {
                let is_kernel = ["/proc/", "/sys/"].iter().any(|top| name.starts_with(top));
                let time = if is_kernel { 0 } else { meta.mtime_nsec() + meta.mtime() };
                let bytes = fs::read(&path).unwrap();
                format!("{:o} {} {} {time} {bytes:?}", meta.mode(), meta.uid(), meta.gid())
            };
            found.insert(name, what);
        }
    }
    found
}

/// What differs between two snapshots, for a message.
pub(super) fn difference(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differs = |name: &&String| a.get(*name) != b.get(*name);
    names
        .into_iter()
        .filter(differs)
        .map(|name| format!("{name}: {:?} -> {:?}", a.get(name), b.get(name)))
        .collect()
}

/// Text at a path of the tree.
pub(super) fn text(tree: &Tree, path: &str) -> String {
    String::from_utf8_lossy(&fs::read(tree.path().join(path)).unwrap()).into_owned()
}

pub(super) fn value(path: &str, value: &str) -> Change {
    Change::Value {
        path: path.into(),
        value: value.into(),
        compare: Compare::Text,
        couples: Vec::new(),
    }
}

pub(super) fn file(path: &str, content: Option<&[u8]>) -> Change {
    let content = content.map(|bytes| Bytes(bytes.to_vec()));
    Change::File { path: path.into(), content, mode: None }
}

pub(super) fn items(changes: &[Change]) -> Vec<Item> {
    changes.iter().map(|change| Item { change: change.clone(), checks: vec!["x".into()] }).collect()
}

/// Applies to a folder, with a journal of its own.
fn apply_to(machine: &Machine<'_>, changes: &[Change]) -> Result<ApplySummary, ApplyError> {
    let title = "test".into();
    let mut journal = Journal::begin(machine, title, &items(changes)).unwrap();
    apply(machine, &mut journal, &items(changes), ApplyOptions::default(), &mut |_| {})
}

/// Undoes the newest journal: what became of each change.
fn undo_on(machine: &Machine<'_>) -> Vec<Outcome> {
    let mut journal = Journal::open(machine, None).unwrap();
    let undone = undo(machine, &mut journal, &mut |_| {}).unwrap();
    undone.into_iter().map(|undone| undone.outcome).collect()
}

pub(super) struct NoTasks;

impl Tasks for NoTasks {
    fn scheduling(&self, _: u32) -> io::Result<Scheduling> {
        Err(Errno::SRCH.into())
    }

    fn set(&self, _: u32, _: &Scheduling) -> io::Result<()> {
        Err(Errno::SRCH.into())
    }
}
