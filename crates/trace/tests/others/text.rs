//! Real traces as text, read in place: of kernel lists, and of planted delays in our lab.

use std::fs;

use crate::common::capture;
use rtproof_trace::{
    Event, EventData, WakeUp, WakeUpBasis,
    ftrace_text::{TextTrace, parse, parse_rtla},
};

fn read(name: &str) -> Option<String> {
    let bytes = fs::read(capture(name)?).expect("the capture");
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn trace(name: &str) -> Option<TextTrace> {
    let trace = parse(&read(name)?).expect("a trace");
    Some(trace)
}

fn lab(name: &str) -> Option<TextTrace> {
    let trace = trace(&format!("lab-timerlat-traces/{name}.txt"))?;
    // At most the first line, which dd cut.
    assert!(trace.skipped.count <= 1, "{name}: {:?}", trace.skipped);
    Some(trace)
}

/// The names in the last stack.
fn stack(trace: &TextTrace) -> Vec<&str> {
    let frames = trace.events.iter().rev().find_map(|event| match &event.what {
        EventData::Stack { frames } => Some(frames),
        _ => None,
    });
    let frames = frames.expect("a stack").iter();
    frames.map(|frame| trace.symbols[frame].as_str()).collect()
}

/// Kind, name and duration of the longest noise inside the wake-up.
fn longest_noise(trace: &TextTrace) -> (String, String, u64) {
    let window = trace.window().expect("a window");
    let subject = trace.subject.expect("a wake-up");
    let inside = |event: &&Event| (subject.due_ns..=subject.ran_ns).contains(&event.at_ns);
    let noises = window.events.iter().filter(inside).filter_map(|event| match event.what {
        EventData::Noise { kind, name, duration_ns, .. } => {
            Some((kind.to_string(), name.to_string(), duration_ns))
        }
        _ => None,
    });
    noises.max_by_key(|(_, _, ns)| *ns).expect("a noise")
}

#[test]
fn the_wakeup_rt_trace_of_a_risc_v_board() {
    let name = "kernel-list-traces/wakeup_rt-th1520-folio_batch_move_lru-1689us.txt";
    let Some(trace) = trace(name) else { return };
    assert_eq!(
        (trace.tracer.as_str(), trace.latency_ns, trace.cpu),
        ("wakeup_rt", Some(1_689_000), Some(0))
    );
    assert_eq!(trace.kernel.as_deref(), Some("6.5.0-rt6-r1208-00004-gca3876fc69a6-dirty"));
    let task = &trace.tasks[&217];
    assert_eq!((task.comm.as_str(), task.rt_priority), ("cyclictest", 99));
    assert_eq!(
        trace.subject,
        Some(WakeUp {
            tid: 217,
            cpu: 0,
            due_ns: 1_000,
            ran_ns: 1_676_000,
            how: WakeUpBasis::Woken
        })
    );
    // The gap ends in the kernel's section of stress-ng, which gives pages back.
    assert_eq!(trace.tasks[&232].comm, "stress-n");
    let names = stack(&trace);
    assert!(names.contains(&"release_pages") && names.contains(&"sys_munmap"), "{names:?}");
    let window = trace.window().expect("a window");
    // The line "19us#: 0" is a call without a name.
    assert_eq!((window.cpu, window.events.len()), (0, 6));
    assert_eq!((trace.count, trace.skipped.count), (6, 0), "{:?}", trace.skipped);
}

#[test]
fn the_hwlat_traces_of_a_server() {
    for (name, wanted) in [("", 6), ("-clflush", 3), ("-nowc-empty", 0)] {
        let name = format!("kernel-list-traces/hwlat-tracer-mgag200-v6.6{name}.txt");
        let Some(trace) = trace(&name) else { return };
        assert_eq!((trace.tracer.as_str(), trace.events.len()), ("hwlat", wanted), "{name}");
        assert_eq!(trace.skipped.count, 0, "{:?}", trace.skipped);
        if let Some(first) = trace.events.first() {
            let EventData::Hwlat { inner_ns, outer_ns, nmi_count: 0 } = first.what else {
                panic!()
            };
            assert_eq!(
                (first.cpu, inner_ns / 20_000, outer_ns / 20_000),
                (1, inner_ns / 20_000, 1 + u64::from(wanted == 6))
            );
        }
    }
}

#[test]
fn the_analysis_of_rtla_over_a_network_driver() {
    let Some(text) = read("kernel-list-traces/rtla-timerlat-aa-igb-709us.txt") else { return };
    let analysis = parse_rtla(&text).expect("an analysis");
    assert_eq!(analysis.cpus.len(), 1);
    let cpu = &analysis.cpus[0];
    let ns = |name: &str| cpu.part(name).and_then(|part| part.ns);
    assert_eq!(cpu.cpu, 1);
    assert_eq!((ns("IRQ latency"), ns("IRQ handler delay")), (Some(709_250), Some(0)));
    let blocking = cpu.part("Blocking thread").expect("a part");
    assert_eq!(blocking.tasks, [("ip".to_owned(), 3_567, None)]);
    assert!(cpu.stack.iter().any(|name| name == "igb_update_mc_addr_list"), "{:?}", cpu.stack);
    assert_eq!(cpu.parts.last().and_then(|part| part.share_e4), Some(10_000));
}

#[test]
fn a_timerlat_that_did_not_stop_is_about_no_wake_up() {
    let Some(trace) = lab("control") else { return };
    assert_eq!((trace.subject, trace.window()), (None, None));
    let worst = trace.events.iter().filter_map(|event| match event.what {
        EventData::Timerlat { latency_ns, .. } => Some(latency_ns),
        _ => None,
    });
    assert!(worst.max().is_some_and(|ns| ns < 100_000));
}

#[test]
fn planted_delays_are_seen() {
    for (name, latency_ns, culprit) in [
        ("irqsoff", 5_039_972, "labdelay_irqsoff"),
        ("preemptoff", 4_758_428, "labdelay_preemptoff"),
        ("smi", 4_731_648, "s_smi"),
    ] {
        let Some(trace) = lab(name) else { return };
        let subject = trace.subject.expect("a wake-up");
        assert_eq!((subject.latency_ns(), subject.cpu), (latency_ns, 0), "{name}");
        assert!(trace.tasks[&subject.tid].comm.starts_with("timerlat/"));
        let names = stack(&trace);
        assert!(names.contains(&culprit), "{name}: {names:?}");
        // Up to where the program entered the kernel; what the buffer held before is cut.
        assert_eq!(names.last(), Some(&"entry_SYSCALL_64_after_hwframe"), "{name}");
    }
}

#[test]
fn planted_preemption_and_interrupts_are_seen() {
    let Some(trace) = lab("rr99") else { return };
    assert_eq!(trace.subject.map(|subject| subject.latency_ns()), Some(8_211_984));
    let wanted = ("thread".to_owned(), "multipathd".to_owned(), 8_132_036);
    assert_eq!(longest_noise(&trace), wanted);
    let Some(trace) = lab("hardirq") else { return };
    let wanted = ("irq".to_owned(), "local_timer".to_owned(), 5_059_760);
    assert_eq!(longest_noise(&trace), wanted);
}
