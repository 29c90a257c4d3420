//! Checks: SMT, frequency, idle states, power.

use super::check::Check;
use super::section::Section;

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

pub(super) const SECTION: Section =
    Section { name: "power", title: "SMT, frequency, idle states, power", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &cpufreq_governor::CHECK,
    &cpufreq_minmax::CHECK,
    &cpufreq_driver::CHECK,
    &epp::CHECK,
    &turbo_boost::CHECK,
    &min_perf_pct::CHECK,
    &uncore_freq::CHECK,
    &power_daemons::CHECK,
    &thermal_throttle::CHECK,
    &rapl_limit::CHECK,
    &cpuidle_states::CHECK,
    &cpuidle_governor::CHECK,
    &cpu_dma_latency::CHECK,
    &pm_qos_resume::CHECK,
    &cstate_cmdline::CHECK,
    &idle_poll::CHECK,
    &smt::CHECK,
    &smt_sibling_isolation::CHECK,
    &core_sched::CHECK,
    &pcie_aspm::CHECK,
    &pci_runtime_pm::CHECK,
    &usb_autosuspend::CHECK,
    &rules::EPB,
    &rules::HWP_DYNAMIC_BOOST,
    &rules::PLATFORM_PROFILE,
    &rules::SATA_PM,
    &rules::NVME_PM,
];
