//! A plan with what the machine holds now: what `tune plan` shows, what `--json` prints and what
//! `tune apply --plan FILE` takes to the letter.

use rtproof_host::{
    CpuList, Facts,
    tune::{Bytes, Change, ChangeError, Compare, Machine, State},
};
use rtproof_judge::{
    Intent,
    plan::{Plan, Step},
    report,
};
use rtproof_results::{
    intent::IntentShown,
    tune::plan::{Document, Previewed, SCHEMA},
};

use super::boot;

/// Looks up what each step finds. What is as wanted already is counted and left out.
pub fn document(machine: &Machine<'_>, facts: &Facts, intent: &Intent, plan: Plan) -> Document {
    let all = plan.steps.len();
    let mut steps: Vec<Previewed> =
        plan.steps.into_iter().filter_map(|step| preview(machine, step)).collect();
    for at in 1..steps.len() {
        let (earlier, rest) = steps.split_at_mut(at);
        if rest[0].unknown.is_some() && comes_with(machine, earlier, &rest[0].step.change) {
            rest[0].unknown = Some("not there yet: a change before this one makes it".into());
        }
    }
    Document {
        schema: SCHEMA.into(),
        machine: report::Machine::of(facts),
        intent: IntentShown::of(intent),
        done: all - steps.len(),
        steps,
        boot: boot::preview(machine.root(), facts, plan.boot),
        instructions: plan.instructions,
        left_out: plan.left_out,
        conflicts: plan.conflicts,
    }
}

/// A step with what is there; `None`: it is as wanted.
fn preview(machine: &Machine<'_>, step: Step) -> Option<Previewed> {
    let named = machine.named(step.change.clone());
    let found = named
        .and_then(|change| Ok((machine.state(&change)?, change)))
        .or_else(|error| of_capture(machine, &step.change).ok_or(error));
    match found {
        Ok((state, change)) if machine.is_done(&change, &state) => None,
        Ok((state, change)) => {
            let step = Step { change, ..step };
            Some(Previewed { step, before: Some(state), unknown: None })
        }
        Err(error) => Some(Previewed { step, before: None, unknown: Some(error.to_string()) }),
    }
}

/// Whether a change is of a file that is not there, and that an earlier change of its plan makes.
pub fn comes_with(machine: &Machine<'_>, earlier: &[Previewed], change: &Change) -> bool {
    let Change::Value { path, .. } = change else { return false };
    let brings = |it: &Previewed| it.step.change.brings(path);
    matches!(machine.state(change), Err(ChangeError::Missing { .. })) && earlier.iter().any(brings)
}

/// A capture keeps the CPUs of an interrupt, and not what names it from boot to boot.
fn of_capture(machine: &Machine<'_>, change: &Change) -> Option<(State, Change)> {
    let Change::Irq { irq, .. } = change else { return None };
    let root = machine.root();
    if root.is_live() || root.list_dir("/sys/kernel/irq").value().is_some() {
        return None;
    }
    let bytes = root.read_bytes(&format!("/proc/irq/{}/smp_affinity_list", irq.number));
    let bytes = Bytes(bytes.value()?.clone());
    Some((State::Value { bytes, couples: Vec::new() }, change.clone()))
}

/// Whether what is there is what was there: times, and how a list of CPUs is written, aside.
pub fn is_same(change: &Change, one: &State, other: &State) -> bool {
    match (one, other) {
        (State::Value { bytes: one, .. }, State::Value { bytes: other, .. }) => {
            is_same_value(change, &one.text(), &other.text())
        }
        (
            State::File { bytes: b1, mode: m1, uid: u1, gid: g1, .. },
            State::File { bytes: b2, mode: m2, uid: u2, gid: g2, .. },
        ) => (b1, m1, u1, g1) == (b2, m2, u2, g2),
        // What moves with the switch moves all the time.
        (State::Hotplug { bytes: one, .. }, State::Hotplug { bytes: other, .. }) => one == other,
        (one, other) => one == other,
    }
}

fn is_same_value(change: &Change, one: &str, other: &str) -> bool {
    if one.trim_end() == other.trim_end() {
        return true;
    }
    let list = |text: &str| CpuList::parse(text.trim(), None).ok();
    match change {
        Change::Irq { .. } | Change::Value { compare: Compare::CpuList, .. } => {
            list(one).is_some_and(|one| list(other) == Some(one))
        }
        _ => false,
    }
}
