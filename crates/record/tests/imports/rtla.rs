//! rtla of Linux 6.12 to 6.18, in the form of its timerlat_hist.c, timerlat_top.c, osnoise_hist.c:
//! user threads as a third column, the row `over:`, the summary `ALL:`.

use rtproof_record::import::{self, Hints, Imported, SampleKind};

use super::common::{has, max_us, read, refused};

/// `rtla timerlat hist -u -c 0,3 -E 20`.
const HIST: &str = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:01
Index   IRQ-000   Thr-000   Usr-000   IRQ-003   Thr-003   Usr-003
0             3         0         0         0         0         0 
1           995         0         0       990         0         0 
5             2       900         0        10       900         0 
9             0       100       990         0       100         0 
19            0         0         8         0         0       999 
over:         0         0         2         0         0         1 
count:     1000      1000      1000      1000      1000      1000 
min:          0         5         9         1         5        19 
avg:          1         5         9         1         5        19 
max:          5         9      2417         5         9        20 
ALL:        IRQ       Thr       Usr
count:     2000      2000      2000 
min:          0         5         9 
avg:          1         5        14 
max:          5         9      2417 
";

const TOP: &str = "                                     Timer Latency                                                                                       \n  \
0 00:01:00   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)      |    Ret user Timer Latency (us)\n\
CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max |      cur       min       avg       max\n  \
0 #60000     |        1         0         1        17 |        6         3         6        41 |        7         4         7        44\n  \
3 #59999     |        1         0         1        16 |        6         3         6        40 |        -         -         -         -\n\
---------------|----------------------------------------|---------------------------------------|-|---------------------------------------\n\
ALL #119999 e0 |                  0         1        17 |                  3         6        41 |                  4         7        44\n";

fn with(text: &str, command: &str) -> Imported {
    let hints = Hints { command: Some(command.into()), name: "x".into(), ..Hints::default() };
    import::read(text.as_bytes(), &hints).unwrap_or_else(|error| panic!("{error}"))
}

fn quantile(read: &Imported, thread: usize, p: f64) -> (u64, bool) {
    let value = read.threads[thread].quantile(p, read.resolution_ns).expect("samples");
    (value.ns / 1000, value.at_least)
}

#[test]
fn three_columns_of_each_cpu_and_what_is_over() {
    let read = read("hist", HIST.as_bytes());
    let of: Vec<_> = read.threads.iter().map(|t| (t.cpu, t.kind, t.overflow)).collect();
    let kinds = [SampleKind::IrqLatency, SampleKind::Latency, SampleKind::UserLatency];
    let expected: Vec<_> = [(0, [0, 0, 2]), (3, [0, 0, 1])]
        .iter()
        .flat_map(|&(cpu, over)| (0..3).map(move |i| (Some(cpu), kinds[i], over[i])))
        .collect();
    assert_eq!(of, expected);
    assert_eq!(max_us(&read), [5, 9, 2417, 5, 9, 20]);
    assert!(read.threads.iter().all(|thread| thread.n == 1000 && thread.bins.total() == 1000));
    // In the rows, among what is over, and where the largest is the only one over.
    assert_eq!([quantile(&read, 2, 0.99), quantile(&read, 2, 0.999)], [(9, false), (20, true)]);
    assert_eq!(quantile(&read, 2, 1.0), (20, true));
    assert_eq!([quantile(&read, 5, 0.999), quantile(&read, 5, 1.0)], [(19, false), (20, false)]);
    for thread in &read.threads {
        for p in [0.5, 0.9, 0.99, 0.999, 1.0] {
            let value = thread.quantile(p, 1000).expect("samples");
            assert!(Some(value.ns) <= thread.max_ns, "{}: {value:?}", thread.label);
        }
    }
    let zeros = HIST.replace(
        "\nover:",
        "\n18            0         0         0         0         0         0 \nover:",
    );
    refused("order", zeros.as_bytes());
}

#[test]
fn a_shifted_or_lost_column_is_refused() {
    for (from, to) in [
        ("count:     1000      1000", "count:     1000"),
        ("   Usr-000", ""),
        ("Usr-003", "Usr-000"),
        ("         8         0", "       8,0         0"),
        ("over:         0         0         2", "over:         0         2         0"),
        ("1000 \nmin:", "1000 \nmin:          7 \nmin:"),
        ("0         0         2 ", "0         0        -2 "),
        ("count:     1000", "count: 99999999999999999999"),
        ("# RTLA timerlat", "# RTLA timerlat histogram\n# RTLA timerlat"),
    ] {
        let text = HIST.replacen(from, to, 1);
        assert_ne!(text, HIST, "{from}");
        let error = refused("shifted", text.as_bytes()).to_string();
        assert!(error.starts_with("shifted, line "), "{error}");
    }
}

