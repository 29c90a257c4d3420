//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::{Facts, knobs::time as knobs};

use crate::testing::fill_setting;

pub(crate) fn fill(facts: &mut Facts) {
    for (knob, value) in [
        (&knobs::WATCHDOG, "1"),
        (&knobs::NMI_WATCHDOG, "0"),
        (&knobs::SOFT_WATCHDOG, "1"),
        (&knobs::WATCHDOG_CPUMASK, "0-1"),
        (&knobs::HUNG_TASK, "600"),
        (&knobs::HUNG_TASK_INTERVAL, "0"),
        (&knobs::MCE_IGNORE_CE, "1"),
        (&knobs::MCE_CMCI_DISABLED, "0"),
        (&knobs::MCE_CHECK_INTERVAL, "300"),
    ] {
        fill_setting(facts, knob, value);
    }
}
