//! Small machines for tests: a folder of files with given contents.

use std::{fs, path::Path};

use crate::Root;

/// A captured machine that goes with the test.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    /// A tree of (path, content); folders are made.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, content) in files {
            tree.write(path, content);
        }
        tree
    }

    /// The same in memory where the machine has such a place: for tests that sync a lot.
    pub(crate) fn in_memory(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let tree = Self(folder.unwrap());
        for (path, content) in files {
            tree.write(path, content);
        }
        tree
    }

    /// Adds or replaces a file.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn root(&self) -> Root {
        Root::dir(self.path()).unwrap()
    }
}
