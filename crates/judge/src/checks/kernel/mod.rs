//! Checks: kernel build and preemption.

use super::Section;

mod cmdline_duplicates;
mod cmdline_unknown;
mod config_readable;
mod debug_parameters;
mod efi_runtime;
mod good;
mod high_res_timers;
mod kfence;
mod lockdown;
pub(super) mod options;
mod preempt_dynamic;
mod preempt_rt;
mod rt_group_sched;
mod rules;
mod threadirqs;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "kernel",
    title: "kernel build and preemption",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own, and rows of `options.rs`.
const CHECKS: &[&dyn super::Check] = &[
    &preempt_rt::PreemptRt,
    &preempt_dynamic::PreemptDynamic,
    &threadirqs::Threadirqs,
    &high_res_timers::HighResTimers,
    &config_readable::ConfigReadable,
    &cmdline_unknown::CmdlineUnknown,
    &cmdline_duplicates::CmdlineDuplicates,
    &lockdown::Lockdown,
    &efi_runtime::EfiRuntime,
    &debug_parameters::DebugParameters,
    &kfence::Kfence,
    &rt_group_sched::RtGroupSched,
    &options::HZ,
    &options::NO_HZ,
    &options::CPU_ISOLATION,
    &options::CPUSETS,
    &options::RCU_NOCB,
    &options::RCU_BOOST,
    &options::CPU_FREQ,
    &options::CPUFREQ_DEFAULT,
    &options::CPU_IDLE,
    &options::LOCKUP_DETECTOR,
    &options::HUNG_TASK,
    &options::DEBUG_LOCKING,
    &options::DEBUG_MEMORY,
    &options::DEBUG_KMEMLEAK,
    &options::DEBUG_OBJECTS,
    &options::LATENCY_TRACERS,
    &options::DRM,
];
