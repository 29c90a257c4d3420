//! Imports go one way inside a crate, too: at every folder the modules below it can be put into an
//! order in which each takes only from those before it. A module that re-exports a name takes
//! nothing by that; tests may look wherever they like.
//!
//! The folder's own file stands outside of the order: it lists and composes what is below it, and
//! what its modules share is in it. Both ways are what a parent is for.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    source::Source,
    tree::{Complaint, File, Files},
};

/// Checks every crate.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    let sources = files.rust().filter_map(|file| Some(file.path.split_once("/src/")?.0));
    let packages: BTreeSet<&str> = sources.collect();
    packages.into_iter().flat_map(|package| check_package(files, package)).collect()
}

fn check_package(files: &Files<'_>, package: &str) -> Vec<Complaint> {
    let src = format!("{package}/src");
    let is_inside = |file: &&File<'_>| !file.is_test && !file.path.contains("/bin/");
    let arrows = Modules::read(&src, files.rust().filter(is_inside)).arrows();
    let mut levels: BTreeMap<&[String], Vec<(&str, &str, &Arrow)>> = BTreeMap::new();
    for arrow in &arrows {
        if let Some((folder, from, to)) = meeting(&arrow.from, &arrow.to) {
            levels.entry(folder).or_default().push((from, to, arrow));
        }
    }
    let mut complaints = Vec::new();
    for (folder, arrows) in levels {
        for circle in circles(&arrows) {
            let inside = |(from, to, _): &&(&str, &str, &Arrow)| {
                from != to && circle.contains(from) && circle.contains(to)
            };
            let Some((_, _, first)) = arrows.iter().find(inside) else { continue };
            let each = arrows.iter().filter(inside).map(|(from, to, arrow)| {
                format!("{from} -> {to} ({}:{} {})", arrow.file, arrow.line, arrow.path)
            });
            let place = [&[package.to_owned()], folder].concat().join("::");
            let names: Vec<&str> = circle.iter().copied().collect();
            let (names, each) = (names.join(", "), each.collect::<Vec<_>>().join("; "));
            let text = format!(
                "{place}: {names} import each other: move what both need into a module below both: \
                 {each}"
            );
            let complaint = Complaint::at(&first.file, first.line, text);
            complaints.push(complaint.known_as(format!("circle {place}: {names}")));
        }
    }
    complaints
}

/// The folder in which two modules meet, and what each is called there; `None`: one is above the
/// other.
fn meeting<'a>(from: &'a Name, to: &'a Name) -> Option<(&'a [String], &'a str, &'a str)> {
    let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    Some((&from[..common], from.get(common)?, to.get(common)?))
}

/// The groups of names of which each can be reached from each other one.
fn circles<'a>(arrows: &[(&'a str, &'a str, &Arrow)]) -> Vec<BTreeSet<&'a str>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to, _) in arrows {
        reached.entry(from).or_default().insert(to);
    }
    let names: Vec<&str> = reached.keys().copied().collect();
    // Warshall's closure: folders are small.
    for via in &names {
        let further = reached[via].clone();
        for name in &names {
            if reached[name].contains(via) {
                reached.get_mut(name).expect("a name of its own").extend(&further);
            }
        }
    }
    let meets = |a: &str, b: &str| reached.get(a).is_some_and(|names| names.contains(b));
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for name in names.iter().copied().filter(|name| meets(name, name)) {
        match groups.iter_mut().find(|group| group.iter().all(|other| meets(name, other))) {
            Some(group) if group.iter().all(|other| meets(other, name)) => {
                group.insert(name);
            }
            _ => groups.push(BTreeSet::from([name])),
        }
    }
    groups
}

/// Words before the name of an item.
const ITEMS: &[&str] =
    &["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod"];
/// Longest chain of re-exports that is followed.
const CHAIN_MAX: usize = 16;

/// Path of a module inside its crate; the root is empty.
type Name = Vec<String>;

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
struct Arrow {
    from: Name,
    to: Name,
    /// File and line of the first place that says so.
    file: String,
    line: usize,
    /// The path as it is written there.
    path: String,
}

/// The modules of a crate by their paths.
struct Modules(BTreeMap<Name, Module>);

impl Modules {
    /// Reads the files of one crate; `src`: its folder of source.
    fn read<'a>(src: &str, files: impl Iterator<Item = &'a File<'a>>) -> Self {
        let mut modules = BTreeMap::new();
        for file in files {
            let Some(name) = name_of(src, file.path) else { continue };
            modules.insert(name, Module::read(file.path, &file.source));
        }
        Self(modules)
    }

    /// Every arrow between two modules, the first place of each.
    fn arrows(&self) -> Vec<Arrow> {
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
    fn read(file: &str, source: &Source) -> Self {
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

/// One mention of something elsewhere.
#[derive(Debug, PartialEq, Eq)]
enum Import {
    /// A path in an expression or a type.
    Path { line: usize, path: Vec<String> },
    /// One name of an import; `alias`: what it is called here, `*` for all names.
    Use { line: usize, path: Vec<String>, alias: Option<String>, is_public: bool },
}

/// Every mention, in the order of the text. Comments and literals of `code` are blank.
fn paths_of(code: &str) -> Vec<Import> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (line, token) = tokens[at];
        if token == "use" && starts_item(&tokens[..at]) {
            let is_public = matches!(before(&tokens[..at]), Some("pub" | ")"));
            at += 1;
            let mut names = Vec::new();
            at = tree(&tokens, at, &[], &mut names);
            let import = |(path, alias)| Import::Use { line, path, alias, is_public };
            found.extend(names.into_iter().map(import));
        } else if is_name(token) && tokens.get(at + 1).is_some_and(|next| next.1 == "::") {
            let mut path = vec![token.to_owned()];
            at += 1;
            while let [(_, "::"), (_, name), ..] = &tokens[at..] {
                if !is_name(name) {
                    break;
                }
                path.push((*name).to_owned());
                at += 2;
            }
            found.push(Import::Path { line, path });
        } else {
            at += 1;
        }
    }
    found
}

