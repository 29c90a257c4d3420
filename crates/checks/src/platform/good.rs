//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::facts::settings::Setting;
use rtproof_host::knobs::platform as knobs;
use rtproof_host::{Facts, Reading};

use crate::testing::fill_setting;

/// Fills it in.
pub(crate) fn fill(facts: &mut Facts) {
    fill_setting(facts, &knobs::VULNERABILITIES, "Not affected");
    fill_setting(facts, &knobs::KVM_CLOCK_SYNC, "N");
    fill_setting(facts, &knobs::KVM_PLE, "0");
    fill_setting(facts, &knobs::KVM_NX_HUGE_PAGES, "N");
    fill_setting(facts, &knobs::KVM_HALT_POLL, "200000");
    fill_setting(facts, &knobs::BIOS_VENDOR, "American Megatrends Inc.");
    fill_setting(facts, &knobs::BIOS_VERSION, "2.1");
    fill_setting(facts, &knobs::BIOS_DATE, "01/02/2024");
    let lacking = Some(Reading::known("/sys/class", "holds no tee".to_owned()));
    facts.settings.insert(knobs::TEE.id.into(), Setting { values: Vec::new(), lacking });
}
