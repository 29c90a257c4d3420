//! The pages of docs/reference, made from the lists and types that the tool itself runs on, so that
//! they cannot say anything else, and the table of docs/coverage.md. Man pages and completions come
//! from the same command line.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::tree::{Complaint, root};

mod causes;
mod checks;
mod cli;
mod coverage;
mod exit_codes;
mod formats;
mod items;
mod markdown;
mod record;
mod schema;

/// Where the pages lie.
const FOLDER: &str = "docs/reference";

/// What makes a page.
type Page = fn() -> Result<String>;

/// Every page but those of schemas.
const PAGES: &[(&str, Page)] = &[
    ("causes.md", || Ok(causes::page())),
    ("checks.md", || Ok(checks::page())),
    ("cli.md", || Ok(cli::page(command()))),
    ("../coverage.md", coverage::page),
    ("exit-codes.md", || Ok(exit_codes::page(rtproof::exit::CODES))),
    ("formats.md", || {
        Ok(formats::page(rtproof_record::import::FORMATS, rtproof_record::export::FORMATS))
    }),
    ("loads.md", || {
        let loads = rtproof_measure::loads::LOADS;
        let mut page = items::page(&items::LOADS, loads.iter().map(|load| (load.name, load.about)));
        page += &items::named(rtproof_measure::loads::NAMED);
        Ok(page)
    }),
    ("record.md", || Ok(record::page(rtproof_record::schema::TABLES))),
    ("workloads.md", || {
        let workloads = rtproof_measure::workloads::WORKLOADS;
        let texts = workloads.iter().map(|workload| (workload.name(), items::workload(*workload)));
        let texts: Vec<_> = texts.collect();
        let items = texts.iter().map(|(name, text)| (*name, text.as_str()));
        Ok(items::page(&items::WORKLOADS, items))
    }),
];

/// Every page: its name and its text.
fn pages() -> Result<Vec<(String, String)>> {
    let written = PAGES.iter().map(|(name, page)| Ok(((*name).to_owned(), page()?)));
    let schemas = rtproof::FORMS
        .iter()
        .map(|form| Ok((format!("{}.schema.json", form.page), schema::page(form)?)));
    written.chain(schemas).collect()
}

fn command() -> clap::Command {
    rtproof::command()
}

/// Writes every page, or only tells which are out of date.
pub(crate) fn run(check: bool) -> Result<ExitCode> {
    let root = root();
    let pages = pages()?;
    let stale = stale_of(&root, &pages)?;
    let mut out = std::io::stdout().lock();
    for complaint in &stale {
        if check {
            writeln!(out, "{}: {}", complaint.path, complaint.text)?;
        } else {
            writeln!(out, "{}", complaint.path)?;
        }
    }
    if check {
        return Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    for (name, page) in &pages {
        let path = folder.join(name);
        std::fs::write(&path, page).with_context(|| format!("{}", path.display()))?;
    }
    for complaint in stale.iter().filter(|complaint| !is_page(&pages, &complaint.path)) {
        std::fs::remove_file(root.join(&complaint.path)).context("cannot remove an old page")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Pages that differ from what would be written, and files that no page writes.
pub(crate) fn stale(root: &Path) -> Result<Vec<Complaint>> {
    stale_of(root, &pages()?)
}

fn stale_of(root: &Path, pages: &[(String, String)]) -> Result<Vec<Complaint>> {
    let folder = root.join(FOLDER);
    let mut stale = Vec::new();
    for (name, page) in pages {
        let found = std::fs::read_to_string(folder.join(name)).ok();
        if found.as_deref() != Some(page) {
            let path = format!("{FOLDER}/{name}");
            stale.push(Complaint::about(&path, "is out of date: run `cargo xtask reference`"));
        }
    }
    // A folder that is not there has no files too many.
    for entry in folder.read_dir().into_iter().flatten() {
        let path = format!("{FOLDER}/{}", entry?.file_name().to_string_lossy());
        if !is_page(pages, &path) {
            let text = "no page writes this: run `cargo xtask reference`";
            stale.push(Complaint::about(&path, text));
        }
    }
    Ok(stale)
}

/// Whether one of the pages lies at a path.
fn is_page(pages: &[(String, String)], path: &str) -> bool {
    let name = path.strip_prefix(FOLDER).and_then(|path| path.strip_prefix('/'));
    pages.iter().any(|(page, _)| Some(page.as_str()) == name)
}

/// Shells, and the names that their completions go by.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "rtproof.bash"), ("fish", "rtproof.fish"), ("zsh", "_rtproof")];

/// Writes man pages to `man/` and completions to `completions/`.
pub(crate) fn dist_files(folder: &Path) -> Result<ExitCode> {
    let man = folder.join("man");
    let completions = folder.join("completions");
    for folder in [&man, &completions] {
        std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    for (name, page) in rtproof::commands::pages()? {
        std::fs::write(man.join(format!("{name}.1")), page).context("cannot write a man page")?;
    }
    for (shell, name) in COMPLETIONS {
        let shell = shell.parse().map_err(anyhow::Error::msg)?;
        let script = rtproof::commands::script(shell);
        std::fs::write(completions.join(name), script).context("cannot write a completion")?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::source::Source;
    use crate::tree::Tree;

    #[test]
    fn every_form_that_names_a_version_has_a_page() {
        // A version in the code itself, not in its tests: `"rtproof/NAME/NUMBER"`, and no thread
        // (`rtproof/3`).
        let is_version = |text: &str| {
            let mut parts = text.split('/');
            let begins = parts.next() == Some("rtproof");
            let (name, number) = (parts.next(), parts.next());
            let is_number =
                |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            begins && name.is_some() && number.is_some_and(is_number) && parts.next().is_none()
        };
        let tree = Tree::read(&root()).unwrap();
        let mut named = BTreeSet::new();
        for (path, text) in tree.rust() {
            let in_code = path.starts_with("crates/") && path.contains("/src/");
            if !in_code || crate::tree::is_test_file(path) || path.ends_with("src/schemas.rs") {
                continue;
            }
            let source = Source::parse(text);
            let strings = source.strings.iter().filter(|(line, _)| !source.in_test(*line));
            named.extend(strings.map(|(_, text)| text.clone()).filter(|text| is_version(text)));
        }
        let listed: BTreeSet<String> =
            rtproof::FORMS.iter().map(|form| form.id.to_owned()).collect();
        assert_eq!(named, listed, "crates/rtproof/src/schemas.rs lists every form");
    }

    #[test]
    fn pages_have_different_names_and_are_made() {
        let pages = pages().unwrap();
        let names: BTreeSet<_> = pages.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), pages.len());
        for (name, page) in &pages {
            assert!(page.ends_with('\n'), "{name}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn man_pages_and_completions_are_written() {
        let folder = std::env::temp_dir().join(format!("rtproof-dist-{}", std::process::id()));
        dist_files(&folder).unwrap();
        assert!(folder.join("man/rtproof.1").is_file());
        assert_eq!(folder.join("completions").read_dir().unwrap().count(), 3);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
