//! Texts of the kernel that say where the fields of events lie.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

libfuzzer_sys::fuzz_target!(|parts: (&str, u8, Vec<&str>, &[u8])| {
    let (header, order, texts, data) = parts;
    rtproof_fuzz::trace::read_by(header, order, &texts, data);
});