/// Whether an item may start after these tokens.
fn starts_item(tokens: &[(usize, &str)]) -> bool {
    matches!(before(tokens), None | Some(";" | "{" | "}" | "]" | "pub" | ")"))
}

fn before<'a>(tokens: &[(usize, &'a str)]) -> Option<&'a str> {
    tokens.last().map(|token| token.1)
}

/// Reads one tree of an import from `at` on and returns where it ends.
fn tree(
    tokens: &[(usize, &str)],
    mut at: usize,
    above: &[String],
    names: &mut Vec<(Vec<String>, Option<String>)>,
) -> usize {
    let mut path = above.to_vec();
    while let Some(&(_, token)) = tokens.get(at) {
        at += 1;
        match token {
            "::" => {}
            "{" => {
                while tokens.get(at).is_some_and(|token| token.1 != "}") {
                    at = tree(tokens, at, &path, names);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.1 == ","));
                }
                return at + 1;
            }
            "*" => {
                names.push((path, Some("*".into())));
                return at;
            }
            "as" => {
                let alias = tokens.get(at).map(|token| token.1.to_owned());
                names.push((path, alias));
                return at + 1;
            }
            name if is_name(name) => {
                // `a::{self}` is `a`.
                if name != "self" || path.is_empty() {
                    path.push(name.to_owned());
                }
                let next = tokens.get(at).map(|token| token.1);
                if !matches!(next, Some("::" | "as")) {
                    let alias = path.last().cloned();
                    names.push((path, alias));
                    return at;
                }
            }
            _ => return at - 1,
        }
    }
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single signs, with their lines from 1.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let bytes = if is_part(first) {
                rest.find(|c| !is_part(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((index + 1, &rest[..bytes]));
            rest = rest[bytes..].trim_start();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        found(check, files).into_iter().map(|(_, _, text)| text).collect()
    }

    #[test]
    fn what_goes_one_way_passes() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\npub use b::B;"),
            ("a/src/b.rs", "use crate::c::C;\npub struct B(C);"),
            ("a/src/c.rs", "pub struct C;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
        ];
        assert_eq!(complaints(&files), [""; 0]);
    }

    #[test]
    fn two_that_import_each_other_are_found_through_a_re_export() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\npub use b::B;"),
            ("a/src/b.rs", "use crate::c::C;\npub struct B(C);"),
            ("a/src/c.rs", "pub struct C;\nfn f() -> crate::B { todo() }"),
        ];
        let found = complaints(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("b, c import each other"), "{found:?}");
    }

    #[test]
    fn folders_that_import_each_other_are_found() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;"),
            ("a/src/b/mod.rs", "mod d;\nmod e;"),
            ("a/src/b/d.rs", "pub fn g() {}"),
            ("a/src/b/e.rs", "use crate::c::h;\npub struct E;"),
            ("a/src/c.rs", "pub fn h(e: crate::b::d::Y) {}"),
        ];
        let found = complaints(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("b, c import each other"), "{found:?}");
    }

    #[test]
    fn a_parent_and_what_is_below_it_may_know_each_other() {
        let files = [
            ("a/src/lib.rs", "mod b;\npub const ALL: &[&X] = &[&b::d::ONE];\npub struct X;"),
            ("a/src/b/mod.rs", "mod d;\npub fn shared() {}\nfn f() { d::g() }"),
            ("a/src/b/d.rs", "use super::shared;\npub static ONE: crate::X = X;\npub fn g() {}"),
        ];
        assert_eq!(complaints(&files), [""; 0]);
    }

    fn names(code: &str) -> Vec<String> {
        let name = |import| match import {
            Import::Path { path, .. } => path.join("::"),
            Import::Use { path, alias, is_public, .. } => {
                let public = if is_public { "pub " } else { "" };
                format!("{public}{} as {}", path.join("::"), alias.unwrap_or_default())
            }
        };
        paths_of(code).into_iter().map(name).collect()
    }

    #[test]
    fn imports_and_paths_are_found() {
        let code = "use a::{self, b::{C, D as E}, f::*};\npub(crate) use g::H;\nfn x() { i::j(k) }";
        let wanted =
            ["a as a", "a::b::C as C", "a::b::D as E", "a::f as *", "pub g::H as H", "i::j"];
        assert_eq!(names(code), wanted);
        assert_eq!(names("let use_ = Self::new(); self.x"), ["Self::new"]);
        assert_eq!(
            names("use super::super::parts::{self, NONE};"),
            ["super::super::parts as parts", "super::super::parts::NONE as NONE"]
        );
    }
}
