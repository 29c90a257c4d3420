//! Our Perfetto traces in the hands of Perfetto's own generated code (the `perfetto` package of
//! Python, which scripts/deps.sh puts into ~/.cache/rtproof-perfetto).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::ignored;
use rtproof_trace::{
    Event, EventData, Task, WakeUp, WakeUpBasis, Window, event::Vector, perfetto::encode,
};
use serde_json::{Value, json};

/// Prints a trace as Perfetto's own code reads it, with what it does not know.
const READ: &str = r#"
import json, sys
from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
def unknown(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in (value if field.is_repeated else [value]):
                count += unknown(one)
    return count
trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
packets = [MessageToDict(packet, preserving_proto_field_name=True) for packet in trace.packet]
print(json.dumps({"unknown": unknown(trace), "packets": packets}))
"#;

fn python() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let python = Path::new(&home).join(".cache/rtproof-perfetto/bin/python");
    if !python.exists() {
        ignored(&format!("no {}: run scripts/deps.sh", python.display()), true);
        return None;
    }
    Some(python)
}

fn window() -> (Window, WakeUp) {
    let function = 0xffff_ffff_8100_0010;
    let at = |at_ns, what| Event {
        at_ns,
        cpu: 3,
        pid: 7,
        flags: rtproof_trace::event::flags::HARDIRQ,
        preempt: 0,
        what,
    };
    let switch = EventData::Switch {
        prev_comm: "bad hog".into(),
        prev_pid: 99,
        prev_prio: 0,
        prev_state: 1,
        next_comm: "control".into(),
        next_pid: 7,
        next_prio: 19,
    };
    let noise = EventData::Noise {
        kind: "irq".into(),
        name: "eth0".into(),
        number: -1,
        start_ns: 5,
        duration_ns: 6,
    };
    let mut events = vec![
        at(5_000, EventData::VectorEntry { vector: Vector::LocalTimer }),
        at(5_010, EventData::TimerExpire { timer: 0xffff_8880, function, now_ns: 5_005 }),
        at(5_020, EventData::Waking { comm: "control".into(), pid: 7, prio: 19, target_cpu: 3 }),
        at(5_030, EventData::TimerExpired { timer: 0xffff_8880 }),
        at(5_040, EventData::VectorExit { vector: Vector::LocalTimer }),
        at(5_041, EventData::VectorEntry { vector: Vector::Reschedule }),
        at(5_042, EventData::VectorExit { vector: Vector::Reschedule }),
        at(5_050, EventData::IrqEntry { irq: 38, name: "eth0-TxRx-0".into() }),
        at(5_060, EventData::IrqExit { irq: 38 }),
        at(5_070, EventData::SoftirqEntry { vec: 3 }),
        at(5_080, EventData::SoftirqExit { vec: 3 }),
        at(5_090, noise),
        at(5_095, EventData::Stack { frames: vec![function, 0x1234].into() }),
        at(5_100, switch),
    ];
    events.push(Event { cpu: 1, ..at(5_200, EventData::IdleExit) });
    let task = |comm: &str, tgid| Task { comm: comm.into(), tgid, ..Task::default() };
    let window = Window {
        cpu: 3,
        from_ns: 4_000,
        to_ns: 6_000,
        events,
        tasks: BTreeMap::from([(7, task("control", 6)), (6, task("robot", 6))]),
        symbols: BTreeMap::from([(function, "hrtimer_wakeup+0x0/0x20".into())]),
        ..Window::default()
    };
    let wake = WakeUp { tid: 7, cpu: 3, due_ns: 4_900, ran_ns: 5_100, how: WakeUpBasis::Measured };
    (window, wake)
}

/// The packets that have a part, each as that part.
fn parts<'a>(packets: &'a [Value], name: &str) -> Vec<&'a Value> {
    packets.iter().filter_map(|packet| packet.get(name)).collect()
}

