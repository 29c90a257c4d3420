//! Results as people hand them on, and what is no result.

use rtproof_record::import::{self, ImportError};

use super::common::{fixture, has, hints, read};

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).expect("text")
}

#[test]
fn a_result_out_of_a_mail_or_an_editor_is_the_same() {
    for name in ["cyclictest-2.4-h.txt", "cyclictest-2.4-v.txt", "cyclictest-2.4-q.txt"] {
        let plain = read(name, text(name).as_bytes());
        let quoted: String = text(name).lines().map(|line| format!("> > {line}\r\n")).collect();
        let indented: String = text(name).lines().map(|line| format!("    {line}\n")).collect();
        let utf16 = std::iter::once(0xfeff).chain(text(name).encode_utf16().collect::<Vec<u16>>());
        let utf16: Vec<u8> = utf16.flat_map(u16::to_le_bytes).collect();
        let marked = [b"\xef\xbb\xbf", text(name).as_bytes()].concat();
        for bytes in [quoted.as_bytes(), indented.as_bytes(), &utf16, &marked] {
            let pasted = import::read(bytes, &hints("pasted")).expect(name);
            let counts = |of: &import::Imported| -> Vec<(u64, Option<u64>)> {
                of.threads.iter().map(|thread| (thread.n, thread.max_ns)).collect()
            };
            assert_eq!(counts(&pasted), counts(&plain), "{name}");
            assert_ne!(pasted.digest, plain.digest, "of the file as it is");
        }
    }
}

#[test]
fn text_around_a_result_is_ignored() {
    for name in ["cyclictest-2.4-h.txt", "cyclictest-2.4-v.txt", "cyclictest-2.4-q.txt"] {
        let plain = read(name, text(name).as_bytes());
        for before in [
            "defaulting realtime priority to 10\n",
            "cyclictest V 2.40\n",
            "# cyclictest V 2.40\n",
            "rig 3, after cyclictest was updated\n",
        ] {
            let with = format!("{before}{}", text(name));
            let with = import::read(with.as_bytes(), &hints(name))
                .unwrap_or_else(|error| panic!("{name} after {before}: {error}"));
            assert_eq!(with.threads.len(), plain.threads.len());
            assert_eq!(with.command, plain.command, "{name}: {before}");
            assert_eq!(with.threads[0].n, plain.threads[0].n);
        }
    }
}

#[test]
fn a_last_line_without_an_end_is_whole_if_the_counts_match() {
    let whole = text("cyclictest-2.4-h.txt");
    let read = read("x", whole.trim_end().as_bytes());
    assert_eq!(read.threads[0].n, 984 + 12);
    assert!(has(&read, "no-line-end"));
    // A last value may be cut, where nothing counts.
    let summary = text("cyclictest-2.4-q.txt");
    import::read(summary.trim_end().as_bytes(), &hints("x")).expect_err("cut off");
}

#[test]
fn a_trace_is_sent_to_explain() {
    for trace in [
        "# tracer: nop\n#\n",
        "cpus=6\n  ls-4734  [002] 106439.675571: bprint: x\n",
        "> ls-1 [002] 1.5: sched_switch: prev_comm=a\n",
        "\x17\x08\x44tracing6\0",
        "PERFILE2h\0\0",
        "Samples do not have callchains.\n  time    cpu  task name  wait time  sch delay   run time\n",
        "\n -----\n  Task        |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    |\n",
        "  *A0       29401.593487 secs A0 => migration/0:18\n",
    ] {
        let error = import::read(trace.as_bytes(), &hints("x")).expect_err(trace);
        assert!(matches!(error, ImportError::Trace { .. }), "{trace}: {error}");
        assert!(error.to_string().contains("rtproof explain x"), "{error}");
    }
}

/// No quantile is above the largest sample, in any file.
#[test]
fn no_quantile_is_above_the_maximum() {
    let wide = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n\
        # Duration:   0 00:00:10\nIndex   CPU-000\n0 200\n10 100\n20 3\nover: 0\ncount: 303\n\
        min: 2\navg: 5\nmax: 20\n";
    let read = read("wide", wide.as_bytes());
    let thread = &read.threads[0];
    assert_eq!(thread.max_ns, Some(20_000));
    for p in [0.5, 0.9, 0.99, 0.999, 1.0] {
        let value = thread.quantile(p, read.resolution_ns).expect("a quantile");
        assert!(value.ns <= 20_000, "{p}: {value:?}");
    }
}

/// Where samples have no value, that the law holds is no proof.
#[test]
fn an_omission_is_exact_only_where_every_sample_has_a_value() {
    let read = read("x", text("cyclictest-2.4-h.txt").as_bytes());
    let omitted = read.omitted.as_ref();
    assert!(omitted.is_none_or(|omitted| omitted.confirmed != Some(true)), "{omitted:?}");
    assert!(read.doubts.iter().all(|doubt| !doubt.text.contains("exactly")), "{:?}", read.doubts);
}
