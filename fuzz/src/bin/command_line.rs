//! The kernel's command line, down to the consistency of its CPU lists.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = rtproof_fuzz::judge(&[("/proc/cmdline", bytes)]);
});
