//! Every event, from kernels of every word size and byte order.

use super::*;
use crate::event::Vector;
use crate::testing::{KERNELS, Kernel, Record as Written};

const TEXT_START: u64 = 0xffff_8000;

fn decoder(formats: &Formats) -> Decoder {
    Decoder::new(formats)
        .with_text_start(TEXT_START)
        .with_strings([(0xc001, HandlerName::from("Rescheduling interrupts"))])
}

fn decoded(formats: &Formats, data: &[u8], id: u16) -> Event {
    decoder(formats).event(3, &Raw { at_ns: 77, id, data })
}

/// Writes a record of each kernel, and compares what comes out.
fn check(name: &str, write: impl Fn(Written) -> Written, expected: &EventData) {
    for kernel in &KERNELS {
        let formats = kernel.formats();
        let id = formats.event(name).expect(name).id;
        let record = write(kernel.record(&formats, name)).pid(42);
        let record = record.set("common_flags", 0x85).set("common_preempt_count", 0x12);
        let event = decoded(&formats, &record.data, id);
        assert_eq!(&event.what, expected, "{name} {kernel:?}");
        assert_eq!((event.at_ns, event.cpu, event.pid), (77, 3, 42));
        assert_eq!((event.flags, event.preempt), (0x85, 0x12));
        // Cut anywhere it is not known, never wrong: what is missing is never taken for 0. Stacks
        // and texts that go to the end of the record are shorter then.
        for len in 0..record.data.len() {
            let event = decoded(&formats, &record.data[..len], id);
            let is_as_good =
                event.what == *expected || matches!(event.what, EventData::Stack { .. });
            assert!(event.what == EventData::Other { id } || is_as_good, "{name} cut at {len}");
        }
    }
}

#[test]
fn scheduler_events() {
    let switch = |state| EventData::Switch {
        prev_comm: "hog".into(),
        prev_pid: 9,
        prev_prio: -1,
        prev_state: state,
        next_comm: "a_name_of_16byte".into(),
        next_pid: 4_194_303,
        next_prio: 120,
    };
    // From 0x100 on: preempted (4.15), or bits of older kernels.
    for (state, meaning) in [(0, 0), (1, 1), (2, 2), (0x402, 2), (0x100, 0), (0x1000, 0)] {
        check(
            "sched:sched_switch",
            |record| {
                let record = record.bytes("prev_comm", b"hog").set("prev_pid", 9);
                let record = record.set("prev_prio", -1).set("prev_state", state);
                let record = record.bytes("next_comm", b"a_name_of_16byte");
                record.set("next_pid", 4_194_303).set("next_prio", 120)
            },
            &switch(meaning),
        );
    }
    let woken = |record: Written| {
        let record = record.bytes("comm", b"lat\0old").set("pid", 5).set("prio", 19);
        record.set("target_cpu", 1)
    };
    let (comm, pid, prio, target_cpu) = ("lat".into(), 5, 19, 1);
    check("sched:sched_waking", woken, &EventData::Waking { comm, pid, prio, target_cpu });
    check("sched:sched_wakeup", woken, &EventData::Wakeup { comm, pid, prio, target_cpu });
    check("sched:sched_wakeup_new", woken, &EventData::Wakeup { comm, pid, prio, target_cpu });
    check(
        "sched:sched_migrate_task",
        |record| {
            let record = record.bytes("comm", b"lat\0").set("pid", 5).set("prio", 19);
            record.set("orig_cpu", 1).set("dest_cpu", 2)
        },
        &EventData::Migrate { comm, pid, prio, from_cpu: 1, to_cpu: 2 },
    );
    check(
        "sched:sched_pi_setprio",
        |record| {
            let record = record.bytes("comm", b"lat\0").set("pid", 5);
            record.set("oldprio", 120).set("newprio", 19)
        },
        &EventData::PiSetprio { comm, pid, old_prio: 120, new_prio: 19 },
    );
}

