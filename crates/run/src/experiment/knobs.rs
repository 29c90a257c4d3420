//! From the steps of a plan to knobs: what is switched together, and how it may be switched.

use std::collections::BTreeMap;

use rtproof_host::tune::Pace;
use rtproof_host::tune::{Change, Item};
use rtproof_judge::{
    Impact,
    plan::{Plan, Step},
};

use super::setting::Setting;

/// A knob that an experiment can try.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub name: String,
    /// The most that its changes promise.
    pub impact: Impact,
    /// How it may be tried.
    pub kind: Pace,
    /// What is switched, with its place in the plan.
    pub now: Vec<(usize, Item)>,
    /// What only a later boot or login notices: made when the knob is kept, never before.
    pub later: Vec<(usize, Item)>,
    /// Options of measuring that are switched with it.
    pub settings: Vec<Setting>,
}

/// The knobs of a plan, those that promise most first, in the plan's order otherwise.
pub fn of(plan: &Plan) -> Vec<Candidate> {
    let mut group: Vec<usize> = (0..plan.steps.len()).collect();
    let mut owner: BTreeMap<String, usize> = BTreeMap::new();
    for (at, step) in plan.steps.iter().enumerate() {
        for key in keys(step) {
            let first = *owner.entry(key).or_insert(at);
            let (one, other) = (root(&group, first), root(&group, at));
            let (low, high) = (one.min(other), one.max(other));
            group[high] = low;
        }
    }
    let mut knobs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..plan.steps.len() {
        knobs.entry(root(&group, at)).or_default().push(at);
    }
    let mut knobs: Vec<Candidate> = knobs.values().map(|steps| knob(plan, steps)).collect();
    knobs.sort_by_key(|knob| knob.impact);
    knobs
}

/// What makes two steps one knob: a check, or a file that one of them is and the other moves.
fn keys(step: &Step) -> Vec<String> {
    let mut keys: Vec<String> =
        step.reason.checks.iter().map(|check| format!("check {check}")).collect();
    if let Change::Value { path, couples, .. } = &step.change {
        keys.extend(couples.iter().chain([path]).map(|path| format!("file {path}")));
    }
    keys
}

fn root(group: &[usize], mut at: usize) -> usize {
    while group[at] != at {
        at = group[at];
    }
    at
}

fn knob(plan: &Plan, steps: &[usize]) -> Candidate {
    let mut checks: Vec<&str> = Vec::new();
    for check in steps.iter().flat_map(|&at| &plan.steps[at].reason.checks) {
        if !checks.contains(&check.as_str()) {
            checks.push(check);
        }
    }
    let item = |at: usize| {
        let step = &plan.steps[at];
        (at, Item { change: step.change.clone(), checks: step.reason.checks.clone() })
    };
    let (later, now): (Vec<usize>, Vec<usize>) =
        steps.iter().partition(|&&at| plan.steps[at].change.nature().pace == Pace::Later);
    let kinds = now.iter().map(|&at| plan.steps[at].change.nature().pace);
    let impacts = steps.iter().map(|&at| plan.steps[at].reason.impact);
    Candidate {
        name: checks.join(" "),
        impact: impacts.min().unwrap_or_default(),
        kind: kinds.max().unwrap_or(Pace::Later),
        now: now.into_iter().map(item).collect(),
        later: later.into_iter().map(item).collect(),
        settings: Vec::new(),
    }
}

/// A change in a line.
pub fn line(change: &Change) -> String {
    match change {
        Change::Value { path, value, .. } | Change::Hotplug { path, value } => {
            format!("{path} = {value}")
        }
        Change::Irq { irq, cpus } => {
            let of = if irq.actions.is_empty() { &irq.chip } else { &irq.actions };
            format!("interrupt {} ({of}) on CPUs {cpus}", irq.number)
        }
        Change::Unit { unit, want } => format!("{unit} {want:?}").to_lowercase(),
        Change::Property { unit, property, value } => format!("{unit} {property}={value}"),
        Change::Folder { path } => format!("{path}/"),
        _ => change.target(),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_host::tune::Compare;
    use rtproof_judge::plan::Reason;

    use super::*;

    fn step(change: Change, checks: &[&str], impact: Impact) -> Step {
        let reason = Reason {
            checks: checks.iter().map(|&check| check.into()).collect(),
            why: String::new(),
            impact,
            trade_off: None,
            risk: None,
        };
        Step { change, reason }
    }

    fn value(path: &str, couples: &[&str]) -> Change {
        let couples = couples.iter().map(|&path| path.into()).collect();
        Change::Value { path: path.into(), value: "1".into(), compare: Compare::Text, couples }
    }

    #[test]
    fn what_belongs_together_is_one_knob() {
        let file = Change::File { path: "/etc/sysctl.d/x".into(), content: None, mode: None };
        let plan = Plan {
            steps: vec![
                step(value("/sys/a", &["/sys/b"]), &["one"], Impact::Tens),
                step(value("/sys/c", &[]), &["two"], Impact::Milliseconds),
                step(value("/sys/b", &[]), &["three"], Impact::Hundreds),
                step(file.clone(), &["two"], Impact::Tens),
                step(
                    Change::Hotplug { path: "/sys/smt".into(), value: "off".into() },
                    &["smt"],
                    Impact::Tens,
                ),
                step(file, &["limits"], Impact::Tens),
            ],
            ..Plan::default()
        };
        let knobs = of(&plan);
        let found: Vec<_> = knobs
            .iter()
            .map(|knob| (knob.name.as_str(), knob.kind, knob.now.len(), knob.later.len()))
            .collect();
        let expected = [
            ("two", Pace::Toggled, 1, 1),
            ("one three", Pace::Toggled, 2, 0),
            ("smt", Pace::Once, 1, 0),
            ("limits", Pace::Later, 0, 1),
        ];
        assert_eq!(found, expected);
        assert!(of(&Plan::default()).is_empty());
    }
}
