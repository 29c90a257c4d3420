//! Checks: firmware, virtualization, security.

use super::Section;

mod bios_profile;
mod boot_persistence;
mod container;
mod fwupd;
mod good;
mod hypervisor;
mod kvm_guest;
mod kvm_host;
mod microcode_late;
mod mitigations;
mod op_tee;
pub(super) mod options;
mod persistence_drift;
mod rules;
mod smi_count;
mod steal_time;
mod tsc_unstable;

/// The section.
pub(super) const SECTION: Section = Section {
    name: "platform",
    title: "firmware, virtualization, security",
    checks: CHECKS,
    rules: rules::RULES,
    fill: good::fill,
};

/// Checks with a file of their own, and rows of `options.rs`.
const CHECKS: &[&dyn super::Check] = &[
    &hypervisor::Hypervisor,
    &steal_time::StealTime,
    &container::Container,
    &kvm_guest::KvmGuest,
    &kvm_host::CLOCK_SYNC,
    &kvm_host::PLE,
    &kvm_host::NX_HUGE_PAGES,
    &kvm_host::HALT_POLL,
    &smi_count::SmiCount,
    &options::HWLAT,
    &bios_profile::BiosProfile,
    &fwupd::Fwupd,
    &microcode_late::MicrocodeLate,
    &tsc_unstable::TscUnstable,
    &op_tee::OpTee,
    &mitigations::Mitigations,
    &boot_persistence::BootPersistence,
    &persistence_drift::PersistenceDrift,
];
