//! `rtproof report`: a record shown again, judged anew from the file alone.

use std::path::PathBuf;

use rtproof_judge::{
    Report, Standing,
    compare::{Reference, Side},
    moving::Moving,
};
use rtproof_record::{Opened, Run, SealState, import::Imported};
use rtproof_report::imported::Document;
use rtproof_results::answer::Answer;
use rtproof_stats::moving::Lengths;

use crate::{answers, exit, manners, moving::MovingArgs, next, print::Text};
use rtproof_run::{
    compare::{Loader, folder},
    experiment::results,
    opened::{banner, standing},
};

/// Arguments of `report`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof report prove-pi5-20261121T020304.rtproof
  rtproof report prove-pi5-20261121T020304.rtproof --html again.html
  rtproof report prove-pi5-20261121T020304.rtproof --moving 10s --half-life 5s
  rtproof report prove-pi5-20261121T020304.rtproof --reference machines/
  rtproof report -v prove-pi5-20261121T020304.rtproof")]
pub struct Args {
    /// The record
    pub record: PathBuf,

    /// Write the HTML report there
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Rank the machine among the runs in this folder, as far as they are like its own
    #[arg(long, value_name = "DIR")]
    pub reference: Option<PathBuf>,

    /// Lengths of windows
    #[command(flatten)]
    pub moving: MovingArgs,

    /// Show a record that was changed after it was sealed; it is marked as such
    #[arg(long)]
    pub accept_altered: bool,

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
        rtproof_run::file::check_target(&args.record, path)?;
    }
    // Judged as a sealed one while it is not yet known whether it is: of a large file that is read,
    // it nearly always is.
    let judged = |run: &Run| Report::new(run, &Standing::Sealed);
    let (opened, judged) = rtproof_record::read_shown_with(&args.record, judged)?;
    let banner = banner(&args.record, &opened, args.accept_altered)?;
    let asked = args.moving.lengths();
    if let Some(imported) = &opened.run.imported {
        if asked != Lengths::default() {
            let why = "another tool's result holds no seconds to make moving statistics of";
            return Err(exit::usage(format!("--moving: {}: {why}", args.record.display())));
        }
        if args.reference.is_some() {
            let why = "only records of rtproof's own runs are ranked by report; of other tools: \
                       rtproof compare --reference";
            return Err(exit::usage(format!("--reference: {}: {why}", args.record.display())));
        }
        return self::imported(args, imported, banner.as_deref());
    }
    let mut report = judged.unwrap_or_else(|| Report::new(&opened.run, &standing(&opened.state)));
    if asked != Lengths::default() {
        report.moving = moving(&opened.run, asked)?;
    }
    if let Some(path) = &args.reference {
        if opened.run.effects.is_some() {
            let why = "an experiment changes settings while it runs; rank a run of `prove`";
            return Err(exit::usage(format!("--reference: {}: {why}", args.record.display())));
        }
        let (others, unread) = folder(&Loader::default(), path)?;
        let source = args.record.display().to_string();
        let run = Side::of_run(&opened.run, "this run", &source);
        report.reference = vec![Reference::of(&run, &others, &unread)];
    }
    let banner = match banner {
        None => rejudged(&opened, &report),
        some => some,
    };
    let text = Text::new(args.json);
    let answer = match &opened.run.effects {
        None => Answer::of_report(&report, next::of_report(&report, &args.record)),
        // An experiment compares settings: there is no budget to judge against.
        Some(effects) => {
            let cut_short = results::cut_short(&opened.run);
            answers::experiment::answer(effects, cut_short.as_deref(), |_| None)
        }
    };
    text.print(|to| {
        rtproof_report::text::banner(to, banner.as_deref())?;
        rtproof_report::text::answer(to, &answer)?;
        rtproof_report::text::head(to, &report.machine, &report.findings)?;
        rtproof_report::text::measured(to, &report)?;
        if manners::is_verbose() {
            rtproof_report::text::distribution(to, &report)?;
        }
        if manners::is_verbose() || asked != Lengths::default() {
            rtproof_report::text::moving(to, &report, asked != Lengths::default())?;
        }
        rtproof_report::text::spikes_of(to, &opened.run, &report)?;
        rtproof_report::text::reference(to, &report.reference)?;
        match &opened.run.effects {
            None => rtproof_report::text::verdict(to, &report)?,
            Some(effects) => rtproof_report::text::effects::table(to, effects)?,
        }
        rtproof_report::text::next(to, answer.next.as_deref())
    })?;
    text.print_json(&answer.clone().with(&report))?;
    if let Some(path) = &args.html {
        crate::pages::write_html(path, &opened.run, &report, banner, answer.next.as_deref())?;
    }
    Ok(match &opened.run.effects {
        None => exit::of_report(&report),
        // As `experiment` ended.
        Some(effects) if results::is_open(effects) => exit::NOT_PROVEN,
        Some(_) if results::cut_short(&opened.run).is_some() => exit::NOT_PROVEN,
        Some(_) => exit::ACCEPTED,
    })
}

/// Moving statistics with lengths of the user's own.
fn moving(run: &Run, asked: Lengths) -> anyhow::Result<Moving> {
    Moving::of(run, asked).map_err(|error| {
        let is_short = rtproof_record::moving::spans(run, Lengths::default())
            .is_ok_and(|spans| spans.step_ns <= 1_000_000_000);
        let more =
            "; `rtproof export --format csv --table moving` reads every second of a long run";
        exit::usage(format!("{error}{}", if is_short { "" } else { more }))
    })
}

/// A record of another tool's result: shown for what it is, there is nothing to judge.
fn imported(args: &Args, imported: &Imported, banner: Option<&str>) -> anyhow::Result<u8> {
    let text = Text::new(args.json);
    text.print(|to| {
        rtproof_report::text::banner(to, banner)?;
        rtproof_report::text::imported(to, imported, None)
    })?;
    text.print_json(&Document::of(imported, None))?;
    if let Some(path) = &args.html {
        crate::pages::write_imported(path, imported, banner)?;
    }
    Ok(exit::ACCEPTED)
}

/// Says so when this version judges otherwise than the run did.
fn rejudged(opened: &Opened, report: &Report) -> Option<String> {
    let SealState::Sealed { .. } = opened.state else { return None };
    let stored = opened.judgement.as_ref()?;
    // Its sentences and figures are those of its version; what counts is the answer.
    let same = report.verdict.answer == stored.verdict.answer;
    let version = &opened.run.meta.tool_version;
    let banner = format!(
        "rtproof {} judges this record otherwise than rtproof {version} did at its end: {}",
        env!("CARGO_PKG_VERSION"),
        stored.summary
    );
    (!same).then_some(banner)
}
