//! Lines of a program that `exec:` measures: the first byte says how many bytes come at once.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&piece, lines)) = bytes.split_first() else { return };
    match rtproof_measure::fuzzing::exec(lines, usize::from(piece)) {
        Ok(()) => {}
        Err(error) => {
            let why = error.to_string();
            assert!(why.starts_with("line ") && why.len() < 1000, "{why}");
            assert!(!why.chars().any(char::is_control), "{why:?}");
        }
    }
});
