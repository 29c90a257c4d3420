//! Files of captured machines. What is read is written as the same file, and judged.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use rtproof_host::Capture;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut capture) = Capture::parse(bytes) else { return };
    let text = capture.to_text();
    assert_eq!(Capture::parse(text.as_bytes()).as_ref(), Ok(&capture));
    let _ = capture.redact();
    let redacted = capture.to_text();
    assert_eq!(capture.redact(), 0, "redacted once is redacted");
    assert_eq!(capture.to_text(), redacted);
    let _ = rtproof_fuzz::judge_capture(capture);
});
