//! Slips that outputs and pages once contained, searched for in all kept output: golden
//! outputs, snapshots of machines, pages, scripts.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Texts below folders of the project, with their names.
fn texts(folders: &[&str], ending: &str) -> Vec<(String, String)> {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| top().join(folder)).collect();
    let mut all = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("an entry").path();
            let name = path.display().to_string();
            match path.is_dir() {
                true => open.push(path),
                false if name.ends_with(ending) => {
                    all.push((name, fs::read_to_string(path).expect("a text")));
                }
                false => {}
            }
        }
    }
    assert!(all.len() > 3, "{folders:?}");
    all
}

fn outputs() -> Vec<(String, String)> {
    let mut all = texts(&["crates/rtproof/tests/golden"], ".txt");
    all.extend(texts(&["fixtures/machines"], ".check.txt"));
    all
}

#[test]
fn no_output_has_a_slip_that_was_known() {
    for (name, text) in outputs() {
        let has = |slip: &str| text.contains(slip);
        assert!(!has("(1 times)") && !has(" 1 times ") && !has(" 1 times\n"), "{name}: 1 times");
        assert!(!has("{}") && !has("{0}"), "{name}: what was to be filled in");
        assert!(!has("of 0.0 µs"), "{name}: a share of nothing");
        assert!(!has(" GB/s") && !has(" MB/s"), "{name}: bytes are counted in GiB and MiB");
    }
}

#[test]
fn what_is_to_do_by_hand_is_there_once() {
    for (name, text) in outputs().into_iter().filter(|(name, _)| name.contains("/plan-")) {
        let by_hand = text.split("By hand").nth(1).unwrap_or_default();
        let kernels = by_hand.matches("install and boot a PREEMPT_RT kernel").count();
        assert!(kernels <= 1, "{name}: PREEMPT_RT {kernels} times");
        let lines = by_hand.lines().filter(|line| line.len() > 20);
        let mut seen = std::collections::BTreeSet::new();
        lines.for_each(|line| assert!(seen.insert(line), "{name}: twice: {line}"));
    }
}

#[test]
fn scripts_have_no_duplicate_lines() {
    for (name, text) in texts(&["scripts"], ".sh") {
        let comments = text.lines().filter(|line| line.starts_with('#') && line.len() > 2);
        let mut seen = std::collections::BTreeSet::new();
        comments.for_each(|line| assert!(seen.insert(line), "{name}: twice: {line}"));
    }
}

#[test]
fn every_page_and_every_command_can_be_found() {
    let read = |path: &str| fs::read_to_string(top().join(path)).expect("a page");
    let (readme, index) = (read("README.md"), read("docs/README.md"));
    for entry in fs::read_dir(top().join("docs")).expect("the pages") {
        let name = entry.expect("a page").file_name().to_string_lossy().into_owned();
        let is_linked =
            index.contains(&format!("({name})")) || readme.contains(&format!("(docs/{name})"));
        assert!(is_linked || !name.ends_with(".md") || name == "README.md", "{name}: no link");
    }
    let command = rtproof::command();
    let tune = command.find_subcommand("tune").expect("tune");
    let is_listed = |name: &str| {
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '-';
        readme.lines().any(|line| line.starts_with("| `") && line.split(word).any(|it| it == name))
    };
    let commands = command.get_subcommands().chain(tune.get_subcommands());
    let shown = commands.filter(|it| !it.is_hide_set()).map(clap::Command::get_name);
    for name in shown.filter(|name| !["help", "completions", "man"].contains(name)) {
        assert!(is_listed(name), "README: no {name}");
    }
}
