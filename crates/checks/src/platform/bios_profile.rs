//! Which firmware decides, and what of its settings can be seen from here?
//!
//! Most of what firmware does cannot be read. This names it, with what shows: threads, idle states
//! and interrupts of its own. Nothing is judged here: those have their own checks.

use rtproof_host::{Facts, Reading};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, When, quantity};

const FIRMWARE: [&str; 3] = ["bios-vendor", "bios-version", "bios-date"];

pub(super) static CHECK: Check = Check {
    id: "bios-profile",
    title: "firmware, and what of its settings shows",
    why: "its energy profile, C1E, legacy USB and memory scrubbing add latency that no setting of \
          the system takes away",
    source: "Documentation/core-api/real-time/hardware.rst (Firmware); Wu, \"Real-time programming \
             with Linux, part 2\"; rigtorp.se, \"Low latency tuning guide\"",
    impact: Impact::Information,
    when: When::Firmware,
    wanted: Wanted::Text("known: look through its set-up once"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let mut draft = draft;
    let hypervisor = &facts.virt.hypervisor;
    if machine::guest(facts).is_some() {
        let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_default());
        return draft.not_applicable("the firmware of a guest is the hypervisor");
    }
    let mut words = Vec::new();
    for id in FIRMWARE {
        let none = Reading::absent(format!("/sys/class/dmi/id/{}", id.replace('-', "_")));
        let setting = facts.settings.get(id).and_then(|setting| setting.values.first());
        let reading = setting.map_or(&none, |value| &value.reading);
        let Some(word) = reading.value() else {
            return draft.blind(reading);
        };
        draft =
            draft.read(reading, |word| if word.is_empty() { "empty".into() } else { word.clone() });
        words.push(word.clone());
    }
    let firmware = words.join(" ");
    let visible = visible(facts);
    match visible.is_empty() {
        true => draft.good(firmware),
        false => draft.good(format!("{firmware}; seen from here: {}", visible.join(", "))),
    }
}

/// What of the firmware's settings shows.
fn visible(facts: &Facts) -> Vec<String> {
    let mut shown = Vec::new();
    if let Some(&is_active) = facts.cpus.smt_active.value() {
        shown.push(if is_active {
            "two threads a core".into()
        } else {
            "one thread a core".into()
        });
    }
    let states = facts.cpus.cpus.first().and_then(|cpu| cpu.idle_states.value());
    if let Some(deepest) = states.and_then(|states| states.iter().max_by_key(|s| s.exit_latency_ns))
    {
        shown.push(format!(
            "deepest idle state {} ({})",
            deepest.name,
            quantity::ns(deepest.exit_latency_ns)
        ));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_guest, set_setting};
    use rtproof_host::knobs::platform as knobs;

    #[test]
    fn it_is_named_with_what_shows() {
        let finding = CHECK.judge(&good(), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(
            finding.summary,
            "American Megatrends Inc. 2.1 01/02/2024; seen from here: one thread a core, deepest \
             idle state C6 (133 µs)"
        );
    }

    #[test]
    fn a_guest_and_a_board_without_dmi() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::BIOS_DATE, Reading::absent("x"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_guest(&mut facts, "KVM");
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
