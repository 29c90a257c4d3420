//! Lines of the kernel's tracers (timerlat, osnoise, hwlat): the first byte says whose, the second
//! how many bytes come at once.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [which, piece, lines @ ..] = bytes {
        let _ = rtproof_measure::fuzzing::tracer(*which, lines, usize::from(*piece));
    }
});
