//! A file or folder that was put in place whole: what is in it, by name, size, kind and time, so
//! that undo removes what is still as it was put there, and nothing else.

#![expect(clippy::disallowed_methods, reason = "this is the gate's other half")]

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::text::hex;

/// Files and folders of one tree that are read: a distribution's kernel has some 5 000.
const FILES_MAX: usize = 200_000;

/// One file, folder or link of a tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TreeFile {
    /// Path below the top; empty for the top itself.
    pub path: String,
    /// Kind and permissions, as stat(2) has them.
    pub mode: u32,
    /// Size in bytes; 0 for a folder.
    #[serde(default)]
    pub bytes: u64,
    /// Last modification, nanoseconds since 1970; 0 for a folder, which others may touch.
    #[serde(default)]
    pub modified_ns: i64,
}

/// What is at a path, its top first; `None`: nothing.
pub(super) fn read(real: &Path) -> io::Result<Option<Vec<TreeFile>>> {
    let top = match fs::symlink_metadata(real) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut files = vec![entry(String::new(), &top)];
    let mut folders = if top.is_dir() { vec![String::new()] } else { Vec::new() };
    while let Some(folder) = folders.pop() {
        for entry_of in fs::read_dir(real.join(&folder))? {
            let entry_of = entry_of?;
            let name = entry_of.file_name();
            let name = name.to_str().ok_or_else(|| io::Error::other("a name that is no text"))?;
            let path = if folder.is_empty() { name.into() } else { format!("{folder}/{name}") };
            let meta = entry_of.metadata()?;
            if meta.is_dir() {
                folders.push(path.clone());
            }
            files.push(entry(path, &meta));
            if files.len() > FILES_MAX {
                return Err(io::Error::other(format!("more than {FILES_MAX} files")));
            }
        }
    }
    files.sort_unstable();
    Ok(Some(files))
}

fn entry(path: String, meta: &fs::Metadata) -> TreeFile {
    let is_folder = meta.is_dir();
    let modified_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    TreeFile {
        path,
        mode: meta.mode(),
        bytes: if is_folder { 0 } else { meta.len() },
        modified_ns: if is_folder { 0 } else { modified_ns },
    }
}

/// Names, kinds, sizes and times as one number.
pub(super) fn digest(files: &[TreeFile]) -> String {
    let mut digest = Sha256::new();
    for TreeFile { path, mode, bytes, modified_ns } in files {
        digest.update(format!("{path}\0{mode} {bytes} {modified_ns}\n"));
    }
    hex(&digest.finalize()[..16])
}

/// Bytes of all files.
pub(super) fn bytes(files: &[TreeFile]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

/// Files and links, folders not counted.
pub(super) fn count(files: &[TreeFile]) -> usize {
    files.iter().filter(|file| !file.is_folder()).count()
}

impl TreeFile {
    /// Whether it is a folder.
    pub const fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }
}