#[test]
fn timer_events() {
    let (timer, function) = (0xf000, 0xc100);
    check(
        "timer:hrtimer_start",
        |record| {
            let record = record.set("hrtimer", 0xf000).set("function", 0xc100);
            record.set("expires", 1 << 50).set("softexpires", 5)
        },
        &EventData::TimerStart { timer, function, expires_ns: 1 << 50, soft_ns: 5 },
    );
    let one = |record: Written| record.set("hrtimer", 0xf000);
    check("timer:hrtimer_cancel", one, &EventData::TimerCancel { timer });
    check("timer:hrtimer_expire_exit", one, &EventData::TimerExpired { timer });
    check(
        "timer:hrtimer_expire_entry",
        |record| one(record).set("function", 0xc100).set("now", 1 << 51),
        &EventData::TimerExpire { timer, function, now_ns: 1 << 51 },
    );
    let wheel = |record: Written| record.set("timer", 0xf000);
    check(
        "timer:timer_expire_entry",
        |record| wheel(record).set("function", 0xc100),
        &EventData::WheelExpire { timer, function },
    );
    check("timer:timer_expire_exit", wheel, &EventData::WheelExpired { timer });
}

#[test]
fn interrupt_events() {
    let vector = Vector::LocalTimer;
    check("irq_vectors:local_timer_entry", |record| record, &EventData::VectorEntry { vector });
    let vector = Vector::Thermal;
    check("irq_vectors:thermal_apic_exit", |record| record, &EventData::VectorExit { vector });
    check(
        "irq:irq_handler_entry",
        |record| record.set("irq", 24).bytes("name", b"virtio0-input.0\0"),
        &EventData::IrqEntry { irq: 24, name: "virtio0-input.0".into() },
    );
    check("irq:irq_handler_exit", |record| record.set("irq", 24), &EventData::IrqExit { irq: 24 });
    let vec = |record: Written| record.set("vec", 3);
    check("irq:softirq_raise", vec, &EventData::SoftirqRaise { vec: 3 });
    check("irq:softirq_entry", vec, &EventData::SoftirqEntry { vec: 3 });
    check("irq:softirq_exit", vec, &EventData::SoftirqExit { vec: 3 });
    let reason = "Rescheduling interrupts".into();
    let known = |record: Written| record.set("reason", 0xc001);
    check("ipi:ipi_entry", known, &EventData::IpiEntry { reason });
    check("ipi:ipi_exit", known, &EventData::IpiExit { reason });
    let unknown = |record: Written| record.set("reason", 0xc002);
    check("ipi:ipi_entry", unknown, &EventData::IpiEntry { reason: HandlerName::default() });
    check(
        "ipi:ipi_send_cpu",
        |record| record.set("cpu", 1).set("callsite", 0xc100).set("callback", 0),
        &EventData::IpiSend { to_cpu: 1, callsite: 0xc100, callback: 0 },
    );
    check(
        "nmi:nmi_handler",
        |record| record.set("handler", 0xc100).set("delta_ns", 5000),
        &EventData::Nmi { handler: 0xc100, delta_ns: 5000 },
    );
}

#[test]
fn masks_of_cpus_have_the_low_cpus_in_the_first_word() {
    for kernel in &KERNELS {
        let formats = kernel.formats();
        let longs: &[u64] = if kernel.long_bytes == 8 { &[1 << 33 | 2] } else { &[2, 2, 9] };
        for (name, field) in [("ipi:ipi_send_cpumask", "cpumask"), ("ipi:ipi_raise", "target_cpus")]
        {
            let id = formats.event(name).expect(name).id;
            let record = kernel.record(&formats, name).longs(field, longs);
            let EventData::IpiRaise { cpus, reason } = decoded(&formats, &record.data, id).what
            else {
                panic!("{name}");
            };
            assert_eq!((cpus, reason.is_empty()), (1 << 33 | 2, true), "{name} {kernel:?}");
        }
    }
}

