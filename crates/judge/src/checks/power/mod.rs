//! Checks: SMT, frequency, idle states, power.

use super::Section;

mod core_sched;
mod cpu_dma_latency;
mod cpufreq_driver;
mod cpufreq_governor;
mod cpufreq_minmax;
mod cpuidle_governor;
mod cpuidle_states;
mod cstate_cmdline;
mod epp;
mod frequency;
mod good;
mod idle;
mod idle_poll;
mod min_perf_pct;
mod pci_runtime_pm;
mod pcie_aspm;
mod pm_qos_resume;
mod power_daemons;
mod rapl_limit;
mod rules;
mod smt;
mod smt_sibling_isolation;
mod thermal_throttle;
mod turbo_boost;
mod uncore_freq;
mod usb_autosuspend;
mod values;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "power",
    title: "SMT, frequency, idle states, power",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own.
const CHECKS: &[&dyn super::Check] = &[
    &cpufreq_governor::CpufreqGovernor,
    &cpufreq_minmax::CpufreqMinmax,
    &cpufreq_driver::CpufreqDriver,
    &epp::Epp,
    &turbo_boost::TurboBoost,
    &min_perf_pct::MinPerfPct,
    &uncore_freq::UncoreFreq,
    &power_daemons::PowerDaemons,
    &thermal_throttle::ThermalThrottle,
    &rapl_limit::RaplLimit,
    &cpuidle_states::CpuidleStates,
    &cpuidle_governor::CpuidleGovernor,
    &cpu_dma_latency::CpuDmaLatency,
    &pm_qos_resume::PmQosResume,
    &cstate_cmdline::CstateCmdline,
    &idle_poll::IdlePoll,
    &smt::Smt,
    &smt_sibling_isolation::SmtSiblingIsolation,
    &core_sched::CoreSched,
    &pcie_aspm::PcieAspm,
    &pci_runtime_pm::PciRuntimePm,
    &usb_autosuspend::UsbAutosuspend,
];
