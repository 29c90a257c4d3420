//! What grows, grows by one item and one line in one list: no item is missing from its list. An
//! item is a static or constant of the list's type, or of a type that implements its trait.

use std::collections::BTreeSet;

use crate::{
    source::has_word,
    tree::{Complaint, File, Files},
};

/// A folder of items, and the list of that name in it.
struct List {
    folder: &'static str,
    name: &'static str,
    item: Item,
}

/// What makes something an item.
enum Item {
    /// A static or constant of this type.
    Of(&'static str),
    /// One of a type that implements this trait, or such a type itself.
    With(&'static str),
}

/// Every list.
const LISTS: &[List] = &[
    List { folder: "crates/checks/src", name: "CHECKS", item: Item::Of("Check") },
    List { folder: "crates/judge/src/causes", name: "CAUSES", item: Item::Of("Cause") },
    List { folder: "crates/measure/src/loads", name: "LOADS", item: Item::Of("Load") },
    List { folder: "crates/measure/src/trials", name: "TRIALS", item: Item::With("Trial") },
    List {
        folder: "crates/measure/src/workloads",
        name: "WORKLOADS",
        item: Item::With("Workload"),
    },
    List { folder: "crates/record/src/export", name: "FORMATS", item: Item::Of("Exporter") },
    List { folder: "crates/record/src/import", name: "FORMATS", item: Item::Of("Importer") },
    List { folder: "crates/run/src/tune/export", name: "FORMATS", item: Item::Of("Format") },
];

/// Checks every list whose crate is there.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    LISTS.iter().flat_map(|list| check_list(files, list)).collect()
}

fn check_list(files: &Files<'_>, list: &List) -> Vec<Complaint> {
    let List { folder, name, item } = list;
    let is_inside = |file: &&File<'_>| {
        let rest = file.path.strip_prefix(folder);
        rest.is_some_and(|rest| rest.starts_with(['/', '.'])) && !is_template(file.path)
    };
    let code = |file: &File<'_>| file.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
    let inside: Vec<_> = files.product().filter(is_inside).map(|file| (file, code(file))).collect();
    let entries: Vec<_> =
        inside.iter().flat_map(|(file, code)| entries(file, code, name)).collect();
    if entries.is_empty() {
        return vec![Complaint::about(folder, format!("no list `const {name}: … = &[…];` in it"))];
    }
    let types: BTreeSet<&str> = match item {
        Item::Of(name) => BTreeSet::from([*name]),
        Item::With(name) => inside.iter().flat_map(|(_, code)| implementors(code, name)).collect(),
    };
    let mut items = Vec::new();
    for (file, _) in &inside {
        for (line, code) in file.code() {
            let found = constant(code).filter(|(_, of)| types.contains(of)).map(|(name, _)| name);
            // What others begin with (`..ROW`) is no item itself.
            let found = found.filter(|name| !is_base(&inside, name));
            // A type without a constant stands in the list itself.
            let found = found.or_else(|| match item {
                Item::With(name) => {
                    implementors(code, name).next().filter(|of| !has_constant(&inside, of))
                }
                Item::Of(_) => None,
            });
            items.extend(found.map(|name| (file.path, line, name)));
        }
    }
    let is_listed = |(path, _, name): &(&str, usize, &str)| {
        let is_only = items.iter().filter(|(_, _, other)| other == name).count() == 1;
        entries.iter().any(|(of, entry)| {
            let [above @ .., last] = &entry[..] else { return false };
            let is_named = above.iter().any(|part| modules(path).any(|module| module == *part));
            last == name && (is_only || is_named || above.is_empty() && of == path)
        })
    };
    let missing = items.iter().filter(|item| !is_listed(item));
    let complaint = |(path, line, item): &(&str, usize, &str)| {
        Complaint::at(
            path,
            *line,
            format!("`{item}` is in no {name} of {folder}: add a line there"),
        )
    };
    missing.map(complaint).collect()
}

fn is_template(path: &str) -> bool {
    path.ends_with("/_template.rs")
}

/// The paths between the brackets of the lists of this name, each with the file of its list.
fn entries<'a>(file: &File<'a>, code: &'a str, name: &str) -> Vec<(&'a str, Vec<&'a str>)> {
    let starts = ["const", "static"].map(|kind| format!("{kind} {name}:"));
    let starts = starts.iter().flat_map(|start| code.match_indices(start.as_str()));
    let list = |(at, _): (usize, &str)| {
        let rest = &code[at..];
        let rest = &rest[rest.find('=')?..];
        Some(&rest[..rest.find("];")?])
    };
    let lists: Vec<&str> = starts.filter_map(list).collect();
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let paths = lists.into_iter().flat_map(|list| list.split(move |c| !is_path(c)));
    let path = file.path;
    paths.filter(|text| !text.is_empty()).map(|text| (path, text.split("::").collect())).collect()
}

