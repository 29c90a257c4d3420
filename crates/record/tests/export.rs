//! Every format holds every sample.

use std::io::{self, Write};

use crate::common::sealed;
use hdrhistogram::serialization::{
    Deserializer,
    interval_log::{IntervalLogIterator, LogEntry},
};
use rtproof_model::VerdictAnswer;
use rtproof_record::{
    Opened,
    export::{self, ExportError, FORMATS},
    read,
};
use serde_json::Value;

fn record() -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rtproof");
    sealed(&path, 3);
    read(&path).unwrap()
}

fn exported(opened: &Opened, format: &str, table: Option<&str>) -> String {
    let mut out = Vec::new();
    export::export(opened, format, table, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn json_holds_the_whole_record() {
    let opened = record();
    let json: Value = serde_json::from_str(&exported(&opened, "json", None)).unwrap();
    assert_eq!(json["schema"], "rtproof/record/1");
    assert_eq!(json["seal"]["state"], "sealed");
    assert_eq!(json["meta"]["ended"]["how"], "interrupted");
    assert_eq!(json["summary"], "accepted: 100 us");
    assert_eq!(json["spikes"]["summary"]["seen"], 20);
    assert_eq!(json["spikes"]["list"][2]["why"]["culprit"], "b");
    assert_eq!(json["spikes"]["kept"][1]["window"]["events"].as_array().unwrap().len(), 2);
    assert_eq!(json["effects"]["knobs"][1]["effects"][0]["p_ppb"], 488_281);
    assert_eq!(json["effects"]["slices"][2]["on"][0], 1);
    assert_eq!(json["verdict"]["answer"], "accepted");
    assert_eq!(json["facts_start"]["identity"]["hostname"]["value"], "robot-7");
    let threads = json["threads"].as_array().unwrap();
    assert_eq!(threads.len(), opened.run.threads.len());
    for (json, thread) in threads.iter().zip(&opened.run.threads) {
        let sum = |buckets: &Value| -> u64 {
            buckets.as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap()).sum()
        };
        let n = thread.totals.wake.count();
        assert_eq!(sum(&json["wake"]["buckets"]), n);
        assert_eq!(json["totals"]["sampled"], n);
        assert_eq!(json["totals"]["sum_ns"], thread.totals.wake.sum().to_string());
        assert_eq!(json["top"].as_array().unwrap().len(), 64);
        let seconds = json["seconds"].as_array().unwrap();
        assert_eq!(seconds.iter().map(|second| sum(&second["wake"])).sum::<u64>(), n);
        assert_eq!(
            seconds.iter().map(|second| sum(&second["missed"])).sum::<u64>(),
            thread.totals.missed
        );
    }
}

#[test]
fn csv_tables_hold_all_rows_in_all_columns() {
    let opened = record();
    let run = &opened.run;
    let lines = |table: &str| -> Vec<Vec<String>> {
        let text = exported(&opened, "csv", Some(table));
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    for table in ["seconds", "hist", "top", "host", "threads", "spikes", "effects", "slices"] {
        let lines = lines(table);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
    }
    assert_eq!(lines("seconds"), {
        let text = exported(&opened, "csv", None);
        text.lines().map(|l| l.split(',').map(str::to_owned).collect()).collect::<Vec<Vec<_>>>()
    });
    assert_eq!(lines("seconds").len(), 1 + 3 * run.threads.len());
    assert_eq!(lines("top").len(), 1 + 64 * run.threads.len());
    assert_eq!(lines("spikes").len(), 1 + 3);
    assert_eq!(lines("causes").len(), 1 + 2 * 2);
    assert_eq!(lines("effects").len(), 1 + 2 * 2);
    assert_eq!(lines("slices").len(), 1 + 3);
    let cpus: usize = run.host.iter().map(|host| host.cpus.len()).sum();
    assert_eq!(lines("host").len(), 1 + cpus);
    let hist: u64 = lines("hist")[1..].iter().map(|line| line[5].parse::<u64>().unwrap()).sum();
    let expected: u64 = run.threads.iter().map(|thread| thread.totals.accounted()).sum();
    assert_eq!(hist, expected);
    // Texts with commas, quotes and line ends.
    let notes = exported(&opened, "csv", Some("notes"));
    assert!(notes.contains("0,no-rt-right,true,\"no-rt-right: \"\"so it is\"\", and\nthat is"));
    let loads = exported(&opened, "csv", Some("loads"));
    assert!(loads.contains("\"64 MiB, 2 threads\",bytes,20,5,25,\n"), "{loads}");
}

/// RFC 4648, section 4.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = text.trim_end_matches('=');
    let digits: Vec<u32> = text.chars().map(|c| DIGITS.find(c).unwrap() as u32).collect();
    let group = |group: &[u32]| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | group.get(at).unwrap_or(&0));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

#[test]
fn hdr_log_keeps_every_count_and_the_exact_maximum() {
    let opened = record();
    let log = exported(&opened, "hdr", None);
    let mut counts = std::collections::BTreeMap::new();
    let mut intervals = 0;
    let mut last = std::time::Duration::ZERO;
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(interval) = entry.unwrap() else {
            continue;
        };
        let bytes = base64(interval.encoded_histogram());
        let histogram: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        let tag = interval.tag().unwrap().as_str().to_owned();
        let (n, max) = counts.entry(tag).or_insert((0, 0));
        *n += histogram.len();
        *max = (*max).max(histogram.max());
        assert!(interval.start_timestamp() >= last, "in order of time");
        last = interval.start_timestamp();
        intervals += 1;
    }
    assert!(intervals >= 9);
    for thread in &opened.run.threads {
        let name = format!("t{}.cpu{}", thread.info.number, thread.info.cpu);
        let (n, max) = counts[&name];
        assert_eq!(n, thread.totals.wake.count());
        let exact = thread.totals.wake.max().unwrap();
        assert!(max >= exact && max - exact <= exact / 1_000, "{max} for {exact}");
        let missed = counts.get(&format!("{name}.missed")).map_or(0, |(n, _)| *n);
        assert_eq!(missed, thread.totals.missed);
    }
}

