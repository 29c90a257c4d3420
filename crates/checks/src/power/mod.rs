//! Checks: SMT, frequency, idle states, power.

mod devices;
mod frequency;
mod idle;
mod smt;

pub(crate) use smt::threads;

use rtproof_host::{CpuList, Facts, Knob, Reading, knobs::power as knobs};

use crate::check::{Check, Judge};
use crate::draft::FindingBuilder;
use crate::machine::without_cpu_folder;
use crate::value::{Absent, Want};
use crate::{Impact, Intent, Section, value};

pub(crate) const SECTION: Section =
    Section { name: "power", title: "SMT, frequency, idle states, power", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &frequency::CPUFREQ_GOVERNOR,
    &frequency::CPUFREQ_MINMAX,
    &frequency::CPUFREQ_DRIVER,
    &frequency::EPP,
    &frequency::TURBO_BOOST,
    &frequency::MIN_PERF_PCT,
    &frequency::UNCORE_FREQ,
    &devices::POWER_DAEMONS,
    &devices::THERMAL_THROTTLE,
    &devices::RAPL_LIMIT,
    &idle::CPUIDLE_STATES,
    &idle::CPUIDLE_GOVERNOR,
    &idle::CPU_DMA_LATENCY,
    &idle::PM_QOS_RESUME_CHECK,
    &idle::CSTATE_CMDLINE,
    &idle::IDLE_POLL,
    &smt::SMT_CHECK,
    &smt::SMT_SIBLING_ISOLATION,
    &smt::CORE_SCHED,
    &devices::PCIE_ASPM,
    &devices::PCI_RUNTIME_PM,
    &devices::USB_AUTOSUSPEND,
    &EPB,
    &HWP_DYNAMIC_BOOST,
    &PLATFORM_PROFILE,
    &SATA_PM,
    &NVME_PM,
];

// Rows: frequency, links of storage.

static EPB: Check = Check {
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

static HWP_DYNAMIC_BOOST: Check = Check {
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

static PLATFORM_PROFILE: Check = Check {
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

static SATA_PM: Check = Check {
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

static NVME_PM: Check = Check {
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

// Values of knobs as this section's checks ask for them.

/// The value of a knob for one device.
fn value_of<'a>(facts: &'a Facts, knob: &Knob, name: &str) -> Option<&'a Reading<String>> {
    value::knob_values(facts, knob)
        .iter()
        .find(|value| value.of == name)
        .map(|value| &value.reading)
}

/// The value of a knob for each real-time CPU that has one.
fn of_cpus<'a>(facts: &'a Facts, intent: &Intent, knob: &Knob) -> Vec<(u32, &'a Reading<String>)> {
    let cpu = |value: &'a rtproof_host::facts::settings::SettingValue| {
        let number = value.of.parse().ok().filter(|&cpu| intent.rt_cpus.contains(cpu));
        Some((number?, &value.reading))
    };
    value::knob_values(facts, knob).iter().filter_map(cpu).collect()
}

/// The real-time CPUs that have no value.
fn missing(intent: &Intent, found: &[(u32, &Reading<String>)]) -> CpuList {
    intent.rt_cpus.difference(&CpuList::new(found.iter().map(|&(cpu, _)| cpu)))
}

/// Whether it is in the folder of the CPUs.
fn is_of_cpus(knob: &Knob) -> bool {
    knob.patterns().any(|pattern| pattern.starts_with("/sys/devices/system/cpu/"))
}

/// A value that cannot be read as it should: not applicable where a folder is known to lack it,
/// for the reason `without`; else unknown.
fn missing_value(
    draft: FindingBuilder,
    facts: &Facts,
    knob: &Knob,
    without: &str,
) -> crate::Finding {
    if let Some(why) = without_cpu_folder(facts).filter(|_| is_of_cpus(knob)) {
        return draft.no_cpu_folder(facts, why);
    }
    match value::missing_from(facts, knob) {
        Some(folder) => draft.read(folder, String::clone).not_applicable(without),
        None => draft.unreadable(&value::knob_text(facts, knob)),
    }
}
