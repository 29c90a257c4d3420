//! May PCI Express links rest between transfers?
//!
//! The policy `default` keeps what the firmware set, so the links decide; each shows whether L0s
//! and L1 are on. `pcie_aspm=off` is a trap: it leaves the firmware's setting untouched and turns
//! nothing off (kernel-parameters.txt).

use rtproof_host::{Facts, Reading, facts::settings::Value, knobs::power as knobs};

use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::setting;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "pcie-aspm",
    title: "power saving of PCI Express links (ASPM)",
    why: "the first access over a link that rests waits until it is up again, a register read by \
          the CPU as well as a transfer by the device",
    source: "Documentation/admin-guide/kernel-parameters.txt (pcie_aspm=); \
             Documentation/ABI/testing/sysfs-bus-pci (link/l1_aspm); drivers/pci/pcie/aspm.c",
    impact: Impact::Tens,
    knobs: &[&knobs::PCIE_ASPM, &knobs::PCIE_ASPM_L0S, &knobs::PCIE_ASPM_L1],
    wanted: Wanted::Text("performance, or no link that rests"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let policy = setting::text(facts, &knobs::PCIE_ASPM);
    if policy.is_absent() {
        let why = "this kernel has no PCI Express power saving (CONFIG_PCIEASPM)";
        return values::lack(draft, facts, &knobs::PCIE_ASPM, why);
    }
    let draft = draft.read(&policy, String::clone);
    let Some(name) = policy.value() else {
        return draft.blind(&policy);
    };
    let draft = draft.remedies([
        Remedy::set(&knobs::PCIE_ASPM, vec![policy.path.clone()], "performance"),
        Remedy::Boot { parameter: "pcie_aspm.policy=performance".into() },
    ]);
    let off = facts.kernel.cmdline.value().and_then(|line| line.last("pcie_aspm"));
    if off == Some(Some("off")) {
        return draft
            .read(&facts.kernel.cmdline, |_| "pcie_aspm=off".into())
            .doubtful("pcie_aspm=off leaves what the firmware set, which is not seen here");
    }
    if name == "performance" {
        return draft.good("performance: no link rests");
    }
    let links = || {
        let l0s = setting::all(facts, &knobs::PCIE_ASPM_L0S);
        l0s.iter().chain(setting::all(facts, &knobs::PCIE_ASPM_L1))
    };
    let is_on = |value: &&Value| value.reading.value().is_some_and(|on| on != "0");
    let mut on: Vec<&str> = links().filter(is_on).map(|value| value.of.as_str()).collect();
    on.sort_unstable();
    on.dedup();
    if !on.is_empty() {
        return draft
            .saw(text::by_path(links().filter(is_on).map(|value| &value.reading)))
            .doubtful(format!(
                "policy {name}: {} may rest: {}",
                text::count(on.len(), "link"),
                text::first_few(&on, 4)
            ));
    }
    if let Some(blind) = links().find(|value| value.reading.value().is_none()) {
        return draft.blind(&blind.reading);
    }
    if links().next().is_some() {
        return draft
            .saw(text::by_path(links().map(|value| &value.reading)))
            .good(format!("policy {name}, and no link rests"));
    }
    let lacking =
        [&knobs::PCIE_ASPM_L0S, &knobs::PCIE_ASPM_L1].map(|knob| setting::lacking(facts, knob));
    match lacking {
        // Links show it from 5.5.
        [Some(l0s), Some(l1)] if facts.kernel.version.value() >= Some(&(5, 5)) => draft
            .saw([l0s, l1].map(|reading: &Reading<String>| Evidence::of(reading, String::clone)))
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .not_applicable("no PCI Express link that could rest"),
        _ => draft.doubtful(format!("policy {name}; which links rest is not seen here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_cmdline, set_setting};

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    fn with(policy: &str) -> Facts {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::PCIE_ASPM, policy);
        facts
    }

    #[test]
    fn the_policy_or_the_links_decide() {
        assert_eq!(judge(&good()).status, Good);
        let mut facts = with("default");
        facts.settings.remove(knobs::PCIE_ASPM_L0S.id);
        facts.settings.remove(knobs::PCIE_ASPM_L1.id);
        assert_eq!(judge(&facts).status, Doubtful);
        fill_setting(&mut facts, &knobs::PCIE_ASPM_L1, "1");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "policy default: 1 link may rest: x");
        fill_setting(&mut facts, &knobs::PCIE_ASPM_L1, "0");
        assert_eq!(judge(&facts).status, Good);
        set_setting(&mut facts, &knobs::PCIE_ASPM_L1, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn off_is_not_off() {
        let mut facts = good();
        set_cmdline(&mut facts, "pcie_aspm=off");
        assert_eq!(judge(&facts).status, Doubtful);
    }

    #[test]
    fn no_links_and_no_option_are_not_applicable_where_that_is_known() {
        let mut facts = with("default");
        for knob in [&knobs::PCIE_ASPM_L0S, &knobs::PCIE_ASPM_L1] {
            fill_setting(&mut facts, knob, "0");
            let setting = facts.settings.get_mut(knob.id).unwrap();
            setting.values.clear();
            setting.lacking = Some(Reading::known("/sys/bus/pci", "holds no link".into()));
        }
        assert_eq!(judge(&facts).status, NotApplicable);
        set_setting(&mut facts, &knobs::PCIE_ASPM, Reading::absent("x"));
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::PCIE_ASPM.id).unwrap();
        setting.lacking = Some(Reading::known("/sys/module", "holds no pcie_aspm".into()));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
