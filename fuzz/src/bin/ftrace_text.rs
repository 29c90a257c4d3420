//! Traces as text, to a window and out again.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use rtproof_trace::{
    dat::{TraceDat, write_window},
    ftrace_text::{parse, parse_rtla},
    perfetto,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = parse_rtla(&text);
    let Ok(trace) = parse(&text) else { return };
    let (Some(mut window), Some(subject)) = (trace.window(), trace.subject) else { return };
    assert!(!perfetto::encode(&window, &subject, &[]).is_empty());
    // A CPU of our files has a place in a table.
    window.events.retain(|event| event.cpu < 1_024);
    let mut ours = Vec::new();
    write_window(&window, "mono", &mut ours).expect("memory takes everything");
    TraceDat::open(ours.as_slice()).expect("what was written");
});
