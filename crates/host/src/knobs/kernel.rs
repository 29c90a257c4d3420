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
    Knob::file("efi-runtime-cpus", "/sys/devices/virtual/workqueue/efi_runtime/cpumask");
/// Tracer in force.
pub static TRACER: Knob = Knob::file("tracer", "/sys/kernel/tracing/current_tracer");
/// Whether the ring buffer of the tracers takes events.
pub static TRACE_EVENTS: Knob = Knob::file("trace-events", "/sys/kernel/tracing/events/enable");
/// Whether the lockup detectors run.
pub static LOCKUP_DETECTOR: Knob = Knob::file("lockup-detector", "/proc/sys/kernel/watchdog");

/// The table.
pub const KNOBS: &[&Knob] =
    &[&KFENCE, &EFI_PLATFORM, &EFI_CPUS, &TRACER, &TRACE_EVENTS, &LOCKUP_DETECTOR];
