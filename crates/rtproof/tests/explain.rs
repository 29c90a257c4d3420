//! `rtproof explain`: records, traces of other tools, running applications, bad input.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::{self, alone, code, folder, stderr, stdout};
use serde_json::Value;

/// Captures of other tools, beside the project; says so where they are not.
fn capture(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/captures");
    let captures = std::env::var_os("RTPROOF_CAPTURES").map_or(beside.into(), PathBuf::from);
    let path = captures.join(name);
    if !path.exists() {
        eprintln!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}

/// Runs it where there is no record.
fn run(arguments: &[&str]) -> std::process::Output {
    support::run(Path::new("/"), arguments)
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn explain(path: &Path, more: &[&str]) -> Value {
    let path = path.to_string_lossy();
    json(&[&["explain", &path, "--json"], more].concat())
}

fn assert_sums(answer: &Value) {
    for spike in answer["spikes"]["worst"].as_array().expect("spikes") {
        let explanation = &spike["explanation"];
        let wake = &explanation["wake"];
        let late = wake["ran_ns"].as_u64().expect("ran") - wake["due_ns"].as_u64().expect("due");
        let shares = explanation["shares"].as_array().expect("shares");
        let sum: u64 = shares.iter().map(|share| share["ns"].as_u64().expect("ns")).sum();
        assert_eq!(sum, late);
    }
}

#[test]
fn what_wakeup_rt_kept() {
    let name = "kernel-list-traces/wakeup_rt-th1520-folio_batch_move_lru-1689us.txt";
    let Some(path) = capture(name) else { return };
    let answer = explain(&path, &[]);
    assert_sums(&answer);
    let worst = &answer["spikes"]["worst"][0]["explanation"];
    let late_ns =
        worst["wake"]["ran_ns"].as_u64().unwrap() - worst["wake"]["due_ns"].as_u64().unwrap();
    assert!((1_650_000..1_700_000).contains(&late_ns), "{late_ns}");
    assert!(worst["task"].as_str().unwrap().starts_with("cyclictest"), "{}", worst["task"]);
    let top = &worst["shares"][0];
    assert_eq!(top["cause"], "preempt-off");
    assert!(top["culprit"].as_str().unwrap().starts_with("stress-n"), "{top}");
    let text = stdout(&run(&["explain", &path.to_string_lossy()]));
    assert!(text.contains("cyclictest") && text.contains("the latency, exactly"), "{text}");
}

/// The listing of Wu's article, as people paste it.
const ARTICLE: &str = "
   # tracer: wakeup_rt
   # wakeup_rt latency trace v1.1.5 on 5.4.140-rt64
   # latency: 400 us, #345/345, CPU#1 | (M:preempt_rt VP:0, KP:0, SP:0 HP:0 #P:4)
   #    | task: cyclictest-12905 (uid:0 nice:0 policy:1 rt_prio:80)
   stress-n-12898     1dN.h4..    1us :    12898:120:R   + [001]   12905: 19:R cyclictest
   [omitted for brevity]
   stress-n-12898     1d...3..   57us : cpu_have_feature <-__switch_to
   multipat-1456      1d...3..   58us : finish_task_switch <-__schedule
   [omitted for brevity]
   multipat-1456      1d...3..  382us : update_curr_rt <-put_prev_task_rt
   multipat-1456      1d...3..  389us : __schedule <-schedule
   multipat-1456      1d...3..  389us :     1456:  0:S ==> [001]   12905: 19:R cyclictest
";

fn worst(answer: &Value) -> &Value {
    assert_sums(answer);
    &answer["spikes"]["worst"][0]["explanation"]
}

fn notes(answer: &Value) -> String {
    answer["notes"].to_string()
}

#[test]
fn the_listing_of_the_article_names_multipathd() {
    let folder = folder();
    for (name, text) in [
        ("plain", ARTICLE.to_owned()),
        ("quoted", ARTICLE.lines().map(|line| format!("> {line}\r\n")).collect()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a text");
        let answer = explain(&path, &[]);
        let top = &worst(&answer)["shares"][0];
        assert_eq!((&top["cause"], &top["ns"]), (&"preempted".into(), &331_000.into()), "{top}");
        assert_eq!(top["culprit"], "multipat [real-time 99]");
        // Most of the listing is left out: interrupts and other tasks may be listed.
        assert_eq!(top["certainty"], "likely", "{top}");
        assert!(notes(&answer).contains("345 entries, 6 are here"), "{}", notes(&answer));
    }
    // As a text in UTF-16.
    let path = folder.path().join("utf16");
    let units = std::iter::once(0xfeff).chain(ARTICLE.encode_utf16());
    std::fs::write(&path, units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()).expect("a text");
    assert_eq!(worst(&explain(&path, &[]))["shares"][0]["ns"], 331_000);
}

/// Wherever a listing is cut, nothing is certain, and what its header says is not lost.
#[test]
fn a_cut_listing_is_certain_of_nothing() {
    let folder = folder();
    let path = folder.path().join("cut");
    let begin = ARTICLE.find("   stress-n").expect("the first entry");
    for end in (begin + 1..ARTICLE.len()).step_by(7) {
        std::fs::write(&path, &ARTICLE[..end]).expect("a text");
        let answer = explain(&path, &[]);
        for share in answer["spikes"]["worst"].as_array().into_iter().flatten() {
            let shares = share["explanation"]["shares"].as_array().expect("shares");
            assert!(
                shares.iter().all(|share| share["certainty"] != "certain"),
                "{end}: {shares:?}"
            );
        }
        assert_eq!(answer["spikes"]["seen"], 1, "{end}: {answer}");
    }
}

#[test]
fn timerlat_records_are_explained_as_recorded() {
    for (name, cause, culprit) in [
        ("rr99", "preempted", "multipathd"),
        ("irqsoff", "irqs-off", "labdelay_irqsoff in sh"),
        ("preemptoff", "preempt-off", "sh"),
        ("hardirq", "timer-work", ""),
        ("smi", "irqs-off", "s_smi in sh"),
    ] {
        let Some(path) = capture(&format!("lab-timerlat-traces/{name}.txt")) else { return };
        let answer = explain(&path, &[]);
        let top = &worst(&answer)["shares"][0];
        assert_eq!(top["cause"], cause, "{name}: {top}");
        assert!(top["culprit"].as_str().unwrap().starts_with(culprit), "{name}: {top}");
        assert!(top["ns"].as_u64().unwrap() > 4_600_000, "{name}: {top}");
        // A system management interrupt looks the same as interrupts off.
        let or = top["or"].to_string();
        assert_eq!(or.contains("stall"), ["irqsoff", "hardirq", "smi"].contains(&name), "{name}");
    }
}

#[test]
fn what_other_tracers_and_tools_kept() {
    let kernel_list = |name: &str| capture(&format!("kernel-list-traces/{name}"));
    let Some(path) = kernel_list("hwlat-tracer-mgag200-v6.6.txt") else { return };
    let answer = explain(&path, &[]);
    assert_eq!(
        (&answer["spikes"]["seen"], &worst(&answer)["wake"]["how"]),
        (&6.into(), &"gap".into())
    );
    let Some(path) = kernel_list("rtla-timerlat-aa-igb-709us.txt") else { return };
    let answer = explain(&path, &[]);
    let top = &worst(&answer)["shares"][0];
    assert_eq!((&top["cause"], &top["ns"]), (&"irqs-off".into(), &709_250.into()));
    assert_eq!(
        (&top["culprit"], &top["certainty"]),
        (&"igb_update_mc_addr_list in ip:3567".into(), &"likely".into())
    );

    let folder = folder();
    let path = folder.path().join("irqsoff.txt");
    let text = "# tracer: irqsoff\n# irqsoff latency trace v1.1.5 on 6.1.0\n\
        # latency: 49000 us, #3/3, CPU#0 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:2)\n\
        # | task: cat-300 (uid:0 nice:0 policy:0 rt_prio:0)\n\
        #  => started at: plant_irqsoff\n#  => ended at:   plant_irqsoff\n\
        \x20    cat-300     0d....    0us!: plant_irqsoff <-param_attr_store\n\
        \x20    cat-300     0d.... 49000us : plant_irqsoff <-param_attr_store\n\
        \x20    cat-300     0d.... 49001us : tracer_hardirqs_on <-plant_irqsoff\n";
    std::fs::write(&path, text).expect("a text");
    let answer = explain(&path, &[]);
    let top = &worst(&answer)["shares"][0];
    assert_eq!((&top["cause"], &top["ns"]), (&"irqs-off".into(), &49_000_000.into()));
    assert_eq!(top["culprit"], "plant_irqsoff to plant_irqsoff in cat (300)");
}

#[test]
fn a_trace_dat_of_somebody_else() {
    let Some(path) = capture("trace-dat/trappy-raw_trace.dat") else { return };
    // Of its scheduler events it has sched_switch alone: wakings are not recorded.
    let none = run(&["explain", &path.to_string_lossy(), "--task", "ksoftirqd/0"]);
    assert_eq!(code(&none), 1);
    assert!(stderr(&none).contains("no wake-up was recorded"), "{}", stderr(&none));
}

#[test]
fn what_is_no_trace() {
    let dir = folder();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    };
    for (path, says) in [
        (file("empty", b""), "no text"),
        (file("binary", b"\x7fELF\0\0\0\0"), "no text"),
        (file("prose", b"Dear Sir,\nit was late.\n"), "none of 2 lines"),
        (file("torn.dat", b"\x17\x08\x44tracing6\0"), "torn.dat"),
        (dir.path().to_string_lossy().into_owned(), "no regular file"),
        (dir.path().join("none").to_string_lossy().into_owned(), "cannot be read"),
    ] {
        let output = run(&["explain", &path]);
        assert_eq!(code(&output), 1, "{path}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{path}: {}", stderr(&output));
    }
    let both = run(&["explain", "--pid", "1", "--comm", "x"]);
    assert_eq!(code(&both), 64);
    let nobody = run(&["explain", "--pid", "4194303", "--for", "1s"]);
    assert_eq!(code(&nobody), 64, "{}", stderr(&nobody));
}

/// An application that ends with the test, also when that fails.
struct Sleeper(std::process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A trace of a kernel that leaves out switches from the idle task: `busy_us` after each wake-up
/// the thread sleeps again, and only that is seen.
fn without_switches_from_idle(busy_us: u32) -> String {
    let cycle = |n: u32| {
        let at = |us: u32| format!("{}.{:06}", 10 + n / 1_000, n % 1_000 * 1_000 + us);
        format!(
            "          <idle>-0       [001] d.h3. {}: sched_waking: comm=loop pid=50 prio=19 \
             target_cpu=001\n            loop-50      [001] d..2. {}: sched_switch: \
             prev_comm=loop prev_pid=50 prev_prio=19 prev_state=S ==> next_comm=swapper/1 \
             next_pid=0 next_prio=120\n",
            at(0),
            at(busy_us)
        )
    };
    let cycles: String = (0..100).map(cycle).collect();
    format!("# tracer: nop\n#\n{cycles}")
}

#[test]
fn none_was_late_is_not_known_where_ends_are_missing() {
    let folder = folder();
    let path = folder.path().join("trace.txt");
    let answer = |text: &str| {
        std::fs::write(&path, text).expect("a file");
        let path = path.to_string_lossy();
        let output = run(&["explain", &path, "--over", "100us", "--json"]);
        let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (code(&output), all)
    };
    // Each is over before it could be late.
    let short = without_switches_from_idle(14);
    let (exit, all) = answer(&short);
    let gaps = |all: &Value| all["gaps"].to_string();
    // What was late before the waking is not in it.
    assert_eq!((exit, all["gaps"].as_array().map(Vec::len)), (3, Some(1)), "{all}");
    assert!(gaps(&all).contains("timers were not recorded"), "{all}");
    assert!(notes(&all).contains("99 wake-ups are counted up to"), "{all}");
    // Whether these were late cannot be seen.
    let (exit, all) = answer(&without_switches_from_idle(300));
    assert_eq!((exit, all["spikes"]["seen"].as_u64()), (3, Some(0)), "{all}");
    let gap = all["gaps"][0].as_str().unwrap_or_default();
    assert!(gap.ends_with("not recorded in 99 wake-ups"), "{all}");
    // Events that were lost in the middle may hold one; before the first event they do not.
    let (head, rest) = short.split_at(short.find("loop-50").expect("a line"));
    let head = head.trim_end();
    let (exit, all) = answer(&format!("{head}\nCPU:1 [LOST 12 EVENTS]\n {rest}"));
    assert!(exit == 3 && gaps(&all).contains("missing in 1 place"), "{all}");
    let (_, all) = answer(&format!("CPU:1 [LOST 12 EVENTS]\n{short}"));
    assert!(!gaps(&all).contains("missing"), "{all}");
}

/// What people posted: a thread that sleeps on its timer, a hog, and what they left out.
const FIELD_SWITCH: &str = "
     hog-600   [002] d..2.    99.999900: sched_switch: prev_comm=hog prev_pid=600 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=500 next_prio=9";
const FIELD_START: &str = "
  worker-500   [002] d..1.   100.000100: hrtimer_start: hrtimer=00000000aa function=hrtimer_wakeup expires=1001000000 softexpires=1001000000 mode=ABS";
const FIELD_SLEEP: &str = "
  worker-500   [002] d..2.   100.000105: sched_switch: prev_comm=worker prev_pid=500 prev_prio=9 prev_state=S ==> next_comm=hog next_pid=600 next_prio=120";
const FIELD_EXPIRE: &str = "
     hog-600   [002] d.h1.   100.003000: hrtimer_expire_entry: hrtimer=00000000aa function=hrtimer_wakeup now=1003000000";
const FIELD_WAKING: &str = "
     hog-600   [002] d.h2.   100.003001: sched_waking: comm=worker pid=500 prio=9 target_cpu=002";
const FIELD_RUN: &str = "
     hog-600   [002] dNh1.   100.003003: hrtimer_expire_exit: hrtimer=00000000aa
     hog-600   [002] d..2.   100.003010: sched_switch: prev_comm=hog prev_pid=600 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=500 next_prio=9";
const FIELD_LOADER: &str = "
  loader-700   [003] d.h1   500.000010: sched_waking: comm=ctl pid=800 prio=19 target_cpu=003
  loader-700   [003] d..2   500.000014: sched_switch: prev_comm=loader prev_pid=700 prev_prio=120 prev_state=R ==> next_comm=ctl next_pid=800 next_prio=19";

/// Exit code, how many were late, the worst in microseconds, the answer.
fn field(text: &str) -> (i32, u64, u64, String) {
    let folder = folder();
    let path = folder.path().join("field.txt");
    std::fs::write(&path, text).expect("a text");
    let output = run(&["explain", &path.to_string_lossy(), "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let spikes = &answer["spikes"];
    let wake = &spikes["worst"][0]["explanation"]["wake"];
    let at = |name: &str| wake[name].as_u64().unwrap_or(0);
    let late_us = (at("ran_ns") - at("due_ns")) / 1_000;
    for spike in spikes["worst"].as_array().into_iter().flatten() {
        let shares = spike["explanation"]["shares"].as_array().expect("shares").iter();
        let certain = shares.filter(|share| share["certainty"] == "certain").count();
        assert_eq!(certain, 0, "{spike}");
    }
    let seen = spikes["seen"].as_u64().unwrap_or(0);
    (code(&output), seen, late_us, answer["answer"]["result"].as_str().expect("result").to_owned())
}

#[test]
fn every_late_wake_up_of_a_text_counts_and_none_needs_all_of_it() {
    let (switch, start, sleep) = (FIELD_SWITCH, FIELD_START, FIELD_SLEEP);
    let (expire, waking, run) = (FIELD_EXPIRE, FIELD_WAKING, FIELD_RUN);
    let late = |parts: &[&str], us| {
        let (code, seen, late_us, result) = field(&parts.concat());
        assert_eq!((code, seen, late_us), (0, 1, us), "{result}");
    };
    let not_known = |parts: &[&str], why: &str| {
        let (code, seen, _, result) = field(&parts.concat());
        assert_eq!((code, seen), (3, 0), "{result}");
        assert!(result.starts_with("not known") && result.contains(why), "{why}: {result}");
    };
    // The thread's first wake-up, and a later one.
    late(&[start, sleep, expire, waking, run], 2_010);
    late(&[switch, start, sleep, expire, waking, run], 2_010);
    // Lines are left out after it was woken, and it was late by then.
    for gap in ["\n:", "\n...", "\n[...]", "\n--", "\n…", "\n[ cut ]", "\n[snip]"] {
        late(&[switch, start, sleep, expire, waking, gap, run], 2_001);
    }
    // Left out while it slept: its timer may have been set again.
    not_known(&[switch, start, sleep, "\n--", expire, waking, run], "");
    not_known(&[switch, sleep, expire, waking, run], "when it was due");
    not_known(
        &[
            switch,
            sleep,
            waking,
            "\n hog-600 [002] d..2. 100.003010: sched_switch: prev_comm=hog prev_pid=600 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=500 next_prio=9",
        ],
        "timers were not recorded",
    );
    not_known(&[expire, waking, run], "no wake-up");
    not_known(&[switch, start, sleep, expire, run], "when the thread ran");
    // It fired and woke nobody: frozen, or waiting for something else.
    not_known(
        &[
            switch,
            start,
            sleep,
            expire,
            "\n hog-600 [002] d.h1. 100.003003: hrtimer_expire_exit: hrtimer=00000000aa",
            "\n hog-600 [002] d..2. 100.903001: sched_waking: comm=worker pid=500 prio=9 target_cpu=002",
            "\n hog-600 [002] d..2. 100.903010: sched_switch: prev_comm=hog prev_pid=600 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=500 next_prio=9",
        ],
        "a timer fired while its thread slept on",
    );
    // cyclictest's own mark; and a switch that took 200 µs.
    let exit = "\n ctl-800   [003] ....   500.000215: sys_exit: NR 115 = 0";
    let mark = "\n ctl-800   [003] ....   500.000229: tracing_mark_write: hit latency threshold (215 > 100)";
    not_known(&[FIELD_LOADER, exit, mark], "215 µs late");
    let flush = "\n loader-700   [003] d..2   500.000214: tlb_flush: pages:-1 reason:flush on task switch (0)";
    late(&[FIELD_LOADER, flush, exit], 204);
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn a_running_application() {
        let instances = Path::new("/sys/kernel/tracing/instances");
        let root =
            Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
        if !root || !instances.is_dir() {
            eprintln!("skipped: needs root and tracefs at /sys/kernel/tracing");
            return;
        }
        let _alone = alone();
        // An ordinary thread that sleeps and wakes, and knows nothing of it.
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do sleep 0.01; done"]);
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        let sleeper = Sleeper(shell.spawn().expect("a shell"));
        let pid = sleeper.0.id().to_string();
        let answer = json(&["explain", "--pid", &pid, "--for", "2s", "--over", "1us", "--json"]);
        let text = run(&["explain", "--comm", "sleep", "--for", "1s", "--over", "1us"]);
        drop(sleeper);
        assert_sums(&answer);
        let seen = answer["spikes"]["seen"].as_u64().expect("a count");
        assert!(seen > 10, "{}", answer["about"]);
        // A shell is woken by its child's end; that is no timer.
        let how = &answer["spikes"]["worst"][0]["explanation"]["wake"]["how"];
        assert_eq!(how, "woken");
        assert_eq!(code(&text), 0, "{}", stderr(&text));
        assert!(stdout(&text).contains("name sleep"), "{}", stdout(&text));
    }

    #[test]
    fn a_record_and_what_others_open() {
        let instances = Path::new("/sys/kernel/tracing/instances");
        if !instances.is_dir() {
            eprintln!("skipped: no tracefs at /sys/kernel/tracing");
            return;
        }
        let dir = folder();
        let _alone = alone();
        let output = dir.path().join("run");
        let name = output.to_string_lossy();
        let made = run(&[
            "prove", "--for", "2s", "--load", "idle", "--spike", "1us", "-o", &name, "--json",
        ]);
        assert!([0, 2, 3].contains(&code(&made)), "{}", stderr(&made));
        let report: Value = serde_json::from_slice(&made.stdout).expect("JSON");
        if report["spikes"]["explained"] == 0 {
            eprintln!("skipped: {}", report["spikes"]["recorder"]["off"]);
            return;
        }
        let record = format!("{name}.rtproof");
        let (pftrace, dat) = (dir.path().join("s.pftrace"), dir.path().join("s.dat"));
        let answer = explain(Path::new(&record), &[]);
        assert_sums(&answer);
        assert_eq!(answer["spikes"], report["spikes"], "the record says what the run said");
        // One that was woken and switched to: both are in its window.
        let worst = answer["spikes"]["worst"].as_array().expect("spikes").iter();
        let whole = |spike: &&Value| {
            let explanation = &spike["explanation"];
            explanation["irq_ns"].is_u64()
                && explanation["woken_ns"].is_u64()
                && explanation["switched_ns"].is_u64()
        };
        let spike = worst.clone().find(whole).expect("an ordinary spike");
        let number = spike["number"].to_string();
        let _ = explain(
            Path::new(&record),
            &[
                "--spike",
                &number,
                "--perfetto",
                &pftrace.to_string_lossy(),
                "--trace-dat",
                &dat.to_string_lossy(),
            ],
        );
        assert!(std::fs::metadata(&pftrace).expect("a file").len() > 500);
        // What was written is a trace.dat that we read ourselves.
        let tid = spike["explanation"]["wake"]["tid"].to_string();
        let again = explain(&dat, &["--tid", &tid, "--over", "1us"]);
        assert_sums(&again);
        assert!(again["spikes"]["seen"].as_u64() > Some(0), "{again}");
        let missing = run(&["explain", &record, "--spike", "9999"]);
        assert_eq!(code(&missing), 64, "{}", stderr(&missing));
        let over = run(&["explain", &record, "--perfetto", &record]);
        assert_eq!(code(&over), 64, "the record is never written over");
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        let _alone = alone();
        let folder = folder();
        let args = ["explain", "--comm", "rtproof-nosuch", "--for", "1s"];
        let output = support::run(folder.path(), &args);
        assert_ne!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
        assert!(!stdout(&output).contains("--unit"), "it has no such option: {}", stdout(&output));
    }
}
