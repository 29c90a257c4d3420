//! /proc/interrupts, and the affinities of its first interrupts.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

libfuzzer_sys::fuzz_target!(|parts: (&[u8], &[u8])| {
    let (table, affinity) = parts;
    let _ = rtproof_fuzz::judge(&[
        ("/proc/interrupts", table),
        ("/proc/irq/0/smp_affinity_list", affinity),
        ("/proc/irq/0/effective_affinity_list", affinity),
        ("/proc/irq/1/effective_affinity_list", b"3\n"),
        ("/proc/irq/default_smp_affinity", affinity),
    ]);
});
