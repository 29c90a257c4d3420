//! Commands that the program, its pages and its help show: each is one, with options that it has.

use std::{fs, path::Path, process::Output};

use crate::support::{
    ACCEPTED, expect_code, run,
    shown::{files, words, wrong},
    small::Small,
    stdout,
};
use clap::CommandFactory;
use rtproof::Cli;

/// Folders without texts of today.
const BUT: [&str; 4] = ["target", "tests", "adr", ".git"];

/// Commands in a text of the sources or of a page.
fn commands(text: &str, is_page: bool) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let mut found = Vec::new();
    for line in joined.lines() {
        let line = line.trim();
        let shown = line.strip_prefix("$ ").unwrap_or(line);
        if is_page && shown.starts_with("rtproof ") {
            found.push(shown.to_owned());
        }
        let quoted = line.split('`').skip(1).step_by(2);
        found.extend(quoted.filter(|part| part.starts_with("rtproof ")).map(str::to_owned));
    }
    // Prose that begins a line, forms of usage, names of what is written.
    found.retain(|command| {
        let second = command.split(' ').nth(1).unwrap_or_default();
        !command.contains(['{', '[', '|', '<'])
            && second.chars().all(|c| c.is_ascii_lowercase())
            && Cli::command().find_subcommand(second).is_some()
    });
    found
}

/// The command after `Next`, in text and in JSON the same.
fn next(text: &str) -> Option<String> {
    let mut all = text.lines().filter_map(|line| line.strip_prefix("Next     "));
    let first = all.next().map(str::to_owned);
    assert!(all.all(|again| Some(again) == first.as_deref()), "one next step:\n{text}");
    first
}

/// Runs a command that was shown, with more options.
fn follow(command: &str, more: &[&str]) -> Output {
    assert_eq!(wrong(command), None, "{command}");
    let words = words(command);
    let mut args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    args.extend(more);
    run(Path::new("/"), &args)
}

/// The first lines are the answer, and JSON begins with it.
fn assert_first(command: &str) -> Option<String> {
    let text = stdout(&follow(command, &[]));
    assert!(text.starts_with("Result   "), "{command}:\n{text}");
    let json = stdout(&follow(command, &["--json"]));
    assert!(json.starts_with("{\n  \"answer\": {\n    \"result\": "), "{command}:\n{json}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let next = next(&text);
    assert_eq!(json["answer"]["next"].as_str(), next.as_deref(), "{command}");
    next
}

#[test]
fn every_next_step_of_a_captured_machine_can_be_taken() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let mut machines = Vec::new();
    files(&folder, &[".txt"], &BUT, &mut machines);
    machines.retain(|path| !path.to_string_lossy().ends_with(".check.txt"));
    assert!(machines.len() > 5, "{machines:?}");
    for machine in machines {
        let of = machine.to_str().expect("UTF-8");
        let check = format!("rtproof check --cpus 0 --budget 100us --root {of}");
        let plan = assert_first(&check).expect("something is bad on each");
        assert_eq!(plan, format!("rtproof tune plan --cpus 0 --budget 100us --root {of}"));
        expect_code(&follow(&plan, &[]), ACCEPTED);
        assert_eq!(assert_first(&plan), None, "a capture cannot be changed");
    }
}

#[test]
fn the_steps_of_a_session_lead_to_each_other() {
    let tree = Small::new();
    let before = tree.all();
    let of = tree.file("/").to_str().expect("UTF-8").trim_end_matches('/').to_owned();
    let options = "--cpus 1,3 --priority 70 --period 250us --budget 100us";
    let plan = assert_first(&format!("rtproof check {options} --root {of}")).expect("a plan");
    assert!(plan.contains(options) && plan.contains("tune plan"), "{plan}");
    let apply = assert_first(&plan).expect("changes");
    assert!(apply.contains(options) && apply.ends_with(" --confirm 60s"), "{apply}");
    assert_eq!(wrong(&apply), None, "{apply}");
    let apply = apply.replace(" --confirm 60s", "");
    let status = next(&stdout(&follow(&apply, &["--yes"]))).expect("a look");
    assert_eq!(status, format!("rtproof tune status --root {of}"));
    assert_first(&format!("rtproof tune verify --root {of}"));
    let undo = assert_first(&status).expect("an undo");
    let undone = follow(&undo, &[]);
    expect_code(&undone, ACCEPTED);
    assert_eq!(next(&stdout(&undone)), None);
    assert_eq!(tree.all(), before);
    assert_eq!(assert_first(&status), None);
}

#[test]
fn every_command_that_is_shown_can_be_given() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![top.join("README.md"), top.join("SECURITY.md"), top.join("CONTRIBUTING.md")];
    files(&top.join("docs"), &[".md"], &BUT, &mut all);
    files(&top.join("crates"), &[".rs"], &BUT, &mut all);
    let (mut count, mut faults) = (0, Vec::new());
    for path in all {
        let is_page = path.extension().is_some_and(|ending| ending == "md");
        for command in commands(&fs::read_to_string(&path).expect("a text"), is_page) {
            count += 1;
            if let Some(why) = wrong(&command) {
                faults.push(format!("{}: {command}: {why}", path.display()));
            }
        }
    }
    assert!(count > 150, "{count} commands");
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}
