//! oslat since its rows have a width (`-W`), in the form of its write_summary() and
//! write_summary_json(): a row holds what is below its label, and not the label itself.

use rtproof_record::import::Imported;

use super::common::{has, read, refused};

const HEAD: &str = "oslat V 2.80\nTotal runtime: \t\t1 seconds\nThread priority: \tdefault\n\
    CPU list: \t\t0,1\nCPU for main thread: \t0\nWorkload: \t\tno\nWorkload mem: \t\t0 (KiB)\n\
    Preheat cores: \t\t2\n\nPre-heat for 1 seconds...\nTest starts...\nTest completed.\n\n";

/// A whole output: rows, the lines `Minimum`, `Maximum`, `Max-Min`.
fn text(rows: &[(&str, &str)], extremes: [&str; 3]) -> String {
    let mut out = format!("{HEAD}        Core:\t 0 3\nCounter Freq:\t 2597 2596 (MHz)\n");
    for (i, (label, counts)) in rows.iter().enumerate() {
        let end = if i + 1 == rows.len() { " (including overflows)" } else { "" };
        out += &format!("{:>12}:\t {counts}{end}\n", format!("{label} (us)"));
    }
    let [min, max, range] = extremes;
    out + &format!(
        "     Minimum:\t {min} (us)\n     Average:\t 2.005 2.014 (us)\n     Maximum:\t {max} (us)\n\
         \x20    Max-Min:\t {range} (us)\n    Duration:\t 1.009 1.006 (sec)\n\n"
    )
}

fn quantiles(read: &Imported, thread: usize) -> Vec<(u64, bool)> {
    let of = |p| read.threads[thread].quantile(p, read.resolution_ns).expect("samples");
    [0.5, 0.999, 1.0].map(|p| (of(p).ns, of(p).at_least)).to_vec()
}

#[test]
fn the_largest_gap_lies_below_the_label_of_its_row() {
    let rows = [("001", "0 0"), ("002", "99 99"), ("003", "0 1"), ("004", "1 0"), ("005", "0 0")];
    let read = read("new", text(&rows, ["1 1", "3 2", "2 1"]).as_bytes());
    let of = |i: usize| (read.threads[i].cpu, read.threads[i].n, read.threads[i].max_ns);
    assert_eq!([of(0), of(1)], [(Some(0), 100, Some(3000)), (Some(3), 100, Some(2000))]);
    assert_eq!(quantiles(&read, 0), [(1000, false), (3000, false), (3000, false)]);
    assert_eq!(quantiles(&read, 1), [(1000, false), (2000, false), (2000, false)]);
    assert!(!has(&read, "overflow") && read.remarks.is_empty(), "{:?}", read.remarks);
}

/// A gap as large as the last label is beyond the rows.
#[test]
fn what_is_beyond_the_rows_has_no_value() {
    let rows = [("001", "0 0"), ("002", "90 99"), ("003", "0 0"), ("004", "10 1")];
    let read = read("over", text(&rows, ["1 1", "8031 4", "8030 3"]).as_bytes());
    assert_eq!(quantiles(&read, 0), [(1000, false), (2001, true), (2001, true)]);
    assert_eq!((read.threads[0].overflow, read.threads[1].overflow), (10, 1));
    assert_eq!(read.threads[1].max_ns, Some(4000));
    assert!(has(&read, "overflow-mixed"));
}

/// `-W 10000`: a row is 10 µs wide, and not the last microsecond of it.
#[test]
fn wide_rows() {
    let rows = [("010", "99 50"), ("020", "1 50"), ("030", "0 0"), ("040", "0 0")];
    let read = read("wide", text(&rows, ["1 1", "13 17", "12 16"]).as_bytes());
    let bins: Vec<_> = read.threads[0].bins.iter().copied().collect();
    assert_eq!((bins[0].low_ns, bins[0].high_ns), (1, 9000));
    assert_eq!((bins[1].low_ns, bins[1].high_ns), (9001, 19_000));
    assert_eq!(quantiles(&read, 0)[0], (9000, false));
    assert_eq!(quantiles(&read, 0)[2], (13_000, false), "no quantile above the largest");
}

