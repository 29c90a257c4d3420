//! From arguments and facts to options: every default decided, every impossible request refused.

use rtproof_host::{CpuList, Facts, facts::tasks::Policy};
use rtproof_measure::{loads::LoadSet, workloads};
use rtproof_record::{Options, Requirement, options::Phase};

use super::request::Request;
use crate::{
    cpus::online_cpus,
    intent::{PERIOD_NS, PRIORITY},
    parse,
    usage::usage,
};

/// The load of `prove` after the idle third.
const DEFAULT_LOAD: &str = "cpu+memory+net+disk";
const SECOND_NS: u64 = 1_000_000_000;
/// Duration of a run where nothing is said.
const RUN_NS: u64 = 60 * SECOND_NS;

/// Decides everything that a run needs to know.
///
/// # Errors
/// Usage errors: CPUs that are not there, a period longer than the run.
pub fn options(request: &Request, facts: &Facts) -> anyhow::Result<Options> {
    let intent = request.intent.resolve()?;
    let period_ns = request.period_ns.or(intent.period_ns).unwrap_or(PERIOD_NS);
    let duration_ns = parse::until(request.samples, period_ns, request.duration_ns, RUN_NS)
        .map_err(|what| usage(what.to_string()))?;
    workloads::check_clock(&*workloads::timer_wakeup(), request.clock)
        .map_err(|error| usage(error.to_string()))?;
    if period_ns > duration_ns {
        return Err(usage("--period is longer than --for: no wake-up would be measured"));
    }
    let cpus = match intent.stated_cpus(request.cpus.as_deref(), facts)? {
        Some(cpus) => cpus,
        None => default_cpus(facts)?,
    };
    let rooms = Rooms::of(facts, &cpus);
    let load_cpus = match &request.load_cpus {
        Some(list) => online_cpus(list, "--load-cpus", facts)?,
        None => rooms.load,
    };
    let (policy, priority) = match request.is_real_time {
        true => (Policy::Fifo, request.priority.or(intent.priority).unwrap_or(PRIORITY)),
        false => (Policy::Other, 0),
    };
    Ok(Options {
        profile: intent.profile.to_json(),
        skipped: intent.skip.clone(),
        spike_ns: request.spike_ns.or(request.budget_ns).or(intent.budget_ns),
        trace: request.trace,
        housekeeping: rooms.housekeeping,
        load_cpus,
        policy,
        priority,
        period_ns,
        duration_ns,
        start: request.start,
        clock: request.clock,
        dma_latency_us: request.dma_latency_us,
        phases: phases(request, duration_ns)?,
        requirement: Requirement {
            budget_ns: request.budget_ns.or(intent.budget_ns),
            class: request.class,
            confidence_ppm: request.confidence_ppm,
            rate_per_1000h: request.rate_per_1000h,
        },
        cpus,
    })
}

/// Where what is not measured runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rooms {
    /// The tool's own work.
    pub housekeeping: CpuList,
    /// Loads, where nobody says.
    pub load: CpuList,
}

impl Rooms {
    /// Beside measured CPUs.
    pub fn of(facts: &Facts, cpus: &CpuList) -> Self {
        let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let others = online.difference(cpus).difference(&isolated);
        let allowed = allowed(facts, &online);
        Self {
            housekeeping: housekeeping(&allowed, &others),
            load: or_all(allowed.difference(&isolated), cpus),
        }
    }
}

fn or_all(list: CpuList, all: &CpuList) -> CpuList {
    if list.is_empty() { all.clone() } else { list }
}

/// CPUs for the tool's own work: not measured, not isolated, and preferably where this process was
/// put. Where every CPU is measured there is no such CPU, and it goes anywhere.
fn housekeeping(allowed: &CpuList, others: &CpuList) -> CpuList {
    let both = allowed.intersection(others);
    [&both, others, allowed].into_iter().find(|list| !list.is_empty()).cloned().unwrap_or_default()
}

fn allowed(facts: &Facts, online: &CpuList) -> CpuList {
    facts.cpus.allowed.value().map_or_else(|| online.clone(), |a| a.intersection(online))
}

/// The isolated CPUs if there are any, else those that this process may use.
pub fn default_cpus(facts: &Facts) -> anyhow::Result<CpuList> {
    let Some(online) = facts.cpus.online.value() else {
        let why = facts.cpus.online.why_unknown().unwrap_or_default();
        let path = &facts.cpus.online.path;
        anyhow::bail!("{path}: {why}; name the CPUs to measure with --cpus");
    };
    let isolated = facts.cpus.isolated.value().map(|list| list.intersection(online));
    match isolated {
        Some(isolated) if !isolated.is_empty() => Ok(isolated),
        _ => Ok(or_all(allowed(facts, online), online)),
    }
}

/// A phase of the run with one load.
pub(crate) fn phase(set: &LoadSet, from_ns: u64, to_ns: u64) -> Phase {
    let (name, loads) = match set.is_idle() {
        true => ("idle".into(), Vec::new()),
        false => (set.to_string(), set.as_slice().iter().map(ToString::to_string).collect()),
    };
    Phase { name, loads, from_ns, to_ns }
}

/// The phases of the run. Edges fall on whole seconds, as the seconds of the record do.
fn phases(request: &Request, duration_ns: u64) -> anyhow::Result<Vec<Phase>> {
    let end_ns = duration_ns;
    if let Some(set) = &request.load {
        return Ok(vec![phase(set, 0, end_ns)]);
    }
    // Seconds of the record do not straddle the edge; a run too short for that has no idle part.
    let third_ns = end_ns / 3 / SECOND_NS * SECOND_NS;
    let edge_ns = if end_ns < 2 * SECOND_NS { 0 } else { third_ns.max(SECOND_NS) };
    let (idle, load): (LoadSet, LoadSet) = ("idle".parse()?, DEFAULT_LOAD.parse()?);
    let mut phases = vec![phase(&idle, 0, edge_ns), phase(&load, edge_ns, end_ns)];
    phases.retain(|phase| phase.from_ns < phase.to_ns);
    Ok(phases)
}
