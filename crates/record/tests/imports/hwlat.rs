//! hwlatdetect of rt-tests 2.4 and newer, in the form of its script.

use rtproof_record::import::{self, Hints, Imported};

use super::common::{counts, has, hints, max_us, read, refused};

const HEAD: &str = "hwlatdetect:  test duration 120 seconds\n   detector: tracer\n   parameters:\n\
    \x20       CPU list:          None\n        Latency threshold: 20us\n\
    \x20       Sample window:     1000000us\n        Sample width:      250000us\n\
    \x20    Non-sampling period:  750000us\n        Output File:       None\n\n\
    Starting test\ntest finished\n";

const SAMPLES: &str = "ts: 1519674281.220664736, inner:17, outer:25, cpu:0, count:3\n\
    ts: 1519674282.721666674, inner:41, outer:0, cpu:1, count:1\n\
    ts: 1519674283.001666674, inner:0, outer:22, cpu:0, count:2\n";

fn whole() -> String {
    format!(
        "{HEAD}Max Latency: 41us\nSamples recorded: 3\nSamples exceeding threshold: 6\n\
         SMIs during run: 2\n{SAMPLES}"
    )
}

fn said(read: &Imported, text: &str) -> bool {
    let doubts = read.doubts.iter().map(|doubt| &doubt.text);
    doubts.chain(&read.remarks).any(|line| line.contains(text))
}

#[test]
fn the_longer_gap_of_each_window_and_its_time() {
    let read = read("hwlatdetect", whole().as_bytes());
    assert_eq!((counts(&read), max_us(&read)), (vec![2, 1], vec![25, 41]));
    assert_eq!(read.threads[0].min_ns, Some(22_000), "the outer gap, not the inner one of 0");
    // Settings and time of each sample.
    for text in [
        "threshold (20us)",
        "(250000us of 1000000us)",
        "6 gaps above the threshold in 3 windows",
        "ts: 1519674282.721666674, inner:41, outer:0, cpu:1",
        "SMIs during run: 2",
    ] {
        assert!(said(&read, text), "{text}: {:?} {:?}", read.doubts, read.remarks);
    }
}

/// With `--watch` samples come before the summary, with `--debug` lines stand in between.
#[test]
fn the_variants_hold_the_same() {
    let plain = read("plain", whole().as_bytes());
    let without = whole().replace(SAMPLES, "");
    let watched = without.replace("Starting test\n", &format!("Starting test\n{SAMPLES}"));
    let debug = format!(
        "debugging prints turned on\nmounting debugfs at /sys/kernel/debug\n\
         threshold set to 20us\nhardlimit set to 20us\ntest duration is 120s\n{}\
         not umounting debugfs\n",
        whole().replace(
            "Starting test\n",
            "Starting test\nc-states disabled\nenabling detector \
            module (threshold: 20)\ndetector module enabled (threshold: 20)\n"
        )
    );
    let smi = whole().replace("SMIs during", "3 SMIs occured on cpu 1\nSMIs during");
    let saved = smi.replace(SAMPLES, &format!("report saved to r.txt (3 samples)\n{SAMPLES}"));
    let crlf = whole().replace('\n', "\r\n");
    for text in [watched, debug, saved, crlf] {
        let read = read("variant", text.as_bytes());
        assert_eq!((counts(&read), max_us(&read)), (counts(&plain), max_us(&plain)), "{text}");
        assert_eq!(read.duration_ns, Some(120_000_000_000));
    }
    assert!(said(&read("smi", smi.as_bytes()), "3 SMIs occured on cpu 1"));
    let report = read("report", SAMPLES.as_bytes());
    assert_eq!(counts(&report), counts(&plain));
    assert!(has(&report, "not-ended") && said(&report, "10 µs unless asked"));
}

/// Nothing above the threshold is not a largest gap of 0.
#[test]
fn below_the_threshold_is_no_zero() {
    for max in ["Below threshold", "0us"] {
        let text = format!(
            "{HEAD}Max Latency: {max}\nSamples recorded: 0\nSamples exceeding threshold: 0\n"
        );
        let read = read("none", text.as_bytes());
        let thread = &read.threads[0];
        assert_eq!((thread.n, thread.max_ns, thread.largest()), (0, None, None), "{max}");
        assert!(said(&read, "no gap above the threshold"));
    }
}

#[test]
fn an_interrupted_run_has_no_known_duration() {
    let text = whole().replace("Starting test\n", "Starting test\n^Cinterrupted\n");
    let cut = read("cut", text.as_bytes());
    assert_eq!(cut.duration_ns, None);
    assert!(has(&cut, "command-duration") && counts(&cut) == [2, 1]);
    let hints = Hints { duration_ns: Some(7), ..hints("told") };
    let imported = import::read(text.as_bytes(), &hints).expect("read");
    assert_eq!(imported.duration_ns, Some(7));
}

#[test]
fn two_runs_in_one_file_are_refused() {
    let none = format!("{HEAD}Max Latency: Below threshold\nSamples recorded: 0\n");
    for text in [none.clone() + &whole(), whole() + &none, SAMPLES.repeat(2)] {
        let error = refused("two", text.as_bytes()).to_string();
        assert!(error.contains("import each run by itself"), "{error}");
    }
    for (from, to) in [("inner:41", "inner:-41"), ("inner:41", "inner:4,1"), ("41us", "40us")] {
        refused("damaged", whole().replace(from, to).as_bytes());
    }
}

/// The kernel's own tracer counts the gaps of a window, too.
#[test]
fn the_tracer_counts_gaps() {
    let text = "# tracer: hwlat\n#\n# entries-in-buffer/entries-written: 2/2   #P:8\n#\n\
        \x20          <...>-1729  [001] d...   678.473449: #1     inner/outer(us):   11/12    \
        ts:1581527483.343962693 count:6\n\
        \x20          <...>-1729  [004] d...   679.473449: #2     inner/outer(us):   16/9     \
        ts:1581527484.343962693 count:1 nmi-total:7 nmi-count:1\n";
    let read = read("tracer", text.as_bytes());
    assert_eq!(max_us(&read), [12, 16]);
    assert!(said(&read, "7 gaps above the threshold in 2 windows"), "{:?}", read.doubts);
}
