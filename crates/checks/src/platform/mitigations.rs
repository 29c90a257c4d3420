//! What mitigations of the CPU's weaknesses cost here.
//!
//! Only reported, never requested: to turn them off is a decision about who may use the machine,
//! which a file of the user's can make (`mitigations: off` in a profile). Named are those that cost
//! on each entry to the kernel or switch of tasks; most cost a real-time loop little.

use rtproof_host::{Facts, Reading, facts::settings::SettingValue, knobs::device as knobs};

use crate::check::{Check, Judge};
use crate::draft::FindingBuilder;
use crate::profile::Choice;
use crate::{Finding, Impact, Intent, Remedy, When, machine};

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
    ("LFENCE", "guarded jumps"),
    ("execute trampolines", "guarded jumps"),
    ("Aligned branch/return thunks", "guarded returns"),
    ("Stuffing", "return stack filled on entry"),
    ("swapgs barriers", "loads held back on entry"),
    ("Clear Register File", "registers cleared on exit"),
    ("BHI: SW loop", "branch history cleared on entry"),
    ("CSV2, BHB", "branch history cleared on entry"),
    ("Branch predictor hardening", "branch predictor flushed on entry"),
    ("IBPB before exit to userspace", "branch predictor flushed on exit"),
    ("History overwrite", "branch history cleared on entry"),
    ("I-Cache invalidation", "instruction cache invalidated on a switch of tasks"),
    ("Firmware call", "firmware called on a switch of tasks"),
    ("RFI Flush", "cache flushed on exit"),
    ("count cache flush", "branch cache flushed on every switch of tasks"),
];

/// Those that act elsewhere: in a guest's exits, in single instructions, at the request of a task.
const FREE: &[&str] = &[
    "__user pointer sanitization",
    "CSV2, but not BHB",
    "Enhanced IBRS",
    "Enhanced / Automatic IBRS",
    "KVM: Mitigation: ",
    "Microcode",
    "PTE Inversion",
    "SMT disabled",
    "Speculative Store Bypass disabled",
    "Split huge pages",
    "TSX disabled",
    "VMX disabled",
    "etokens",
];

const UNMITIGATED: &[&str] =
    &["Not affected", "Vulnerable", "Unknown", "KVM: Vulnerable", "Processor vulnerable"];

pub(super) static MITIGATIONS: Check = Check {
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
    judge: Judge::Ask(judge_mitigations),
    ..Check::NEW
};

fn judge_mitigations(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let is_unwanted = intent.profile.choices.mitigations == Choice::Off;
    let wanted = if is_unwanted { "none that costs on entry" } else { "known" };
    let draft = draft.wanted(wanted);
    let absent = Reading::<String>::absent("/sys/devices/system/cpu/vulnerabilities");
    let Some(setting) = facts.settings.get(knobs::VULNERABILITIES.id) else {
        return draft.unreadable(&absent);
    };
    let values: Vec<&SettingValue> = setting.values.iter().collect();
    if values.is_empty() {
        return draft.unreadable(&absent);
    }
    let draft = draft.evidence(machine::by_path(values.iter().map(|value| &value.reading)));
    if let Some(value) = values.iter().find(|value| value.reading.value().is_none()) {
        return draft.unreadable(&value.reading);
    }
    let (mut costs, mut strange) = (Vec::new(), Vec::new());
    for value in values {
        let text = value.reading.value().map_or("", String::as_str);
        match MitigationCost::of(text) {
            MitigationCost::None => {}
            MitigationCost::Of(what) => costs.push(format!("{} ({what})", value.of)),
            MitigationCost::Unknown => strange.push(format!("{}: {text}", value.of)),
        }
    }
    if !strange.is_empty() {
        let summary = format!("what it costs is not known: {}", machine::first_few(&strange, 3));
        if costs.is_empty() {
            return draft.unknown(summary);
        }
        costs.push(summary);
    }
    if costs.is_empty() {
        return draft.good("none that costs on entry to the kernel");
    }
    let summary = machine::first_few(&costs, 6);
    if !is_unwanted {
        return draft.good(format!("in force: {summary}"));
    }
    draft.remedies([Remedy::Boot { parameter: "mitigations=off".into() }]).doubtful(summary)
}

/// What is done about a weakness on entry, exit and switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MitigationCost {
    None,
    Of(&'static str),
    Unknown,
}

impl MitigationCost {
    fn of(text: &str) -> Self {
        if let Some((_, what)) = COSTLY.iter().find(|(mark, _)| text.contains(mark)) {
            return Self::Of(what);
        }
        let text = text.strip_prefix("Mitigation: ").unwrap_or(text);
        let mut free = UNMITIGATED.iter().chain(FREE);
        if free.any(|mark| text.starts_with(mark)) { Self::None } else { Self::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn mitigations_are_listed_and_off_only_on_request() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::VULNERABILITIES, "Mitigation: PTI");
        let finding = MITIGATIONS.judge(&facts, &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "in force: x (page tables switched on entry and exit)");
        let mut intent = intent();
        intent.profile.choices.mitigations = Choice::Off;
        assert_eq!(MITIGATIONS.judge(&facts, &intent).status, Doubtful);
        fill_setting(&mut facts, &knobs::VULNERABILITIES, "Not affected");
        assert_eq!(MITIGATIONS.judge(&facts, &intent).status, Good);
    }

    /// "None that costs" is said of texts that are known to cost nothing alone.
    #[test]
    fn a_text_that_is_not_known_is_not_free() {
        for text in ["Mitigation: PTE Inversion; VMX: vulnerable", "Mitigation: CSV2, but not BHB"]
        {
            assert_eq!(MitigationCost::of(text), MitigationCost::None, "{text}");
        }
        for text in [
            "Mitigation: CSV2, BHB",
            "Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
            "Mitigation: Stuffing",
            "Vulnerable: Clear CPU buffers attempted, no microcode",
        ] {
            assert!(matches!(MitigationCost::of(text), MitigationCost::Of(_)), "{text}");
        }
        for text in ["Mitigation: Some future thing on entry", "Mitigation: ", ""] {
            assert_eq!(MitigationCost::of(text), MitigationCost::Unknown, "{text}");
            let mut facts = good();
            fill_setting(&mut facts, &knobs::VULNERABILITIES, text);
            assert_eq!(MITIGATIONS.judge(&facts, &intent()).status, Unknown, "{text}");
        }
    }

    #[test]
    fn unreadable_is_unknown() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::VULNERABILITIES, Reading::denied("x", "EACCES"));
        assert_eq!(MITIGATIONS.judge(&facts, &intent()).status, Unknown);
        facts.settings.remove("mitigations");
        assert_eq!(MITIGATIONS.judge(&facts, &intent()).status, Unknown);
    }
}
