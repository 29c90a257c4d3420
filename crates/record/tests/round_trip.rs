//! What is written is what is read, of whole runs and of torn ones.

use std::{ffi::OsStr, fs, io, os::unix::ffi::OsStrExt as _, path::Path};

use crate::common::{self, Maker, assert_same, begin, head, judgement, sealed, tail};
use proptest::prelude::*;
use rtproof_record::{
    ClockOrigin, Finished, ReadError, Run, SealState, Surroundings, ThreadTick, Tick, WriteError,
    Writer, read,
    run::RunEnd,
    schema::{TABLES, Table, VERSION},
};
use rtproof_stats::{Histogram, Layout, Moments, Totals};

#[test]
fn every_field_of_a_sealed_run_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a % ? # ä.rtproof");
    let expected = sealed(&path, 4);
    let before = fs::read(&path).unwrap();
    let opened = read(&path).unwrap();
    assert_same(&opened.run, &expected);
    assert_eq!(opened.judgement, Some(judgement()));
    let SealState::Sealed { digest } = opened.state else { panic!("{:?}", opened.state) };
    // The recipe in table seal, by other means: zeros for the digits, SHA-256 of all.
    let at = before.windows(64).position(|w| w == digest.as_bytes()).unwrap();
    assert!(before[..at].ends_with(format!("rtproof-seal-1:{}:", common::RUN_ID).as_bytes()));
    assert_eq!(fs::read(&path).unwrap(), before, "reading changes nothing");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no side file is left");
}

#[test]
fn every_committed_second_of_a_killed_run_comes_back() {
    for seconds in [0, 1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.rtproof");
        let (writer, mut expected) = begin(&path, seconds);
        if seconds == 0 {
            (expected.threads, expected.notes, expected.loads) = Default::default();
        }
        let live = read(&path).unwrap();
        assert_same(&live.run, &expected); // while it is being written
        drop(writer);
        let opened = read(&path).unwrap();
        assert_eq!(opened.state, SealState::Torn);
        assert_eq!(opened.judgement, None);
        assert_same(&opened.run, &expected);
    }
}

#[test]
fn a_torn_run_can_be_judged_and_sealed_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, expected) = begin(&path, 2);
    drop(writer);
    let finished = Finished::open(&path).unwrap();
    finished.store_judgement(&judgement()).unwrap();
    finished.store_judgement(&judgement()).unwrap(); // again: replaced
    let digest = finished.seal().unwrap();
    let opened = read(&path).unwrap();
    assert_eq!(opened.state, SealState::Sealed { digest });
    assert_same(&opened.run, &expected);
    assert_eq!(opened.run.meta.ended, None);
    let error = Finished::open(&path).unwrap_err();
    assert!(matches!(error, WriteError::State { .. }), "{error}");
}

#[test]
fn a_finished_run_is_torn_until_it_is_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, mut run) = begin(&path, 1);
    let tail = rtproof_record::RunTail {
        ended: RunEnd::Aborted { why: "CPU 3 went away".into() },
        facts: None,
        ..tail(&mut run.threads)
    };
    let finished = writer.finish(&tail).unwrap();
    let opened = read(finished.path()).unwrap();
    assert_eq!(opened.state, SealState::Torn);
    assert_eq!(opened.run.meta.ended, Some(tail.ended.clone()));
    finished.store_judgement(&judgement()).unwrap();
    finished.seal().unwrap();
    let opened = read(&path).unwrap();
    assert!(matches!(opened.state, SealState::Sealed { .. }));
    assert_eq!(opened.judgement, Some(judgement()));
    assert_eq!(opened.run.meta.ended, Some(tail.ended));
    assert!(opened.run.facts_end.is_none());
}

/// A torn record, changed by a statement of SQL before it is read.
fn changed(sql: &str) -> Result<Run, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, mut run) = begin(&path, 2);
    let finished = writer.finish(&tail(&mut run.threads)).unwrap();
    finished.store_judgement(&judgement()).unwrap();
    let conn = rusqlite::Connection::open(&path).unwrap();
    assert!(conn.execute(sql, []).unwrap() > 0, "{sql}");
    drop(conn);
    read(&path).map(|opened| opened.run)
}

