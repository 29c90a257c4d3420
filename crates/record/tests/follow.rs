//! A record that is followed while it is written: every second, spike and note once, and nothing
//! that the writer is kept from.

use crate::common;

use std::collections::BTreeMap;

use rtproof_record::{Follower, News};

const SECONDS: u64 = 6;
/// Seconds that are written before it is followed.
const BEFORE: usize = 3;

#[test]
fn what_another_hand_added_is_refused_before_memory_is_taken() {
    for (sql, part) in [
        ("INSERT INTO hist VALUES (7000, 'wake', 1, 1)", "table hist has thread 7000"),
        (
            "UPDATE stat SET thread = 7000 WHERE second = 0 AND thread = 0",
            "table stat has thread 7000",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.rtproof");
        let (writer, mut run) = common::begin_seen(&path, SECONDS, |_| {});
        let tail = common::tail(&mut run.threads);
        let _finished = writer.finish(&tail).expect("closed");
        let conn = rusqlite::Connection::open(&path).expect("opens");
        conn.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).expect("changed");
        drop(conn);
        let mut follower = Follower::open(&path).expect("its tables are right");
        let error = follower.poll().expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn all_that_is_written_is_handed_out_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.rtproof");
    let (mut ticks, mut all, mut follower) = (Vec::new(), Vec::<News>::new(), None::<Follower>);
    let (writer, mut run) = common::begin_seen(&path, SECONDS, |tick| {
        ticks.push(tick.clone());
        if ticks.len() < BEFORE {
            return;
        }
        let is_first = follower.is_none();
        let follower = follower.get_or_insert_with(|| Follower::open(&path).expect("a record"));
        let news = follower.poll().expect("readable");
        assert_eq!((news.earlier.is_empty(), news.ended.as_ref()), (!is_first, None));
        assert_eq!(news.started.is_empty(), !is_first);
        all.push(news);
        let again = follower.poll().expect("readable");
        assert!(again.seconds.is_empty() && again.spikes.is_empty() && again.notes.is_empty());
        assert!(again.started.is_empty() && again.marks.is_empty() && again.causes.is_none());
    });
    let expected: Vec<_> = ticks.iter().flat_map(|tick| tick.spikes.list.clone()).collect();
    let sorted = |mut spikes: Vec<rtproof_record::spikes::Spike>| {
        spikes.sort_by_key(|spike| (spike.thread, spike.due_ns));
        spikes
    };
    let spikes = all.iter().flat_map(|news| news.spikes.clone()).collect();
    assert_eq!(sorted(spikes), sorted(expected));
    let notes: Vec<_> = all.iter().flat_map(|news| news.notes.clone()).collect();
    let written: Vec<_> = ticks.iter().flat_map(|tick| tick.notes.clone()).collect();
    assert_eq!(notes, written);
    assert_eq!(counts(&all), written_counts(&ticks));
    let marks: Vec<_> = all.iter().flat_map(|news| news.marks.clone()).collect();
    let written: Vec<_> = ticks.iter().flat_map(|tick| tick.surroundings.marks.clone()).collect();
    assert_eq!(marks, written);
    // What is kept of spikes can be looked into.
    let mut follower = follower.expect("seconds were written");
    let kept = all.last().map(|news| news.kept.clone()).unwrap_or_default();
    assert!(!kept.is_empty());
    for (thread, due_ns) in kept {
        let window = follower.window(thread, due_ns).expect("readable").expect("kept");
        assert_eq!((window.thread, window.due_ns), (thread, due_ns));
    }
    assert!(follower.window(0, u64::MAX / 4).expect("readable").is_none());
    let tail = common::tail(&mut run.threads);
    let _finished = writer.finish(&tail).expect("closed");
    let last = follower.poll().expect("readable");
    assert_eq!(last.ended, Some(tail.ended));
}

/// Sampled and missed wake-ups of each thread, and those in the histograms.
fn counts(all: &[News]) -> BTreeMap<u32, (u64, u64, u64)> {
    let mut counts = BTreeMap::<u32, (u64, u64, u64)>::new();
    for (thread, second) in all.iter().flat_map(|news| news.earlier.iter().chain(&news.seconds)) {
        let of = counts.entry(*thread).or_default();
        of.0 += second.totals.wake.count();
        of.1 += second.totals.missed;
        of.2 += second.wake.iter().map(|(_, n)| n).sum::<u64>();
    }
    counts
}

fn written_counts(ticks: &[rtproof_record::Tick]) -> BTreeMap<u32, (u64, u64, u64)> {
    let mut counts = BTreeMap::<u32, (u64, u64, u64)>::new();
    for row in ticks.iter().flat_map(|tick| &tick.threads) {
        let of = counts.entry(row.number).or_default();
        let n = row.second.totals.wake.count();
        (of.0, of.1, of.2) = (of.0 + n, of.1 + row.second.totals.missed, of.2 + n);
    }
    counts
}

#[test]
fn what_is_no_record_is_refused_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in [("empty", &b""[..]), ("text", b"no record, but long enough for a header")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        let error = Follower::open(&path).expect_err("refused").to_string();
        assert!(error.contains(name), "{error}");
    }
    assert!(Follower::open(&folder.path().join("none")).is_err());
}