#[test]
fn power_work_fault_and_signal_events() {
    let idle = |state| move |record: Written| record.set("state", state).set("cpu_id", 3);
    check("power:cpu_idle", idle(2), &EventData::Idle { state: 2 });
    check("power:cpu_idle", idle(0xffff_ffff), &EventData::IdleExit);
    check(
        "power:cpu_frequency",
        idle(1_800_000),
        &EventData::Frequency { of_cpu: 3, khz: 1_800_000 },
    );
    let work = |record: Written| record.set("work", 0xf000).set("function", 0xc100);
    let (start, end) = (EventData::WorkStart { work: 0xf000, function: 0xc100 }, 0xf000);
    check("workqueue:workqueue_execute_start", work, &start);
    check("workqueue:workqueue_execute_end", work, &EventData::WorkEnd { work: end });
    let fault = |record: Written| record.set("address", 0x7000).set("ip", 0x4000);
    let at = |user| EventData::PageFault { user, address: 0x7000, ip: 0x4000 };
    check("exceptions:page_fault_user", fault, &at(true));
    check("exceptions:page_fault_kernel", fault, &at(false));
    check(
        "signal:signal_generate",
        |record| record.set("sig", 14).bytes("comm", b"lat").set("pid", 5),
        &EventData::Signal { number: 14, comm: "lat".into(), pid: 5 },
    );
    let step = |record: Written| record.set("cpu", 1).set("target", -3).set("fun", 0xc100);
    let hotplug = EventData::Hotplug { of_cpu: 1, target: -3, function: 0xc100 };
    check("cpuhp:cpuhp_enter", step, &hotplug);
    check("cpuhp:cpuhp_multi_enter", step, &hotplug);
}

#[test]
fn callers_are_offsets_from_the_start_of_the_kernel() {
    let before = |record: Written| record.set("caller_offs", -16);
    let caller = TEXT_START - 16;
    check("preemptirq:irq_disable", before, &EventData::Irqs { off: true, caller });
    check("preemptirq:irq_enable", before, &EventData::Irqs { off: false, caller });
    let behind = |record: Written| record.set("caller_offs", 0x1000);
    let caller = TEXT_START + 0x1000;
    check("preemptirq:preempt_disable", behind, &EventData::Preempt { off: true, caller });
    check("preemptirq:preempt_enable", behind, &EventData::Preempt { off: false, caller });
    let formats = KERNELS[0].formats();
    let record = KERNELS[0].record(&formats, "preemptirq:irq_disable").set("caller_offs", 4);
    let raw = Raw {
        at_ns: 0,
        id: u16::from_le_bytes([record.data[0], record.data[1]]),
        data: &record.data,
    };
    let event = Decoder::new(&formats).event(0, &raw);
    assert_eq!(event.what, EventData::Irqs { off: true, caller: 0 });
}

#[test]
fn tracers_events() {
    check(
        "ftrace:timerlat",
        |record| record.set("seqnum", 9).set("context", 1).set("timer_latency", 1 << 40),
        &EventData::Timerlat { sequence: 9, context: 1, latency_ns: 1 << 40 },
    );
    check(
        "ftrace:hwlat",
        |record| record.set("duration", 5).set("outer_duration", 6).set("nmi_count", 7),
        &EventData::Hwlat { inner_ns: 5, outer_ns: 6, nmi_count: 7 },
    );
    let (start_ns, duration_ns) = (1 << 41, 900);
    let times = |record: Written| record.set("start", 1 << 41).set("duration", 900);
    let noise = |kind: &str, name: &str, number| EventData::Noise {
        kind: kind.into(),
        name: name.into(),
        number,
        start_ns,
        duration_ns,
    };
    check(
        "osnoise:irq_noise",
        |record| times(record).bytes("desc", b"local_timer\0").set("vector", 236),
        &noise("irq", "local_timer", 236),
    );
    check("osnoise:softirq_noise", |r| times(r).set("vector", 1), &noise("softirq", "", 1));
    check(
        "osnoise:thread_noise",
        |record| times(record).bytes("comm", b"kworker/1:0").set("pid", 66),
        &noise("thread", "kworker/1:0", 66),
    );
    check("osnoise:nmi_noise", times, &noise("nmi", "", -1));
}

