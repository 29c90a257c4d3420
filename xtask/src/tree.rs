//! The source tree in memory, so that every rule is a function from texts to complaints and is
//! tested without touching a disk.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::source::Source;

/// Every file that is or would be tracked.
pub(crate) struct Tree {
    files: BTreeMap<String, Contents>,
}

/// Contents of one file.
pub(crate) enum Contents {
    /// Valid UTF-8 without NUL.
    Text(String),
    /// Anything else.
    Binary,
}

/// One thing that is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Complaint {
    /// Path from the root of the tree.
    pub(crate) path: String,
    /// Line, from 1; 0 when it is about the file.
    pub(crate) line: usize,
    /// What is wrong and what to do.
    pub(crate) text: String,
    /// Under which name `known.txt` counts it; `None`: it is never known.
    pub(crate) known: Option<String>,
}

impl Complaint {
    /// A complaint about a line.
    pub(crate) fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into(), known: None }
    }

    /// The same, of a rule that the tree broke when it came: counted under this name.
    pub(crate) fn known_as(self, name: impl Into<String>) -> Self {
        Self { known: Some(name.into()), ..self }
    }

    /// A complaint about a file.
    pub(crate) fn about(path: &str, text: impl Into<String>) -> Self {
        Self::at(path, 0, text)
    }
}

impl Tree {
    /// Reads the tree that git sees: tracked files and new ones that are not ignored.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot run git; tidy needs it to know which files are tracked")?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "git ls-files in {}: {}", root.display(), stderr.trim());
        let mut files = BTreeMap::new();
        for name in output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let name = std::str::from_utf8(name).context("a file name is not UTF-8: rename it")?;
            let path = root.join(name);
            // Deleted but not yet committed, or a symbolic link to a folder.
            if !path.is_file() {
                continue;
            }
            let bytes = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
            files.insert(name.to_owned(), Contents::from(bytes));
        }
        Ok(Self { files })
    }

    /// A tree made of texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Contents::Text((*text).to_owned())))
            .collect();
        Self { files }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, contents)| match contents {
            Contents::Text(text) => Some((path.as_str(), text.as_str())),
            Contents::Binary => None,
        })
    }

    /// Every Rust file of ours; fixtures are data, not source.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs") && !is_fixture(path))
    }

    /// Text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        match self.files.get(path)? {
            Contents::Text(text) => Some(text),
            Contents::Binary => None,
        }
    }

    /// Whether a file or a folder of this name exists.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }
}

/// The tree with each Rust file of ours taken apart, once for all rules.
pub(crate) struct Files<'a> {
    pub(crate) tree: &'a Tree,
    rust: Vec<File<'a>>,
}

/// One Rust file.
pub(crate) struct File<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    pub(crate) source: Source,
    /// Whether it is compiled for tests alone.
    pub(crate) is_test: bool,
}

impl<'a> Files<'a> {
    pub(crate) fn of(tree: &'a Tree) -> Self {
        let file = |(path, text)| File {
            path,
            text,
            source: Source::parse(text),
            is_test: is_test_file(path),
        };
        let mut rust: Vec<_> = tree.rust().map(file).collect();
        let tests: Vec<String> = rust.iter().flat_map(File::test_modules).collect();
        for file in &mut rust {
            let is_in = |module: &String| {
                let rest = file.path.strip_prefix(module.as_str());
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            };
            file.is_test |= tests.iter().any(is_in);
        }
        Self { tree, rust }
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File<'a>> {
        self.rust.iter()
    }

    /// The files that a user gets: source of the crates, without what is compiled for tests alone.
    pub(crate) fn product(&self) -> impl Iterator<Item = &File<'a>> {
        self.rust.iter().filter(|file| file.is_product())
    }
}

impl File<'_> {
    /// Whether it is source of the crates that a user gets.
    pub(crate) fn is_product(&self) -> bool {
        self.path.starts_with("crates/") && self.path.contains("/src/") && !self.is_test
    }

    /// Paths, without an ending, of the modules that it declares under `#[cfg(test)]`.
    fn test_modules(&self) -> impl Iterator<Item = String> {
        let own = self.path.trim_end_matches(".rs");
        let root = ["/mod", "/lib", "/main"].iter().find_map(|root| own.strip_suffix(root));
        let folder = root.unwrap_or(own);
        let lines = self.source.code.lines().enumerate();
        lines.filter(|(index, _)| self.source.in_test(index + 1)).filter_map(move |(_, line)| {
            let (_, name) = line.strip_suffix(';')?.split_once("mod ")?;
            Some(format!("{folder}/{name}"))
        })
    }

    /// Lines of code that the product has, with their numbers from 1.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.source.code.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(number, _)| !self.source.in_test(*number))
    }
}

impl From<Vec<u8>> for Contents {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Self::Text(text),
            _ => Self::Binary,
        }
    }
}

/// Whether a path is captured data rather than source.
pub(crate) fn is_fixture(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "fixtures" | "snapshots" | "testdata" | "corpus"))
        || path.ends_with(".snap")
}

/// Whether a Rust file is compiled for tests alone, by its place and its name.
pub(crate) fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    path.contains("/tests/")
        || path.contains("/benches/")
        || matches!(name, "testing.rs" | "tests.rs" | "contract.rs" | "good.rs" | "regressions.rs")
        || name.ends_with("_tests.rs")
}

/// Root of the source tree.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lives in a folder of the workspace").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_exist_when_a_file_is_in_them() {
        let tree = Tree::of(&[("docs/adr/README.md", "")]);
        assert!(tree.exists("docs/adr"));
        assert!(tree.exists("docs/adr/README.md"));
        assert!(!tree.exists("docs/ad"));
    }

    #[test]
    fn files_of_test_modules_are_no_product() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod c;\nmod cd;\n"),
            ("crates/a/src/b.rs", "#[cfg(test)]\npub(crate) mod e;\n"),
            ("crates/a/src/b/e.rs", ""),
            ("crates/a/src/c/mod.rs", ""),
            ("crates/a/src/c/f.rs", ""),
            ("crates/a/src/cd.rs", ""),
        ]);
        let files = Files::of(&tree);
        let product: Vec<_> = files.product().map(|file| file.path).collect();
        let wanted = ["crates/a/src/b.rs", "crates/a/src/cd.rs", "crates/a/src/lib.rs"];
        assert_eq!(product, wanted);
    }

    #[test]
    fn a_nul_makes_a_file_binary() {
        assert!(matches!(Contents::from(b"a\0b".to_vec()), Contents::Binary));
        assert!(matches!(Contents::from(vec![0xff]), Contents::Binary));
        assert!(matches!(Contents::from(b"ab".to_vec()), Contents::Text(_)));
    }
}
