//! Values of knobs as this section's checks ask for them.

use rtproof_host::{CpuList, Facts, Knob, Reading, facts::settings::Value};

use crate::Intent;
use crate::checks::draft::Draft;
use crate::checks::machine::without_cpu_folder;

/// The value of a knob that has one.
pub(super) fn one(facts: &Facts, knob: &Knob) -> Reading<String> {
    match all(facts, knob).first() {
        Some(value) => value.reading.clone(),
        None => not_asked(facts, knob),
    }
}

/// Every value of a knob: one for each device, in the order of their names.
pub(super) fn all<'a>(facts: &'a Facts, knob: &Knob) -> &'a [Value] {
    facts.settings.get(knob.id).map_or(&[], |setting| &setting.values)
}

/// The value of a knob for one device.
pub(super) fn of<'a>(facts: &'a Facts, knob: &Knob, name: &str) -> Option<&'a Reading<String>> {
    all(facts, knob).iter().find(|value| value.of == name).map(|value| &value.reading)
}

/// The value of a knob for each real-time CPU that has one.
pub(super) fn of_cpus<'a>(
    facts: &'a Facts,
    intent: &Intent,
    knob: &Knob,
) -> Vec<(u32, &'a Reading<String>)> {
    let cpu = |value: &'a Value| {
        let number = value.of.parse().ok().filter(|&cpu| intent.rt_cpus.contains(cpu));
        Some((number?, &value.reading))
    };
    all(facts, knob).iter().filter_map(cpu).collect()
}

/// The real-time CPUs that have no value.
pub(super) fn missing(intent: &Intent, found: &[(u32, &Reading<String>)]) -> CpuList {
    intent.rt_cpus.difference(&CpuList::new(found.iter().map(|&(cpu, _)| cpu)))
}

/// What there is instead of values: a folder that refuses, a place that is not there.
pub(super) fn not_asked(facts: &Facts, knob: &Knob) -> Reading<String> {
    let pattern = knob.patterns().next().unwrap_or(knob.id);
    match facts.settings.get(knob.id) {
        Some(setting) => match setting.values.first() {
            Some(value) => value.reading.clone(),
            None => Reading::absent(pattern),
        },
        None => Reading::denied(pattern, "not asked"),
    }
}

/// The folder that is known to lack the file of a knob.
pub(super) fn lacking<'a>(facts: &'a Facts, knob: &Knob) -> Option<&'a Reading<String>> {
    facts.settings.get(knob.id)?.lacking.as_ref().filter(|reading| reading.value().is_some())
}

/// Whether it is in the folder of the CPUs.
fn is_of_cpus(knob: &Knob) -> bool {
    knob.patterns().any(|pattern| pattern.starts_with("/sys/devices/system/cpu/"))
}

/// A value that cannot be read as it should: not applicable where a folder is known to lack it,
/// for the reason `without`; else unknown.
pub(super) fn lack(draft: Draft, facts: &Facts, knob: &Knob, without: &str) -> crate::Finding {
    if let Some(why) = without_cpu_folder(facts).filter(|_| is_of_cpus(knob)) {
        return draft.no_cpu_folder(facts, why);
    }
    match lacking(facts, knob) {
        Some(folder) => draft.read(folder, String::clone).not_applicable(without),
        None => draft.blind(&not_asked(facts, knob)),
    }
}
