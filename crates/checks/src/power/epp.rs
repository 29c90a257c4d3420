//! What may the hardware prefer where it chooses the frequency by itself?
//!
//! Only where the frequency is not held: with the governor `performance` the drivers set the hint
//! themselves and refuse another (intel_pstate.c, amd-pstate.c), and equal limits leave nothing to
//! choose.

use rtproof_host::{Facts, knobs::power as knobs};

use super::frequency::{holding, is_held};
use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::rt_cpus;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "epp",
    title: "energy-performance preference of the real-time CPUs",
    why: "a processor that prefers saving energy raises its frequency late after idle, so that the \
          next cycle starts slow",
    source: "Documentation/admin-guide/pm/intel_pstate.rst (Energy vs Performance Hints); \
             Documentation/admin-guide/pm/amd-pstate.rst; tuned, profile throughput-performance",
    impact: Impact::Tens,
    knobs: &[&knobs::EPP],
    wanted: Wanted::Text("performance"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let found = values::of_cpus(facts, intent, &knobs::EPP);
    let draft = draft.saw(text::grouped(found.iter().copied(), String::clone));
    if found.is_empty() {
        let why = "no such hint: no hardware that is seen here chooses the frequency by itself";
        return values::lack(draft, facts, &knobs::EPP, why);
    }
    if let Some((_, blind)) = found.iter().find(|(_, hint)| hint.value().is_none()) {
        return draft.blind(blind);
    }
    let missing = values::missing(intent, &found);
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    let is_other = |hint: &&str| !matches!(*hint, "performance" | "0");
    let mut others: Vec<&str> =
        found.iter().filter_map(|(_, hint)| hint.value().map(String::as_str)).collect();
    others.retain(|hint| is_other(hint));
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return draft.good(format!("performance on {}", text::cpus(&intent.rt_cpus)));
    }
    let (cpus, _) = rt_cpus(facts, intent);
    let others = text::first_few(&others, 3);
    let draft = draft.saw(holding(&cpus));
    if cpus.iter().all(|cpu| is_held(cpu)) {
        return draft.good(format!("{others}, which decides nothing: the frequency is held"));
    }
    let paths =
        found.iter().filter(|(_, hint)| hint.value().is_some_and(|v| is_other(&v.as_str())));
    let paths = paths.map(|(_, hint)| hint.path.clone()).collect();
    draft
        .remedies([Remedy::set(&knobs::EPP, paths, "performance")])
        .doubtful(format!("{others} while the frequency may move"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn with(hint: &str, governor: &str) -> Facts {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::EPP, hint);
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.governor = Reading::known(cpu.freq.governor.path.clone(), governor.into());
        }
        facts
    }

    #[test]
    fn a_hint_matters_where_the_frequency_is_not_held() {
        assert_eq!(CHECK.judge(&good(), &intent()).status, Good);
        let finding = CHECK.judge(&with("balance_performance", "powersave"), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "balance_performance while the frequency may move");
        assert!(matches!(&finding.remedies[0], Remedy::Set { at: paths, .. } if paths.len() == 2));
        let finding = CHECK.judge(&with("balance_performance", "performance"), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(CHECK.judge(&with("0", "powersave"), &intent()).status, Good);
    }

    #[test]
    fn none_is_not_applicable_where_the_folder_is_known_to_lack_it() {
        let mut facts = good();
        let setting = facts.settings.get_mut(knobs::EPP.id).unwrap();
        setting.values.clear();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::EPP.id).unwrap();
        setting.lacking = Some(Reading::known("/sys/x", "holds no cpufreq".into()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        set_setting(&mut facts, &knobs::EPP, Reading::denied("x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
