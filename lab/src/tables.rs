//! Firmware tables made for guests: ACPI idle and frequency states (x86-64), PSCI idle states in a
//! device tree (aarch64).

use std::path::PathBuf;

use anyhow::Result;

use crate::{cache::Cache, emulator::Emulator};

/// An ACPI table (AML) that gives `cpus` CPUs the idle states C1 to C3 and three performance states;
/// to be used with `-acpitable file=... -device pc-testdev`.
///
/// # Errors
/// iasl is missing or fails.
pub fn ssdt(cpus: u32, cache: &Cache) -> Result<PathBuf> {
    let _ = (cpus, cache);
    todo!()
}

/// A device tree of the virt machine with two PSCI idle states.
///
/// # Errors
/// dtc is missing or fails.
pub fn device_tree(emulator: &Emulator, cpus: u32, memory_mib: u32, cache: &Cache) -> Result<PathBuf> {
    let _ = (emulator, cpus, memory_mib, cache);
    todo!()
}
