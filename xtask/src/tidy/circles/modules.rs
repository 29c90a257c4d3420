//! The modules of one crate and what each takes from another, read from the text of the source.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Import, paths_of};
use crate::source::Source;

/// Words before the name of an item.
const ITEMS: &[&str] =
    &["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod"];
/// Longest chain of re-exports that is followed.
const CHAIN_MAX: usize = 16;

/// Path of a module inside its crate; the root is empty.
pub(super) type Name = Vec<String>;

/// One module: one file.
#[derive(Default)]
struct Module {
    file: String,
    /// Names of the items that it defines.
    items: BTreeSet<String>,
    /// Names that it imports or re-exports, with their paths.
    aliases: BTreeMap<String, Vec<String>>,
    /// Modules from which it takes every name.
    globs: Vec<Vec<String>>,
    /// Paths that its code names.
    paths: Vec<(usize, Vec<String>)>,
}

/// One arrow: `from` takes something from `to`.
pub(super) struct Arrow {
    pub(super) from: Name,
    pub(super) to: Name,
    /// File and line of the first place that says so.
    pub(super) file: String,
    pub(super) line: usize,
    /// The path as it is written there.
    pub(super) path: String,
}

/// The modules of a crate by their paths.
pub(super) struct Modules(BTreeMap<Name, Module>);

impl Modules {
    /// Reads the files of one crate; `src`: its folder of source.
    pub(super) fn read<'a>(src: &str, files: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut modules = BTreeMap::new();
        for (file, text) in files {
            let Some(name) = name_of(src, file) else { continue };
            modules.insert(name, Module::read(file, text));
        }
        Self(modules)
    }

    /// Every arrow between two modules, the first place of each.
    pub(super) fn arrows(&self) -> Vec<Arrow> {
        let mut arrows: BTreeMap<(&Name, Name), (usize, String)> = BTreeMap::new();
        for (name, module) in &self.0 {
            for (line, path) in &module.paths {
                let Some(to) = self.resolve(name, path, 0) else { continue };
                if to != *name {
                    arrows.entry((name, to)).or_insert_with(|| (*line, path.join("::")));
                }
            }
        }
        let arrow = |((from, to), (line, path)): ((&Name, Name), (usize, String))| Arrow {
            from: from.clone(),
            to,
            file: self.0[from].file.clone(),
            line,
            path,
        };
        arrows.into_iter().map(arrow).collect()
    }

    /// The module that defines what a path names, seen from a module; `None`: another crate's.
    fn resolve(&self, from: &Name, path: &[String], depth: usize) -> Option<Name> {
        let (first, rest) = path.split_first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Name::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from.split_last()?.1.to_vec(), rest),
            _ if self.knows(from, first) => (from.clone(), path),
            _ => return None,
        };
        while let Some((name, further)) = rest.split_first() {
            let child: Name = at.iter().chain([name]).cloned().collect();
            if name == "super" {
                at.pop()?;
            } else if self.0.contains_key(&child) {
                at = child;
            } else {
                return self.item(&at, name, further, depth);
            }
            rest = further;
        }
        self.0.contains_key(&at).then_some(at)
    }

    /// The module that defines a name which is looked up in `at`.
    fn item(&self, at: &Name, name: &str, further: &[String], depth: usize) -> Option<Name> {
        let module = self.0.get(at)?;
        if module.items.contains(name) || depth > CHAIN_MAX {
            return Some(at.clone());
        }
        if let Some(alias) = module.aliases.get(name) {
            let path: Vec<String> = alias.iter().chain(further).cloned().collect();
            return self.resolve(at, &path, depth + 1);
        }
        let globs = module.globs.iter().filter_map(|glob| self.resolve(at, glob, depth + 1));
        let mut defining = globs.filter(|of| of != at && self.knows(of, name));
        match defining.next() {
            Some(of) => self.item(&of, name, further, depth + 1),
            None => Some(at.clone()),
        }
    }

    /// Whether a name means something in a module.
    fn knows(&self, at: &Name, name: &str) -> bool {
        let child: Name = at.iter().cloned().chain([name.to_owned()]).collect();
        self.0.contains_key(&child)
            || self.0.get(at).is_some_and(|module| {
                module.items.contains(name) || module.aliases.contains_key(name)
            })
    }
}

impl Module {
    fn read(file: &str, text: &str) -> Self {
        let source = Source::parse(text);
        let lines = source.code.lines().enumerate();
        let code: Vec<&str> =
            lines.map(|(i, line)| if source.in_test(i + 1) { "" } else { line }).collect();
        let code = code.join("\n");
        let mut module = Self { file: file.to_owned(), items: items(&code), ..Self::default() };
        for import in paths_of(&code) {
            match import {
                Import::Path { line, path } => module.paths.push((line, path)),
                Import::Use { line, path, alias, is_public } => {
                    // A re-export names a thing for others; it takes nothing itself.
                    if !is_public {
                        module.paths.push((line, path.clone()));
                    }
                    match alias.as_deref() {
                        Some("*") => module.globs.push(path),
                        Some(alias) => drop(module.aliases.insert(alias.to_owned(), path)),
                        None => {}
                    }
                }
            }
        }
        module
    }
}

/// The path of the module that a file is; `None`: the file is no module of the crate's library.
fn name_of(src: &str, file: &str) -> Option<Name> {
    let inside = file.strip_prefix(src)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    let is_root = matches!(inside, "lib" | "main");
    Some(if is_root { Name::new() } else { inside.split('/').map(str::to_owned).collect() })
}

/// Names of the items of a file.
fn items(code: &str) -> BTreeSet<String> {
    // The lifetime in `&'static Name` defines nothing.
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'');
    let words: Vec<&str> = code.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let mut names: BTreeSet<String> = words
        .windows(2)
        .filter(|pair| ITEMS.contains(&pair[0]))
        .map(|pair| pair[1].to_owned())
        .collect();
    names.extend(words.windows(2).filter(|p| p[0] == "macro_rules").map(|p| p[1].to_owned()));
    names
}
