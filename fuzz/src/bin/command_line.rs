//! The kernel's command line, down to the consistency of its CPU lists.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = rtproof_fuzz::judge(&[("/proc/cmdline", bytes)]);
});
