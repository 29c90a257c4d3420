//! Checks: kernel build and preemption.

use super::check::Check;
use super::section::Section;

mod cmdline_duplicates;
mod cmdline_unknown;
mod config_hz;
mod config_readable;
mod debug_parameters;
mod efi_runtime;
mod high_res_timers;
mod kfence;
mod lockdown;
pub(super) mod options;
mod preempt_dynamic;
mod preempt_rt;
mod rt_group_sched;
mod threadirqs;

pub(super) const SECTION: Section =
    Section { name: "kernel", title: "kernel build and preemption", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &preempt_rt::CHECK,
    &preempt_dynamic::CHECK,
    &threadirqs::CHECK,
    &high_res_timers::CHECK,
    &config_readable::CHECK,
    &cmdline_unknown::CHECK,
    &cmdline_duplicates::CHECK,
    &lockdown::CHECK,
    &efi_runtime::CHECK,
    &debug_parameters::CHECK,
    &kfence::CHECK,
    &rt_group_sched::CHECK,
    &config_hz::CHECK,
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
