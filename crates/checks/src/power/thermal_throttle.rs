//! Has heat slowed the real-time CPUs since boot?
//!
//! Intel's processors count it for each core and package; a Raspberry Pi keeps it as bits, with low
//! voltage beside heat. Other machines throttle as well and tell nobody, so that they are unknown.

use rtproof_host::{CpuList, Facts, Reading, knobs::power as knobs};

use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{guest, without_cpu_folder};
use crate::setting;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};

/// Bits of the firmware of a Raspberry Pi (raspberrypi.com, documentation of `vcgencmd`).
const PI_BITS: [(u32, &str); 8] = [
    (0, "low voltage now"),
    (1, "frequency capped now"),
    (2, "throttled now"),
    (3, "soft temperature limit now"),
    (16, "low voltage"),
    (17, "frequency capped"),
    (18, "throttled"),
    (19, "soft temperature limit"),
];

pub(super) static CHECK: Check = Check {
    id: "thermal-throttle",
    title: "slowing down because of heat, since boot",
    why: "a processor that is too hot lowers its frequency or skips clock cycles, whatever the \
          governor says",
    source: "drivers/thermal/intel/therm_throt.c; Raspberry Pi documentation, vcgencmd \
             get_throttled; Codethink, \"Configuring Linux systems to stabilise latency\"",
    impact: Impact::Hundreds,
    when: When::Firmware,
    knobs: &[&knobs::CORE_THROTTLE_COUNT, &knobs::PACKAGE_THROTTLE_COUNT, &knobs::PI_THROTTLED],
    wanted: Wanted::Text("never"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let draft = draft.remedies([Remedy::Manual {
        text: "better cooling, a lower power limit, or a lower fixed frequency".into(),
    }]);
    let cores = values::of_cpus(facts, intent, &knobs::CORE_THROTTLE_COUNT);
    if cores.is_empty() {
        return judge_other(draft, facts);
    }
    let packages = values::of_cpus(facts, intent, &knobs::PACKAGE_THROTTLE_COUNT);
    let mut draft = draft;
    let mut hot = Vec::new();
    for (what, counts) in [("core", &cores), ("package", &packages)] {
        draft = draft.saw(text::grouped(counts.iter().copied(), String::clone));
        let mut most = 0;
        let mut cpus = Vec::new();
        for (cpu, count) in counts {
            let Some(text) = count.value() else { return draft.blind(count) };
            let Ok(count) = text.parse::<u64>() else {
                return draft.blind(&Reading::<u64>::malformed(&count.path, text, "a number"));
            };
            if count > 0 {
                cpus.push(*cpu);
                most = most.max(count);
            }
        }
        if most > 0 {
            let cpus = text::cpus(&CpuList::new(cpus));
            hot.push(format!("the {what} of {cpus} up to {}", text::times(most)));
        }
    }
    if !hot.is_empty() {
        return draft.doubtful(format!("too hot since boot: {}", hot.join(", ")));
    }
    let missing = values::missing(intent, &cores);
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    draft.good("never since boot")
}

/// No counters of Intel's: a Raspberry Pi, a guest, or a machine that does not tell.
fn judge_other(draft: Draft, facts: &Facts) -> Finding {
    let pi = setting::text(facts, &knobs::PI_THROTTLED);
    if let Some(text) = pi.value() {
        let draft = draft.read(&pi, String::clone);
        let hex = text.trim_start_matches("0x");
        let Ok(bits) = u32::from_str_radix(hex, 16) else {
            return draft.blind(&Reading::<u32>::malformed(&pi.path, text, "bits in hexadecimal"));
        };
        let is_set = |bit: u32| bits & (1 << bit) != 0;
        let set: Vec<&str> =
            PI_BITS.iter().filter(|(bit, _)| is_set(*bit)).map(|(_, what)| *what).collect();
        return match bits {
            0 => draft.good("never since boot"),
            _ => draft.doubtful(format!("since boot: {}", set.join(", "))),
        };
    }
    let lacking = setting::lacking(facts, &knobs::CORE_THROTTLE_COUNT);
    if let (Some(hypervisor), Some(folder)) = (guest(facts), lacking) {
        return draft
            .read(&facts.virt.hypervisor, |_| hypervisor.into())
            .read(folder, String::clone)
            .not_applicable(format!("not counted in a {hypervisor} guest: see the host"));
    }
    match lacking {
        Some(folder) => draft.read(folder, String::clone).unknown("this machine counts none of it"),
        None => match without_cpu_folder(facts) {
            Some(why) => draft.no_cpu_folder(facts, why),
            None => draft.blind(&setting::text(facts, &knobs::CORE_THROTTLE_COUNT)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest, set_setting};

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    #[test]
    fn a_count_since_boot_is_doubtful() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::PACKAGE_THROTTLE_COUNT, "12");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "too hot since boot: the package of CPUs 2-3 up to 12 times");
        set_setting(&mut facts, &knobs::PACKAGE_THROTTLE_COUNT, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_raspberry_pi_tells_by_bits() {
        let mut facts = good();
        facts.settings.remove(knobs::CORE_THROTTLE_COUNT.id);
        fill_setting(&mut facts, &knobs::PI_THROTTLED, "0");
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::PI_THROTTLED, "50005");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("low voltage now, throttled now"), "{}", finding.summary);
        fill_setting(&mut facts, &knobs::PI_THROTTLED, "hot");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_machine_that_does_not_count_is_unknown_and_a_guest_asks_its_host() {
        let mut facts = good();
        let setting = facts.settings.get_mut(knobs::CORE_THROTTLE_COUNT.id).unwrap();
        setting.values.clear();
        setting.lacking = Some(Reading::known("/sys/x", "holds no thermal_throttle".into()));
        assert_eq!(judge(&facts).status, Unknown);
        set_guest(&mut facts, "kvm");
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
