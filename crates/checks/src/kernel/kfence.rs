//! Does KFENCE interrupt every CPU?
//!
//! It opens a gate for one allocation each interval. Only with CONFIG_KFENCE_STATIC_KEYS that
//! patches code, which interrupts all CPUs twice (mm/kfence/core.c, `toggle_allocation_gate`);
//! else it is a work item on some CPU and one slow allocation.

use rtproof_host::{Facts, Reading, knobs::kernel as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "config-kfence",
    title: "sampling of faulty memory accesses (KFENCE)",
    why: "each interval one allocation takes the slow path; with static keys the code of all CPUs \
          is patched for it, by two interrupts to each",
    source: "Documentation/dev-tools/kfence.rst; mm/kfence/core.c (toggle_allocation_gate); \
             lib/Kconfig.kfence (KFENCE_STATIC_KEYS)",
    trade_off: Some("memory errors of the kernel are found less often"),
    impact: Impact::Microseconds,
    knobs: &[&knobs::KFENCE],
    wanted: Wanted::Text("a sample interval of 0 (off)"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    if machine::built_with(facts, "KFENCE") == Some(false) {
        return draft.without(facts, "KFENCE");
    }
    let setting = facts.settings.get(knobs::KFENCE.id);
    let none = Reading::absent("/sys/module/kfence/parameters/sample_interval");
    let interval =
        setting.and_then(|setting| setting.values.first()).map_or(&none, |value| &value.reading);
    let draft = draft.read(interval, |text| format!("{text} ms"));
    let Some(text) = interval.value() else {
        return draft.blind(interval);
    };
    let Ok(ms) = text.parse::<u64>() else {
        let wrong = Reading::<u64>::malformed(&interval.path, text, "a number of ms");
        return draft.blind(&wrong);
    };
    if ms == 0 {
        return draft.good("off");
    }
    let draft = draft.remedies([
        Remedy::set(&knobs::KFENCE, vec![interval.path.clone()], "0"),
        Remedy::Boot { parameter: "kfence.sample_interval=0".into() },
    ]);
    let keys = machine::built_with(facts, "KFENCE_STATIC_KEYS");
    let draft = draft.saw([machine::option(facts, "KFENCE_STATIC_KEYS")]);
    match keys {
        Some(true) => draft.bad(format!("every {ms} ms all CPUs are interrupted twice")),
        Some(false) => draft.doubtful(format!("one allocation every {ms} ms is a slow one")),
        None => draft.doubtful(format!(
            "one allocation every {ms} ms is sampled; whether that interrupts all CPUs is not \
             known"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_config, set_setting};

    fn with(interval: &str, keys: bool) -> Finding {
        let mut facts = good();
        set_config(&mut facts, "KFENCE", Some("y"));
        set_config(&mut facts, "KFENCE_STATIC_KEYS", keys.then_some("y"));
        fill_setting(&mut facts, &knobs::KFENCE, interval);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn the_interval_and_the_build_decide() {
        assert_eq!(with("0", true).status, Good);
        assert_eq!(with("100", true).status, Bad);
        assert_eq!(with("100", false).status, Doubtful);
        assert_eq!(with("x", false).status, Unknown);
    }

    #[test]
    fn another_kernel_and_a_refusal() {
        let mut facts = good();
        set_config(&mut facts, "KFENCE", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        set_config(&mut facts, "KFENCE", Some("y"));
        set_setting(&mut facts, &knobs::KFENCE, Reading::denied("x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        set_setting(&mut facts, &knobs::KFENCE, Reading::known("x", "100".to_owned()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
    }
}
