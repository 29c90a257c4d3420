//! Does the clock of what lies between the cores follow the load?
//!
//! Mesh, last-level cache and memory controller have a frequency of their own on Intel's servers
//! and newer clients; the processor lowers it when little is going on.

use rtproof_host::{Facts, Reading, knobs::power as knobs};

use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::profile::Choice;
use crate::setting;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "uncore-freq",
    title: "lowest frequency of the uncore (mesh, last-level cache, memory controller)",
    why: "after a quiet time the uncore runs slowly: every access that leaves the core's own \
          caches takes longer until it has sped up",
    source: "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst; tuned, plugin uncore",
    trade_off: Some("a fixed uncore frequency takes power that the cores could have used"),
    impact: Impact::Microseconds,
    knobs: &[&knobs::UNCORE_MIN_FREQ, &knobs::UNCORE_MAX_FREQ],
    wanted: Wanted::Text("lowest equal to highest"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let lowest = setting::all(facts, &knobs::UNCORE_MIN_FREQ);
    if lowest.is_empty() {
        let why = "no uncore frequency that can be set: another processor, a guest, or the \
                   module intel_uncore_frequency is not loaded";
        return values::lack(draft, facts, &knobs::UNCORE_MIN_FREQ, why);
    }
    let highest = setting::all(facts, &knobs::UNCORE_MAX_FREQ);
    let shown = lowest.iter().chain(highest).map(|value| &value.reading);
    let draft = draft.saw(text::by_path(shown));
    let mut open: Vec<(String, &Reading<String>, &str)> = Vec::new();
    for value in lowest {
        let Some(max) = values::of(facts, &knobs::UNCORE_MAX_FREQ, &value.of) else {
            return draft.blind(&setting::text(facts, &knobs::UNCORE_MAX_FREQ));
        };
        for reading in [&value.reading, max] {
            let Some(text) = reading.value() else { return draft.blind(reading) };
            if text.parse::<u64>().is_err() {
                return draft.blind(&Reading::<u64>::malformed(&reading.path, text, "kHz"));
            }
        }
        let (min, max) = (&value.reading, max.value().map_or("", String::as_str));
        if min.value().is_some_and(|min| min != max) {
            let from = min.value().map_or("", String::as_str);
            open.push((format!("{} {from}-{max} kHz", value.of), min, max));
        }
    }
    if open.is_empty() {
        return draft.good("fixed: lowest equals highest");
    }
    let names: Vec<&String> = open.iter().map(|(name, ..)| name).collect();
    let summary = text::first_few(&names, 4);
    if intent.profile.choices.fixed_frequency != Choice::On {
        return draft.good(format!("{summary}, which this profile bears"));
    }
    let write = |(_, min, max): &(String, &Reading<String>, &str)| {
        Remedy::set(&knobs::UNCORE_MIN_FREQ, vec![min.path.clone()], *max)
    };
    let remedies: Vec<Remedy> = open.iter().map(write).collect();
    draft.remedies(remedies).doubtful(format!("{summary}: it may follow the load"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn equal_limits_are_good_and_open_ones_doubtful() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::UNCORE_MIN_FREQ, "800000");
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "x 800000-2400000 kHz: it may follow the load");
        assert!(matches!(&finding.remedies[0], Remedy::Set { value, .. } if value == "2400000"));
        set_setting(&mut facts, &knobs::UNCORE_MAX_FREQ, Reading::denied("x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn none_is_not_applicable_only_where_that_is_known() {
        let mut facts = good();
        facts.settings.get_mut(knobs::UNCORE_MIN_FREQ.id).unwrap().values.clear();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::UNCORE_MIN_FREQ.id).unwrap();
        setting.lacking = Some(Reading::known("/sys/x", "holds no y".into()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
