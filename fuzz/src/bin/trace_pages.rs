//! Sub-buffers of the kernel's trace, of four kinds of kernels.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

libfuzzer_sys::fuzz_target!(|parts: (u8, Vec<rtproof_fuzz::trace::Bytes<'_>>)| {
    let (kernel, pages) = parts;
    rtproof_fuzz::trace::walk(kernel, &pages);
});
