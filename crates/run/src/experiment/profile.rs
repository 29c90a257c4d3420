//! What an experiment found worth having, as a plan that `rtproof tune apply --plan` takes.

use std::path::Path;

use anyhow::Context;
use rtproof_host::{Facts, tune::Machine};
use rtproof_judge::{
    Intent,
    plan::{Plan, Step},
};

use super::{Setting, knobs::Candidate};
use crate::tune::preview;

/// The plan of some knobs: their steps as the plan has them, in its order.
pub fn plan_of(plan: &Plan, knobs: &[Candidate], those: &[usize]) -> Plan {
    let of = |&at: &usize| knobs[at].now.iter().chain(&knobs[at].later);
    let mut places: Vec<usize> = those.iter().flat_map(of).map(|(place, _)| *place).collect();
    places.sort_unstable();
    places.dedup();
    let steps: Vec<Step> = places.iter().filter_map(|&at| plan.steps.get(at).cloned()).collect();
    Plan { steps, ..Plan::default() }
}

/// Options of measuring among knobs: no plan holds them.
pub fn settings<'a>(knobs: &'a [Candidate], those: &[usize]) -> Vec<&'a Setting> {
    those.iter().flat_map(|&at| &knobs[at].settings).collect()
}

/// Writes the plan; what is there already is never overwritten.
///
/// # Errors
/// A file that is there or cannot be made.
pub fn write(
    path: &Path,
    machine: &Machine<'_>,
    facts: &Facts,
    intent: &Intent,
    plan: Plan,
) -> anyhow::Result<()> {
    let document = preview::document(machine, facts, intent, plan);
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    let written = std::fs::File::create_new(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &text));
    written.with_context(|| format!("{}: the profile cannot be written", path.display()))
}
