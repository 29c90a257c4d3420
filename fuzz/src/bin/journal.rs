//! Journals of `tune`: the bytes as they are, and the lines among them with checksums that hold, as
//! an attacker who knows the format would make them. What is read is a prefix of what was written.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use rtproof_host::tune::script::{JournalScript, checksum};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    let mut sealed = String::new();
    let mut last = String::new();
    for json in String::from_utf8_lossy(bytes).lines() {
        last = checksum(&last, json);
        sealed += &format!("{last} {json}\n");
    }
    read(sealed.as_bytes());
});

/// Reads a journal, and again what of it was whole.
fn read(bytes: &[u8]) {
    let Ok(script) = JournalScript::parse(bytes) else { return };
    let length = usize::try_from(script.length).unwrap_or(usize::MAX);
    assert!(length <= bytes.len());
    assert_eq!(JournalScript::parse(&bytes[..length]).as_ref(), Ok(&script));
    assert!(script.made().count() <= script.entries.len());
    for entry in script.made() {
        assert!(entry.before.is_some(), "nothing is put back that was not there");
        let change = &entry.item.change;
        let _ = (entry.is_settled(), change.target(), change.nature().is_durable);
    }
}