#[test]
fn a_stack_ends_at_its_size_at_0_and_at_minus_1() {
    for kernel in &KERNELS {
        let end = if kernel.long_bytes == 8 { u64::MAX } else { u64::from(u32::MAX) };
        let frames = |size, longs: &[u64]| {
            let formats = kernel.formats();
            let record = kernel.record(&formats, "ftrace:kernel_stack").set("size", size);
            let record = record.longs("caller", longs);
            let id = formats.event("ftrace:kernel_stack").expect("there").id;
            match decoded(&formats, &record.data, id).what {
                EventData::Stack { frames } => frames.to_vec(),
                what => panic!("{what:?}"),
            }
        };
        assert_eq!(frames(2, &[10, 11, 12]), [10, 11]);
        assert_eq!(frames(8, &[10, end, 12]), [10]);
        assert_eq!(frames(8, &[10, 11, 0, 12]), [10, 11]);
        assert_eq!(frames(-1, &[10]), [0; 0]);
        // More than the format has room for: newer kernels write as many as there are.
        let long: Vec<u64> = (1..=40).collect();
        assert_eq!(frames(40, &long), long);
        assert_eq!(frames(i32::MAX.into(), &long), long);
    }
}

/// A kernel with one event of other fields.
fn with(kernel: &Kernel, name: &str, fields: &str) -> Formats {
    let (system, name) = name.split_once(':').expect("system:name");
    let mut formats = kernel.formats();
    formats.add(system, &kernel.format(name, 299, fields)).expect("a format");
    formats
}

#[test]
fn a_stack_without_a_fixed_size_is_read() {
    for kernel in &KERNELS {
        let formats = with(kernel, "ftrace:kernel_stack", "int size; unsigned long caller[]");
        let record = kernel.record(&formats, "ftrace:kernel_stack").set("size", 2);
        let record = record.longs("caller", &[5, 6, 7]);
        let frames = [5, 6].into();
        assert_eq!(decoded(&formats, &record.data, 299).what, EventData::Stack { frames });
    }
}

#[test]
fn an_event_without_one_of_its_fields_is_not_known() {
    for (name, fields) in [
        (
            "sched:sched_switch",
            "char prev_comm[16]; pid_t prev_pid; int prev_prio; long prev_state",
        ),
        ("sched:sched_waking", "char comm[16]; pid_t pid; int prio"),
        ("timer:hrtimer_start", "void * hrtimer; void * function"),
        ("timer:hrtimer_expire_entry", "void * hrtimer; s64 now"),
        ("irq:irq_handler_entry", "int irq"),
        ("power:cpu_idle", "u32 cpu_id"),
        // Of the name, but a single number.
        ("ipi:ipi_send_cpumask", "void * cpumask"),
        ("ftrace:kernel_stack", "int size; void * caller"),
        ("preemptirq:irq_disable", "unsigned long ip"),
    ] {
        let formats = with(&KERNELS[0], name, fields);
        let record = KERNELS[0].record(&formats, name).pid(3);
        let event = decoded(&formats, &record.data, 299);
        assert_eq!((&event.what, event.pid), (&EventData::Other { id: 299 }, 3), "{name}");
        assert!(!decoder(&formats).knows(299));
    }
}

#[test]
fn fields_are_read_where_the_format_says() {
    // Kernels with the PREEMPT_RT patches have more common fields; comm is elsewhere since 6.12.
    let kernel = &KERNELS[0];
    let fields = "int common_preempt_lazy_count; __data_loc char[] comm; long pid; short prio; \
                  unsigned char target_cpu";
    let mut text = kernel.format("sched_waking", 299, fields);
    // A short is 2 bytes, signed.
    text = text.replace(
        "field:short prio;\toffset:32;\tsize:4;\tsigned:0;",
        "field:short prio;\toffset:32;\tsize:2;\tsigned:1;",
    );
    let mut formats = kernel.formats();
    formats.add("sched", &text).expect("a format");
    let record =
        kernel.record(&formats, "sched:sched_waking").bytes("comm", b"lat\0").set("pid", 5);
    let record = record.set("prio", -1).set("target_cpu", 200);
    let what = EventData::Waking { comm: "lat".into(), pid: 5, prio: -1, target_cpu: 200 };
    assert_eq!(decoded(&formats, &record.data, 299).what, what);
}

