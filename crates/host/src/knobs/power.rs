//! Knobs: SMT, frequency, idle states, power.
//!
//! Reading some of them interrupts the CPU that they are about, because the kernel reads its
//! register there (`rdmsrl_on_cpu` in `intel_epb.c`, `intel_pstate.c`): before and after a
//! measurement, not within.

use crate::knob::{EffectTime, Knob, KnobArch, KnobKind, Rank, Scope, Undo};

/// Risk of a higher power limit.
const RAPL_RISK: &str =
    "the machine draws more power than its limit allows: supply and cooling must bear it";

/// Purpose of the knobs that keep CPUs out of deep idle states.
pub(super) const SHALLOW: &str = "shallow idle states";

table! {
    POWER:

    /// Mode of intel_pstate: active, passive, off.
    INTEL_PSTATE = Knob::file("cpufreq-driver-intel", "/sys/devices/system/cpu/intel_pstate/status")
        .or_boot("intel_pstate={}").on(KnobArch::X86).ranked(Rank::FrequencyDriver);

    /// Mode of amd_pstate: active, passive, guided, disable.
    AMD_PSTATE = Knob::file("cpufreq-driver-amd", "/sys/devices/system/cpu/amd_pstate/status")
        .or_boot("amd_pstate={}").on(KnobArch::X86).ranked(Rank::FrequencyDriver);

    /// Energy-performance preference (HWP, CPPC): a name, or a number from 0 (performance) to 255.
    EPP = Knob::file(
        "epp",
        "/sys/devices/system/cpu/cpu{cpu}/cpufreq/energy_performance_preference",
    ).of(Scope::Cpu);

    /// Energy-performance bias, from 0 (performance) to 15.
    EPB = Knob::file("epb", "/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias")
        .of(Scope::Cpu).on(KnobArch::X86);

    /// Higher frequency for a moment after input and output.
    HWP_DYNAMIC_BOOST = Knob::file(
        "hwp-dynamic-boost",
        "/sys/devices/system/cpu/intel_pstate/hwp_dynamic_boost",
    ).on(KnobArch::X86);

    /// intel_pstate: 1 forbids turbo frequencies.
    NO_TURBO = Knob::file("turbo-boost-intel", "/sys/devices/system/cpu/intel_pstate/no_turbo")
        .on(KnobArch::X86).ranked(Rank::Turbo);

    /// Other drivers: 0 forbids turbo frequencies.
    BOOST = Knob::file("turbo-boost", "/sys/devices/system/cpu/cpufreq/boost").ranked(Rank::Turbo);

    /// The same for each CPU.
    CPU_BOOST = Knob::file(
        "turbo-boost-cpu",
        "/sys/devices/system/cpu/cpu{cpu}/cpufreq/boost | \
         /sys/devices/system/cpu/cpu{cpu}/cpufreq/cpb",
    ).of(Scope::Cpu).ranked(Rank::Turbo);

    /// intel_pstate: lowest performance in percent of the highest.
    MIN_PERF_PCT = Knob::file("min-perf-pct", "/sys/devices/system/cpu/intel_pstate/min_perf_pct")
        .on(KnobArch::X86);

    /// Lowest frequency of the uncore (mesh, last-level cache, memory controller) of a die, in kHz.
    UNCORE_MIN_FREQ = Knob::file(
        "uncore-freq",
        "/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz",
    ).of(Scope::Device).on(KnobArch::X86).ranked(Rank::FrequencyLimits);

    UNCORE_MAX_FREQ = Knob::file(
        "uncore-freq-max",
        "/sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz",
    ).of(Scope::Device).on(KnobArch::X86).ranked(Rank::FrequencyLimits);

    /// Profile of the firmware: performance, balanced, quiet ...
    PLATFORM_PROFILE = Knob::file("platform-profile", "/sys/firmware/acpi/platform_profile");

    /// Daemons and jobs that set what this table holds.
    POWER_DAEMONS = Knob::units("power-daemons", &[
        "auto-cpufreq.service",
        "com.system76.PowerDaemon.service",
        "cpufreqd.service",
        "cpufrequtils.service",
        "laptop-mode.service",
        "ondemand.service",
        "power-profiles-daemon.service",
        "powertop.service",
        "system76-power.service",
        "thermald.service",
        "tlp.service",
        "tuned.service",
    ]);

    /// How often the core became too hot since boot.
    CORE_THROTTLE_COUNT = Knob::file(
        "thermal-throttle",
        "/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count",
    ).of(Scope::Cpu).at(EffectTime::Firmware).undone(Undo::ByHand).on(KnobArch::X86).counter();

    /// How often its package did.
    PACKAGE_THROTTLE_COUNT = Knob::file(
        "thermal-throttle-package",
        "/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/package_throttle_count",
    ).of(Scope::Cpu).at(EffectTime::Firmware).undone(Undo::ByHand).on(KnobArch::X86).counter();

    /// Raspberry Pi: what the firmware does now (bits 0 to 3) and did since boot (bits 16 to 19).
    PI_THROTTLED = Knob::file(
        "thermal-throttle-pi",
        "/sys/devices/platform/soc/soc:firmware/get_throttled",
    ).at(EffectTime::Firmware).undone(Undo::ByHand).counter();

    /// Long-term power limit of a package or a part of it, in µW.
    RAPL_LIMIT = Knob::file(
        "rapl-limit",
        "/sys/class/powercap/intel-rapl*/constraint_0_power_limit_uw",
    ).of(Scope::Device).on(KnobArch::X86).risky(RAPL_RISK);

    /// What the hardware is made for, in µW.
    RAPL_DESIGN = Knob::file(
        "rapl-limit-design",
        "/sys/class/powercap/intel-rapl*/constraint_0_max_power_uw",
    ).of(Scope::Device).on(KnobArch::X86).risky(RAPL_RISK);

    /// Whether the limits are in force.
    RAPL_ENABLED = Knob::file("rapl-limit-enabled", "/sys/class/powercap/intel-rapl*/enabled")
        .of(Scope::Device).on(KnobArch::X86).risky(RAPL_RISK);

    /// Longest exit from idle that some program lets the CPUs have; it holds the file open.
    CPU_DMA_LATENCY = Knob::other("cpu-dma-latency", crate::idle::PATH)
        .undone(Undo::Close).serves(SHALLOW, 3);

    /// Policy of the links' own power saving.
    PCIE_ASPM = Knob::choice("pcie-aspm", "/sys/module/pcie_aspm/parameters/policy")
        .or_boot("pcie_aspm.policy={}");

    /// Whether a link may rest in L0s.
    PCIE_ASPM_L0S = Knob::file("pcie-aspm-l0s", "/sys/bus/pci/devices/*/link/l0s_aspm")
        .of(Scope::Device);

    /// Whether a link may rest in L1.
    PCIE_ASPM_L1 = Knob::file("pcie-aspm-l1", "/sys/bus/pci/devices/*/link/l1_aspm")
        .of(Scope::Device);

    /// Whether an idle PCI device may be suspended: auto, on.
    PCI_RUNTIME_PM = Knob::file("pci-runtime-pm", "/sys/bus/pci/devices/*/power/control")
        .of(Scope::Device);

    /// What a PCI device is.
    PCI_CLASS = Knob::file("pci-runtime-pm-class", "/sys/bus/pci/devices/*/class")
        .of(Scope::Device).at(EffectTime::Firmware).undone(Undo::ByHand);

    /// Whether an idle USB device may be suspended: auto, on.
    USB_AUTOSUSPEND = Knob::file("usb-autosuspend", "/sys/bus/usb/devices/*/power/control")
        .of(Scope::Device).or_boot("usbcore.autosuspend=-1");

    /// What a USB device is; 09 is a hub.
    USB_CLASS = Knob::file("usb-autosuspend-class", "/sys/bus/usb/devices/*/bDeviceClass")
        .of(Scope::Device).at(EffectTime::Firmware).undone(Undo::ByHand);

    /// Power saving of the links of a SATA controller.
    SATA_PM = Knob::file("sata-pm", "/sys/class/scsi_host/*/link_power_management_policy")
        .of(Scope::Device);

    /// Longest wake-up of its own power states that an NVMe controller may have, in µs; 0 forbids
    /// them.
    NVME_PM = Knob::file("nvme-pm", "/sys/class/nvme/*/power/pm_qos_latency_tolerance_us")
        .of(Scope::Device).or_boot("nvme_core.default_ps_max_latency_us={}");

    /// Governor of the frequency.
    GOVERNOR = Knob::file("governor", "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        .of(Scope::Cpu).fact().ranked(Rank::Governor);

    /// Lowest frequency that the governor may choose, in kHz.
    MIN_FREQ = Knob::file("min-freq", "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_min_freq")
        .of(Scope::Cpu).fact().ranked(Rank::FrequencyLimits);

    /// Highest frequency that the governor may choose, in kHz.
    MAX_FREQ = Knob::file("max-freq", "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq")
        .of(Scope::Cpu).fact().ranked(Rank::FrequencyLimits);

    /// Whether an idle state is not entered.
    IDLE_STATE = Knob::file("idle-state", "/sys/devices/system/cpu/cpu{cpu}/cpuidle/state*/disable")
        .of(Scope::Cpu).fact().serves(SHALLOW, 1);

    /// Longest exit from idle that a CPU may have, in µs; `n/a`: none.
    PM_QOS_RESUME = Knob::file(
        "resume-latency",
        "/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us",
    ).of(Scope::Cpu).fact().serves(SHALLOW, 2);

    /// Whether cores run several threads: on, off, forceoff.
    SMT = Knob::file("smt-control", "/sys/devices/system/cpu/smt/control")
        .fact().kind(KnobKind::Hotplug);

    /// Whether a CPU is online.
    ONLINE = Knob::file("cpu-online", "/sys/devices/system/cpu/cpu{cpu}/online")
        .of(Scope::Cpu).fact().kind(KnobKind::Hotplug);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::settings::setting;
    use crate::testing::Tree;

    fn values(tree: &Tree, knob: &Knob) -> Vec<(String, String)> {
        let found = setting(&tree.root(), knob).values.into_iter();
        found.map(|v| (v.of, v.reading.value().cloned().unwrap_or_default())).collect()
    }

    #[test]
    fn power_zones_of_both_interfaces_and_their_parts_have_a_value_and_their_folders_none() {
        let tree = Tree::new(&[
            ("sys/class/powercap/intel-rapl/enabled", "1\n"),
            ("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "15000000\n"),
            ("sys/class/powercap/intel-rapl:0:0/constraint_0_power_limit_uw", "0\n"),
            ("sys/class/powercap/intel-rapl-mmio:0/constraint_0_power_limit_uw", "12000000\n"),
        ]);
        let found = values(&tree, &RAPL_LIMIT);
        let expected = [("-mmio:0", "12000000"), (":0", "15000000"), (":0:0", "0")];
        assert_eq!(found, expected.map(|(of, value)| (of.to_owned(), value.to_owned())));
        assert!(values(&tree, &RAPL_ENABLED).is_empty());
    }

    #[test]
    fn the_policy_of_links_is_the_word_in_brackets() {
        let text = "[default] performance powersave powersupersave \n";
        let tree = Tree::new(&[("sys/module/pcie_aspm/parameters/policy", text)]);
        assert_eq!(values(&tree, &PCIE_ASPM), [(String::new(), "default".to_owned())]);
    }

    #[test]
    fn an_old_driver_of_amd_calls_its_boost_otherwise() {
        let cpb = "sys/devices/system/cpu/cpu1/cpufreq/cpb";
        let tree = Tree::new(&[(cpb, "1\n")]);
        assert_eq!(values(&tree, &CPU_BOOST), [("1".to_owned(), "1".to_owned())]);
    }
}
