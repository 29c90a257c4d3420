//! A run that is read as a long one: nothing is lost, and the edges stay where they are.

use std::path::Path;

use super::*;
use crate::common::{Maker, SECOND_NS, head, tail};
use crate::read::{Opened, read_in};
use crate::run::Run;
use crate::{SealState, Writer};

/// Three threads for 400 s; the second of a minute and the readings of the host, one a tick, for
/// 130 s. The load changes at 5 s and at 60 s.
fn made(path: &Path) -> (Writer, Maker) {
    let (mut writer, mut maker) = (Writer::create(path, &head()).unwrap(), Maker::new(11, 3, 20));
    for at in 0..130 {
        writer.append(&maker.tick(at)).unwrap();
    }
    for from in (130..400).step_by(90) {
        let mut tick = maker.tick(from);
        for at in from + 1..from + 90 {
            tick.threads.extend(maker.tick(at).threads);
            maker.host.pop();
        }
        writer.append(&tick).unwrap();
    }
    (writer, maker)
}

fn shown(path: &Path, edge_seconds: u64) -> Opened {
    let detail = ReadDetail::Shown(Limits { seconds: 1000, pieces: 10, edge_seconds });
    read_in(path, detail, |_| ()).unwrap().0
}

/// Every piece is the sum of its seconds.
fn assert_sums(long: &Run, full: &Run) {
    for (long, full) in long.threads.iter().zip(&full.threads) {
        assert!(long.totals == full.totals && long.wake == full.wake && long.top == full.top);
        assert_eq!(long.missed, full.missed);
        let mut seconds = full.seconds.iter();
        for piece in &long.seconds {
            let mut sum = seconds.next().unwrap().clone();
            while sum.to_ns < piece.to_ns {
                sum.merge(seconds.next().unwrap());
            }
            assert!(sum == *piece, "{} to {}", piece.from_ns, piece.to_ns);
        }
        assert_eq!(seconds.next(), None);
    }
}

#[test]
fn minutes_are_the_sums_of_their_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, mut maker) = made(&path);
    writer.finish(&tail(&mut maker.threads)).unwrap().seal().unwrap();
    let full = crate::read(&path).unwrap().run;
    assert!(full.threads == maker.threads && full.host == maker.host);
    let opened = shown(&path, 1000);
    assert!(matches!(opened.state, SealState::Sealed { .. }));
    assert_sums(&opened.run, &full);
    let ends: Vec<u64> =
        opened.run.threads[1].seconds.iter().map(|s| s.to_ns / SECOND_NS).collect();
    // The minute of the first edge by seconds, two minutes a piece, what is no minute by seconds.
    let expected: Vec<u64> = (1..=60).chain([120, 240, 360]).chain(361..=400).collect();
    assert_eq!(ends, expected);
    // No room for seconds: the minute of the edge is alone.
    let ends = |thread: &Thread| thread.seconds.iter().map(|s| s.to_ns / SECOND_NS).collect();
    let few: Vec<Vec<u64>> = shown(&path, 10).run.threads.iter().map(ends).collect();
    let expected: Vec<u64> = [60, 120, 240, 360].into_iter().chain(361..=400).collect();
    assert_eq!(few, [expected.clone(), expected.clone(), expected]);
}

#[test]
fn the_host_keeps_its_readings_and_the_sums_of_its_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (_writer, maker) = made(&path);
    let opened = shown(&path, 1000);
    assert!(matches!(opened.state, SealState::Torn));
    let long = opened.run.host;
    let readings = |host: &[crate::run::HostSecond]| -> Vec<_> {
        host.iter().map(|row| (row.at_ns, row.interrupts, row.temp_max_mc)).collect()
    };
    assert_eq!(readings(&long), readings(&maker.host));
    let sums = |host: &[crate::run::HostSecond]| {
        let rows = host.iter().flat_map(|row| &row.cpus);
        rows.fold((0, 0), |(busy, steal), cpu| (busy + cpu.busy_ms, steal + cpu.steal_ms))
    };
    assert_eq!(sums(&long), sums(&maker.host));
    let with: Vec<usize> = (0..long.len()).filter(|&i| !long[i].cpus.is_empty()).collect();
    let expected: Vec<usize> = [59, 119].into_iter().chain(120..133).collect();
    assert_eq!(with, expected, "two blocks, and what is no block by readings");
}

#[test]
fn blocks_that_do_not_fit_the_rest_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, _) = made(&path);
    drop(writer);
    for sql in [
        "UPDATE block SET n = n + 1 WHERE block = 3 AND thread = 1",
        "UPDATE block SET sum_ns = '340282366920938463463374607431768211455' WHERE block = 3",
        "DELETE FROM block WHERE block = 2 AND thread = 0",
        "UPDATE block SET wake_data = x'80' WHERE block = 1",
        "UPDATE block SET interval_n = 7, interval_min_ns = NULL WHERE block = 4",
        "UPDATE block SET to_ns = from_ns - 1 WHERE block = 4",
        "UPDATE block SET to_ns = to_ns + 1 WHERE block = 3 AND thread = 2",
    ] {
        let copy = folder.path().join("y.rtproof");
        fs::copy(&path, &copy).unwrap();
        let conn = Connection::open(&copy).unwrap();
        assert!(conn.execute(sql, []).unwrap() > 0);
        drop(conn);
        let limits = Limits { seconds: 1000, pieces: 10, edge_seconds: 1000 };
        let read = read_in(&copy, ReadDetail::Shown(limits), |_| ());
        let error = read.err().unwrap_or_else(|| panic!("read: {sql}"));
        assert!(matches!(error, ReadError::Damaged { .. }), "{sql}: {error}");
        assert!(crate::read(&copy).is_ok(), "{sql}");
    }
}
