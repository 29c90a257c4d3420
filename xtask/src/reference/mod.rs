//! The pages of docs/reference, made from the lists and types that the tool itself runs on, so that
//! they cannot say anything else. Man pages and completions come from the same command line.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::tree::{Complaint, root};

mod causes;
mod checks;
mod cli;
mod exit_codes;
mod items;
mod record;
mod schema;

/// Where the pages lie.
const FOLDER: &str = "docs/reference";

/// What makes a page.
type Page = fn() -> Result<String>;

/// Every page.
const PAGES: &[(&str, Page)] = &[
    ("causes.md", || Ok(causes::page())),
    ("checks.md", || Ok(checks::page())),
    ("cli.md", || Ok(cli::page(command()))),
    ("compare.schema.json", schema::page::<rtproof_judge::compare::Comparison>),
    ("exit-codes.md", || Ok(exit_codes::page(rtproof::exit::CODES))),
    ("loads.md", || {
        let loads = rtproof_measure::loads::LOADS;
        Ok(items::page(&items::LOADS, loads.iter().map(|load| (load.name(), load.about()))))
    }),
    ("record.md", || Ok(record::page(rtproof_record::schema::TABLES))),
    ("import.schema.json", schema::page::<rtproof::render::imported::Document>),
    ("report.schema.json", schema::page::<rtproof_judge::report::Report>),
    ("tune-applied.schema.json", schema::page::<rtproof::tune::outcome::Applied>),
    ("tune-confirmed.schema.json", schema::page::<rtproof::commands::tune::confirm::Confirmed>),
    ("tune-exported.schema.json", schema::page::<rtproof::commands::tune::export::Written>),
    ("tune-plan.schema.json", schema::page::<rtproof::tune::preview::Document>),
    ("tune-repeated.schema.json", schema::page::<rtproof::commands::tune::repeat::Document>),
    ("tune-status.schema.json", schema::page::<rtproof::tune::standing::Status>),
    ("tune-undone.schema.json", schema::page::<rtproof::tune::outcome::Undone>),
    ("tune-verify.schema.json", schema::page::<rtproof::commands::tune::verify::Document>),
    ("workloads.md", || {
        let workloads = rtproof_measure::workloads::WORKLOADS;
        let texts = workloads.iter().map(|workload| (workload.name(), items::workload(*workload)));
        let texts: Vec<_> = texts.collect();
        let items = texts.iter().map(|(name, text)| (*name, text.as_str()));
        Ok(items::page(&items::WORKLOADS, items))
    }),
];

/// The command line.
fn command() -> clap::Command {
    rtproof::cli::command()
}

/// Writes every page, or only tells which are out of date.
pub(crate) fn run(check: bool) -> Result<ExitCode> {
    let root = root();
    let stale = stale(&root)?;
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
    for (name, page) in PAGES {
        let path = folder.join(name);
        std::fs::write(&path, page()?).with_context(|| format!("{}", path.display()))?;
    }
    for complaint in stale.iter().filter(|complaint| page_of(&complaint.path).is_none()) {
        std::fs::remove_file(root.join(&complaint.path)).context("cannot remove an old page")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Pages that differ from what would be written, and files that no page writes.
pub(crate) fn stale(root: &Path) -> Result<Vec<Complaint>> {
    let folder = root.join(FOLDER);
    let mut stale = Vec::new();
    for (name, page) in PAGES {
        let found = std::fs::read_to_string(folder.join(name)).ok();
        if found.as_deref() != Some(&page()?) {
            let path = format!("{FOLDER}/{name}");
            stale.push(Complaint::about(&path, "is out of date: run `cargo xtask reference`"));
        }
    }
    // A folder that is not there has no files too many.
    for entry in folder.read_dir().into_iter().flatten() {
        let path = format!("{FOLDER}/{}", entry?.file_name().to_string_lossy());
        if page_of(&path).is_none() {
            let text = "no page writes this: run `cargo xtask reference`";
            stale.push(Complaint::about(&path, text));
        }
    }
    Ok(stale)
}

/// What makes the page at a path.
fn page_of(path: &str) -> Option<Page> {
    let name = path.strip_prefix(FOLDER)?.strip_prefix('/')?;
    PAGES.iter().find(|(page, _)| *page == name).map(|(_, page)| *page)
}

/// Writes man pages to `man/` and completions to `completions/`.
pub(crate) fn dist_files(folder: &Path) -> Result<ExitCode> {
    let man = folder.join("man");
    let completions = folder.join("completions");
    for folder in [&man, &completions] {
        std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    clap_mangen::generate_to(command(), &man).context("cannot write the man pages")?;
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Fish, clap_complete::Shell::Zsh]
    {
        clap_complete::generate_to(shell, &mut command(), "rtproof", &completions)
            .context("cannot write the completions")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// First lines of every Markdown page.
fn head(title: &str, about: &str) -> String {
    format!("<!-- Made by `cargo xtask reference`. Do not edit. -->\n\n# {title}\n\n{about}\n")
}

/// Text for a cell of a table: one line, no bar.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Text as a sentence: the lists write phrases, a page has room for more than one.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let stop = if text.is_empty() || text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_different_names_and_are_made() {
        let mut names: Vec<_> = PAGES.iter().map(|(name, _)| name).collect();
        names.dedup();
        assert_eq!(names.len(), PAGES.len());
        for (name, page) in PAGES {
            assert!(page().unwrap().ends_with('\n'), "{name}");
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

    #[test]
    fn phrases_become_sentences() {
        assert_eq!(sentence("fully preemptible kernel"), "Fully preemptible kernel.");
        assert_eq!(sentence("Says so."), "Says so.");
        assert_eq!(sentence("`isolcpus` is set"), "`isolcpus` is set.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn cells_keep_to_their_line() {
        assert_eq!(cell("a\n  b | c"), "a b \\| c");
    }
}
