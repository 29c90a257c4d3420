//! Result files of other tools: the first byte says which importer, or that the content decides.

#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, rest)) = bytes.split_first() else { return };
    rtproof_fuzz::import::read(which, rest);
});