#[test]
fn a_document_that_is_damaged_is_never_an_empty_one() {
    for sql in [
        "UPDATE cause SET words = '7'",
        "UPDATE finding SET document = '[{}]'",
        "UPDATE verdict SET document = '{\"answer\":\"maybe\"}'",
    ] {
        let error = changed(sql).unwrap_err().to_string();
        assert!(error.contains("x.rtproof"), "{sql}: {error}");
    }
    // What recorded the events is not needed to judge a run: the reader learns why it is missing.
    let run = changed("UPDATE recorder SET document = '[]'").unwrap();
    let off = run.spikes.unwrap().summary.recorder.off.unwrap();
    assert!(off.starts_with("the record does not say it"), "{off}");
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    fs::write(&path, "precious").unwrap();
    let error = Writer::create(&path, &head()).unwrap_err();
    assert!(matches!(error, WriteError::Exists { .. }));
    let text = error.to_string();
    assert!(text.contains("x.rtproof") && text.contains("name another file"), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for name in ["missing/x.rtproof", "file/x.rtproof"] {
        let error = Writer::create(&folder.path().join(name), &head()).unwrap_err();
        assert!(matches!(error, WriteError::Create { .. }), "{error:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
    // /proc refuses root as well.
    let error = Writer::create("/proc/x.rtproof".as_ref(), &head()).unwrap_err();
    let WriteError::Create { source, .. } = &error else { panic!("{error:?}") };
    assert_ne!(source.kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn a_file_that_cannot_be_begun_is_taken_away_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let mut head = head();
    head.meta.started_realtime_ns = u64::MAX; // SQLite's integers are signed
    Writer::create(&path, &head).unwrap_err();
    assert!(!path.exists());
    head.meta.run_id = "short".into();
    let error = Writer::create(&path, &head).unwrap_err();
    assert!(error.to_string().contains("32 lower-case hex digits"), "{error}");
    assert!(!path.exists());
}

#[test]
fn facts_of_a_later_version_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, expected) = begin(&path, 1);
    drop(writer);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute("UPDATE facts SET document = json_set(document, '$.moon', 'full')", []).unwrap();
    drop(conn);
    assert_same(&read(&path).unwrap().run, &expected);
}

/// What version 1 wrote: fewer tables, options without what came later.
#[test]
fn a_record_of_version_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, mut expected) = begin(&path, 2);
    drop(writer);
    forget_tables_after(&path, 1);
    let conn = rusqlite::Connection::open(&path).unwrap();
    let options = "UPDATE run SET options = json_remove(options, '$.spike_ns', '$.trace')";
    conn.execute_batch(options).unwrap();
    drop(conn);
    (expected.options.spike_ns, expected.options.trace) = (None, false);
    (expected.spikes, expected.effects) = (None, None);
    forget_what_came_later(&mut expected);
    assert_same(&read(&path).unwrap().run, &expected);
    let finished = Finished::open(&path).unwrap();
    finished.store_judgement(&judgement()).unwrap();
    finished.seal().unwrap();
    let opened = read(&path).unwrap();
    assert!(matches!(opened.state, SealState::Sealed { .. }));
    assert_same(&opened.run, &expected);
    // It names processes of the machine: nobody else reads it, before and after it is sealed.
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// What version 2 wrote: no effects.
#[test]
fn a_record_of_version_2_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, mut expected) = begin(&path, 2);
    drop(writer);
    forget_tables_after(&path, 2);
    expected.effects = None;
    forget_what_came_later(&mut expected);
    assert_same(&read(&path).unwrap().run, &expected);
}

/// Makes of a record what a build of that version would have written.
fn forget_tables_after(path: &Path, version: i32) {
    let later = TABLES.iter().rev().filter(|table| table.since > version);
    let tables: String = later.map(|table| format!("DROP TABLE {};", table.name)).collect();
    let later = |table: &'static Table| {
        let columns = table.columns.iter().filter(|column| column.since > version);
        columns.map(|column| format!("ALTER TABLE {} DROP COLUMN {};", table.name, column.name))
    };
    let old = TABLES.iter().filter(|table| table.since <= version);
    let drops = tables + &old.flat_map(later).collect::<String>();
    let conn = rusqlite::Connection::open(path).unwrap();
    let sql = format!("PRAGMA foreign_keys = OFF; {drops} PRAGMA user_version = {version}");
    conn.execute_batch(&sql).unwrap();
}

/// What records before version 4 have not.
fn forget_what_came_later(run: &mut Run) {
    run.surroundings = Surroundings::default();
    let seconds = run.threads.iter_mut().flat_map(|thread| &mut thread.seconds);
    seconds.for_each(|second| second.intervals = Moments::default());
}

#[test]
fn a_record_of_version_3_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, mut expected) = begin(&path, 2);
    drop(writer);
    forget_tables_after(&path, 3);
    forget_what_came_later(&mut expected);
    assert_same(&read(&path).unwrap().run, &expected);
}

/// What version 4 wrote: no minutes.
#[test]
fn a_record_of_version_4_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, expected) = begin(&path, 2);
    drop(writer);
    forget_tables_after(&path, 4);
    assert_same(&read(&path).unwrap().run, &expected);
    assert_same(&rtproof_record::read_shown(&path).unwrap().run, &expected);
}

