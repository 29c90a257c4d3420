//! Is there a secure world that can be called?
//!
//! A call costs some microseconds; what a service does there with interrupts masked, only its
//! maker knows.

use rtproof_host::{Facts, Reading, knobs::platform as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "op-tee",
    title: "trusted execution environment (OP-TEE and others)",
    why: "the secure world can mask the interrupts of Linux: a long call there holds up the CPU \
          that makes it",
    source: "Documentation/core-api/real-time/hardware.rst (OP-TEE); \
             Documentation/driver-api/tee.rst",
    impact: Impact::Microseconds,
    when: When::Firmware,
    knobs: &[&knobs::TEE],
    wanted: Wanted::Text("none, or not called from real-time CPUs"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let none = || Reading::<String>::denied("/sys/class/tee", "not asked");
    let Some(setting) = facts.settings.get(knobs::TEE.id) else {
        return draft.blind(&none());
    };
    let known: Vec<&str> = setting
        .values
        .iter()
        .filter(|value| value.reading.value().is_some())
        .map(|value| value.of.as_str())
        .collect();
    if !known.is_empty() {
        let draft = draft.saw(text::by_path(setting.values.iter().map(|value| &value.reading)));
        let text = "keep the programs that call it (tee-supplicant, a TPM in firmware, key \
                    stores) off the real-time CPUs";
        return draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
            "{}: what its services do, and how long, is not known here",
            text::first_few(&known, 4)
        ));
    }
    match setting.lacking.as_ref().filter(|lacking| lacking.value().is_some()) {
        Some(lacking) => draft.read(lacking, String::clone).good("none"),
        None => match setting.values.first() {
            Some(value) => draft.blind(&value.reading),
            None => draft.blind(&Reading::<String>::absent("/sys/class/tee")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn none_one_and_unknown() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::TEE, "245:0");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_setting(&mut facts, &knobs::TEE, Reading::denied("x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.settings.remove("op-tee");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
