//! `tune apply --prove`: measures what each change of a plan does, keeps what helps, undoes the
//! rest.
//!
//! docs/statistics.md says how, and what the answers mean.

pub(crate) mod schedule;
pub(crate) mod shares;

use rtproof_host::tune::Pace;
use rtproof_host::{Facts, Root};
use rtproof_judge::{plan::Plan, units};

use self::{schedule::Shared, shares::Shares};
use crate::{
    experiment::{
        Switch,
        conduct::Conduct,
        events::Events,
        knobs,
        results::{self, LOAD, Results, seed},
    },
    prove::{Request, output::Output, resolve},
    usage::usage,
};

/// Proves a plan: measures, switches its changes on and off in pairs of slices, keeps what helps.
///
/// `request` is that of `prove`: `duration_ns` is the time of all of it, `load` the load of the
/// whole time. `root` is the machine that is measured; `switch` changes it (or a folder, in tests).
///
/// # Errors
/// A wrong request, an output that cannot be written, threads that cannot run, a machine that could
/// not be put back.
pub fn run(
    root: &Root,
    facts: Facts,
    plan: &Plan,
    request: &Request,
    switch: &mut dyn Switch,
    events: &mut dyn Events,
) -> anyhow::Result<(Results, Output)> {
    let mut request = request.clone();
    if request.load.is_none() {
        // One load for the whole time: slices are to be alike.
        request.load = Some(LOAD.parse().map_err(|error| anyhow::anyhow!("{LOAD}: {error}"))?);
    }
    let options = resolve::options(&request, &facts)?;
    let knobs = knobs::of(plan);
    let shares = shares(&knobs, &options)?;
    let output = Output::choose(&request.output, &facts)?;
    events.setup(&shares::sentence(&shares))?;

    let seed = seed()?;
    let mut observer = events.observer(options.duration_ns);
    let mut tell = |line: String| {
        // Nowhere left to report that it cannot be reported.
        let _ = events.line(&line);
    };
    let (total_ns, threads) = (options.duration_ns, options.cpus.len());
    let (schedule, trial, untried) = Shared::new(&knobs, shares, total_ns, seed);
    let schedule = Box::new(schedule);
    let conduct = Conduct::new(switch, &mut tell, knobs, schedule, trial, untried, threads);
    let load_dir = request.load_dir.as_deref();
    let results =
        results::measure(root, facts, &options, load_dir, &output, conduct, &mut *observer)?;
    Ok((results, output))
}

/// How the time is shared.
///
/// # Errors
/// Usage, when there is nothing to try or too little time for it.
fn shares(knobs: &[knobs::Candidate], options: &rtproof_record::Options) -> anyhow::Result<Shares> {
    let count = |kind| knobs.iter().filter(|knob| knob.kind == kind).count();
    let (toggled, once) = (count(Pace::Toggled), count(Pace::Once));
    if toggled + once == 0 {
        return Err(usage(
            "--prove: the plan holds nothing that can be measured now; leave --prove away",
        ));
    }
    let (cpus, period_ns) = (options.cpus.len(), options.period_ns);
    let found = shares::share(options.duration_ns, toggled, once, cpus, period_ns);
    found.ok_or_else(|| {
        let [one, all] = shares::shortest_ns(toggled, once, cpus, period_ns);
        usage(format!(
            "--prove {}: too short; one knob takes {} at least, all of them one by one {}",
            units::duration(options.duration_ns),
            units::duration(one.next_multiple_of(1_000_000_000)),
            units::duration(all.next_multiple_of(1_000_000_000))
        ))
    })
}