#[test]
fn every_format_is_listed_once_and_writes_every_table() {
    let opened = record();
    let mut ids: Vec<&str> = FORMATS.iter().map(|format| format.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), FORMATS.len());
    for format in FORMATS {
        assert!(format.title.ends_with('.') && !format.extension.is_empty());
        assert!(!exported(&opened, format.id, None).is_empty());
        for table in format.tables {
            let is_imported = ["imported", "bins"].contains(table);
            let lines = exported(&opened, format.id, Some(table)).lines().count();
            assert!(lines > 1 || is_imported, "{table}");
        }
    }
}

#[test]
fn moving_statistics_are_of_all_and_each_and_end_with_the_whole_run() {
    use rtproof_stats::moving::Lengths;
    let opened = record();
    let text = exported(&opened, "csv", Some("moving"));
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == heads.len()));
    let column = |name: &str| heads.iter().position(|head| *head == name).expect(name);
    for thread in &opened.run.threads {
        let cpu = thread.info.cpu.to_string();
        let last = rows.iter().rfind(|row| row[0] == cpu).expect("rows of the CPU");
        let wake = &thread.totals.wake;
        let number = |name: &str| last[column(name)].parse::<f64>().unwrap();
        assert_eq!(number("cumulative_n"), wake.count() as f64);
        assert_eq!(Some(number("cumulative_mean_ns")), wake.mean());
        assert_eq!(Some(number("cumulative_sd_ns")), wake.sd());
        let missed: u64 = rows
            .iter()
            .filter(|row| row[0] == cpu)
            .map(|row| row[column("missed")].parse::<u64>().unwrap())
            .sum();
        assert_eq!(missed, thread.totals.missed);
    }
    assert!(rows.iter().any(|row| row[0].is_empty()), "all together");
    let asked = Lengths { window_ns: Some(1_500_000_000), half_life_ns: None };
    let error = export::export_moving(&opened, asked, &mut io::sink()).unwrap_err();
    assert!(error.to_string().contains("multiple of"), "{error}");
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    let opened = record();
    let refused = |format: &str, table: Option<&str>, expected: &str| {
        let error = export::export(&opened, format, table, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused("xml", None, "json, csv, hdr, cyclictest, junit");
    refused("csv", Some("secs"), "seconds, hist");
    refused("json", Some("seconds"), "whole record");
}

#[test]
fn a_reader_that_goes_away_is_an_io_error() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let opened = record();
    for format in FORMATS {
        let error = export::export(&opened, format.id, None, &mut Gone).unwrap_err();
        let ExportError::Io(error) = error else { panic!("{error:?}") };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}

/// What gnuplot scripts read is what our importer reads: counts and extremes are the same.
#[test]
fn the_histogram_of_cyclictest_is_read_back() {
    use rtproof_record::import::{self, Hints};
    let opened = record();
    let text = exported(&opened, "cyclictest", None);
    let hints = Hints { name: "x.hist".into(), ..Hints::default() };
    let back = import::read(text.as_bytes(), &hints).unwrap();
    assert_eq!(back.dialect, "cyclictest-histogram");
    for (thread, imported) in opened.run.threads.iter().zip(&back.threads) {
        let wake = &thread.totals.wake;
        assert_eq!(imported.n, wake.count());
        assert_eq!(imported.min_ns, wake.min().map(|ns| ns / 1000 * 1000));
        assert_eq!(imported.max_ns, wake.max().map(|ns| ns / 1000 * 1000));
        let ours = thread.wake.value_at_rank(wake.count() / 2).unwrap();
        let theirs = imported.bins.at_rank(wake.count() / 2).unwrap();
        assert!(theirs.low_ns <= ours && ours <= theirs.high_ns, "{ours} in {theirs:?}");
    }
}

#[test]
fn junit_has_a_case_for_the_verdict_and_each_thread() {
    let text = exported(&record(), "junit", None);
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "), "{text}");
    assert!(text.contains("<testsuites name=\"rtproof run\" tests=\"4\""), "{text}");
    assert_eq!(text.matches("<testcase ").count(), 4);
    // It was accepted, though each thread has late wake-ups: no case says anything else.
    assert_eq!(text.matches("<failure ").count(), 0, "{text}");
    let outcomes = |answer: VerdictAnswer| {
        let mut opened = record();
        opened.judgement.as_mut().unwrap().verdict.answer = answer;
        let text = exported(&opened, "junit", None);
        ["<failure ", "<skipped "].map(|outcome| text.matches(outcome).count())
    };
    assert_eq!(outcomes(VerdictAnswer::Refused), [4, 0]);
    assert_eq!(outcomes(VerdictAnswer::NotProven), [0, 4]);
}

#[test]
fn hdr_log_is_read_back_by_our_importer() {
    use rtproof_record::import::{self, Hints};
    let opened = record();
    let log = exported(&opened, "hdr", None);
    let hints = Hints { name: "x.hlog".into(), unit_ns: Some(1), ..Hints::default() };
    let back = import::read(log.as_bytes(), &hints).unwrap();
    for thread in &opened.run.threads {
        let tag = format!("t{}.cpu{}", thread.info.number, thread.info.cpu);
        let found = back.threads.iter().find(|series| series.label == tag).unwrap();
        assert_eq!((found.n, found.cpu), (thread.totals.wake.count(), Some(thread.info.cpu)));
        let max = found.largest().unwrap().ns;
        let exact = thread.totals.wake.max().unwrap();
        assert!(max >= exact && max - exact <= exact / 1_000, "{max} for {exact}");
    }
}