#[test]
fn perfettos_own_code_reads_our_traces() {
    let Some(python) = python() else { return };
    let (window, wake) = window();
    let spans =
        [(4_900, 5_000, "masked by irq 38"), (5_000, 5_100, "preempted by bad hog [RR 99]")];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("spike.pftrace");
    fs::write(&file, encode(&window, &wake, &spans)).expect("a file");
    let output = Command::new(python).args(["-c", READ]).arg(&file).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).expect("json");
    assert_eq!(read["unknown"], 0, "{read:#}");
    let packets = read["packets"].as_array().expect("packets");
    check_bundles(packets);
    let tree = parts(packets, "process_tree");
    assert_eq!(tree[0]["processes"], json!([{"pid": 6, "cmdline": ["robot"]}]));
    assert_eq!(tree[0]["threads"][1], json!({"tid": 7, "tgid": 6, "name": "control"}));
    let tracks = parts(packets, "track_descriptor");
    let names: Vec<_> = tracks.iter().filter_map(|track| track["name"].as_str()).collect();
    let title = "rtproof: control 7 on CPU 3, 0.200 us late";
    assert_eq!(names, [title, "due and ran", "causes", "stacks"]);
    assert!(tracks[1..].iter().all(|track| track["parent_uuid"] == tracks[0]["uuid"]));
    check_marks(packets, tracks[2]);
}

/// The kernel's events, by CPU.
fn check_bundles(packets: &[Value]) {
    let bundles = parts(packets, "ftrace_events");
    assert_eq!(bundles.len(), 2);
    assert_eq!((&bundles[0]["cpu"], &bundles[1]["cpu"]), (&json!(1), &json!(3)));
    assert_eq!(bundles[0]["event"][0]["cpu_idle"], json!({"state": u32::MAX, "cpu_id": 1}));
    let events = bundles[1]["event"].as_array().expect("events");
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| {
            let keys = event.as_object()?.keys().map(String::as_str);
            keys.into_iter().find(|key| !["timestamp", "pid", "common_flags"].contains(key))
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "local_timer_entry",
            "hrtimer_expire_entry",
            "sched_waking",
            "hrtimer_expire_exit",
            "local_timer_exit",
            "irq_handler_entry",
            "irq_handler_exit",
            "irq_handler_entry",
            "irq_handler_exit",
            "softirq_entry",
            "softirq_exit",
            "generic",
            "sched_switch",
        ]
    );
    assert_eq!(
        events[12]["sched_switch"],
        json!({
            "prev_comm": "bad hog", "prev_pid": 99, "prev_prio": 0, "prev_state": "1",
            "next_comm": "control", "next_pid": 7, "next_prio": 19,
        })
    );
    assert_eq!((&events[12]["timestamp"], &events[12]["pid"]), (&json!("5100"), &json!(7)));
    assert_eq!(events[5]["irq_handler_entry"], json!({"irq": -1, "name": "reschedule"}));
    let fields = &events[11]["generic"]["field"];
    assert_eq!(events[11]["generic"]["event_name"], "irq_noise");
    assert_eq!(fields[0], json!({"name": "name", "str_value": "eth0"}));
    assert_eq!(fields[1], json!({"name": "number", "int_value": "-1"}));
}

/// The marks, the causes and the stacks.
fn check_marks(packets: &[Value], causes: &Value) {
    let marks: Vec<(&str, &str, &Value)> = packets
        .iter()
        .filter_map(|packet| {
            let event = packet.get("track_event")?;
            let name = event.get("name").map_or("", |name| name.as_str().unwrap_or(""));
            Some((packet["timestamp"].as_str()?, name, event))
        })
        .collect();
    let kinds: Vec<_> = marks
        .iter()
        .map(|(at, name, event)| (*at, *name, event["type"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(
        kinds,
        [
            ("4900", "due", "TYPE_INSTANT"),
            ("5100", "ran", "TYPE_INSTANT"),
            ("4900", "masked by irq 38", "TYPE_SLICE_BEGIN"),
            ("5000", "", "TYPE_SLICE_END"),
            ("5000", "preempted by bad hog [RR 99]", "TYPE_SLICE_BEGIN"),
            ("5100", "", "TYPE_SLICE_END"),
            ("5095", "hrtimer_wakeup+0x0/0x20", "TYPE_INSTANT"),
        ]
    );
    assert!(marks[2..6].iter().all(|(_, _, event)| event["track_uuid"] == causes["uuid"]));
    let stack = &marks[6].2["debug_annotations"][0]["string_value"];
    assert_eq!(stack, "hrtimer_wakeup+0x0/0x20\n0x1234");
}
