//! An experiment from its knobs to its report.

use std::path::Path;

use anyhow::Context;
use rtproof_host::{Facts, Root};
use rtproof_judge::units;
use rtproof_record::Effects;
use serde::Serialize;

use super::{
    Switch,
    analyse::{self, MARGIN, Terms, Untried},
    conclude::{self, cut_short, seed},
    conduct::Conduct,
    knobs::Knob,
    setup::{PILOT, Setup},
    staged::{Pilot, Staged, median},
    stand::{self, Shown},
};
use crate::{
    commands::prove::Args,
    prove::{self, output::Output, resolve},
    render::{self, effects::percent, text::Text},
};

/// Version of the JSON.
const SCHEMA: &str = "rtproof/experiment/1";

/// What is printed as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Outcome<'a> {
    /// `rtproof/experiment/1`.
    schema: &'static str,
    /// The record.
    record: String,
    /// The report.
    report: String,
    /// What was to be seen, and what that rests on.
    seen: &'a Seen,
    /// The screening; null: there was none.
    screening: Option<Shown>,
    /// Numbers of the knobs that are worth having.
    profile: Vec<usize>,
    /// What was found.
    effects: &'a Effects,
}

/// What an experiment can see, before it starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Seen {
    /// `pilot` or `assumption`.
    pub(crate) rests_on: &'static str,
    /// Spread of p99.9 from slice to slice, as a share.
    pub(crate) spread: f64,
    /// Smallest change of p99.9 downwards, as a share, where one knob stands out; null: none.
    pub(crate) one: Option<f64>,
    /// The same where all do.
    pub(crate) all: Option<f64>,
}

/// What was found, for whoever called.
pub(crate) struct Found {
    /// Exit code.
    pub(crate) code: u8,
    /// Knobs that are worth having.
    pub(crate) profile: Vec<usize>,
}

/// Everything an experiment needs beside its switch.
pub(crate) struct Wanted<'a> {
    pub(crate) root: &'a Root,
    pub(crate) facts: &'a Facts,
    pub(crate) knobs: &'a [Knob],
    pub(crate) setup: Setup,
    /// Arguments of `prove` that say the rest.
    pub(crate) args: &'a Args,
    pub(crate) output: &'a Output,
    /// Spread that is taken for granted; `None`: a pilot tells.
    pub(crate) spread: Option<f64>,
}

/// Says what will be and what can be seen. With a pilot: measures it.
///
/// # Errors
/// Threads that cannot run, a pilot that was interrupted.
pub(crate) fn before(
    wanted: &Wanted<'_>,
    switch: &mut dyn Switch,
    text: Text,
) -> anyhow::Result<Seen> {
    let setup = &wanted.setup;
    let mut sentence = setup.sentence(0);
    if wanted.spread.is_none() {
        let pilot = units::duration(setup.pilot_ns());
        sentence += &format!(" Before that a pilot of {PILOT} slices, {pilot}.");
    }
    text.print(|to| render::text::effects::experiment(to, &sentence))?;
    let (spread, rests_on, level) = match wanted.spread {
        Some(spread) => (spread.ln_1p(), "assumption", None),
        None => {
            let (sd, level) = pilot(wanted, switch)?;
            (sd, "pilot", level)
        }
    };
    let seen = Seen {
        rests_on,
        spread: spread.exp_m1(),
        one: setup.detectable(spread, 1),
        all: setup.detectable(spread, setup.knobs),
    };
    text.print(|to| render::text::effects::line(to, &sentence_of(&seen, setup, level)))?;
    Ok(seen)
}

/// What can be seen, as a sentence.
fn sentence_of(seen: &Seen, setup: &Setup, level: Option<u64>) -> String {
    let basis = match (seen.rests_on, level) {
        ("pilot", Some(ns)) => {
            format!("pilot: p99.9 {} (median of {PILOT} slices)", units::ns(ns))
        }
        ("pilot", None) => "pilot".into(),
        _ => "assumed, not measured".into(),
    };
    let away = |share: Option<f64>| {
        share.map_or_else(|| "no change at all".into(), |share| format!("−{}", percent(share)))
    };
    let (one, all) = (away(seen.one), away(seen.all));
    let what = match setup.knobs {
        1 => format!("a change of p99.9 by {one} is seen"),
        n if setup.design(0).is_none() => {
            format!("with {n} knobs a change of p99.9 by {all} is seen")
        }
        n => format!(
            "a change of p99.9 by {one} is seen if one knob stands out, by {all} if all {n} do"
        ),
    };
    format!(
        "{basis}, moves by {} from slice to slice: {what}, or a larger one, with probability 0.8.",
        percent(seen.spread)
    )
}

