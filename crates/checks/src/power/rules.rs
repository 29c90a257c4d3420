//! Rows: frequency, links of storage.

use rtproof_host::knobs::power as knobs;

use crate::Impact;
use crate::check::{Check, Judge};
use crate::value::{Absent, Want};

pub(super) static EPB: Check = Check {
    title: "energy-performance bias of the real-time CPUs",
    why: "a processor that prefers saving energy is slower to leave its savings, in the core and \
          outside of it",
    source: "Documentation/admin-guide/pm/intel_epb.rst; tuned, profile throughput-performance",
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| Want::is("0").or_doubtful().text("0 (performance)"),
        Absent::NoSuchThing("the processor, or the hypervisor, shows no such hint"),
    ),
    ..Check::of(&[&knobs::EPB])
};

pub(super) static HWP_DYNAMIC_BOOST: Check = Check {
    title: "frequency raised for a moment after input and output (intel_pstate)",
    why: "the lowest frequency goes up and down with input and output, so that the same work takes \
          a different time from one cycle to the next",
    source: "Documentation/admin-guide/pm/intel_pstate.rst (hwp_dynamic_boost)",
    trade_off: Some("without effect on CPUs whose lowest frequency is the highest sustained one"),
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| Want::is("0").or_doubtful(),
        Absent::NoSuchThing("intel_pstate is not in active mode with HWP"),
    ),
    ..Check::of(&[&knobs::HWP_DYNAMIC_BOOST])
};

pub(super) static PLATFORM_PROFILE: Check = Check {
    title: "profile of the firmware for power and heat",
    why: "with another profile the firmware lowers power limits, and with them the frequency under \
          load, whatever the governor says",
    source: "Documentation/ABI/testing/sysfs-platform_profile; power-profiles-daemon",
    trade_off: Some("performance makes the machine louder and hotter"),
    judge: Judge::value(
        |_| Want::is("performance").or_doubtful(),
        Absent::NoSuchThing("the firmware offers no profiles"),
    ),
    ..Check::of(&[&knobs::PLATFORM_PROFILE])
};

pub(super) static SATA_PM: Check = Check {
    title: "power saving of SATA links",
    why: "a link that rests has to wake up before the next transfer, and whoever waits for the \
          disk waits for it too",
    source: "Documentation/ABI/testing/sysfs-class-scsi_host (link_power_management_policy); \
             tuned, plugin scsi_host",
    trade_off: Some("matters only to tasks that wait for the disk"),
    impact: Impact::Milliseconds,
    judge: Judge::value(
        |_| Want::is("max_performance").or_doubtful(),
        Absent::NoSuchThing("no SATA links with power saving"),
    ),
    ..Check::of(&[&knobs::SATA_PM])
};

pub(super) static NVME_PM: Check = Check {
    title: "power states that NVMe controllers may enter by themselves (APST)",
    why: "a controller in a deep power state takes milliseconds to answer, and whoever waits for \
          the disk waits for it too",
    source: "drivers/nvme/host/core.c (nvme_set_latency_tolerance, default_ps_max_latency_us); \
             Documentation/ABI/testing/sysfs-devices-power (pm_qos_latency_tolerance_us)",
    trade_off: Some("matters only to tasks that wait for the disk; costs some watts and heat"),
    impact: Impact::Milliseconds,
    judge: Judge::value(
        |_| Want::is("0").or_doubtful(),
        Absent::NoSuchThing("no NVMe controller with power states of its own"),
    ),
    ..Check::of(&[&knobs::NVME_PM])
};
