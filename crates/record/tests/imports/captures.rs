//! Real results of others, with the numbers that their README says.

use rtproof_record::import::{self, Hints, Imported, SampleKind};
use rtproof_stats::Bins;

use super::common::{capture, counts, has, hints, max_us, read};

const ARTICLE: &str =
    "cyclictest --mlockall --smp --priority=80 --interval=200 --distance=0 -D 15m -H 400";

/// Read with the command line that the article says.
fn article(name: &str) -> Option<Imported> {
    let path = format!("rpi4-stock-vs-rt/{name}-cyclictest.log");
    let bytes = capture(&path)?;
    let hints = Hints { command: Some(ARTICLE.replace("400", "4000")), ..hints(&path) };
    Some(import::read(&bytes, &hints).unwrap_or_else(|error| panic!("{error}")))
}

fn all(imported: &Imported) -> Bins {
    let mut all = Bins::default();
    imported.threads.iter().for_each(|thread| all.merge(&thread.bins));
    all
}

/// In the tool's own microseconds.
fn quantile_us(bins: &Bins, p: f64) -> u64 {
    bins.quantile(p).expect("samples") / 1000
}

#[test]
fn the_articles_files_have_the_articles_numbers() {
    let expected: &[(&str, &[u64])] = &[
        ("non-rt", &[70, 59, 42, 61]),
        ("non-rt-stress", &[717, 374, 245, 189]),
        ("idle", &[88, 65, 42, 18]),
        ("stress", &[255, 279, 230, 106]),
        ("rt-stress-no-multipathd", &[120, 114, 130, 107]),
    ];
    let largest: &[(&str, u64)] = &[
        ("stress-memory", 288),
        ("cpu-hdd-hackbench", 203),
        ("memory", 133),
        ("hackbench", 102),
        ("hdd", 91),
    ];
    for (name, max) in expected {
        let Some(read) = article(name) else { return };
        assert_eq!(max_us(&read), *max, "{name}");
        assert_eq!((read.tool.as_str(), read.threads.len()), ("cyclictest", 4));
        for thread in &read.threads {
            assert_eq!((thread.n, thread.overflow), (thread.bins.total(), 0));
            assert!(
                !thread.max_is_at_least
                    && thread.kind == SampleKind::Latency
                    && thread.cpu.is_none()
            );
        }
    }
    for (name, max) in largest {
        let Some(read) = article(name) else { return };
        assert_eq!(max_us(&read).into_iter().max(), Some(*max), "{name}");
    }
}

#[test]
fn samples_are_kept_to_the_last_one() {
    let names = ["non-rt", "non-rt-stress", "idle", "stress", "rt-stress-no-multipathd"];
    let expected = [17_999_635, 17_982_363, 17_999_691, 17_999_556, 17_999_590];
    for (name, n) in names.into_iter().zip(expected) {
        let Some(read) = article(name) else { return };
        assert_eq!(counts(&read).iter().sum::<u64>(), n, "{name}");
        assert_eq!(all(&read).total(), n, "{name}");
    }
}

/// Removing multipathd helped the far tail only.
#[test]
fn quantiles_over_all_threads() {
    let Some(stock) = article("non-rt-stress") else { return };
    let rt = all(&article("stress").expect("beside it"));
    let without = all(&article("rt-stress-no-multipathd").expect("beside it"));
    assert_eq!(quantile_us(&all(&stock), 0.999), 193);
    assert_eq!([&rt, &without].map(|bins| quantile_us(bins, 0.999)), [55, 57]);
    assert_eq!([&rt, &without].map(|bins| quantile_us(bins, 0.9999)), [69, 76]);
    assert_eq!([&rt, &without].map(|bins| quantile_us(bins, 0.99999)), [104, 92]);
    assert_eq!([&rt, &without].map(|bins| quantile_us(bins, 1.0)), [279, 130]);
}

/// Expected less recorded is the sum of floor(latency / interval), exactly.
#[test]
fn skipped_wake_ups_are_counted_exactly() {
    let names = [
        "non-rt",
        "non-rt-stress",
        "idle",
        "stress",
        "rt-stress-no-multipathd",
        "stress-memory",
        "cpu-hdd-hackbench",
        "memory",
        "hackbench",
        "hdd",
    ];
    for name in names {
        let Some(read) = article(name) else { return };
        let omitted = read.omitted.as_ref().expect("interval and duration are known");
        assert_eq!(omitted.confirmed, Some(true), "{name}");
        assert!(!omitted.at_least && !has(&read, "samples-missing"), "{name}");
        assert_eq!(read.threads[0].expected, Some(4_500_000));
        assert_eq!(omitted.by_thread[0], 4_500_000 - read.threads[0].n, "{name}");
        assert_eq!(has(&read, "omission"), omitted.total() > 0);
        let deadline = read.threads[0].deadline().expect("a distribution");
        assert_eq!(deadline.total(), 4_500_000, "{name}: with the skipped ones it is whole");
    }
    let read = article("non-rt-stress").expect("beside the others");
    assert_eq!(read.omitted.expect("known").by_thread[0], 17_260);
}

