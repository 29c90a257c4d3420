//! docs/coverage.md against the program: what its lines name exists, and every row of the facts'
//! catalogue is a check or says why not.

use crate::support;

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rtproof_judge::{application, checks};
use support::shown::{files, wrong};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(top().join("docs/coverage.md")).expect("the page")
}

fn ids() -> BTreeSet<&'static str> {
    let of_application = application::all().map(|check| check.id);
    checks::all().map(|check| check.id).chain(of_application).collect()
}

/// Cells of the rows of a table, from the line after its head.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("|---");
    text.lines().filter(is_row).map(|line| line.trim_matches('|').split(" | ").collect())
}

/// A line of docs/coverage.tsv.
struct Line {
    number: String,
    source: String,
    state: String,
    shown: Vec<String>,
    tests: Vec<String>,
}

fn lines() -> Vec<Line> {
    let text = fs::read_to_string(top().join("docs/coverage.tsv")).expect("the lines");
    let parts = |cell: &str| -> Vec<String> {
        cell.split(" ; ").filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let line = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [number, source, _, state, shown, tests] = cells.as_slice() else {
            panic!("docs/coverage.tsv: {line}");
        };
        Line {
            number: (*number).to_owned(),
            source: (*source).to_owned(),
            state: (*state).to_owned(),
            shown: parts(shown),
            tests: parts(tests),
        }
    };
    text.lines().skip(1).map(line).collect()
}

#[test]
fn every_item_of_the_sources_has_its_line() {
    let lines = lines();
    let numbers: Vec<&str> = lines.iter().map(|line| line.number.as_str()).collect();
    let wanted: Vec<String> = (1..=210).map(|number: u32| number.to_string()).collect();
    assert_eq!(numbers, wanted);
    let is_place = |place: &str| place.chars().all(|c| c.is_ascii_digit() || ",-".contains(c));
    for Line { number, source, state, shown, tests } in &lines {
        let (document, place) = source.split_once(':').expect(number);
        let is_source = ["S0", "S1", "S2", "S3", "S4"].contains(&document);
        assert!(is_source && !place.is_empty() && is_place(place), "{number}: {source}");
        let is_reason = |word: &str| state.strip_prefix(word).is_some_and(|why| why.len() > 10);
        match state.as_str() {
            "yes" => assert!(!shown.is_empty() && !tests.is_empty(), "{number}: shown by nothing"),
            _ => assert!(is_reason("part: ") || is_reason("no: "), "{number}: {state}"),
        }
    }
}

#[test]
fn every_check_and_command_of_a_line_exists() {
    let (ids, mut faults) = (ids(), Vec::new());
    for line in lines() {
        for shown in &line.shown {
            let fault = match shown.split_once(' ') {
                None => (!ids.contains(shown.as_str())).then(|| "is no check".to_owned()),
                Some(("rtproof", _)) => wrong(shown),
                Some(_) => Some("is no command".to_owned()),
            };
            faults.extend(fault.map(|fault| format!("{}: {shown}: {fault}", line.number)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Cases of the lab are held to its list by the lab's own test.
#[test]
fn every_test_of_a_line_exists() {
    let mut sources = Vec::new();
    for folder in ["crates", "lab", "marks", "xtask"] {
        files(&top().join(folder), &[".rs"], &["target"], &mut sources);
    }
    let mut known = BTreeSet::new();
    for path in sources {
        let text = fs::read_to_string(path).expect("a source");
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            let name = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            let listed = line.strip_prefix("(\"").and_then(|rest| rest.split('"').next());
            known.extend(name.filter(|_| is_test).map(str::to_owned));
            // Tests without libtest are in a list: `("name", name)`.
            let is_own = |name: &&str| line.ends_with(&format!(", {name}),"));
            known.extend(listed.filter(is_own).map(str::to_owned));
            is_test = line == "#[test]" || is_test && (line.starts_with(['#', '/']));
        }
    }
    assert!(known.len() > 1500, "{} tests", known.len());
    let mut missing = Vec::new();
    for line in lines() {
        let tests = line.tests.iter().filter(|test| !test.starts_with("lab "));
        missing.extend(
            tests
                .filter(|test| !known.contains(*test))
                .map(|test| format!("{} {test}", line.number)),
        );
    }
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

#[test]
fn there_are_as_many_checks_as_promised_and_each_has_its_cases() {
    assert!(checks::all().count() >= 130, "{} checks", checks::all().count());
    assert!(application::all().count() >= 14, "{} questions", application::all().count());
}

#[test]
fn every_row_of_the_catalogue_is_a_check_or_has_a_reason() {
    let facts = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(data) => Path::new(&data).join("../facts/knobs.md"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/knobs.md"),
    };
    let Ok(text) = fs::read_to_string(&facts) else {
        let _ = writeln!(io::stderr(), "ignored: no {}; set RTPROOF_CAPTURES", facts.display());
        return;
    };
    let (page, ids) = (page(), ids());
    let listed: BTreeSet<&str> =
        rows(&page).filter(|cells| cells.len() == 2).map(|cells| cells[0].trim()).collect();
    let catalogue = &text[text.find("### 1.1").expect("1.1")..text.find("## 2.").expect("2")];
    let of_catalogue: Vec<&str> = rows(catalogue)
        .map(|cells| cells[0].trim())
        .filter(|id| *id != "id" && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        .collect();
    assert!(of_catalogue.len() > 170, "{} rows", of_catalogue.len());
    let missing: Vec<&&str> =
        of_catalogue.iter().filter(|id| !ids.contains(**id) && !listed.contains(**id)).collect();
    assert!(missing.is_empty(), "neither checks nor told: {missing:?}");
}

#[test]
fn the_limits_that_are_stated_are_those_of_the_code() {
    let page = fs::read_to_string(top().join("docs/faults.md")).expect("the page");
    let rows = page.lines().filter_map(|line| line.rsplit_once("` in `"));
    let mut count = 0;
    for (before, file) in rows {
        let (_, constant) = before.rsplit_once('`').expect("a constant");
        let file = file.trim_end_matches([' ', '|', '`']);
        let code = fs::read_to_string(top().join(file)).expect(file);
        assert!(code.contains(&format!("{constant};")), "{file}: {constant}");
        count += 1;
    }
    assert!(count > 10, "{count} limits");
}
