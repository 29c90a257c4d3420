//! What grows, grows by one file and one line in one list: no item is missing from its list.

use crate::source::Source;
use crate::tree::{Complaint, Tree};

/// A folder of items and their list, which is in the folder's `mod.rs`.
struct List {
    folder: &'static str,
    name: &'static str,
    /// Code that makes a file an item; a file without it is a helper.
    mark: &'static str,
}

/// What makes a file a check.
const CHECK: &str = ": Check = Check {";

/// Every list.
const LISTS: &[List] = &[
    List { folder: "crates/checks/src/kernel", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/power", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/sched", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/isolation", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/time", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/memory", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/device", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/platform", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/application", name: "CHECKS", mark: CHECK },
    List { folder: "crates/checks/src/trials", name: "CHECKS", mark: CHECK },
    List { folder: "crates/judge/src/causes", name: "CAUSES", mark: "const CAUSE: Cause" },
    List { folder: "crates/measure/src/loads/built_in", name: "LOADS", mark: "const LOAD:" },
    List { folder: "crates/measure/src/workloads", name: "WORKLOADS", mark: "const WORKLOAD:" },
    List { folder: "crates/measure/src/trials", name: "TRIALS", mark: "impl Trial for" },
    List { folder: "xtask/src/tidy", name: "RULES", mark: "fn check(" },
];
/// Files that hold no item even where they look like one.
const NOT_ITEMS: &[&str] = &["mod.rs", "_template.rs", "testing.rs"];

/// Checks every list.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    LISTS.iter().flat_map(|list| check_list(tree, list)).collect()
}

fn check_list(tree: &Tree, list: &List) -> Vec<Complaint> {
    let List { folder, name, mark } = list;
    let path = format!("{folder}/mod.rs");
    let Some(text) = tree.text(&path) else {
        return vec![Complaint::about(&path, "is missing: restore it")];
    };
    let code = Source::parse(text).code;
    let Some(entries) = entries(&code, name) else {
        return vec![Complaint::about(&path, format!("has no `const {name}: &[…] = &[…];`"))];
    };
    let entries = squeeze(entries);
    let mut complaints = Vec::new();
    for (path, text) in tree.rust() {
        let Some(file) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        // An item that outgrew a file is a folder with a mod.rs.
        let item = file.strip_suffix("/mod.rs").or_else(|| file.strip_suffix(".rs"));
        let Some(item) = item.filter(|item| !item.contains('/')) else {
            continue;
        };
        if NOT_ITEMS.contains(&file) || !Source::parse(text).code.contains(mark) {
            continue;
        }
        if !entries.contains(&squeeze(item)) {
            let text = format!("is not in {name} of {folder}/mod.rs: add one line there");
            complaints.push(Complaint::about(path, text));
        }
    }
    complaints
}

/// A name without its spelling: `timer_wakeup::Workload` and `TimerWakeup` both name
/// timer_wakeup.rs.
fn squeeze(name: &str) -> String {
    name.chars().filter(|&c| c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

/// The code between the brackets of a list.
fn entries<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    let start = code.find(&format!("const {name}:"))?;
    let rest = &code[start..];
    let rest = &rest[rest.find('=')?..];
    Some(&rest[..rest.find("];")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: List = List { folder: "a/checks", name: "CHECKS", mark: CHECK };

    #[test]
    fn listed_items_templates_and_helpers_pass() {
        let tree = Tree::of(&[
            ("a/checks/mod.rs", "pub const CHECKS: &[&Check] = &[&b::B, &c::C, &cpu_idle::CHECK];"),
            ("a/checks/b.rs", "static B: Check = Check {};"),
            ("a/checks/cpu_idle.rs", "static CPUIDLE: Check = Check {};"),
            ("a/checks/c/mod.rs", "static C: Check = Check {};"),
            ("a/checks/c/part.rs", "//! Part of C."),
            ("a/checks/_template.rs", "static TEMPLATE: Check = Check {};"),
            ("a/checks/table.rs", "//! Not: T: Check = Check {}"),
        ]);
        assert_eq!(check_list(&tree, &LIST), []);
    }

    #[test]
    fn an_unlisted_item_is_found() {
        let tree = Tree::of(&[
            ("a/checks/mod.rs", "mod b;\npub const CHECKS: &[&Check] = &[\n// &b::B\n];"),
            ("a/checks/b.rs", "static B: Check = Check {};"),
        ]);
        let complaints = check_list(&tree, &LIST);
        assert_eq!(complaints.len(), 1);
        assert_eq!(complaints[0].path, "a/checks/b.rs");
    }

    #[test]
    fn a_list_that_is_gone_is_found() {
        assert_eq!(check_list(&Tree::of(&[]), &LIST).len(), 1);
        assert_eq!(check_list(&Tree::of(&[("a/checks/mod.rs", "")]), &LIST).len(), 1);
    }
}
