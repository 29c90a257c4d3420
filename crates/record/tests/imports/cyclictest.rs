//! cyclictest: the interval of each thread, as the real tool sets it.

use rtproof_record::import::{self, Hints, Imported};

use super::common::{counts, has, hints, read, refused};

fn with(text: &str, command: &str) -> Imported {
    let hints = Hints { command: Some(command.into()), ..hints("v") };
    import::read(text.as_bytes(), &hints).unwrap_or_else(|error| panic!("{error}"))
}

/// What `cyclictest -t2 -v` prints: each interval is that of the next thread.
const HEAD: &str = "Max CPUs = 2\nOnline CPUs = 2\n# /dev/cpu_dma_latency set to 0us\n\
    Thread 0 Interval: 1500\nThread 1 Interval: 2000\n";

/// Two threads, the second of which wakes up 1600 µs late once.
fn samples() -> String {
    let each = |task: u64, late: u64| {
        let value = move |cycle| if cycle == 5 { late } else { 70 };
        (0..20).map(move |cycle| format!("{task:8}:{cycle:8}:{:8}\n", value(cycle)))
    };
    HEAD.to_owned() + &each(0, 70).chain(each(1, 1600)).collect::<String>()
}

/// The real tool: `-S` and `-t` alike make each thread 500 µs slower, a histogram makes them alike.
#[test]
fn each_thread_has_its_own_interval() {
    let of = |command| -> Vec<_> {
        with(&samples(), command).threads.iter().map(|t| t.period_ns.map(|ns| ns / 1000)).collect()
    };
    let alike = samples().replace("Interval: 2000", "Interval: 1500");
    assert_eq!(of("cyclictest -S -v -i 1000"), [Some(1000), Some(1500)]);
    let second = |text: &str, command| with(text, command).threads[1].period_ns;
    let bare: String = samples().lines().skip(5).map(|line| format!("{line}\n")).collect();
    assert_eq!(second(&bare, "cyclictest -S -v"), Some(1_500_000));
    assert_eq!(second(&bare, "cyclictest -t2 -d 300 -v"), Some(1_300_000));
    assert_eq!(second(&bare, "cyclictest -t2 -d 0 -v"), Some(1_000_000));
    assert_eq!(second(&alike, "cyclictest -t2 -i1500 -d 0 -v"), Some(1_500_000));
}

/// 1600 µs late skips one wake-up of 1500 µs, three of 500 µs.
#[test]
fn skipped_wake_ups_are_counted_with_the_own_interval() {
    let read = with(&samples(), "cyclictest -t2 -v -i 1000");
    let omitted = |i| read.omitted_of(i);
    assert_eq!((omitted(0), omitted(1)), (Some(0), Some(1)), "{:?}", read.doubts);
    assert!(!has(&read, "command-interval"), "1500 is what 1000 and 500 print");
}

/// `--interval` says the first thread's; of the others nothing is known without the distance.
#[test]
fn the_interval_of_the_first_thread_is_not_that_of_all() {
    let bare: String = samples().lines().skip(5).map(|line| format!("{line}\n")).collect();
    let hints = Hints { period_ns: Some(500_000), duration_ns: Some(10_000_000), ..hints("v") };
    let read = import::read(bare.as_bytes(), &hints).expect("samples");
    assert_eq!((read.threads[0].period_ns, read.threads[0].expected), (Some(500_000), Some(20)));
    assert_eq!((read.threads[1].period_ns, read.threads[1].expected), (None, None));
    assert_eq!((read.omitted_of(0), read.omitted_of(1)), (Some(0), None));
    assert!(has(&read, "omission-uncounted") && !has(&read, "samples-missing"));
    assert!(read.threads[1].deadline().is_none());
}

/// A command line of another run: neither its interval nor what follows from it is taken.
#[test]
fn a_wrong_interval_counts_nothing() {
    for command in ["cyclictest -t2 -v -i 200", "cyclictest -t2 -v -i 1000 -D 1 -d 9000"] {
        let read = with(&samples(), command);
        let is_wrong = command.contains("200");
        assert_eq!(has(&read, "command-interval"), is_wrong, "{command}: {:?}", read.doubts);
        assert_eq!(read.omitted.is_none(), is_wrong, "{command}");
    }
    // More samples than fit into the run.
    let text: String = (0..500).map(|cycle| format!("0:{cycle}:1500\n")).collect();
    let read = with(&text, "cyclictest -v -i 1000000 -D 10");
    assert!(has(&read, "command-interval") && !has(&read, "omission"), "{:?}", read.doubts);
    assert!(read.omitted.is_none() && read.threads[0].expected.is_none());
}

