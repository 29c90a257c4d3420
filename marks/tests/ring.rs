//! The ring as another program reads it. Here and not in the crate: its sources are copied into
//! projects of `rtproof new`.

use std::path::Path;

use rtproof_mark::{CAPACITY, Marks};

#[test]
fn cycles_are_in_the_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("ring");
    let mut marks = Marks::open_at(&path).expect("a ring");
    for _ in 0..CAPACITY + 2 {
        marks.begin();
        marks.end();
    }
    #[expect(clippy::disallowed_methods, reason = "the ring's own file")]
    let bytes = std::fs::read(marks.path()).expect("the file");
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    assert_eq!((&bytes[..8], word(8), word(16)), (&b"RTPMARK1"[..], CAPACITY, CAPACITY + 2));
    assert_eq!(word(24), u64::from(std::process::id()));
    assert_eq!(bytes.len() as u64, 64 + CAPACITY * 32);
    // The third oldest is in the third place; the first two were overwritten.
    assert_eq!((word(64), word(64 + 32), word(64 + 64)), (CAPACITY + 1, CAPACITY + 2, 3));
    assert!(word(64 + 8) > 0 && word(64 + 16) >= word(64 + 8));
    drop(marks);
    assert!(!path.exists());
}

#[test]
fn a_word_is_no_path() {
    assert!(Marks::open("a/b").is_err());
    assert!(Marks::open_at(Path::new("/no/such/folder/ring")).is_err());
}