/// `-W 500`: labels have decimals, and the extremes of the JSON are nanoseconds then.
#[test]
fn rows_of_nanoseconds() {
    let rows = [("0.500", "99 98"), ("1.000", "1 1"), ("1.500", "0 1")];
    let text = read("ns", text(&rows, ["0.023 0.024", "0.612 8.123", "0.589 8.099"]).as_bytes());
    let of = |i: usize| {
        format!(
            "\"{i}\": {{\"cpu\": {}, \"freq\": 2597, \"min\": {}, \"avg\": 0.5, \"max\": {}, \
             \"duration\": 1.009, \"histogram\": {{{}}}}}",
            [0, 3][i],
            [23, 24][i],
            [612, 8123][i],
            ["\"0.500\": 99,\n\"1.000\": 1", "\"0.500\": 98, \"1.000\": 1, \"1.500\": 1"][i]
        )
    };
    let json = format!(
        "{{\n\"file_version\": 1,\n\"cmdline\": \"oslat -c 0,3 -D 1 -W 500 --json=o.json\",\n\
         \"rt_test_version\": \"2.80\",\n\"num_threads\": 2,\n\"resolution_in_ns\": 0,\n\
         \"thread\": {{{},\n{}}}\n}}\n",
        of(0),
        of(1)
    );
    let json = read("json", json.as_bytes());
    assert_eq!((text.resolution_ns, json.resolution_ns), (1, 1));
    for (text, json) in text.threads.iter().zip(&json.threads) {
        let of = |t: &rtproof_record::import::ImportedThread| (t.n, t.min_ns, t.max_ns, t.overflow);
        assert_eq!(of(text), of(json));
        assert_eq!(text.bins, json.bins);
    }
    assert_eq!(json.threads[1].max_ns, Some(8123));
    assert_eq!(quantiles(&text, 0), [(499, false), (612, false), (612, false)]);
}

/// As 2.4 printed it with `--bias` on this machine: the first row holds what is below it, too.
#[test]
fn a_bias_moves_the_labels() {
    let rows = [("002", "36798780 13144156"), ("003", "23 7"), ("033", "377 451")];
    let bias = text(&rows, ["1 1", "8031 11572", "8030 11571"])
        .replace("    033 (us)", "    ...\n    033 (us)")
        .replace("Test starts", "Global bias set to 1 (us)\nTest starts");
    let read = read("bias", bias.as_bytes());
    assert_eq!(quantiles(&read, 0)[0], (2000, false));
    assert_eq!(read.threads[0].bins.iter().next().map(|bin| bin.low_ns), Some(1));
}

#[test]
fn an_unknown_line_is_named_and_a_damaged_row_refused() {
    let rows = [("001", "0 0"), ("002", "99 99"), ("003", "1 1"), ("004", "0 0"), ("005", "0 0")];
    let whole = text(&rows, ["1 1", "2 2", "1 1"]);
    let more = whole.replace("    Duration", "      Stddev:\t 1.2 3.4 (us)\n    Duration");
    let more = read("more", more.as_bytes());
    assert_eq!(more.remarks, ["line 25 is not used: Stddev: 1.2 3.4 (us)"]);
    for (from, to) in [
        ("002 (us):", "002 (us)"),
        ("002 (us)", "002 (ms)"),
        ("002 (us)", "nan (us)"),
        ("    002 (us):\t 99 99\n", ""),
        ("    005 (us):\t 0 0 (including overflows)\n", ""),
        ("99 99", "99"),
        ("99 99", "99 99 99"),
        ("99 99", "99,5 99"),
        ("99 99", "-9 99"),
        ("1 1 (us)\n    Duration", "1 (us)\n    Duration"),
        ("     Maximum", "     Minimum"),
        ("Minimum:\t 1 1", "Minimum:\t 0 1"),
    ] {
        assert_ne!(whole.replace(from, to), whole);
        let error = refused("damaged", whole.replace(from, to).as_bytes()).to_string();
        assert!(error.starts_with("damaged, line "), "{from} to {to}: {error}");
    }
    let stopped = format!("{HEAD}oslat: Trace threshold (50 us) triggered on cpu 1 with 60 us!\n");
    let stopped = stopped.replace("Test completed.\n\n", "");
    let error = refused("stopped", (stopped + "        Core:\t 1\n").as_bytes()).to_string();
    assert!(error.contains("run it without -T"), "{error}");
}