/// The width of the rows is in no output: the command line says it.
#[test]
fn the_width_of_the_rows() {
    let text = |rows: &str, over: u64, n: u64, min: u64, max: u64| {
        format!(
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:01\n\
             Index   Thr-000\n{rows}over: {over}\ncount: {n}\nmin: {min}\navg: {min}\nmax: {max}\n"
        )
    };
    let sparse = text("10 90\n20 10\n", 0, 100, 10, 20);
    let read_sparse = read("sparse", sparse.as_bytes());
    assert!(has(&read_sparse, "bucket-assumed"));
    for (command, p50) in [
        ("rtla timerlat hist -d 1", 10),
        ("rtla timerlat hist -b 5 -d 1", 14),
        ("/usr/bin/rtla timerlat hist --bucket-size=10", 19),
        ("rtla timerlat hist -b 3", 19),
    ] {
        let read = with(&sparse, command);
        assert_eq!(quantile(&read, 0, 0.5), (p50, false), "{command}");
        assert_eq!(quantile(&read, 0, 1.0), (20, false), "{command}");
        assert_eq!(has(&read, "bucket-assumed"), command.ends_with("-b 3"), "{command}");
    }
    // All in row 0: it is as wide as its largest value at least.
    let one = text("0 100\n", 0, 100, 2, 7);
    let read_one = read("one", one.as_bytes());
    assert_eq!((quantile(&read_one, 0, 0.5), has(&read_one, "bucket-assumed")), ((7, false), true));
    assert_eq!(quantile(&with(&one, "rtla timerlat hist -b 10"), 0, 0.5), (7, false));
    // With others beyond the last row nothing says how wide it is.
    let over = text("0 99\n", 1, 100, 2, 700);
    let error = refused("over", over.as_bytes()).to_string();
    assert!(error.contains("--command"), "{error}");
    assert_eq!(quantile(&with(&over, "rtla timerlat hist -b 10 -E 10"), 0, 0.5), (9, false));
}

#[test]
fn top_of_user_threads() {
    let read = read("top", TOP.as_bytes());
    let of: Vec<_> = read.threads.iter().map(|t| (t.cpu, t.kind, t.n, t.max_ns)).collect();
    let cpu = |cpu, n, max: [u64; 3]| {
        let kinds = [SampleKind::IrqLatency, SampleKind::Latency, SampleKind::UserLatency];
        let ns = |us: u64| (us > 0).then_some(us * 1000);
        let n_of = move |us: u64| if us > 0 { n } else { 0 };
        (0..3).map(move |i| (Some(cpu), kinds[i], n_of(max[i]), ns(max[i]))).collect::<Vec<_>>()
    };
    assert_eq!(of, [cpu(0, 60_000, [17, 41, 44]), cpu(3, 59_999, [16, 40, 0])].concat());
    assert!(has(&read, "count-of-irq") && !has(&read, "not-ended"));
    assert_eq!(read.duration_ns, Some(60_000_000_000));
    let missed = format!("{TOP}1234 (2.06%) events missed, results might not be accurate\n");
    assert!(has(&self::read("missed", missed.as_bytes()), "samples-lost"));
}

/// The last screen of one run counts; the last of two runs would hide the first.
#[test]
fn two_runs_in_one_file_are_refused() {
    let later = TOP.replace("60000 ", "60100 ").replace("59999 ", "60099 ");
    let later = later.replace("119999", "120199");
    let read = read("screens", (TOP.to_owned() + &later).as_bytes());
    assert_eq!(read.threads[0].n, 60_100);
    let error = refused("runs", (later + TOP).as_bytes()).to_string();
    assert!(error.contains("import each run by itself"), "{error}");

    let line = |tid: u64, n: u64, max: u64| {
        format!("T: 0 ({tid:5}) P:90 I:1000 C:{n:7} Min:     20 Act:   20 Avg:   31 Max:{max:8}\n")
    };
    let live = line(0, 0, 0) + &line(77, 8, 37) + &line(77, 18, 38);
    let live = self::read("live", live.as_bytes());
    assert_eq!((live.threads[0].n, live.threads[0].max_ns), (18, Some(38_000)));
    for second in [line(99, 1000, 40), line(77, 7, 40)] {
        let error = refused("runs", (line(77, 1000, 9000) + &second).as_bytes()).to_string();
        assert!(error.contains("import each run by itself"), "{error}");
    }
}

/// The last line of the newest rtla counts all rows, cut to six digits.
#[test]
fn a_row_that_is_lost_or_comes_twice_is_refused() {
    let millions = TOP.replace("#60000 ", "#60000123 ").replace("#59999 ", "#59999456 ");
    let millions = millions.replace("ALL #119999 e0", "ALL #119999 e3");
    assert_eq!(read("millions", millions.as_bytes()).threads[0].n, 60_000_123);
    let lines: Vec<&str> = TOP.lines().collect();
    let row = format!("{}\n", lines[4]);
    let head = format!("{}\n", lines[2]);
    for text in [
        TOP.replace(&row, ""),
        TOP.replace(&row, &row.repeat(2)),
        TOP.replace(&head, "").replace(&row, &format!("{row}{head}")),
        TOP.replace("119999 e0", "119999 e1"),
        TOP.replace("#119999", "#1199x9"),
        TOP.replace("\n  3 #", "\n nan #"),
        TOP.replace("\n  3 #", "\n -3 #"),
        TOP.replace("\n  3 #", "\n 4294967296 #"),
    ] {
        assert_ne!(text, TOP);
        let error = refused("rows", text.as_bytes()).to_string();
        assert!(error.starts_with("rows, line "), "{error}");
    }
}
