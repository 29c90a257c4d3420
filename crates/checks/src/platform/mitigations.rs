//! What do mitigations of the CPU's weaknesses cost here?
//!
//! Only reported, never requested: to turn them off is a decision about who may use the machine,
//! which
//! a file of the user's can make (`mitigations: off` in a profile). Named are those that cost on
//! each entry to the kernel or switch of tasks; most cost a real-time loop little.

use rtproof_host::{Facts, Reading, facts::settings::Value, knobs::platform as knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::profile::Choice;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};

/// What the kernel says of those that act on entry, exit or switch (Documentation/admin-guide/
/// hw-vuln), and what they do.
const COSTLY: &[(&str, &str)] = &[
    ("Mitigation: PTI", "page tables switched on entry and exit"),
    ("Clear CPU buffers", "buffers cleared on exit"),
    ("IBPB: always-on", "branch predictor flushed on every switch of tasks"),
    ("IBPB: conditional", "branch predictor flushed on some switches of tasks"),
    ("Mitigation: IBRS", "register written on entry and exit"),
    ("Safe RET", "guarded returns"),
    ("IBPB on kernel entry", "branch predictor flushed on entry"),
    ("IBPB on VMEXIT", "branch predictor flushed when a guest exits"),
    ("untrained return thunk", "guarded returns"),
    ("Retpolines", "guarded jumps"),
];

pub(super) static CHECK: Check = Check {
    id: "mitigations",
    title: "mitigations of weaknesses of the CPU",
    why: "some of them lengthen each entry to the kernel and each switch of tasks",
    source: "Documentation/admin-guide/hw-vuln; Documentation/ABI/testing/sysfs-devices-system-cpu \
             (vulnerabilities)",
    trade_off: Some(
        "without them a program on this machine can read memory of others and of the kernel; never \
         off where code of others runs",
    ),
    impact: Impact::Microseconds,
    when: When::Boot,
    knobs: &[&knobs::VULNERABILITIES],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let is_unwanted = intent.profile.choices.mitigations == Choice::Off;
    let wanted = if is_unwanted { "none that costs on entry" } else { "known" };
    let draft = draft.wants(wanted);
    let absent = Reading::<String>::absent("/sys/devices/system/cpu/vulnerabilities");
    let Some(setting) = facts.settings.get(knobs::VULNERABILITIES.id) else {
        return draft.blind(&absent);
    };
    let values: Vec<&Value> = setting.values.iter().collect();
    if values.is_empty() {
        return draft.blind(&absent);
    }
    let draft = draft.saw(text::by_path(values.iter().map(|value| &value.reading)));
    if let Some(value) = values.iter().find(|value| value.reading.value().is_none()) {
        return draft.blind(&value.reading);
    }
    let costs: Vec<String> = values.iter().filter_map(|value| cost(value)).collect();
    if costs.is_empty() {
        return draft.good("none that costs on entry to the kernel");
    }
    let summary = text::first_few(&costs, 6);
    if !is_unwanted {
        return draft.good(format!("in force: {summary}"));
    }
    draft.remedies([Remedy::Boot { parameter: "mitigations=off".into() }]).doubtful(summary)
}

/// `meltdown (page tables switched ...)`.
fn cost(value: &Value) -> Option<String> {
    let text = value.reading.value()?;
    let (_, what) = COSTLY.iter().find(|(mark, _)| text.contains(mark))?;
    Some(format!("{} ({what})", value.of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn they_are_told_and_off_only_where_the_user_says_so() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::VULNERABILITIES, "Mitigation: PTI");
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "in force: x (page tables switched on entry and exit)");
        let mut intent = intent();
        intent.profile.choices.mitigations = Choice::Off;
        assert_eq!(CHECK.judge(&facts, &intent).status, Doubtful);
        fill_setting(&mut facts, &knobs::VULNERABILITIES, "Not affected");
        assert_eq!(CHECK.judge(&facts, &intent).status, Good);
    }

    #[test]
    fn unreadable_is_unknown() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::VULNERABILITIES, Reading::denied("x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.settings.remove("mitigations");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