/// Name and type of the constant that a line of code begins.
fn constant(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        inside.map_or(rest, |(_, rest)| rest).trim_start()
    });
    let rest = line.strip_prefix("static ").or_else(|| line.strip_prefix("const "))?;
    let (name, rest) = rest.split_once(": ")?;
    Some((name, rest.split([' ', '=', '<', ';']).next()?))
}

/// Types that implement a trait.
fn implementors<'a>(code: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let mark = format!("{name} for ");
    let lines = code.lines().filter(|line| line.starts_with("impl"));
    lines.filter_map(move |line| {
        let (before, rest) = line.split_once(&mark)?;
        before.ends_with(' ').then(|| rest.split([' ', '<', '{']).next())?
    })
}

fn has_constant(inside: &[(&File<'_>, String)], of: &str) -> bool {
    let lines = inside.iter().flat_map(|(_, code)| code.lines());
    lines.filter_map(constant).any(|(_, found)| found == of)
}

fn is_base(inside: &[(&File<'_>, String)], name: &str) -> bool {
    let base = format!("..{name}");
    inside.iter().any(|(_, code)| has_word(code, &base))
}

/// Names of the modules that a file is in: its own and those of its folders.
fn modules(path: &str) -> impl Iterator<Item = &str> {
    path.trim_end_matches(".rs").split('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn missing(item: Item, files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let list = List { folder: "crates/a/src", name: "CHECKS", item };
        check_list(&Files::of(&tree), &list).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn listed_items_templates_and_tests_pass() {
        let list = "pub const CHECKS: &[&Check] =\n    &[&b::ONE, &b::TWO, &c::CHECK, &FOUR];\n\
                    static FOUR: Check = Check {};\n";
        let two = "pub(super) static ONE: Check = Check {};\nstatic TWO: Check =\n    of();\n\
                   #[cfg(test)]\nmod tests {\nstatic T: Check = Check {};\n}\n";
        let files = [
            ("crates/a/src/lib.rs", list),
            ("crates/a/src/b.rs", two),
            ("crates/a/src/c/mod.rs", "static CHECK: Check = Check {};\n"),
            ("crates/a/src/e.rs", "const ROW: Check = X;\nfn f() -> Check { Check { ..ROW } }\n"),
            ("crates/a/src/_template.rs", "static TEMPLATE: Check = Check {};\n"),
            ("crates/a/src/d.rs", "//! static T: Check = Check {}\nconst D: Checks = 1;\n"),
        ];
        assert_eq!(missing(Item::Of("Check"), &files), [""; 0]);
    }

    #[test]
    fn each_item_of_a_file_has_to_be_listed() {
        let files = [
            ("crates/a/src/lib.rs", "const CHECKS: &[&Check] = &[\n&b::ONE, // &b::TWO\n];\n"),
            ("crates/a/src/b.rs", "static ONE: Check = X;\nstatic TWO: Check = X;\n"),
        ];
        let found = missing(Item::Of("Check"), &files);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("`TWO`"), "{found:?}");
    }

    #[test]
    fn of_one_name_in_two_files_both_have_to_be_listed() {
        let item = "static CHECK: Check = Check {};\n";
        let list = ("crates/a/src/mod.rs", "const CHECKS: &[&Check] = &[&b::CHECK];\n");
        let files = [list, ("crates/a/src/b.rs", item), ("crates/a/src/c.rs", item)];
        assert_eq!(missing(Item::Of("Check"), &files).len(), 1);
    }

    #[test]
    fn implementors_stand_for_themselves_or_by_their_constants() {
        let list = ("crates/a/src/mod.rs", "pub const CHECKS: &[&dyn T] = &[&b::B, &c::ONE];\n");
        let c = "impl<'a> T for C<'a> {\n}\nstatic ONE: C = C;\nstatic TWO: C = C;\n";
        let files = [
            list,
            ("crates/a/src/b.rs", "impl T for B {\n}\nimpl T for D {\n}\nimpl NotT for E {\n}\n"),
            ("crates/a/src/c.rs", c),
        ];
        let found = missing(Item::With("T"), &files);
        let names: Vec<_> = found.iter().map(|text| text.split('`').nth(1).unwrap()).collect();
        assert_eq!(names, ["D", "TWO"]);
    }

    #[test]
    fn a_list_that_is_gone_is_found() {
        assert_eq!(missing(Item::Of("Check"), &[("crates/a/src/b.rs", "//! B.\n")]).len(), 1);
    }
}
