//! Is this a laptop? Its power management is the firmware's, and shows after hours.
//!
//! The kind of case is what the maker says; a battery and a lid are what is there. A mouse's
//! battery belongs to a device, and a UPS is no battery of the machine.

use rtproof_host::{Facts, knobs::platform as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::setting;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

/// Kinds of case that are carried about (SMBIOS 7.4.1).
const PORTABLE: &[(u32, &str)] = &[
    (8, "portable"),
    (9, "laptop"),
    (10, "notebook"),
    (11, "hand-held"),
    (14, "sub-notebook"),
    (30, "tablet"),
    (31, "convertible"),
    (32, "detachable"),
];
/// Kinds that say nothing: `other` and `unknown`.
const VAGUE: &[u32] = &[1, 2];

pub(super) static CHECK: Check = Check {
    id: "laptop",
    title: "laptop, notebook or tablet",
    why: "an embedded controller manages power, heat and battery in system management interrupts; \
          a laptop may do well most of the time and be milliseconds late after hours",
    source: "Flatscher, \"Real-time Optimizations\" (a T14 notebook: up to 2 ms in long runs); \
             SMBIOS specification, 7.4.1; \
             Documentation/core-api/real-time/hardware.rst",
    impact: Impact::Milliseconds,
    when: When::Firmware,
    knobs: &[&knobs::CHASSIS, &knobs::SUPPLY, &knobs::SUPPLY_SCOPE, &knobs::LID],
    wanted: Wanted::Text("a desktop, server or industrial computer"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    if machine::guest(facts).is_some() {
        let hypervisor = &facts.virt.hypervisor;
        let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_default());
        return draft.not_applicable("a guest has the case and the battery of its host");
    }
    let chassis = setting::number(facts, &knobs::CHASSIS);
    let code = chassis.value().and_then(|code| u32::try_from(*code).ok());
    let kind = PORTABLE.iter().find(|(known, _)| Some(*known) == code).map(|(_, name)| *name);
    let draft = draft.read(&chassis, |code| match kind {
        Some(kind) => format!("{code} ({kind})"),
        None => code.to_string(),
    });
    let batteries = batteries(facts);
    let lids: Vec<Evidence> = setting::all(facts, &knobs::LID)
        .iter()
        .filter(|lid| lid.reading.value().is_some())
        .map(|lid| Evidence::of(&lid.reading, String::clone))
        .collect();
    let has_lid = !lids.is_empty();
    let has_battery = !batteries.is_empty();
    let draft = draft.saw(batteries).saw(lids);
    let parts = [(has_battery, "a battery"), (has_lid, "a lid")];
    let parts: Vec<&str> = parts.iter().filter(|(has, _)| *has).map(|(_, what)| *what).collect();
    let with =
        if parts.is_empty() { String::new() } else { format!(" with {}", parts.join(" and ")) };
    let looks = has_battery && has_lid;
    let is_vague = code.is_none_or(|code| VAGUE.contains(&code));
    if let Some(kind) = kind {
        return warned(draft, &format!("this is a {kind}{with}"));
    }
    if looks || is_vague && has_battery {
        return warned(draft, &format!("this looks like a laptop: it comes{with}"));
    }
    match (code, is_vague) {
        (None, _) => draft.blind(&chassis),
        (Some(code), true) => draft.unknown(format!("its maker gives no kind of case ({code})")),
        (Some(code), false) => draft.good(format!("no laptop by its case ({code}){with}")),
    }
}

/// Batteries of the machine itself.
fn batteries(facts: &Facts) -> Vec<Evidence> {
    let scopes = setting::all(facts, &knobs::SUPPLY_SCOPE);
    let is_of_device = |name: &str| {
        let scope = scopes.iter().find(|scope| scope.of == name);
        scope.and_then(|scope| scope.reading.value()).is_some_and(|scope| scope == "Device")
    };
    setting::all(facts, &knobs::SUPPLY)
        .iter()
        .filter(|one| one.reading.value().is_some_and(|kind| kind == "Battery"))
        .filter(|one| !is_of_device(&one.of))
        .map(|one| Evidence::of(&one.reading, String::clone))
        .collect()
}

fn warned(draft: Draft, what: &str) -> Finding {
    draft
        .remedies([
            Remedy::Manual {
                text: "do not conclude from a laptop to the machine in the field. Where it has to \
                       be one: on mains power, battery charged, lid open, performance profile, \
                       cooled, and measured for hours"
                    .into(),
            },
            Remedy::Command { command: "rtproof prove --for 12h".into() },
        ])
        .doubtful(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest, set_setting};
    use rtproof_host::{
        Reading,
        facts::settings::{Setting, Value},
    };

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    /// A machine with a case (`""`: none is known), supplies as (name, type, scope), and lids.
    fn machine(case: &str, supplies: &[(&str, &str, &str)], lids: &[&str]) -> Facts {
        let mut facts = good();
        match case {
            "" => set_setting(&mut facts, &knobs::CHASSIS, Reading::absent("/sys/class/dmi/id")),
            case => fill_setting(&mut facts, &knobs::CHASSIS, case),
        }
        let mut set = |id: &str, values: Vec<(String, String)>| {
            let value = |(of, text): (String, String)| Value {
                reading: Reading::known(format!("/sys/{of}"), text),
                of,
            };
            let values = values.into_iter().map(value).collect();
            facts.settings.insert(id.into(), Setting { values, lacking: None });
        };
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        set(knobs::SUPPLY.id, supplies.iter().map(|(of, kind, _)| pair(of, kind)).collect());
        let scopes = supplies.iter().filter(|(_, _, scope)| !scope.is_empty());
        set(knobs::SUPPLY_SCOPE.id, scopes.map(|(of, _, scope)| pair(of, scope)).collect());
        set(knobs::LID.id, lids.iter().map(|lid| pair(lid, "state: open")).collect());
        facts
    }

    const BATTERY: (&str, &str, &str) = ("BAT0", "Battery", "");
    const MAINS: (&str, &str, &str) = ("AC", "Mains", "");

    #[test]
    fn by_its_case() {
        assert_eq!(judge(&machine("3", &[MAINS], &[])).status, Good);
        for code in ["8", "9", "10", "14", "30", "31", "32"] {
            assert_eq!(judge(&machine(code, &[], &[])).status, Doubtful, "{code}");
        }
        let finding = judge(&machine("10", &[MAINS, BATTERY], &["LID"]));
        assert_eq!(finding.summary, "this is a notebook with a battery and a lid");
    }

    #[test]
    fn by_what_is_there() {
        assert_eq!(judge(&machine("2", &[BATTERY], &["LID0"])).status, Doubtful);
        assert_eq!(judge(&machine("", &[BATTERY], &[])).status, Doubtful);
        assert_eq!(judge(&machine("3", &[BATTERY], &["LID0"])).status, Doubtful);
        let mouse = ("hidpp_battery_0", "Battery", "Device");
        assert_eq!(judge(&machine("3", &[mouse], &[])).status, Good);
        assert_eq!(judge(&machine("1", &[mouse], &[])).status, Unknown, "no word of its maker");
        assert_eq!(judge(&machine("17", &[("ups", "UPS", "System")], &[])).status, Good);
        assert_eq!(judge(&machine("17", &[BATTERY], &[])).status, Good, "a controller's battery");
    }

    #[test]
    fn without_dmi_it_is_unknown_and_a_guest_has_none() {
        assert_eq!(judge(&machine("", &[], &[])).status, Unknown);
        let mut facts = machine("10", &[BATTERY], &[]);
        set_guest(&mut facts, "KVM");
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
