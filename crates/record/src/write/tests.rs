//! Faults while writing.

use std::{fs, path::Path, time::Duration};

use super::*;
use crate::common::{Maker, assert_same, begin, head, judgement, tail};
use crate::{ReadError, SealState, common, read};

/// Lets the file grow by `pages` and no further: what a full disk looks like to SQLite.
fn fill_disk(writer: &Writer, pages: u32) {
    let now: u32 = writer.conn.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    writer.conn.pragma_update(None, "max_page_count", now + pages).unwrap();
}

fn is_full(error: &WriteError) -> bool {
    let text = error.to_string();
    matches!(error, WriteError::Full { .. }) && text.contains("free space") && text.contains("/x")
}

#[test]
fn a_full_disk_keeps_what_was_committed_and_the_tick_can_be_given_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let mut writer = Writer::create(&path, &head()).unwrap();
    let mut maker = Maker::new(3, 4, 2_000);
    fill_disk(&writer, 12);
    let mut written = 0;
    let tick = loop {
        let before = maker.threads.clone();
        let tick = maker.tick(written);
        match writer.append(&tick) {
            Ok(()) => written += 1,
            Err(error) => {
                assert!(is_full(&error), "{error:?}");
                assert!(read(&path).unwrap().run.threads == before);
                break tick;
            }
        }
    };
    assert!(written > 0, "the disk was full at once: nothing was tested");
    fill_disk(&writer, 1_000);
    writer.append(&tick).unwrap();
    drop(writer);
    assert!(read(&path).unwrap().run.threads == maker.threads);
}

#[test]
fn a_full_disk_at_the_end_leaves_a_torn_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (writer, mut expected) = begin(&path, 2);
    fill_disk(&writer, 0);
    let mut threads = expected.threads.clone();
    let mut tail = tail(&mut threads);
    tail.facts.as_mut().unwrap().condition_id = Some("x".repeat(100_000));
    let error = writer.finish(&tail).unwrap_err();
    assert!(is_full(&error), "{error:?}");
    expected.meta.ended = None;
    let opened = read(&path).unwrap();
    assert_eq!(opened.state, SealState::Torn);
    assert_same(&opened.run, &expected);
}

type Spoil = fn(&mut Tick);

#[test]
fn a_contradiction_is_refused_and_nothing_of_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (mut writer, expected) = begin(&path, 2);
    let mut maker = Maker::new(9, 3, 500);
    maker.tick(1);
    let good = maker.tick(2);
    let spoil: [(&str, Spoil); 8] = [
        ("histograms hold", |tick| tick.threads[2].wake_fine[0].1 += 1),
        ("not the fine one", |tick| {
            let wake = &mut tick.threads[0].second.wake;
            let most = wake.iter_mut().max_by_key(|(_, n)| *n).unwrap();
            most.1 -= 1;
            wake[0].1 += 1;
        }),
        ("do not ascend", |tick| tick.threads[0].wake_fine.swap(0, 1)),
        ("not started", |tick| tick.threads[1].number = 17),
        ("ends at", |tick| tick.threads[1].second.from_ns = 5),
        ("due at", |tick| {
            let twice = tick.threads[0].top[1];
            tick.threads[0].top[2] = twice;
        }),
        ("the second's maximum", |tick| _ = tick.threads[0].top.remove(0)),
        ("started twice", |tick| tick.started.push(common::info(0, 1))),
    ];
    for (expected, spoil) in spoil {
        let mut tick = good.clone();
        spoil(&mut tick);
        let text = writer.append(&tick).unwrap_err().to_string();
        assert!(text.contains(expected) && text.contains("thread"), "{expected}: {text}");
    }
    assert_same(&read(&path).unwrap().run, &expected);
    writer.append(&good).unwrap();
}

type SpoilSpikes = fn(&mut SpikeTick);

type SpoilEffects = fn(&mut EffectTick);

