//! Is the processor given less power than it is made for?
//!
//! Below the design power (`constraint_0_max_power_uw`, the TDP of a package) the firmware lowers
//! the frequency under load, whatever the governor says. Above it that is a matter of cooling.

use rtproof_host::{Facts, Reading, knobs::power as knobs};

use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::setting;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "rapl-limit",
    title: "long-term power limit of the processor (RAPL)",
    why: "at its power limit the processor lowers the frequency of all cores, so that load on \
          other CPUs slows the real-time ones",
    source: "Documentation/power/powercap/powercap.rst; drivers/powercap/intel_rapl_common.c",
    trade_off: Some("a higher limit needs the cooling and the power supply for it"),
    impact: Impact::Tens,
    knobs: &[&knobs::RAPL_LIMIT, &knobs::RAPL_DESIGN, &knobs::RAPL_ENABLED],
    wanted: Wanted::Text("not below the design power"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let zones = setting::all(facts, &knobs::RAPL_LIMIT);
    if zones.is_empty() {
        let why = "no power limit of the processor that the kernel knows";
        return values::lack(draft, facts, &knobs::RAPL_LIMIT, why);
    }
    let mut draft = draft;
    let mut compared = Vec::new();
    let mut below = Vec::new();
    let mut off = Vec::new();
    for zone in zones {
        draft = draft.read(&zone.reading, |text| watts(text));
        let Some(limit_uw) = number(&zone.reading) else {
            return draft.blind(&odd(&zone.reading));
        };
        let design = values::of(facts, &knobs::RAPL_DESIGN, &zone.of);
        // Zero: parts of a package have none.
        let Some(design) = design.filter(|design| number(design).is_some_and(|uw| uw > 0)) else {
            continue;
        };
        draft = draft.read(design, |text| watts(text));
        let design_uw = number(design).unwrap_or_default();
        let text =
            format!("intel-rapl{} {} of {}", zone.of, as_watts(limit_uw), as_watts(design_uw));
        if limit_uw >= design_uw {
            compared.push(text);
            continue;
        }
        let enabled = values::of(facts, &knobs::RAPL_ENABLED, &zone.of);
        match enabled.and_then(Reading::value).map(String::as_str) {
            Some("0") => {
                draft = draft.saw(enabled.map(|on| Evidence::of(on, String::clone)));
                off.push(text);
            }
            Some("1") => below.push((text, zone.reading.path.clone(), design_uw)),
            _ => return draft.blind(&setting::text(facts, &knobs::RAPL_ENABLED)),
        }
    }
    if !below.is_empty() {
        let names: Vec<&String> = below.iter().map(|(text, ..)| text).collect();
        let summary = format!("below the design power: {}", text::first_few(&names, 4));
        let write = |(_, path, uw): &(String, String, u64)| {
            Remedy::set(&knobs::RAPL_LIMIT, vec![path.clone()], uw.to_string())
        };
        let remedies: Vec<Remedy> = below.iter().map(write).collect();
        return draft.remedies(remedies).doubtful(summary);
    }
    if compared.is_empty() && off.is_empty() {
        return draft.unknown("no design power to compare the limits with");
    }
    compared.extend(off.into_iter().map(|text| format!("{text}, not in force")));
    draft.good(text::first_few(&compared, 4))
}

fn number(reading: &Reading<String>) -> Option<u64> {
    reading.value()?.parse().ok()
}

/// Text that is no number is no value.
fn odd(reading: &Reading<String>) -> Reading<String> {
    reading.clone().and_then(|path, text| Reading::malformed(path, &text, "microwatts"))
}

fn watts(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), as_watts)
}

/// To a tenth of a watt.
fn as_watts(uw: u64) -> String {
    match (uw / 1_000_000, uw / 100_000 % 10) {
        (whole, 0) => format!("{whole} W"),
        (whole, tenth) => format!("{whole}.{tenth} W"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    #[test]
    fn a_limit_below_the_design_power_is_doubtful_while_it_is_in_force() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::RAPL_LIMIT, "12500000");
        fill_setting(&mut facts, &knobs::RAPL_ENABLED, "1");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "below the design power: intel-raplx 12.5 W of 15 W");
        fill_setting(&mut facts, &knobs::RAPL_ENABLED, "0");
        assert_eq!(judge(&facts).status, Good);
        set_setting(&mut facts, &knobs::RAPL_ENABLED, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn nothing_to_compare_with_is_unknown() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::RAPL_DESIGN, "0");
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::RAPL_LIMIT.id).unwrap();
        setting.values.clear();
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::RAPL_LIMIT.id).unwrap();
        setting.lacking = Some(Reading::known("/sys/class", "holds no powercap".into()));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
