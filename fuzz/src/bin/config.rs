//! The configuration of the kernel's build.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = rtproof_fuzz::judge(&[("/boot/config-6.12.95-rt-amd64", bytes)]);
});
