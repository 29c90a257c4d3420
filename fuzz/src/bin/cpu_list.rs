//! CPU lists and masks.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use libfuzzer_sys::fuzz_target;
use rtproof_host::CpuList;

fuzz_target!(|text: &str| {
    for last in [None, Some(0), Some(7), Some(u32::MAX)] {
        if let Ok(list) = CpuList::parse(text, last) {
            // What is shown is read as the same list.
            assert_eq!(CpuList::parse(&list.to_string(), None), Ok(list));
        }
    }
    let _ = CpuList::parse_mask(text);
});
