//! How far down may intel_pstate go?
//!
//! The lowest performance in percent of the highest. It matters where neither the governor nor
//! equal limits hold the frequency.

use rtproof_host::{Facts, Reading, knobs::power as knobs};

use super::frequency::{holding, is_held};
use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::rt_cpus;
use crate::profile::Choice;
use crate::setting;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "min-perf-pct",
    title: "lowest performance that intel_pstate may set",
    why: "below 100 the frequency of an idle CPU drops, and the next cycle starts slow",
    source: "Documentation/admin-guide/pm/intel_pstate.rst (min_perf_pct); tuned, profile \
             throughput-performance",
    impact: Impact::Tens,
    knobs: &[&knobs::MIN_PERF_PCT],
    wanted: Wanted::Text("100, or the frequency held by other means"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let found = setting::text(facts, &knobs::MIN_PERF_PCT);
    if found.is_absent() {
        let why = "intel_pstate does not set the frequency, or has limits for each CPU alone";
        return values::lack(draft, facts, &knobs::MIN_PERF_PCT, why);
    }
    let draft = draft.read(&found, String::clone);
    let Some(text) = found.value() else {
        return draft.blind(&found);
    };
    let Ok(percent) = text.parse::<u32>() else {
        return draft.blind(&Reading::<u32>::malformed(&found.path, text, "a percentage"));
    };
    if percent >= 100 {
        return draft.good("100 %: nothing but the highest");
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    let draft = draft.saw(holding(&cpus));
    if let Some(blind) = cpus.iter().find(|cpu| cpu.freq.governor.value().is_none()) {
        return draft.blind(&blind.freq.governor);
    }
    if cpus.iter().all(|cpu| is_held(cpu)) {
        return draft.good(format!("{percent} %, which decides nothing: the frequency is held"));
    }
    if intent.profile.choices.fixed_frequency != Choice::On {
        return draft.good(format!("{percent} %, which this profile bears"));
    }
    draft
        .remedies([Remedy::set(&knobs::MIN_PERF_PCT, vec![found.path.clone()], "100")])
        .doubtful(format!("{percent} %: the frequency of the real-time CPUs may drop"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn it_matters_where_nothing_else_holds_the_frequency() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::MIN_PERF_PCT, "9");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        let governor = &mut facts.cpus.cpus[3].freq.governor;
        *governor = Reading::known(governor.path.clone(), "powersave".into());
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies.len(), 1);
        fill_setting(&mut facts, &knobs::MIN_PERF_PCT, "all");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn another_driver_has_none() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::MIN_PERF_PCT, Reading::absent("x"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::MIN_PERF_PCT.id).unwrap();
        setting.lacking = Some(Reading::known("/sys/x", "holds no intel_pstate".into()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