#[test]
fn without_the_command_the_omission_is_unknown() {
    let path = "rpi4-stock-vs-rt/non-rt-stress-cyclictest.log";
    let Some(bytes) = capture(path) else { return };
    let read = read(path, &bytes);
    assert!(
        read.omitted.is_none() && has(&read, "omission-uncounted") && has(&read, "cpu-unknown")
    );
    assert_eq!((read.period_ns, read.duration_ns, read.command), (None, None, None));
}

/// A command line of another run is found out.
#[test]
fn a_command_line_that_does_not_fit_is_doubted() {
    let path = "rpi4-stock-vs-rt/stress-cyclictest.log";
    let Some(bytes) = capture(path) else { return };
    let with = |command: &str| {
        let hints = Hints { command: Some(command.into()), ..hints(path) };
        import::read(&bytes, &hints).expect("it is read all the same")
    };
    assert!(has(&with("cyclictest -t2 -i200 -d0 -D15m -h400"), "command-threads"));
    assert!(has(&with("cyclictest -S -i1000 -D15m -h400"), "command-interval"));
    assert!(has(&with("cyclictest -S -i200 -D1h -h400"), "samples-missing"));
    assert!(has(&with("cyclictest -S -i200 -D15m -h100"), "command-histogram"));
    let right = with("cyclictest -S -i200 -D15m -h400");
    let wrong = ["command-threads", "command-interval", "samples-missing", "command-histogram"];
    assert!(wrong.iter().all(|id| !has(&right, id)), "{:?}", right.doubts);
}

#[test]
fn raspberry_pi_images() {
    let expected: &[(&str, [u64; 4], u64, u64)] = &[
        ("20.04_5.4.195-rt74-raspi", [148, 111, 119, 102], 143_999_676, 72),
        ("22.04_5.15.39-rt42-raspi", [46, 50, 60, 51], 143_999_673, 29),
        ("24.04_6.8.4-rt11-raspi_rpi4", [54, 55, 82, 63], 143_999_466, 34),
        ("24.04_6.8.4-rt11-raspi_rpi5", [26, 34, 24, 25], 143_999_734, 9),
    ];
    for (name, max, n, p9999) in expected {
        let path = format!("rpi-images/{name}.log");
        let Some(bytes) = capture(&path) else { return };
        let hints = Hints {
            period_ns: Some(200_000),
            duration_ns: Some(7_200_000_000_000),
            ..hints(&path)
        };
        let read = import::read(&bytes, &hints).expect("a result");
        assert_eq!(max_us(&read), max, "{name}");
        assert_eq!(counts(&read).iter().sum::<u64>(), *n, "{name}");
        assert_eq!(quantile_us(&all(&read), 0.9999), *p9999, "{name}");
        assert_eq!(read.omitted.expect("known").confirmed, Some(true), "{name}");
    }
}

#[test]
fn a_footer_without_rows() {
    let Some(idle) = capture("ros2-footers/idle.txt") else { return };
    let idle = read("idle.txt", &idle);
    assert_eq!(max_us(&idle), [19, 16, 17, 33]);
    assert_eq!(counts(&idle), [18_000_000, 17_999_947, 17_999_896, 17_999_842]);
    assert!(has(&idle, "no-distribution") && idle.threads.iter().all(|t| t.bins.is_empty()));
    let stress = capture("ros2-footers/stress-cpu-60.txt").expect("beside it");
    let stress = read("stress-cpu-60.txt", &stress);
    assert_eq!(max_us(&stress), [107, 124, 140, 114]);
}

#[test]
fn json_of_a_rig() {
    let Some(bytes) = capture("hwlat-rig/cyclictest-recon-2026-09-07.json") else { return };
    let read = read("recon.json", &bytes);
    assert_eq!(max_us(&read), [12, 42, 12, 13, 30, 18]);
    assert_eq!(counts(&read), [600_000, 600_000, 599_999, 599_997, 599_997, 599_997]);
    let cpus: Vec<Option<u32>> = read.threads.iter().map(|t| t.cpu).collect();
    assert_eq!(cpus, (6..12).map(Some).collect::<Vec<_>>());
    assert_eq!((read.tool_version.as_deref(), read.resolution_ns), (Some("2.80"), 1000));
    assert_eq!((read.period_ns, read.duration_ns), (Some(200_000), Some(120_000_000_000)));
    assert_eq!(read.started_s, Some(1_788_809_363));
    let omitted = read.omitted.as_ref().expect("the command line is in the file");
    assert_eq!((omitted.total(), omitted.confirmed), (0, Some(true)));
    assert!(read.machine.as_deref().is_some_and(|m| m.contains("7.0.0-30-realtime")));
    let doubts: Vec<&str> = read.doubts.iter().map(|doubt| doubt.id.as_str()).collect();
    assert!(doubts.is_empty(), "{doubts:?}");
}