#[test]
fn spikes_that_contradict_are_refused_and_nothing_of_them_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (mut writer, expected) = begin(&path, 2);
    let mut good = common::spike_tick(1);
    good.list.iter_mut().for_each(|spike| spike.due_ns += 100);
    good.kept.iter_mut().for_each(|kept| kept.number += 100);
    good.dropped = vec![2];
    let spoil: [(&str, SpoilSpikes); 8] = [
        ("thread 17, which has not started", |tick| tick.list[0].thread = 17),
        ("thread 18, which has not started", |tick| tick.kept[0].thread = 18),
        ("window 3 comes twice", |tick| tick.kept[0].number = 3),
        ("window 1 is to go", |tick| tick.dropped = vec![1]),
        ("its CPUs do not sum", |tick| tick.causes[0].row.worst_ns += 1),
        ("spikes cannot be", |tick| tick.summary.as_mut().unwrap().seen += 1),
        ("events of a window", |tick| {
            let event = tick.kept[0].window.events[0].clone();
            tick.kept[0].window.events = vec![event; EVENTS_MAX + 1];
        }),
        ("100001 spikes", |tick| {
            let spike = tick.list[0].clone();
            tick.list = (1000..100_998).map(|due_ns| Spike { due_ns, ..spike.clone() }).collect();
        }),
    ];
    for (expected, spoil) in spoil {
        let mut spikes = good.clone();
        spoil(&mut spikes);
        let tick = Tick { spikes, ..Tick::default() };
        let text = writer.append(&tick).unwrap_err().to_string();
        assert!(text.contains(expected) && text.contains("spikes"), "{expected}: {text}");
    }
    assert_same(&read(&path).unwrap().run, &expected);
    writer.append(&Tick { spikes: good, ..Tick::default() }).unwrap();
    let spikes = read(&path).unwrap().run.spikes.unwrap();
    assert_eq!(spikes.kept.iter().map(|kept| kept.number).collect::<Vec<_>>(), [3, 103]);
}

#[test]
fn effects_that_contradict_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (mut writer, expected) = begin(&path, 1);
    let good = common::effect_tick(1);
    let spoil: [(&str, SpoilEffects); 3] = [
        ("slice 7, expected 2", |tick| tick.slices[0].number = 7),
        ("knob 9, which is not there", |tick| tick.slices[0].on = vec![9]),
        ("1002 knobs", |tick| {
            let knob = tick.knobs[0].clone();
            let more =
                (2..=1001).map(|number| crate::effects::KnobResult { number, ..knob.clone() });
            tick.knobs.extend(more);
        }),
    ];
    for (expected, spoil) in spoil {
        let mut effects = good.clone();
        spoil(&mut effects);
        let tick = Tick { effects, ..Tick::default() };
        let text = writer.append(&tick).unwrap_err().to_string();
        assert!(text.contains(expected) && text.contains("effects"), "{expected}: {text}");
    }
    assert_same(&read(&path).unwrap().run, &expected);
    writer.append(&Tick { effects: good, ..Tick::default() }).unwrap();
    assert_eq!(read(&path).unwrap().run.effects.unwrap().slices.len(), 3);
}

/// A file as a kill in the middle of a commit leaves it: changed pages and a hot journal.
fn torn_in_mid_commit(folder: &Path) -> (PathBuf, crate::Run) {
    let original = folder.join("original");
    let (mut writer, expected) = begin(&original, 3);
    let tx = writer.conn.transaction().unwrap();
    tx.execute_batch(
        "DELETE FROM hist; DELETE FROM stat WHERE second = 99; UPDATE run SET cost = ''",
    )
    .unwrap();
    tx.cache_flush().unwrap(); // journal synced, pages written, not committed
    let path = folder.join("x.rtproof");
    let journal = |path: &Path| PathBuf::from(format!("{}-journal", path.display()));
    fs::copy(&original, &path).unwrap();
    fs::copy(journal(&original), journal(&path)).unwrap();
    drop(tx);
    (path, expected)
}

#[test]
fn a_commit_that_was_cut_off_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, expected) = torn_in_mid_commit(folder.path());
    let opened = read(&path).unwrap();
    assert_eq!(opened.state, SealState::Torn);
    assert_same(&opened.run, &expected);
    let finished = Finished::open(&path).unwrap();
    finished.store_judgement(&judgement()).unwrap();
    finished.seal().unwrap();
    assert_same(&read(&path).unwrap().run, &expected);
}

#[test]
fn a_cut_off_commit_without_its_journal_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = torn_in_mid_commit(folder.path());
    fs::remove_file(format!("{}-journal", path.display())).unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, ReadError::Damaged { .. }), "{error:?}");
}

#[test]
fn a_reader_that_keeps_the_file_locked_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    let (mut writer, expected) = begin(&path, 1);
    writer.conn.busy_timeout(Duration::from_millis(1)).unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM run").unwrap();
    let note = Tick { notes: common::notes(), ..Tick::default() };
    let error = writer.append(&note).unwrap_err();
    assert!(matches!(error, WriteError::Busy { .. }), "{error:?}");
    reader.execute_batch("COMMIT").unwrap();
    assert_same(&read(&path).unwrap().run, &expected);
    writer.append(&note).unwrap();
}
