//! Knobs: kernel.

use crate::knob::{Effect, Knob};

table! {
    /// Interval of KFENCE's guarded allocations, in ms.
    KFENCE = Knob::file("config-kfence", "/sys/module/kfence/parameters/sample_interval")
        .or_boot("kfence.sample_interval={}");

    /// Width of EFI's firmware: there on every machine that booted by EFI.
    EFI_PLATFORM = Knob::file("efi-platform", "/sys/firmware/efi/fw_platform_size")
        .at(Effect::Firmware);

    /// CPUs that may call EFI's firmware.
    EFI_CPUS = Knob::file("efi-runtime-cpus", "/sys/devices/virtual/workqueue/efi_runtime/cpumask")
        .workers();
}
