//! `tune apply --prove`: measures what each change of a plan does, keeps what helps, undoes the
//! rest.
//!
//! docs/statistics.md says how, and what the answers mean.

pub(crate) mod course;
pub(crate) mod schedule;

use rtproof_host::{Facts, Root};
use rtproof_judge::{plan::Plan, units};
use rtproof_record::Effects;
use serde::Serialize;

pub use crate::experiment::{Journaled, Switch};
pub use rtproof_host::tune::Item;

use self::{course::Shared, schedule::Shares};
use crate::{
    commands::prove::Args,
    exit,
    experiment::{
        conclude::{LOAD, conclude, seed},
        conduct::Conduct,
        knobs::{self, Kind},
    },
    prove::{output::Output, resolve},
    render::{self, text::Text},
};

/// Version of the JSON.
const SCHEMA: &str = "rtproof/effects/1";

/// What is printed as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome<'a> {
    /// `rtproof/effects/1`.
    schema: &'static str,
    /// The record.
    record: String,
    /// The report.
    report: String,
    /// What was found.
    effects: &'a Effects,
}

/// Proves a plan: measures, switches its changes on and off in pairs of slices, keeps what helps.
/// Prints what it does, writes record and report where `args` says, and returns the exit code: 0
/// when every knob was decided, 3 when one could not be.
///
/// `args` are those of `prove`: `duration_ns` is the TIME of `--prove TIME`, `load` the load of the
/// whole time. `root` is the machine that is measured; `switch` changes it (or a folder, in tests).
///
/// # Errors
/// Wrong arguments, an output that cannot be written, threads that cannot run, a machine that could
/// not be put back.
pub fn run(
    root: &Root,
    facts: Facts,
    plan: &Plan,
    args: &Args,
    switch: &mut dyn Switch,
) -> anyhow::Result<u8> {
    let mut args = args.clone();
    if args.load.is_none() {
        // One load for the whole time: slices are to be alike.
        args.load = Some(LOAD.parse().map_err(|error| anyhow::anyhow!("{LOAD}: {error}"))?);
    }
    let options = resolve::options(&args, &facts)?;
    let knobs = knobs::of(plan);
    let shares = shares(&knobs, &options)?;
    let output = Output::choose(&args.output, &facts)?;
    let text = Text::new(args.json);
    text.print(|to| render::text::effects::before(to, &schedule::sentence(&shares)))?;

    let seed = seed()?;
    let mut tell = |line: String| {
        // Nowhere left to say that it cannot be said.
        let _ = text.print(|to| render::text::effects::line(to, &line));
    };
    let (total_ns, threads) = (options.duration_ns, options.cpus.len());
    let (course, trial, untried) = Shared::new(&knobs, shares, total_ns, seed);
    let course = Box::new(course);
    let conduct = Conduct::new(switch, &mut tell, knobs, course, trial, untried, threads);
    let concluded = conclude(root, facts, &options, &args, &output, conduct)?;
    concluded.tell(text, &output)?;
    text.print_json(&Outcome {
        schema: SCHEMA,
        record: output.record.display().to_string(),
        report: output.html.display().to_string(),
        effects: concluded.effects()?,
    })?;
    concluded.code()
}

/// How the time is shared.
///
/// # Errors
/// Usage, when there is nothing to try or too little time for it.
fn shares(knobs: &[knobs::Knob], options: &rtproof_record::Options) -> anyhow::Result<Shares> {
    let count = |kind| knobs.iter().filter(|knob| knob.kind == kind).count();
    let (toggled, once) = (count(Kind::Toggled), count(Kind::Once));
    if toggled + once == 0 {
        return Err(exit::usage(
            "--prove: the plan holds nothing that can be measured now; leave --prove away",
        ));
    }
    let (cpus, period_ns) = (options.cpus.len(), options.period_ns);
    let found = schedule::share(options.duration_ns, toggled, once, cpus, period_ns);
    found.ok_or_else(|| {
        let [one, all] = schedule::shortest_ns(toggled, once, cpus, period_ns);
        exit::usage(format!(
            "--prove {}: too short; one knob takes {} at least, all of them one by one {}",
            units::duration(options.duration_ns),
            units::duration(one.next_multiple_of(1_000_000_000)),
            units::duration(all.next_multiple_of(1_000_000_000))
        ))
    })
}
