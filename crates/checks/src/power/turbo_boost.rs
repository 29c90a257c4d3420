//! May the processor leave its sustained frequency for a higher one?
//!
//! A question of the profile: turbo makes each cycle shorter on average and less even, because what
//! it reaches depends on heat, power and how many cores are awake.

use rtproof_host::{Facts, Knob, Reading, knobs::power as knobs};

use super::values;
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{guest, without_cpu_folder};
use crate::profile::Choice;
use crate::setting;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "turbo-boost",
    title: "turbo frequencies",
    why: "how high a turbo frequency is depends on heat, power and the other cores: the same work \
          takes a different time from one cycle to the next",
    source: "Documentation/admin-guide/pm/cpufreq.rst (Frequency Boost Support); \
             Documentation/admin-guide/pm/intel_pstate.rst (no_turbo); tuned, profile \
             cpu-partitioning-powersave",
    trade_off: Some(
        "off gives even times, on gives shorter ones on average. The kernel's documentation names \
         both, and tuned leaves it to the user. Off costs the share of the frequency above the \
         sustained one",
    ),
    impact: Impact::Microseconds,
    knobs: &[&knobs::NO_TURBO, &knobs::BOOST, &knobs::CPU_BOOST],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let wish = intent.profile.choices.turbo;
    let wanted = match wish {
        Choice::On => "on",
        Choice::Off => "off",
        Choice::Either => "known",
    };
    let draft = draft.wants(wanted);
    let (no_turbo, boost) =
        (setting::text(facts, &knobs::NO_TURBO), setting::text(facts, &knobs::BOOST));
    if !no_turbo.is_absent() && facts.settings.contains_key(knobs::NO_TURBO.id) {
        let draft = draft.read(&no_turbo, String::clone);
        return match no_turbo.value().map(String::as_str) {
            Some("1") => answer(draft, wish, false, &knobs::NO_TURBO, &no_turbo, "0"),
            Some("0") => answer(draft, wish, true, &knobs::NO_TURBO, &no_turbo, "1"),
            _ => draft.blind(&odd(no_turbo)),
        };
    }
    if boost.is_absent() {
        let (Some(intel), Some(other)) =
            (setting::lacking(facts, &knobs::NO_TURBO), setting::lacking(facts, &knobs::BOOST))
        else {
            return match without_cpu_folder(facts) {
                Some(why) => draft.no_cpu_folder(facts, why),
                None => draft.blind(&no_turbo.or_else(|| boost)),
            };
        };
        let draft = draft.read(intel, String::clone).read(other, String::clone);
        return match guest(facts) {
            Some(hypervisor) => draft
                .read(&facts.virt.hypervisor, |_| hypervisor.into())
                .not_applicable(format!("no switch in this {hypervisor} guest: the host has it")),
            None => draft.not_applicable("the frequency driver has no switch for it"),
        };
    }
    let draft = draft.read(&boost, String::clone);
    match boost.value().map(String::as_str) {
        Some("0") => answer(draft, wish, false, &knobs::BOOST, &boost, "1"),
        Some("1") => {
            // On for the machine; a policy may still have it off.
            let own = values::of_cpus(facts, intent, &knobs::CPU_BOOST);
            let is_off = |(_, value): &(u32, &Reading<String>)| {
                value.value().is_some_and(|value| value == "0")
            };
            let is_off = values::missing(intent, &own).is_empty()
                && !own.is_empty()
                && own.iter().all(is_off);
            if is_off {
                let own = crate::text::grouped(own, String::clone);
                return answer(draft.saw(own), wish, false, &knobs::BOOST, &boost, "1");
            }
            answer(draft, wish, true, &knobs::BOOST, &boost, "0")
        }
        _ => draft.blind(&odd(boost)),
    }
}

/// Something else than 0 or 1 is no value.
fn odd(reading: Reading<String>) -> Reading<String> {
    reading.and_then(|path, text| Reading::malformed(path, &text, "0 or 1"))
}

/// `other`: what to write for the opposite.
fn answer(
    draft: Draft,
    wish: Choice,
    is_on: bool,
    knob: &'static Knob,
    switch: &Reading<String>,
    other: &str,
) -> Finding {
    let summary = if is_on { "turbo frequencies may be used" } else { "no turbo frequencies" };
    if matches!((wish, is_on), (Choice::Either, _) | (Choice::On, true) | (Choice::Off, false)) {
        return draft.good(summary);
    }
    draft.remedies([Remedy::set(knob, vec![switch.path.clone()], other)]).doubtful(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use crate::{Profile, profile::Kind};

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    fn boost(value: &str) -> Facts {
        let mut facts = good();
        facts.settings.remove(knobs::NO_TURBO.id);
        fill_setting(&mut facts, &knobs::BOOST, value);
        facts
    }

    #[test]
    fn each_driver_has_its_own_switch() {
        assert_eq!(judge(&good()).status, Good);
        let mut facts = good();
        fill_setting(&mut facts, &knobs::NO_TURBO, "0");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        let path = "/sys/devices/system/cpu/intel_pstate/no_turbo".to_owned();
        assert_eq!(finding.remedies, [Remedy::set(&knobs::NO_TURBO, vec![path], "1")]);
        assert_eq!(judge(&boost("0")).status, Good);
        assert_eq!(judge(&boost("1")).status, Doubtful);
        assert_eq!(judge(&boost("yes")).status, Unknown);
        let mut facts = boost("1");
        fill_setting(&mut facts, &knobs::CPU_BOOST, "0");
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn the_profile_decides() {
        let busy = Intent { profile: Profile::of(Kind::BusyPoll), ..intent() };
        assert_eq!(CHECK.judge(&boost("1"), &busy).status, Good);
        let mut on = intent();
        on.profile.choices.turbo = Choice::On;
        assert_eq!(CHECK.judge(&boost("0"), &on).status, Doubtful);
    }

    #[test]
    fn no_switch_is_not_applicable_only_where_that_is_known() {
        let mut facts = good();
        for knob in [&knobs::NO_TURBO, &knobs::BOOST] {
            set_setting(&mut facts, knob, Reading::absent("x"));
        }
        assert_eq!(judge(&facts).status, Unknown);
        for knob in [&knobs::NO_TURBO, &knobs::BOOST] {
            let setting = facts.settings.get_mut(knob.id).unwrap();
            setting.lacking = Some(Reading::known("/sys/x", "holds no y".into()));
        }
        assert_eq!(judge(&facts).status, NotApplicable);
        set_setting(&mut facts, &knobs::NO_TURBO, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }
}