#[test]
fn timerlat_histograms() {
    let Some(bytes) = capture("rtla-docs/timerlat-hist-10m-5cpu.txt") else { return };
    let hist = read("timerlat-hist", &bytes);
    let of = |imported: &Imported, kind: SampleKind| -> Vec<u64> {
        let threads = imported.threads.iter().filter(|t| t.kind == kind);
        threads.map(|t| t.max_ns.expect("a maximum") / 1000).collect()
    };
    assert_eq!(of(&hist, SampleKind::Latency), [36, 58, 44, 46, 50]);
    assert_eq!(of(&hist, SampleKind::IrqLatency), [16, 15, 24, 21, 13]);
    assert!(counts(&hist).iter().all(|&n| n == 600_002));
    assert_eq!(hist.duration_ns, Some(600_000_000_000));
    let user = capture("rtla-docs/timerlat-hist-user-10m-3cpu.txt").expect("beside it");
    let user = read("timerlat-user", &user);
    assert_eq!(of(&user, SampleKind::UserLatency), [19, 14, 15]);
    assert_eq!(user.threads[2].label, "CPU 1 user");
    assert_eq!(counts(&user)[..4], [600_001, 600_001, 600_001, 600_000]);
    let first = &hist.threads[1];
    assert_eq!((first.cpu, first.min_ns, first.mean_ns), (Some(0), Some(1000), Some(5000.0)));
    assert_eq!(quantile_us(&first.bins, 0.5), 6);
}

#[test]
fn timerlat_top_and_what_stopped_it() {
    let Some(bytes) = capture("rtla-docs/timerlat-top-aa-40us-23cpu.txt") else { return };
    let top = read("timerlat-top", &bytes);
    let cpu23: Vec<_> = top.threads.iter().filter(|t| t.cpu == Some(23)).collect();
    assert_eq!((cpu23[0].kind, cpu23[0].max_ns), (SampleKind::IrqLatency, Some(28_000)));
    assert_eq!((cpu23[1].kind, cpu23[1].max_ns), (SampleKind::Latency, Some(41_000)));
    assert_eq!((top.threads.len(), cpu23[1].n), (46, 12_320));
    let said = |text: &str| top.remarks.iter().any(|remark| remark.contains(text));
    assert!(said("Thread latency: 41.96 us (100%)") && said("27.49 us (65.52 %)"));
    assert!(said("objtool:49256 3.79 us") && said("## CPU 23 hit stop tracing"));
    let alone = capture("kernel-list-traces/rtla-timerlat-aa-igb-709us.txt").expect("beside it");
    let alone = read("aa", &alone);
    let thread = &alone.threads[0];
    assert_eq!((thread.cpu, thread.n, thread.max_ns), (Some(1), 1, Some(709_250)));
    assert!(thread.kind == SampleKind::IrqLatency && has(&alone, "one-sample"));
    assert!(alone.remarks.iter().any(|remark| remark == "ip:3567"));
    assert!(alone.remarks.iter().any(|remark| remark == "-> igb_update_mc_addr_list"));
}

#[test]
fn hwlat_before_and_after() {
    let names = ["", "-clflush", "-nowc-empty"];
    let expected: [&[u64]; 3] = [&[41, 41, 40, 41, 41, 40], &[21, 21, 21], &[]];
    for (name, gaps) in names.into_iter().zip(expected) {
        let path = format!("kernel-list-traces/hwlat-tracer-mgag200-v6.6{name}.txt");
        let Some(bytes) = capture(&path) else { return };
        let read = read(&path, &bytes);
        assert_eq!(counts(&read).iter().sum::<u64>(), gaps.len() as u64, "{path}");
        let mut found: Vec<u64> = read
            .threads
            .iter()
            .flat_map(|t| t.bins.iter().flat_map(|bin| vec![bin.low_ns / 1000; bin.n as usize]))
            .collect();
        let mut gaps = gaps.to_vec();
        found.sort_unstable();
        gaps.sort_unstable();
        assert_eq!(found, gaps, "{path}");
        assert!(read.threads.iter().all(|t| t.kind == SampleKind::HardwareGap));
        assert!(has(&read, "threshold") && has(&read, "half-time"));
    }
}
