//! May the kernel suspend PCI devices that a real-time application could use?
//!
//! Named are those whose kind is one that applications wait for: networks, sound, serial lines and
//! field buses, wireless, signal processing, USB controllers. Bridges, graphics and memory
//! controllers suspend on most machines and are left alone.

use rtproof_host::{Facts, facts::settings::Value, knobs::power as knobs};

use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::setting;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

/// Starts of the class, and what it is (PCI Code and ID Assignment).
const KINDS: [(&str, &str); 7] = [
    ("0x02", "network"),
    ("0x04", "sound or video"),
    ("0x07", "serial line"),
    ("0x0c03", "USB controller"),
    ("0x0c09", "CAN bus"),
    ("0x0d", "wireless"),
    ("0x11", "signal processing"),
];

pub(super) static CHECK: Check = Check {
    id: "pci-runtime-pm",
    title: "PCI devices that may be suspended while idle",
    why: "a device that was suspended has to be resumed before its next use, which takes 10 ms \
          from D3hot and more from D3cold",
    source: "Documentation/power/pci.rst; drivers/pci/pci.h (PCI_PM_D3HOT_WAIT); \
             Documentation/ABI/testing/sysfs-devices-power (power/control)",
    trade_off: Some("only devices that the real-time application uses need it; others save power"),
    impact: Impact::Milliseconds,
    knobs: &[&knobs::PCI_RUNTIME_PM, &knobs::PCI_CLASS],
    wanted: Wanted::Text("on, for devices that the application uses"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let devices = setting::all(facts, &knobs::PCI_RUNTIME_PM);
    if devices.is_empty() {
        return values::lack(draft, facts, &knobs::PCI_RUNTIME_PM, "no PCI devices");
    }
    if let Some(blind) = devices.iter().find(|device| device.reading.value().is_none()) {
        return draft.blind(&blind.reading);
    }
    let is_auto = |device: &&Value| device.reading.value().is_some_and(|text| text == "auto");
    let auto: Vec<&Value> = devices.iter().filter(is_auto).collect();
    if auto.is_empty() {
        return draft
            .saw(text::by_path(devices.iter().map(|device| &device.reading)))
            .good("no device may be suspended");
    }
    let mut draft = draft;
    let mut named: Vec<(String, &Value)> = Vec::new();
    for device in auto.iter().copied() {
        let class = values::of(facts, &knobs::PCI_CLASS, &device.of);
        let Some(class) = class.and_then(|class| class.value()) else {
            return draft.blind(&setting::text(facts, &knobs::PCI_CLASS));
        };
        if let Some((_, kind)) = KINDS.iter().find(|(start, _)| class.starts_with(start)) {
            named.push((format!("{} ({kind})", device.of), device));
        }
    }
    let classes = auto.iter().filter_map(|device| values::of(facts, &knobs::PCI_CLASS, &device.of));
    draft = draft
        .saw(text::by_path(devices.iter().map(|device| &device.reading)))
        .saw(text::by_path(classes));
    if named.is_empty() {
        return draft.good(format!(
            "{} may be, none of a kind that applications wait for",
            text::count(auto.len(), "device")
        ));
    }
    let paths = named.iter().map(|(_, device)| device.reading.path.clone()).collect();
    let names: Vec<&String> = named.iter().map(|(name, _)| name).collect();
    draft
        .remedies([Remedy::set(&knobs::PCI_RUNTIME_PM, paths, "on")])
        .doubtful(format!("may be suspended: {}", text::first_few(&names, 4)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn with(class: &str) -> Finding {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::PCI_RUNTIME_PM, "auto");
        fill_setting(&mut facts, &knobs::PCI_CLASS, class);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn only_kinds_that_applications_wait_for() {
        assert_eq!(CHECK.judge(&good(), &intent()).status, Good);
        let finding = with("0x020000");
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "may be suspended: x (network)");
        assert_eq!(with("0x060400").status, Good);
        assert_eq!(with("0x0c0330").status, Doubtful);
    }

    #[test]
    fn a_machine_without_pci_and_one_that_refuses() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::PCI_RUNTIME_PM, "auto");
        set_setting(&mut facts, &knobs::PCI_CLASS, Reading::denied("x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::PCI_RUNTIME_PM.id).unwrap();
        setting.values.clear();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::PCI_RUNTIME_PM.id).unwrap();
        setting.lacking = Some(Reading::known("/sys/bus", "holds no pci".into()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
