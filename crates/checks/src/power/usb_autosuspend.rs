//! May the kernel suspend USB devices while they are idle?
//!
//! Hubs are left out: the kernel lets every hub suspend, and none does while a device behind it is
//! awake. Interfaces, which have no class of a device, are not asked either.

use rtproof_host::{Facts, facts::settings::Value, knobs::power as knobs};

use super::values;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::setting;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

/// Class of a hub (include/uapi/linux/usb/ch9.h, `USB_CLASS_HUB`).
const HUB: &str = "09";

pub(super) static CHECK: Check = Check {
    id: "usb-autosuspend",
    title: "USB devices that may be suspended while idle",
    why: "a device that was suspended signals resume for 20 ms before its next transfer",
    source: "Documentation/driver-api/usb/power-management.rst; USB 2.0 specification, 7.1.7.7 \
             (resume)",
    trade_off: Some("only devices that the real-time application uses need it; others save power"),
    impact: Impact::Milliseconds,
    knobs: &[&knobs::USB_AUTOSUSPEND, &knobs::USB_CLASS],
    wanted: Wanted::Text("on, for devices that the application uses"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let classes = setting::all(facts, &knobs::USB_CLASS);
    if classes.is_empty() {
        return values::lack(draft, facts, &knobs::USB_CLASS, "no USB devices");
    }
    if let Some(blind) = classes.iter().find(|class| class.reading.value().is_none()) {
        return draft.blind(&blind.reading);
    }
    let draft = draft.saw(text::by_path(classes.iter().map(|class| &class.reading)));
    let is_hub = |class: &&Value| class.reading.value().is_some_and(|class| class == HUB);
    let devices: Vec<&Value> = classes.iter().filter(|class| !is_hub(class)).collect();
    if devices.is_empty() {
        return draft.not_applicable("no USB device but hubs");
    }
    let mut controls = Vec::new();
    let mut auto = Vec::new();
    for device in devices {
        // A kernel without CONFIG_PM suspends nothing and has no such file.
        let control = values::of(facts, &knobs::USB_AUTOSUSPEND, &device.of);
        let Some(control) = control.filter(|control| control.value().is_some()) else {
            return draft.blind(&setting::text(facts, &knobs::USB_AUTOSUSPEND));
        };
        if control.value().is_some_and(|text| text == "auto") {
            auto.push((device.of.as_str(), control.path.clone()));
        }
        controls.push(control);
    }
    let draft = draft.saw(text::by_path(controls.into_iter()));
    if auto.is_empty() {
        return draft.good("no device but hubs may be suspended");
    }
    let names: Vec<&str> = auto.iter().map(|(name, _)| *name).collect();
    let summary = format!("may be suspended: {}", text::first_few(&names, 6));
    let paths = auto.into_iter().map(|(_, path)| path).collect();
    draft
        .remedies([
            Remedy::set(&knobs::USB_AUTOSUSPEND, paths, "on"),
            Remedy::Boot { parameter: "usbcore.autosuspend=-1".into() },
        ])
        .doubtful(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    #[test]
    fn a_device_that_may_be_suspended_is_doubtful_and_a_hub_is_not() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::USB_AUTOSUSPEND, "auto");
        let finding = judge(&facts);
        assert_eq!((finding.status, finding.summary.as_str()), (Doubtful, "may be suspended: x"));
        fill_setting(&mut facts, &knobs::USB_CLASS, "09");
        assert_eq!(judge(&facts).status, NotApplicable);
    }

    #[test]
    fn no_usb_and_what_is_refused() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::USB_AUTOSUSPEND, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::USB_CLASS.id).unwrap();
        setting.values.clear();
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::USB_CLASS.id).unwrap();
        setting.lacking = Some(Reading::known("/sys/bus", "holds no usb".into()));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