#[test]
fn a_column_of_smis_is_no_part_of_the_value() {
    let text = "       0:       0:      17       0\n       0:       1:      99       2\n";
    let read = read("smi", text.as_bytes());
    assert_eq!((counts(&read), read.threads[0].max_ns), (vec![2], Some(99_000)));
    refused("smi", text.replace("99       2", "99       2       1").as_bytes());
}

#[test]
fn a_file_of_one_of_several_threads_is_refused() {
    let text: String = (0..5).map(|cycle| format!("       1:{cycle:8}:      17\n")).collect();
    let error = refused("one", text.as_bytes()).to_string();
    assert!(error.contains("a sample of thread 0"), "{error}");
}

/// A line of `-v`.
fn line(cycle: u64, value: u64) -> String {
    format!("       0:{cycle:8}:{value:8}\n")
}

/// As `cyclictest -v -i 100 | (sleep 9; cat)` of 2.4 does it: 60 000 cycles with no gap in their
/// numbers, and all but the last values of the ring overwritten by later ones.
#[test]
fn values_that_the_ring_overwrote_are_no_samples() {
    const RING: u64 = 16_384;
    // A value that does not come again soon, as latencies in the field.
    let value = |cycle: u64| 50 + cycle.wrapping_mul(6_364_136_223_846_793_005) % 97;
    let real: String = (0..40_000).map(|cycle| line(cycle, value(cycle))).collect();
    assert_eq!(counts(&read("real", real.as_bytes())), [40_000]);
    let slow = |cycle: u64| value(cycle + (39_999 - cycle) / RING * RING);
    let slow: String = (0..40_000).map(|cycle| line(cycle, slow(cycle))).collect();
    let error = refused("slow", slow.as_bytes()).to_string();
    assert!(error.contains("copies of later ones") && error.contains("(-h)"), "{error}");
    // A thread that is always as late is no copy of itself.
    let alike: String = (0..40_000).map(|cycle| line(cycle, 7 + cycle / 30_000)).collect();
    assert_eq!(counts(&read("alike", alike.as_bytes())), [40_000]);
}

/// As `cyclictest -v -o 10` of 2.4 prints it: the number of a cycle is that of the largest.
#[test]
fn the_largest_of_some_samples() {
    let cycles = [1, 19, 25, 31, 47, 56, 64, 78, 87, 90, 105, 111];
    let text: String = cycles.iter().map(|&cycle| line(cycle, 300 + cycle)).collect();
    let read = with(&text, "cyclictest -t1 -v -o 10 -i 1000 -l 120");
    assert!(has(&read, "reduced") && !has(&read, "samples-lost"), "{:?}", read.doubts);
    assert!(!has(&read, "samples-missing") && read.omitted.is_none(), "{:?}", read.doubts);
    let largest = read.doubts.iter().find(|doubt| doubt.id == "reduced").expect("it is");
    assert!(largest.text.contains("about 10 samples"), "{}", largest.text);
}

#[test]
fn lines_that_are_gone_are_counted() {
    let lost = |cycles: &[u64]| {
        let text: String = cycles.iter().map(|&cycle| line(cycle, 30)).collect();
        let read = read("lost", text.as_bytes());
        let found = read.doubts.iter().find(|doubt| doubt.id == "samples-lost");
        found.map(|doubt| doubt.text.split(' ').next().unwrap_or("").to_owned())
    };
    assert_eq!(lost(&[0, 1, 2, 3]), None);
    assert_eq!(lost(&[5, 6, 7, 8]).as_deref(), Some("5"), "the beginning");
    assert_eq!(lost(&[0, 1, 2, 9]).as_deref(), Some("6"));
    // Of a value of 0 cyclictest prints the number of an earlier one.
    let zeros = line(0, 3) + &line(1, 9) + &line(1, 0) + &line(1, 0) + &line(4, 2);
    let zeros = read("zeros", zeros.as_bytes());
    assert_eq!((counts(&zeros), has(&zeros, "samples-lost")), (vec![5], false));
}
