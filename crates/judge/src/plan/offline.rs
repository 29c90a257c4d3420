//! CPUs that a plan takes offline: what is set for them afterwards would be refused, and lists that
//! name them would be read back without them.

use rtproof_host::tune::{Change, Compare};
use rtproof_host::{CpuList, Facts, Knob, knobs::names};

use super::merge::Wanted;
use crate::checks::value::mask;

/// The CPUs that these changes take offline.
pub(super) fn gone<'a>(facts: &Facts, changes: impl Iterator<Item = &'a Wanted>) -> CpuList {
    let mut gone = CpuList::default();
    for wanted in changes {
        let Change::Hotplug { path, value } = &wanted.change else { continue };
        match value.as_str() {
            "off" => gone = gone.union(&second_threads(facts)),
            "0" => {
                let number = wanted.knob.and_then(|knob| knob.cpu_of(path));
                gone = gone.union(&CpuList::new(number));
            }
            _ => {}
        }
    }
    gone
}

/// All threads of a core but the first.
fn second_threads(facts: &Facts) -> CpuList {
    let is_second = |cpu: &&rtproof_host::facts::cpu::Cpu| {
        let first = cpu.siblings.value().and_then(|siblings| siblings.iter().next());
        first.is_some_and(|first| first != cpu.id)
    };
    CpuList::new(facts.cpus.cpus.iter().filter(is_second).map(|cpu| cpu.id))
}

/// The change without these CPUs; `None`: nothing is left of it.
pub(super) fn without(change: Change, knob: Option<&Knob>, gone: &CpuList) -> Option<Change> {
    let rest = |cpus: &CpuList| Some(cpus.difference(gone)).filter(|rest| !rest.is_empty());
    Some(match change {
        Change::Value { path, .. } if is_gone(knob, &path, gone) => {
            return None;
        }
        Change::Value { path, value, compare, couples } => {
            let value = match compare {
                Compare::CpuList => match CpuList::parse(&value, None) {
                    Ok(cpus) => rest(&cpus)?.to_string(),
                    Err(_) => value,
                },
                Compare::CpuMask => match CpuList::parse_mask(&value) {
                    Ok(cpus) => mask(&rest(&cpus)?),
                    Err(_) => value,
                },
                _ => value,
            };
            Change::Value { path, value, compare, couples }
        }
        Change::Irq { irq, cpus } => Change::Irq { irq, cpus: rest(&cpus)? },
        Change::Task { task, mut set } => {
            if let Some(cpus) = &set.cpus {
                set.cpus = Some(rest(cpus)?);
            }
            Change::Task { task, set }
        }
        Change::Property { unit, property, value } if names::key_of(&property).is_some() => {
            let cpus = CpuList::parse(&value, None).ok();
            let value = match cpus {
                Some(cpus) => rest(&cpus)?.to_string(),
                None => value,
            };
            Change::Property { unit, property, value }
        }
        other => other,
    })
}

/// Whether a file concerns one of these CPUs alone.
fn is_gone(knob: Option<&Knob>, path: &str, gone: &CpuList) -> bool {
    knob.and_then(|knob| knob.cpu_of(path)).is_some_and(|cpu| gone.contains(cpu))
}
