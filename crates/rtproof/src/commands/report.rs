//! `rtproof report`: a record shown again, judged anew from the file alone.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rtproof_judge::{Report, Standing};
use rtproof_record::{Opened, Run, SealState, import::Imported};

use crate::{
    exit,
    render::{self, imported::Document, text::Text},
};

/// Arguments of `report`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof report prove-pi5-20261121T020304.rtproof
  rtproof report prove-pi5-20261121T020304.rtproof --html again.html
  rtproof report -v prove-pi5-20261121T020304.rtproof")]
pub struct Args {
    /// The record
    pub record: PathBuf,

    /// Write the HTML report there
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Show a record that was changed after it was sealed; it is marked as such
    #[arg(long)]
    pub accept_altered: bool,

    /// Print moments up to kurtosis, averages and P² estimates, too
    #[arg(short, long, conflicts_with = "json")]
    pub verbose: bool,

    /// Print the report as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A file that is not a record, or was changed after it was sealed; the record as `--html` (usage).
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(path) = &args.html {
        render::file::check_target(&args.record, path)?;
    }
    // Judged as a sealed one while it is not yet known whether it is: of a large file that is read,
    // it nearly always is.
    let judged = |run: &Run| Report::new(run, &Standing::Sealed);
    let (opened, judged) = rtproof_record::read_shown_with(&args.record, judged)?;
    let banner = banner(&args.record, &opened, args.accept_altered)?;
    if let Some(imported) = &opened.run.imported {
        return self::imported(args, imported, banner.as_deref());
    }
    let report = judged.unwrap_or_else(|| Report::new(&opened.run, &standing(&opened.state)));
    let banner = match banner {
        None => rejudged(&opened, &report)?,
        some => some,
    };
    let text = Text::new(args.json);
    text.print(|to| {
        render::text::banner(to, banner.as_deref())?;
        render::text::head(to, &report.machine, &report.findings)?;
        render::text::measured(to, &report)?;
        if args.verbose {
            render::text::distribution(to, &report)?;
        }
        render::text::spikes_of(to, &opened.run, &report)?;
        render::text::verdict(to, &report)
    })?;
    text.print_json(&report)?;
    if let Some(path) = &args.html {
        render::file::write_html(path, &opened.run, &report, banner)?;
    }
    Ok(exit::of_report(&report))
}

/// A record of another tool's result: shown for what it is, there is nothing to judge.
fn imported(args: &Args, imported: &Imported, banner: Option<&str>) -> anyhow::Result<u8> {
    let text = Text::new(args.json);
    text.print(|to| {
        render::text::banner(to, banner)?;
        render::text::imported(to, imported, None)
    })?;
    text.print_json(&Document::of(imported, None))?;
    if let Some(path) = &args.html {
        render::file::write_imported(path, imported, banner)?;
    }
    Ok(exit::ACCEPTED)
}

/// What must stand above a report of this record; an altered one is refused unless accepted.
fn banner(path: &Path, opened: &Opened, accept_altered: bool) -> anyhow::Result<Option<String>> {
    match &opened.state {
        SealState::Torn => Ok(Some(
            "This record is torn: its end was not written, and it was never sealed. What follows \
             is what was written by then."
                .into(),
        )),
        SealState::Altered { why } if accept_altered => {
            Ok(Some(format!("This record was altered after it was sealed: {why}.")))
        }
        SealState::Altered { why } => anyhow::bail!(
            "{}: altered after it was sealed: {why}. It proves nothing; to look at it all the same \
             add --accept-altered",
            path.display()
        ),
        SealState::Sealed { .. } => Ok(None),
    }
}

fn standing(state: &SealState) -> Standing {
    match state {
        SealState::Sealed { .. } => Standing::Sealed,
        SealState::Torn => Standing::Torn,
        SealState::Altered { why } => Standing::Altered { why: why.clone() },
    }
}

/// Says so when this version judges otherwise than the run did.
fn rejudged(opened: &Opened, report: &Report) -> anyhow::Result<Option<String>> {
    let SealState::Sealed { .. } = opened.state else { return Ok(None) };
    let Some(stored) = &opened.judgement else { return Ok(None) };
    let same = serde_json::to_string(&report.verdict)? == stored.verdict_json;
    let version = &opened.run.meta.tool_version;
    let banner = format!(
        "rtproof {} judges this record otherwise than rtproof {version} did at its end: {}",
        env!("CARGO_PKG_VERSION"),
        stored.summary
    );
    Ok((!same).then_some(banner))
}

/// Opens a record that must be whole.
pub(crate) fn open_whole(path: &Path) -> anyhow::Result<Opened> {
    let opened = rtproof_record::read(path)?;
    banner(path, &opened, false).context("not exported")?;
    Ok(opened)
}

/// Opens a record to be looked at, and says what must stand above it.
pub(crate) fn open(path: &Path, accept_altered: bool) -> anyhow::Result<(Opened, Option<String>)> {
    let opened = rtproof_record::read(path)?;
    let banner = banner(path, &opened, accept_altered)?;
    Ok((opened, banner))
}
