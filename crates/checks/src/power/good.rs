//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::{Facts, knobs::power as knobs};

use crate::testing::fill_setting;

pub(crate) fn fill(facts: &mut Facts) {
    for (knob, value) in [
        (&knobs::HARDWARE_MAX_FREQ, "4100000"),
        (&knobs::EPP, "performance"),
        (&knobs::NO_TURBO, "1"),
        (&knobs::MIN_PERF_PCT, "100"),
        (&knobs::UNCORE_MIN_FREQ, "2400000"),
        (&knobs::UNCORE_MAX_FREQ, "2400000"),
        (&knobs::CORE_THROTTLE_COUNT, "0"),
        (&knobs::PACKAGE_THROTTLE_COUNT, "0"),
        (&knobs::RAPL_LIMIT, "15000000"),
        (&knobs::RAPL_DESIGN, "15000000"),
        (&knobs::PCIE_ASPM, "performance"),
        (&knobs::PCI_RUNTIME_PM, "on"),
        (&knobs::PCI_CLASS, "0x020000"),
        (&knobs::USB_AUTOSUSPEND, "on"),
        (&knobs::USB_CLASS, "00"),
    ] {
        fill_setting(facts, knob, value);
    }
}