/// Measures slices without any change; returns the spread and the level of p99.9.
fn pilot(wanted: &Wanted<'_>, switch: &mut dyn Switch) -> anyhow::Result<(f64, Option<u64>)> {
    let mut name = wanted.output.record.with_extension("").into_os_string();
    name.push("-pilot");
    let output = Output::choose(Path::new(&name), wanted.facts)?;
    let mut args = wanted.args.clone();
    args.duration_ns =
        (2 * wanted.setup.pilot_ns() + 10_000_000_000).next_multiple_of(1_000_000_000);
    let options = resolve::options(&args, wanted.facts)?;
    let (course, trial) = Pilot::new(wanted.setup.slice_ns, PILOT);
    let mut tell = |_| {};
    let mut conduct = Conduct::new(
        switch,
        &mut tell,
        Vec::new(),
        Box::new(course),
        trial,
        Untried::new(),
        options.cpus.len(),
    );
    let facts = wanted.facts.clone();
    let measured = prove::measure_with(wanted.root, facts, &options, &args, &output, &mut conduct);
    let slices = conduct.slices().to_vec();
    drop(conduct);
    // Its record is of no use to anybody.
    let removed = std::fs::remove_file(&output.record);
    let finishing = measured?;
    removed.with_context(|| format!("{}: cannot be removed", output.record.display()))?;
    if let Some(why) = cut_short(&finishing.run) {
        anyhow::bail!("{why}: the pilot was cut short; nothing was changed");
    }
    let spread = analyse::spread(slices.iter()).context(
        "the pilot: too few slices were measured to the end; the machine is too busy, or give \
         --spread PERCENT",
    )?;
    Ok((spread, median(&slices)))
}

/// The experiment itself; prints what it finds.
///
/// # Errors
/// Threads that cannot run, a machine that could not be put back, a record that cannot be written.
pub(crate) fn run(
    wanted: &Wanted<'_>,
    seen: &Seen,
    switch: &mut dyn Switch,
    text: Text,
) -> anyhow::Result<Found> {
    let (setup, knobs) = (&wanted.setup, wanted.knobs);
    let mut args = wanted.args.clone();
    args.duration_ns = setup.most_ns();
    let options = resolve::options(&args, wanted.facts)?;
    let seed = seed()?;
    let (course, trial) = Staged::new(knobs, setup.clone(), seed, seen.one);
    let mut tell = |line: String| {
        // Nowhere left to say that it cannot be said.
        let _ = text.print(|to| render::text::effects::line(to, &line));
    };
    let threads = options.cpus.len();
    let conduct = Conduct::new(
        switch,
        &mut tell,
        knobs.to_vec(),
        Box::new(course),
        trial,
        Untried::new(),
        threads,
    );
    let (facts, output) = (wanted.facts.clone(), wanted.output);
    let concluded = conclude::conclude(wanted.root, facts, &options, &args, output, conduct)?;
    let effects = concluded.effects()?;
    let screening = setup.design(seed).map(|design| stand::screened(&design, &effects.slices));
    let standing_out = screening.as_ref().map_or(0, |found| found.standing_out.len());
    let terms = Terms {
        margin: MARGIN,
        total_ns: 0,
        mirrored: false,
        comparisons: setup.questions(standing_out),
    };
    let profile = match concluded.is_whole() {
        true => stand::profile(&effects.knobs, &effects.slices, knobs, terms),
        false => Vec::new(),
    };
    concluded.tell(text, output)?;
    text.print_json(&Outcome {
        schema: SCHEMA,
        record: output.record.display().to_string(),
        report: output.html.display().to_string(),
        seen,
        screening: screening.as_ref().map(stand::Screening::shown),
        profile: profile.clone(),
        effects,
    })?;
    Ok(Found { code: concluded.code()?, profile })
}
