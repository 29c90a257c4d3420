//! Checks: firmware, virtualization, security.

use super::check::Check;
use super::section::Section;

pub(crate) mod bios_profile;
mod boot_persistence;
mod container;
pub(crate) mod firmware_list;
mod fwupd;
mod hypervisor;
mod kvm_guest;
mod kvm_host;
mod laptop;
mod microcode_late;
mod mitigations;
mod op_tee;
pub(super) mod options;
mod persistence_drift;
mod rules;
mod smi_count;
mod steal_time;
mod tsc_unstable;

pub(super) const SECTION: Section =
    Section { name: "platform", title: "firmware, virtualization, security", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &hypervisor::CHECK,
    &steal_time::CHECK,
    &container::CHECK,
    &kvm_guest::CHECK,
    &kvm_host::CLOCK_SYNC,
    &kvm_host::PLE,
    &kvm_host::NX_HUGE_PAGES,
    &kvm_host::HALT_POLL,
    &smi_count::CHECK,
    &options::HWLAT,
    &bios_profile::CHECK,
    &laptop::CHECK,
    &fwupd::CHECK,
    &microcode_late::CHECK,
    &tsc_unstable::CHECK,
    &op_tee::CHECK,
    &mitigations::CHECK,
    &boot_persistence::CHECK,
    &persistence_drift::CHECK,
    &rules::SELINUX_AVC,
    &rules::IOMMU,
];
