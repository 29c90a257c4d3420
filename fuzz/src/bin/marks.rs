//! Rings of marks as a hostile application may write them, while they are read. The bytes: log2 of
//! the capacity, the count to begin with, then steps that each write some words.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "a file of the target's own")]

use std::{fs::File, os::unix::fs::FileExt};

/// Words of the header and of a cycle.
const HEADER: u64 = 8;
const CYCLE: u64 = 4;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&[capacity, kind, ref head @ ..], mut rest)) = bytes.split_first_chunk::<10>() else {
        return;
    };
    let path = format!("/dev/shm/rtproof-fuzz-marks-{}", std::process::id());
    let file = File::create(&path).expect("a file in memory");
    let capacity = 2_u64 << (capacity % 8);
    let words = HEADER + CYCLE * capacity;
    file.set_len(words * 8).expect("a length");
    let write = |at: u64, word: u64| file.write_all_at(&word.to_ne_bytes(), at % words * 8);
    let magic = u64::from_ne_bytes(*b"RTPMARK1");
    let head = u64::from_ne_bytes(*head);
    for (at, word) in [(0, magic), (1, capacity), (2, head)] {
        write(at, word).expect("written");
    }
    let mut count = head;
    let mut step = || {
        let Some((&[what, at, ref word @ ..], after)) = rest.split_first_chunk::<10>() else {
            return false;
        };
        rest = after;
        let word = u64::from_ne_bytes(*word);
        if what % 2 == 0 {
            // A cycle as it should be, or nearly so.
            count = count.wrapping_add(1);
            let place = HEADER + count.wrapping_sub(1) % capacity * CYCLE;
            let begin_ns = 2_000_000_000 + word % 90_000_000_000;
            for (i, value) in [count, begin_ns, begin_ns + u64::from(at)].into_iter().enumerate() {
                write(place + i as u64, value).expect("written");
            }
            write(2, count).expect("written");
        } else {
            write(u64::from(at), word).expect("written");
        }
        true
    };
    if kind == 0 {
        // What a file holds that nobody made with the header.
        file.write_all_at(bytes, 0).expect("written");
    }
    if let Err(why) = rtproof_measure::fuzzing::ring(path.as_ref(), &mut step) {
        assert!(!why.to_string().is_empty());
    }
});
