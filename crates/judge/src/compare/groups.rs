//! Groups of runs: one condition each, with a summary of every run and thread.

use rtproof_stats::quantile::Q;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::side::{Place, Side, View};

/// Runs of one condition.
#[derive(Clone, Debug)]
pub struct Group {
    pub label: String,
    pub sides: Vec<Side>,
}

impl Group {
    pub fn single(side: Side) -> Self {
        Self { label: side.label.clone(), sides: vec![side] }
    }

    /// Wake-ups of all its runs, measured and missed as far as known.
    pub fn exposure(&self) -> u64 {
        self.sides.iter().fold(0, |sum, side| sum.saturating_add(side.exposure()))
    }
}

/// A group in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    pub label: String,
    pub runs: Vec<RunSummary>,
}

/// A run in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    pub label: String,
    pub source: String,
    /// Identity.
    pub id: String,
    pub tool: String,
    /// Where; null: unknown.
    pub machine: Option<Place>,
    pub workload: String,
    pub period_ns: Option<u64>,
    /// Start, nanoseconds since 1970.
    pub started_ns: Option<u64>,
    /// How long was measured, nanoseconds.
    pub duration_ns: Option<u64>,
    pub sampled: u64,
    /// Wake-ups missed; null: not known.
    pub missed: Option<u64>,
    /// 99.9 % were no later, nanoseconds; null: too few.
    pub p999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Whether the latest may have been later: the tool's histogram ended before.
    pub max_is_at_least: bool,
    pub threads: Vec<ThreadSummary>,
}

/// A thread in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSummary {
    pub label: String,
    pub sampled: u64,
    /// Wake-ups missed; null: not known.
    pub missed: Option<u64>,
    pub min_ns: Option<u64>,
    pub mean_ns: Option<f64>,
    /// 5 % were no later, nanoseconds; null: too few.
    pub p5_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    /// 95 % were no later, nanoseconds; null: too few.
    pub p95_ns: Option<u64>,
    /// 99 % were no later, nanoseconds; null: too few.
    pub p99_ns: Option<u64>,
    /// 99.9 % were no later, nanoseconds; null: too few.
    pub p999_ns: Option<u64>,
    /// 99.99 % were no later, nanoseconds; null: too few.
    pub p9999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Whether the latest may have been later.
    pub max_is_at_least: bool,
}

impl GroupSummary {
    pub(super) fn of(group: &Group, view: View) -> Self {
        let runs = group.sides.iter().map(|side| run(side, view)).collect();
        Self { label: group.label.clone(), runs }
    }
}

fn run(side: &Side, view: View) -> RunSummary {
    let (max_ns, max_is_at_least) = side.max().unzip();
    let p999 = side.quantile(&side.all(view), Q { above: 1, of: 1000 });
    RunSummary {
        label: side.label.clone(),
        source: side.source.clone(),
        id: side.id.clone(),
        tool: side.tool.clone(),
        machine: side.machine.clone(),
        workload: side.workload.clone(),
        period_ns: side.period_ns,
        started_ns: side.started_ns,
        duration_ns: side.duration_ns,
        sampled: side.sampled(),
        missed: side.missed(),
        p999_ns: p999.map(|value| value.ns),
        max_ns,
        max_is_at_least: max_is_at_least.unwrap_or(false),
        threads: threads(side, view),
    }
}

fn threads(side: &Side, view: View) -> Vec<ThreadSummary> {
    let one = |thread: &super::SideThread| {
        let mut bins = thread.wake.clone();
        if let (View::Deadline, Some(missed)) = (view, &thread.missed) {
            bins.merge(missed);
        }
        let of = |q: Q| side.quantile(&bins, q).map(|value| value.ns);
        // A quantile of a thread cannot be above its own maximum, though above that of its cell.
        let within = |ns: Option<u64>| match (ns, thread.max_ns, thread.max_is_at_least) {
            (Some(ns), Some(max_ns), false) => Some(ns.min(max_ns)),
            (ns, ..) => ns,
        };
        ThreadSummary {
            label: thread.label.clone(),
            sampled: thread.wake.total(),
            missed: thread.missed_count,
            min_ns: thread.min_ns,
            mean_ns: thread.mean_ns,
            p5_ns: within(of(Q::P5)),
            p50_ns: within(of(Q::P50)),
            p95_ns: within(of(Q::P95)),
            p99_ns: within(of(Q::P99)),
            p999_ns: within(of(Q::P99_9)),
            p9999_ns: within(of(Q { above: 1, of: 10_000 })),
            max_ns: thread.max_ns,
            max_is_at_least: thread.max_is_at_least,
        }
    };
    side.threads.iter().map(one).collect()
}
