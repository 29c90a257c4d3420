//! Edited, cut and corrupted files: an error or a run that holds together, never a panic.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::common::{self, Random, begin, sealed};
use rtproof_record::{Opened, ReadError, SealState, read};

struct Victim {
    _folder: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Victim {
    fn new(make: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("original");
        make(&original);
        let bytes = fs::read(&original).unwrap();
        Self { path: folder.path().join("x.rtproof"), _folder: folder, bytes }
    }

    fn read(&self, bytes: &[u8]) -> Result<Opened, ReadError> {
        fs::write(&self.path, bytes).unwrap();
        let opened = read(&self.path);
        match &opened {
            Ok(opened) => holds_together(opened),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("x.rtproof") && text.contains(';'), "{text}");
            }
        }
        opened
    }
}

fn holds_together(opened: &Opened) {
    for thread in &opened.run.threads {
        assert_eq!(thread.wake.total(), thread.totals.wake.count());
        assert_eq!(thread.missed.total(), thread.totals.missed);
        assert!(thread.totals.wake.sd().is_none_or(f64::is_finite));
        assert!(thread.top.len() <= 64);
    }
}

/// Must not be taken for the sealed run, nor for a torn one.
fn assert_refused(result: Result<Opened, ReadError>, what: &str) {
    if let Ok(Opened { state, .. }) = result {
        assert!(matches!(state, SealState::Altered { .. }), "{what}: {state:?}");
    }
}

#[test]
fn no_single_byte_of_a_sealed_file_can_be_changed() {
    let victim = Victim::new(|path| drop(sealed(path, 2)));
    let whole = victim.read(&victim.bytes).unwrap();
    let SealState::Sealed { digest } = whole.state else { panic!("{:?}", whole.state) };
    let len = victim.bytes.len();
    let mark = victim.bytes.windows(15).position(|w| w == b"rtproof-seal-1:").unwrap();
    // Header, both ends, the seal and its row, then everywhere.
    let mut places: Vec<usize> = (0..128).chain(mark - 16..mark + 128).collect();
    places.extend((0..len).step_by(1_021).chain([len - 2, len - 1]));
    let mut bytes = victim.bytes.clone();
    let mut random = Random(1);
    for at in places {
        let flip = 1 << random.below(8);
        for change in [flip, 0xff] {
            bytes[at] ^= change;
            assert_refused(victim.read(&bytes), &format!("byte {at} ^ {change:#x}"));
            bytes[at] ^= change;
        }
    }
    assert_eq!(victim.read(&bytes).unwrap().state, SealState::Sealed { digest });
}

#[test]
fn nothing_can_be_added_to_a_sealed_file_or_taken_from_it() {
    let victim = Victim::new(|path| drop(sealed(path, 2)));
    for extra in [1, 15, 4_096] {
        let mut bytes = victim.bytes.clone();
        bytes.extend(std::iter::repeat_n(0, extra));
        assert_refused(victim.read(&bytes), &format!("{extra} bytes more"));
        let len = victim.bytes.len();
        for cut in [extra, len / 2 + extra, len - extra] {
            assert_refused(victim.read(&victim.bytes[..len - cut]), &format!("{cut} bytes less"));
        }
    }
    let twice = [&victim.bytes[..], &victim.bytes[..]].concat();
    assert_refused(victim.read(&twice), "twice");
}

#[test]
fn an_edit_with_sql_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let zeros = format!("rtproof-seal-1:{}:{}", common::RUN_ID, "0".repeat(64));
    for sql in [
        "UPDATE verdict SET document = '{}'",
        "DELETE FROM seal",
        "UPDATE seal SET mark = 'none'",
        "UPDATE run SET run_id = 'ffffffffffffffffffffffffffffffff'",
        "UPDATE note SET text = (SELECT mark FROM seal) WHERE number = 1",
    ] {
        sealed(&path, 1);
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(sql).unwrap();
        drop(conn);
        let state = read(&path).unwrap().state;
        assert!(matches!(state, SealState::Altered { .. }), "{sql}: {state:?}");
        fs::remove_file(&path).unwrap();
    }
    // Removing the seal leaves an unsealed record, which is reported. A seal is no signature.
    sealed(&path, 1);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute("UPDATE seal SET mark = ?1", [zeros]).unwrap();
    conn.execute_batch("VACUUM").unwrap();
    drop(conn);
    assert_eq!(read(&path).unwrap().state, SealState::Torn);
}

fn corrupt_at_random(victim: &Victim, rounds: u64) {
    let mut random = Random(rounds);
    for _ in 0..rounds {
        let mut bytes = victim.bytes.clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len() as u64) as usize;
            // Page headers and cell pointers are where b-trees break.
            let at = if random.below(2) == 0 { at } else { at & !0xfff | at & 0x3f };
            let run = random.below(9) as usize + 1;
            for byte in bytes.iter_mut().skip(at).take(run) {
                *byte = [0, 0xff, random.next() as u8, 0x7f][random.below(4) as usize];
            }
        }
        if random.below(5) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        let _ = victim.read(&bytes);
    }
}

#[test]
fn a_torn_file_with_random_damage_is_read_or_refused() {
    corrupt_at_random(&Victim::new(|path| drop(begin(path, 3))), 250);
}

