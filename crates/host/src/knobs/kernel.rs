//! Knobs: kernel.

use crate::knob::{Effect, Knob};

/// Interval of KFENCE's guarded allocations, in ms.
pub static KFENCE: Knob =
    Knob::file("config-kfence", "/sys/module/kfence/parameters/sample_interval")
        .or_boot("kfence.sample_interval={}");
/// Width of EFI's firmware: there on every machine that booted by EFI.
pub static EFI_PLATFORM: Knob =
    Knob::file("efi-platform", "/sys/firmware/efi/fw_platform_size").at(Effect::Firmware);
/// CPUs that may call EFI's firmware.
pub static EFI_CPUS: Knob =
    Knob::file("efi-runtime-cpus", "/sys/devices/virtual/workqueue/efi_runtime/cpumask").workers();
/// The table.
pub const KNOBS: &[&Knob] = &[&KFENCE, &EFI_PLATFORM, &EFI_CPUS];
