//! An experiment from its knobs to its report.

use std::path::Path;

use anyhow::Context;
use rtproof_host::{Facts, Root};
use rtproof_judge::units;
use rtproof_results::effects::percent;
use rtproof_stats::paired::Spread;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Switch,
    analyse::{self, MARGIN, Terms, Untried},
    conduct::Conduct,
    events::Events,
    knobs::Candidate,
    results::{self, Results, cut_short, seed},
    screening::{self, Shown},
    setup::{PILOT, Setup},
    staged::{Pilot, Staged, median},
};
use crate::prove::{self, Request, output::Output, resolve};

/// What an experiment can see, before it starts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Detectable {
    /// `pilot` or `assumption`.
    pub rests_on: &'static str,
    /// Spread of p99.9 from slice to slice, as a share.
    pub spread: f64,
    /// Smallest change of p99.9 downwards, as a share, where one knob stands out; null: none.
    pub one: Option<f64>,
    /// The same where all do.
    pub all: Option<f64>,
}

#[derive(Debug)]
pub struct Found {
    pub results: Results,
    /// The screening; `None`: there was none.
    pub screening: Option<Shown>,
    /// Knobs that are worth having.
    pub profile: Vec<usize>,
}

/// Everything an experiment needs beside its switch.
pub struct Wanted<'a> {
    pub root: &'a Root,
    pub facts: &'a Facts,
    pub knobs: &'a [Candidate],
    pub setup: Setup,
    /// Arguments of `prove` that say the rest.
    pub args: &'a Request,
    /// Where record and report go.
    pub output: &'a Output,
    /// Spread that is taken for granted; `None`: a pilot tells.
    pub spread: Option<f64>,
}

/// Says what will be and what can be seen. With a pilot: measures it.
///
/// # Errors
/// Threads that cannot run, a pilot that was interrupted.
pub fn before(
    wanted: &Wanted<'_>,
    switch: &mut dyn Switch,
    events: &mut dyn Events,
) -> anyhow::Result<Detectable> {
    let setup = &wanted.setup;
    let mut sentence = setup.sentence(0);
    if wanted.spread.is_none() {
        let pilot = units::duration(setup.pilot_ns());
        sentence += &format!(" Before that a pilot of {PILOT} slices, {pilot}.");
    }
    events.setup(&sentence)?;
    let (spread, rests_on, level) = match wanted.spread {
        Some(spread) => (Spread::assumed(spread.ln_1p()), "assumption", None),
        None => {
            let (sd, level) = pilot(wanted, switch, events)?;
            (Spread::of_successive(sd, PILOT as usize), "pilot", level)
        }
    };
    let seen = Detectable {
        rests_on,
        spread: spread.sd.exp_m1(),
        one: setup.detectable(spread, 1),
        all: setup.detectable(spread, setup.knobs),
    };
    events.line(&sentence_of(&seen, setup, level))?;
    Ok(seen)
}

/// What can be seen, as a sentence.
fn sentence_of(seen: &Detectable, setup: &Setup, level: Option<u64>) -> String {
    let basis = match (seen.rests_on, level) {
        ("pilot", Some(ns)) => {
            format!("pilot: p99.9 {} (median of {PILOT} slices), moves", units::ns(ns))
        }
        ("pilot", None) => "pilot: p99.9 moves".into(),
        _ => "--spread: p99.9 is taken to move, not measured,".into(),
    };
    let away = |share: Option<f64>| {
        share.map_or_else(|| "no change at all".into(), |share| format!("−{}", percent(share)))
    };
    let (one, all) = (away(seen.one), away(seen.all));
    let what = match setup.knobs {
        1 => format!("a change of p99.9 by {one} is found"),
        n if setup.design(0).is_none() => {
            format!("with {n} knobs a change of p99.9 by {all} is found")
        }
        n => format!(
            "a change of p99.9 by {one} is found if one knob stands out, by {all} if all {n} do"
        ),
    };
    format!(
        "{basis} by {} from slice to slice: {what} four times in \
         five, a larger one more often.",
        percent(seen.spread)
    )
}

/// Measures slices without any change; returns the spread and the level of p99.9.
fn pilot(
    wanted: &Wanted<'_>,
    switch: &mut dyn Switch,
    events: &mut dyn Events,
) -> anyhow::Result<(f64, Option<u64>)> {
    let mut name = wanted.output.record.with_extension("").into_os_string();
    name.push("-pilot");
    let output = Output::choose(Path::new(&name), wanted.facts)?;
    let mut args = wanted.args.clone();
    args.duration_ns =
        Some((2 * wanted.setup.pilot_ns() + 10_000_000_000).next_multiple_of(1_000_000_000));
    let options = resolve::options(&args, wanted.facts)?;
    let (schedule, trial) = Pilot::new(wanted.setup.slice_ns, PILOT);
    let mut tell = |_| {};
    let mut conduct = Conduct::new(
        switch,
        &mut tell,
        Vec::new(),
        Box::new(schedule),
        trial,
        Untried::new(),
        options.cpus.len(),
    );
    let facts = wanted.facts.clone();
    let load_dir = args.load_dir.as_deref();
    let mut observer = events.observer(options.duration_ns);
    let measured = prove::measure(
        wanted.root,
        facts,
        &options,
        load_dir,
        &output,
        &mut conduct,
        &mut *observer,
    );
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

/// The experiment itself.
///
/// # Errors
/// Threads that cannot run, a machine that could not be put back, a record that cannot be written.
pub fn run(
    wanted: &Wanted<'_>,
    seen: &Detectable,
    switch: &mut dyn Switch,
    events: &mut dyn Events,
) -> anyhow::Result<Found> {
    let (setup, knobs) = (&wanted.setup, wanted.knobs);
    let mut args = wanted.args.clone();
    args.duration_ns = Some(setup.most_ns());
    let options = resolve::options(&args, wanted.facts)?;
    let seed = seed()?;
    let (schedule, trial) = Staged::new(knobs, setup.clone(), seed, seen.one);
    let mut observer = events.observer(setup.needs_ns(setup.knobs));
    let mut tell = |line: String| {
        // Nowhere left to report that it cannot be reported.
        let _ = events.line(&line);
    };
    let threads = options.cpus.len();
    let conduct = Conduct::new(
        switch,
        &mut tell,
        knobs.to_vec(),
        Box::new(schedule),
        trial,
        Untried::new(),
        threads,
    );
    let (facts, output) = (wanted.facts.clone(), wanted.output);
    let load_dir = args.load_dir.as_deref();
    let results =
        results::measure(wanted.root, facts, &options, load_dir, output, conduct, &mut *observer)?;
    let effects = results.effects()?;
    let screening = setup.design(seed).map(|design| screening::screened(&design, &effects.slices));
    let standing_out = screening.as_ref().map_or(0, |found| found.standing_out.len());
    let terms =
        Terms { margin: MARGIN, total_ns: 0, mirrored: false, knobs: setup.decided(standing_out) };
    let profile = match results.is_whole() {
        true => screening::profile(&effects.knobs, &effects.slices, knobs, terms),
        false => Vec::new(),
    };
    let screening = screening.as_ref().map(screening::Screening::shown);
    Ok(Found { results, screening, profile })
}