#[test]
fn a_sealed_file_with_random_damage_is_read_or_refused() {
    corrupt_at_random(&Victim::new(|path| drop(sealed(path, 3))), 250);
}

/// Values that a b-tree check does not see.
#[test]
fn wrong_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    for sql in [
        "UPDATE stat SET n = n + 1 WHERE second = 0 AND thread = 0",
        "UPDATE stat SET n = 9223372036854775807, sum_ns = '99999999999999999999999999'",
        "UPDATE stat SET missed = -1 WHERE second = 0",
        "UPDATE stat SET sum_ns = '-5' WHERE second = 0",
        "UPDATE stat SET sum_ns = '340282366920938463463374607431768211455'",
        "UPDATE stat SET missed_sum_ns = '340282366920938463463374607431768211455'",
        "UPDATE stat SET max_ns = NULL WHERE second = 0",
        "UPDATE stat SET max_ns = max_ns * 2 WHERE second = 0",
        "UPDATE stat SET second = 7 WHERE second = 1",
        "UPDATE stat SET from_ns = 0, to_ns = 9000000000",
        "UPDATE hist SET n = n + 1",
        "UPDATE hist SET n = 9223372036854775807",
        "UPDATE hist SET bucket = bucket + 100000",
        "UPDATE hist_second SET data = x'ffffffffffffffffffffff'",
        "UPDATE hist_second SET thread = thread + 77",
        "UPDATE top SET latency_ns = latency_ns + 1",
        "UPDATE thread SET number = number + 10",
        "UPDATE thread SET policy = 'fastest'",
        "UPDATE host_cpu SET host = host + 99",
        "UPDATE run SET options = '[]'",
        "UPDATE run SET ended = '{}'",
        "UPDATE run SET command = '[['",
        "UPDATE run SET run_id = 'x'",
        "DELETE FROM run",
        "DELETE FROM facts",
        "UPDATE facts SET document = '{}'",
        "UPDATE load SET work = -1",
        "UPDATE recorder SET seen = seen + 1",
        "UPDATE recorder SET explained = -1",
        "UPDATE recorder SET dropped = 100",
        "UPDATE recorder SET certain_ns = sum_ns + 1",
        "UPDATE recorder SET document = '{'",
        "UPDATE recorder SET seen = 2, explained = 1, unexamined = 1",
        "UPDATE spike SET thread = 77 WHERE thread = 0",
        "UPDATE spike SET culprit = NULL",
        "UPDATE spike SET complete = 1",
        "UPDATE spike SET latency_ns = -1",
        "UPDATE cause SET sum_ns = sum_ns + 1",
        "UPDATE cause SET number = 256 WHERE number = 1",
        "UPDATE cause SET top = count + 1",
        "UPDATE cause SET words = 'x'",
        "UPDATE cause_cpu SET cause = 9 WHERE cause = 0",
        "UPDATE cause_cpu SET sum_ns = 9223372036854775807",
        "UPDATE cause_cpu SET worst_ns = 1",
        "UPDATE window SET thread = 0",
        "UPDATE window SET document = '[]'",
        "UPDATE window SET document = json_set(document, '$.cpu', -1)",
        "INSERT INTO window WITH RECURSIVE n(x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM n \
         WHERE x < 140) SELECT x, thread, due_ns, latency_ns, document FROM window, n \
         WHERE number = 2",
    ] {
        drop(begin(&path, 2));
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
        drop(conn);
        let error = read(&path).err().unwrap_or_else(|| panic!("{sql} was taken"));
        assert!(matches!(error, ReadError::Damaged { .. }), "{sql}: {error}");
        fs::remove_file(&path).unwrap();
    }
}

/// What a file of someone else would have SQLite run, or keep in memory.
#[test]
fn foreign_parts_and_too_many_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let n = "WITH RECURSIVE n(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM n LIMIT";
    let thread = format!(
        "INSERT INTO thread {n} 9000) SELECT x, 0, 1, 'w', 'fifo', 1, 1, 1000, 0, NULL, NULL, \
         NULL, NULL, NULL, NULL FROM n"
    );
    let note = format!("INSERT INTO note {n} 20001) SELECT x, 0, 'x', 'x', 0 FROM n");
    for (sql, says) in [
        ("CREATE TABLE more (x)", "table more is none"),
        ("CREATE VIEW more AS SELECT 1", "view more is none"),
        ("CREATE TRIGGER more AFTER INSERT ON note BEGIN SELECT 1; END", "trigger more is none"),
        ("CREATE INDEX more ON note (abs(at_ns))", "index more is none"),
        ("ALTER TABLE note ADD COLUMN more BLOB AS (zeroblob(1000))", "note has other columns"),
        ("DROP TABLE note", "table note is missing"),
        (&thread, "table thread has more than 8192 rows"),
        (&note, "table note has more than 20000 rows"),
    ] {
        for is_sealed in [false, true] {
            if is_sealed {
                drop(sealed(&path, 1))
            } else {
                drop(begin(&path, 1))
            }
            let conn = rusqlite::Connection::open(&path).unwrap();
            conn.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
            drop(conn);
            let error = read(&path).err().unwrap_or_else(|| panic!("{sql} was taken"));
            assert!(error.to_string().contains(says), "{sql}: {error}");
            fs::remove_file(&path).unwrap();
        }
    }
}
