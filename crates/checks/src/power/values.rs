//! Values of knobs as this section's checks ask for them.

use rtproof_host::{CpuList, Facts, Knob, Reading};

use crate::Intent;
use crate::draft::Draft;
use crate::machine::without_cpu_folder;
use crate::setting;

/// The value of a knob for one device.
pub(super) fn of<'a>(facts: &'a Facts, knob: &Knob, name: &str) -> Option<&'a Reading<String>> {
    setting::all(facts, knob).iter().find(|value| value.of == name).map(|value| &value.reading)
}

/// The value of a knob for each real-time CPU that has one.
pub(super) fn of_cpus<'a>(
    facts: &'a Facts,
    intent: &Intent,
    knob: &Knob,
) -> Vec<(u32, &'a Reading<String>)> {
    let cpu = |value: &'a rtproof_host::facts::settings::Value| {
        let number = value.of.parse().ok().filter(|&cpu| intent.rt_cpus.contains(cpu));
        Some((number?, &value.reading))
    };
    setting::all(facts, knob).iter().filter_map(cpu).collect()
}

/// The real-time CPUs that have no value.
pub(super) fn missing(intent: &Intent, found: &[(u32, &Reading<String>)]) -> CpuList {
    intent.rt_cpus.difference(&CpuList::new(found.iter().map(|&(cpu, _)| cpu)))
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
    match setting::lacking(facts, knob) {
        Some(folder) => draft.read(folder, String::clone).not_applicable(without),
        None => draft.blind(&setting::text(facts, knob)),
    }
}