#[test]
fn a_text_that_lies_outside_the_record_makes_it_unknown() {
    for kernel in &KERNELS {
        let formats = kernel.formats();
        let id = formats.event("irq:irq_handler_entry").expect("there").id;
        for place in [0xffff_0008_u32, 0x0004_ffff, 0x0001_0400] {
            let record = kernel.record(&formats, "irq:irq_handler_entry");
            let record = record.set("name", i64::from(place));
            assert_eq!(decoded(&formats, &record.data, id).what, EventData::Other { id });
        }
    }
}

#[test]
fn what_is_not_known_keeps_its_number_and_task() {
    for kernel in &KERNELS {
        let formats = kernel.formats();
        let id = formats.event("mine:thing").expect("there").id;
        let record = kernel.record(&formats, "mine:thing").pid(8);
        let event = decoded(&formats, &record.data, id);
        assert_eq!((event.what, event.pid), (EventData::Other { id }, 8));
        // A number that no format has.
        let event = decoded(&formats, &record.data, 9999);
        assert_eq!((event.what, event.pid), (EventData::Other { id: 9999 }, 8));
        let event = decoded(&formats, &[1, 2], 9999);
        assert_eq!((event.what, event.pid), (EventData::Other { id: 9999 }, 0));
    }
}

#[test]
fn the_brief_form_agrees() {
    for kernel in &KERNELS {
        let formats = kernel.formats();
        let decoder = decoder(&formats);
        let brief = |record: &Written, name: &str, len: usize| {
            let id = formats.event(name).expect(name).id;
            let data = &record.data[..len];
            match decoder.brief(&Raw { at_ns: 1, id, data }) {
                EventBrief::Switch { prev_pid, prev_state, next_pid, next_prio, next_comm } => {
                    format!("{prev_pid} {prev_state} {next_pid} {next_prio} {next_comm:?}")
                }
                other => format!("{other:?}"),
            }
        };
        let name = "sched:sched_switch";
        let record = kernel.record(&formats, name).set("prev_pid", 1).set("prev_state", 0x100);
        let record = record.set("next_pid", 2).set("next_prio", -1).bytes("next_comm", b"abc");
        let len = record.data.len();
        let comm = b"abc\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(brief(&record, name, len), format!("1 0 2 -1 {comm:?}"));
        assert_eq!(brief(&record, name, len - 1), "Other");
        let name = "timer:hrtimer_start";
        let record = kernel.record(&formats, name).set("hrtimer", 5).set("function", 6);
        let record = record.set("expires", 7).pid(8).set("common_flags", 1);
        assert_eq!(
            brief(&record, name, record.data.len()),
            "TimerStart { pid: 8, flags: 1, timer: 5, function: 6, expires_ns: 7, soft_ns: 0 }"
        );
        let name = "timer:hrtimer_expire_entry";
        let record = kernel.record(&formats, name).set("hrtimer", 5).set("now", 6);
        let record = record.set("function", 7);
        let expire = "TimerExpire { timer: 5, function: 7, now_ns: 6 }";
        assert_eq!(brief(&record, name, record.data.len()), expire);
        for (name, expected) in [
            ("timer:hrtimer_expire_exit", "TimerExpired"),
            ("sched:sched_migrate_task", "Across"),
            ("ipi:ipi_send_cpu", "Across"),
            ("power:cpu_frequency", "Across"),
            ("power:cpu_idle", "Other"),
            ("mine:thing", "Other"),
        ] {
            let record = kernel.record(&formats, name);
            assert_eq!(brief(&record, name, record.data.len()), expected);
        }
    }
}
