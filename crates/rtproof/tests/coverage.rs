//! docs/coverage.md against the checks: what it names exists, and every row of the facts' catalogue
//! is a check or says why not.

#![allow(clippy::disallowed_methods, reason = "tests read their own files")]

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::Path,
};

use rtproof_judge::{application, checks};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coverage.md");
    fs::read_to_string(path).expect("the page")
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

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_check_that_the_page_names_exists() {
    let (page, ids) = (page(), ids());
    let mut named = 0;
    for cells in rows(&page).filter(|cells| cells.len() == 3) {
        for name in quoted(cells[2]).filter(|name| !name.contains(' ')) {
            assert!(ids.contains(name), "docs/coverage.md names {name}, which is no check");
            named += 1;
        }
    }
    assert!(named > 60, "only {named} checks are named");
}

#[test]
fn there_are_as_many_checks_as_promised_and_each_has_its_cases() {
    assert!(checks::all().count() >= 130, "{} checks", checks::all().count());
    assert!(application::all().count() >= 14, "{} questions", application::all().count());
}

#[test]
fn every_row_of_the_catalogue_is_a_check_or_says_why_not() {
    let facts = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(data) => Path::new(&data).join("../facts/knobs.md"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/knobs.md"),
    };
    let Ok(text) = fs::read_to_string(&facts) else {
        let _ = writeln!(io::stderr(), "ignored: no {}; set RTPROOF_CAPTURES", facts.display());
        return;
    };
    let (page, ids) = (page(), ids());
    let told: BTreeSet<&str> =
        rows(&page).filter(|cells| cells.len() == 2).map(|cells| cells[0].trim()).collect();
    let catalogue = &text[text.find("### 1.1").expect("1.1")..text.find("## 2.").expect("2")];
    let of_catalogue: Vec<&str> = rows(catalogue)
        .map(|cells| cells[0].trim())
        .filter(|id| *id != "id" && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        .collect();
    assert!(of_catalogue.len() > 170, "{} rows", of_catalogue.len());
    let missing: Vec<&&str> =
        of_catalogue.iter().filter(|id| !ids.contains(**id) && !told.contains(**id)).collect();
    assert!(missing.is_empty(), "neither checks nor told: {missing:?}");
}

#[test]
fn the_limits_that_are_stated_are_those_of_the_code() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(top.join("docs/faults.md")).expect("the page");
    let rows = page.lines().filter_map(|line| line.rsplit_once("` in `"));
    let mut count = 0;
    for (before, file) in rows {
        let (_, constant) = before.rsplit_once('`').expect("a constant");
        let file = file.trim_end_matches([' ', '|', '`']);
        let code = fs::read_to_string(top.join(file)).expect(file);
        assert!(code.contains(&format!("{constant};")), "{file}: {constant}");
        count += 1;
    }
    assert!(count > 10, "{count} limits");
}