#[test]
fn other_files_are_refused_with_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let refused = |expected: &str| {
        let text = read(&path).unwrap_err().to_string();
        assert!(text.contains(expected) && text.contains("x.rtproof"), "{text}");
    };
    refused("cannot be read");
    fs::write(&path, "").unwrap();
    refused("run again");
    fs::write(&path, "T: 0 ( 1234) P:80 I:1000 C: 1000").unwrap();
    refused("no SQLite header");
    fs::remove_file(&path).unwrap();
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE t (x)").unwrap();
    refused("application id 0x00000000");
    conn.pragma_update(None, "application_id", 0x5254_5046).unwrap();
    refused("schema version 0");
    conn.pragma_update(None, "user_version", 1).unwrap();
    refused("table t is none");
    conn.execute_batch("DROP TABLE t; VACUUM").unwrap();
    conn.execute_batch("CREATE VIEW run AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT * FROM r").unwrap();
    refused("view run is none");
    conn.pragma_update(None, "user_version", VERSION + 1).unwrap();
    refused("update rtproof");
    assert!(matches!(read(folder.path()), Err(ReadError::NotARecord { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn seconds_sum_to_the_whole_run(seed: u64, threads in 1..4_u32, per_second in 0..3_000_u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.rtproof");
        let mut writer = Writer::create(&path, &head()).unwrap();
        let mut maker = Maker::new(seed, threads, per_second);
        for at in 0..5 {
            writer.append(&maker.tick(at)).unwrap();
        }
        drop(writer);
        let run = read(&path).unwrap().run;
        prop_assert!(run.threads == maker.threads);
        for thread in &run.threads {
            let mut totals = Totals::default();
            let mut wake = Histogram::new(Layout::COARSE);
            for second in &thread.seconds {
                totals.merge(&second.totals);
                for &(bucket, n) in &second.wake {
                    wake.add_bucket(usize::from(bucket), n).unwrap();
                }
            }
            prop_assert_eq!(&totals, &thread.totals);
            prop_assert!(wake == thread.wake.coarsened(Layout::COARSE));
            prop_assert_eq!(thread.wake.total(), thread.totals.wake.count());
            prop_assert_eq!(thread.missed.total(), thread.totals.missed);
        }
    }
}

#[test]
fn the_origin_may_come_with_the_first_tick() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let mut writer = Writer::create(&path, &head()).unwrap();
    let origin = Some(ClockOrigin { realtime_ns: 1_800_000_000_000_000_001, monotonic_ns: 77 });
    writer.append(&Tick { origin, ..Tick::default() }).unwrap();
    writer.append(&Tick::default()).unwrap();
    let meta = read(&path).unwrap().run.meta;
    assert_eq!(meta.started_realtime_ns, 1_800_000_000_000_000_001);
    assert_eq!(meta.started_monotonic_ns, 77);
}

/// Such a name cannot be given to SQL, so there is no compact copy: the record is sealed in place,
/// as on a disk without room for the copy.
#[test]
fn a_record_is_sealed_in_place_where_it_cannot_be_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(OsStr::from_bytes(b"x\xff.rtproof"));
    let expected = sealed(&path, 2);
    let opened = read(&path).unwrap();
    assert!(matches!(opened.state, SealState::Sealed { .. }), "{:?}", opened.state);
    assert_same(&opened.run, &expected);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A long stall, a second without a sample, two seconds of a thread in one tick.
#[test]
fn odd_seconds_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let mut writer = Writer::create(&path, &head()).unwrap();
    let mut maker = Maker::new(1, 1, 100);
    let mut tick = maker.tick(0);
    let more: Vec<ThreadTick> = maker.tick(1).threads;
    tick.threads.extend(more);
    writer.append(&tick).unwrap();
    writer.append(&Tick::default()).unwrap();
    let mut late = Maker::new(1, 1, 0).tick(2).threads.remove(0);
    let hours = 3 * 3_600 * common::SECOND_NS;
    let mut wake = Histogram::new(Layout::FINE);
    wake.record(hours); // beyond the grid: in its last bucket, exact in the sums
    late.second.totals.wake.push(hours);
    late.second.to_ns += hours;
    let top = vec![rtproof_stats::Sample { due_ns: late.second.from_ns, latency_ns: hours }];
    let late = ThreadTick::new(0, late.second, &wake, &Histogram::new(Layout::FINE), top);
    writer.append(&Tick { threads: vec![late], ..Tick::default() }).unwrap();
    drop(writer);
    let run = read(&path).unwrap().run;
    assert_eq!(run.threads[0].seconds.len(), 3);
    assert_eq!(run.threads[0].totals.wake.max(), Some(hours));
    assert_eq!(run.threads[0].totals.wake.power_sums().2, None, "x^4 does not fit");
    assert_eq!(run.threads[0].top[0].latency_ns, hours);
    assert_eq!(run.threads[0].top.len(), 64);
}
