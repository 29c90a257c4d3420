//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::facts::platform::firmware::{Found, TICKS, Tick};
use rtproof_host::facts::settings::Setting;
use rtproof_host::knobs::platform as knobs;
use rtproof_host::{Facts, Reading};

use super::firmware_list::{ITEMS, Item};
use crate::testing::fill_setting;

pub(crate) fn fill(facts: &mut Facts) {
    fill_setting(facts, &knobs::VULNERABILITIES, "Not affected");
    fill_setting(facts, &knobs::KVM_CLOCK_SYNC, "N");
    fill_setting(facts, &knobs::KVM_PLE, "0");
    fill_setting(facts, &knobs::KVM_NX_HUGE_PAGES, "N");
    fill_setting(facts, &knobs::KVM_HALT_POLL, "200000");
    fill_setting(facts, &knobs::BIOS_VENDOR, "American Megatrends Inc.");
    fill_setting(facts, &knobs::BIOS_VERSION, "2.1");
    fill_setting(facts, &knobs::BIOS_DATE, "01/02/2024");
    fill_setting(facts, &knobs::CHASSIS, "3");
    // The kernel has deep idle states, turbo and governors: nobody can have turned them off.
    let tick = |item: &Item| Tick {
        item: item.id.into(),
        found: if (item.against)(facts).is_some() { Found::Kept } else { Found::Set },
        date: "2026-11-25".into(),
        who: "alice".into(),
        firmware: "2.1 01/02/2024".into(),
        note: String::new(),
    };
    facts.platform.firmware = Reading::known(TICKS, ITEMS.iter().map(tick).collect());
    let lacking = Some(Reading::known("/sys/class", "holds no tee".to_owned()));
    facts.settings.insert(knobs::TEE.id.into(), Setting { values: Vec::new(), lacking });
}
