//! Bytes as the pages of a kernel's trace: formats to read them by, and the whole way from a page
//! to the window of a late wake-up.

use rtproof_trace::{
    ByteOrder, Decoder, EventData, Formats, Merge, Pages, RingPage, Scanner, Store, Subjects,
    WakeUp, WindowSize, around,
};

type Fields = &'static [(&'static str, usize)];

/// Events and their own fields, each with its size. Numbers are places in this list, from 1 on.
const EVENTS: &[(&str, &str, Fields)] = &[
    (
        "sched",
        "sched_switch",
        &[
            ("char prev_comm[16]", 16),
            ("int prev_pid", 4),
            ("int prev_prio", 4),
            ("long prev_state", 8),
            ("char next_comm[16]", 16),
            ("int next_pid", 4),
            ("int next_prio", 4),
        ],
    ),
    (
        "sched",
        "sched_waking",
        &[("char comm[16]", 16), ("int pid", 4), ("int prio", 4), ("int target_cpu", 4)],
    ),
    (
        "sched",
        "sched_wakeup",
        &[("__data_loc char[] comm", 4), ("int pid", 4), ("int prio", 4), ("int target_cpu", 4)],
    ),
    (
        "timer",
        "hrtimer_start",
        &[("void * hrtimer", 8), ("void * function", 8), ("s64 expires", 8)],
    ),
    (
        "timer",
        "hrtimer_expire_entry",
        &[("void * hrtimer", 8), ("s64 now", 8), ("void * function", 8)],
    ),
    ("timer", "hrtimer_expire_exit", &[("void * hrtimer", 8)]),
    ("irq_vectors", "local_timer_entry", &[("int vector", 4)]),
    ("irq_vectors", "local_timer_exit", &[("int vector", 4)]),
    ("irq", "irq_handler_entry", &[("int irq", 4), ("__rel_loc char[] name", 4)]),
    ("irq", "irq_handler_exit", &[("int irq", 4)]),
    ("irq", "softirq_entry", &[("unsigned int vec", 4)]),
    ("irq", "softirq_exit", &[("unsigned int vec", 4)]),
    ("ipi", "ipi_send_cpumask", &[("__data_loc cpumask_t cpumask", 4)]),
    (
        "ipi",
        "ipi_send_cpu",
        &[("unsigned int cpu", 4), ("void * callsite", 8), ("void * callback", 8)],
    ),
    ("power", "cpu_idle", &[("u32 state", 4)]),
    ("ftrace", "kernel_stack", &[("int size", 4), ("unsigned long caller[8]", 64)]),
    ("workqueue", "workqueue_execute_start", &[("void * work", 8), ("void * function", 8)]),
    ("preemptirq", "irq_disable", &[("s32 caller_offs", 4)]),
];

/// A `header_page`.
pub fn header_page(long_bytes: usize) -> String {
    let at = 8 + long_bytes;
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{long_bytes};\tsigned:1;\n\
         \tfield: char data;\toffset:{at};\tsize:{};\tsigned:0;\n",
        4096 - at
    )
}

/// Formats of the kernels there are: each word size and order of bytes.
///
/// # Panics
/// When they are refused.
pub fn formats(kernel: u8) -> Formats {
    let order = if kernel & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let long_bytes = if kernel & 2 == 0 { 8 } else { 4 };
    let mut formats = Formats::new(&header_page(long_bytes), order).expect("a header");
    for (id, (system, name, fields)) in (1..).zip(EVENTS) {
        let mut text = format!("name: {name}\nID: {id}\nformat:\n");
        let common = [
            ("unsigned short common_type", 2),
            ("unsigned char common_flags", 1),
            ("unsigned char common_preempt_count", 1),
            ("int common_pid", 4),
        ];
        let mut at = 0;
        for (declared, size) in common.iter().chain(*fields) {
            text += &format!("\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:1;\n");
            at += size;
        }
        formats.add(system, &text).expect("a format");
    }
    formats
}

/// A page with this data and a committed length that is right, but for the marks of a loss.
fn page(formats: &Formats, data: &[u8], at_ns: u64, marks: u32) -> Vec<u8> {
    let layout = formats.layout();
    let data = &data[..data.len().min(layout.data_bytes)];
    let commit = u64::from(data.len() as u32 | marks << 30);
    let put = |value: u64, size: usize| match layout.order {
        ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
        ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
    };
    [put(at_ns, 8), put(commit, layout.long_bytes), data.to_vec()].concat()
}

/// CPU with the marks of a loss in its upper bits, time, data.
pub type Bytes<'a> = (u8, u16, &'a [u8]);

/// What is read of each record, in order: CPU, time, number.
type Seen = Vec<(u32, u64, u16)>;

/// Pages of three CPUs, all the way.
///
/// # Panics
/// When two ways to the same disagree, or something is out of its bounds.
pub fn walk(kernel: u8, pages: &[Bytes<'_>]) {
    let formats = formats(kernel);
    let decoder = Decoder::new(&formats).with_text_start(1 << 40);
    let mut store = Store::new(decoder.clone(), 1 << 20);
    let mut small = Store::new(decoder.clone(), 300);
    for &(cpu, at_ns, data) in pages {
        let bytes = page(&formats, data, u64::from(at_ns) << 8, u32::from(cpu >> 6));
        let cpu = u32::from(cpu & 3).min(2);
        let was_kept = store.push(cpu, &bytes);
        assert_eq!(was_kept, small.push(cpu, &bytes));
        assert!(
            small.bytes() <= 300
                || small.cpus().iter().map(|&c| small.count(c)).sum::<usize>() <= 1
        );
    }
    let seen = by_one(&mut store, &decoder);
    assert_eq!(seen.0, in_runs(&mut store, &decoder));
    let mut in_all = 0;
    let mut bytes = Vec::new();
    for cpu in store.cpus().to_vec() {
        for index in 0..store.count(cpu) {
            store.read(cpu, index, &mut bytes).expect("it is in memory");
            let page = RingPage::parse(formats.layout(), &bytes).expect("it was when it was kept");
            in_all += page.records().filter(Result::is_ok).count();
        }
    }
    assert_eq!(seen.0.len(), in_all);
    let cover = WakeUp {
        tid: 1,
        cpu: 1,
        due_ns: 300,
        ran_ns: 9000,
        how: rtproof_trace::WakeUpBasis::Timer,
    };
    for wake in seen.1.iter().take(4).chain([&cover]) {
        for events_max in [3, 1000] {
            let around = WindowSize { lead_ns: 10_000, tail_ns: 1000, events_max };
            check(&around::window(&mut store, &decoder, wake, &around).expect("memory"), &around);
            check(&around::window(&mut small, &decoder, wake, &around).expect("memory"), &around);
        }
    }
}

fn check(window: &rtproof_trace::Window, around: &WindowSize) {
    // Beside the events, what tells the state at the beginning: four, and 64 that are open.
    assert!(window.events.len() <= around.events_max + 68);
    assert!(window.events.is_sorted_by_key(|event| (event.at_ns, event.cpu)));
    assert!(window.lost.iter().all(|lost| lost.count.is_none_or(|_| lost.to_ns > 0)));
}

fn by_one(store: &mut Store, decoder: &Decoder) -> (Seen, Vec<WakeUp>) {
    let (tids, comms) = (vec![1], vec!["a".into()]);
    let subjects = Subjects { tids, comms, all_real_time: true, keeps: false };
    let mut scanner = Scanner::new(&subjects, 0, true);
    let (mut seen, mut wakes) = (Vec::new(), Vec::new());
    let mut merge = Merge::new(store, decoder.layout());
    loop {
        let merged = match merge.next() {
            Ok(Some(merged)) => merged,
            Ok(None) => break,
            Err(_) => continue,
        };
        let event = decoder.event(merged.cpu, &merged.raw);
        assert!(decoder.knows(merged.raw.id) || matches!(event.what, EventData::Other { .. }));
        if let EventData::Stack { frames } = &event.what {
            assert!(frames.len() * 4 <= merged.raw.data.len());
        }
        seen.push((merged.cpu, merged.raw.at_ns, merged.raw.id));
        wakes.extend(scanner.feed_merged(decoder, &merged));
    }
    let counted: u64 = scanner.totals().map(|totals| totals.over).sum();
    assert_eq!(counted, wakes.len() as u64);
    assert!(wakes.iter().all(|wake| wake.due_ns < wake.ran_ns));
    (seen, wakes)
}

fn in_runs(store: &mut Store, decoder: &Decoder) -> Seen {
    let mut seen = Vec::new();
    let mut merge = Merge::new(store, decoder.layout());
    loop {
        match merge.next_run() {
            Ok(Some(run)) => {
                let cpu = run.cpu;
                seen.extend(run.map(|raw| (cpu, raw.at_ns, raw.id)));
            }
            Ok(None) => return seen,
            Err(_) => {}
        }
    }
}

/// Texts as a kernel's formats, and bytes read by what they say.
///
/// # Panics
/// When what was read is not what is reported of it.
pub fn read_by(header: &str, order: u8, texts: &[&str], data: &[u8]) {
    let order = if order & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let header = Formats::new(header, order);
    let Ok(mut formats) = header.or_else(|_| Formats::new(&header_page(8), order)) else { return };
    for (id, text) in texts.iter().enumerate() {
        // As they are; and as the fields of an event that means something.
        let _ = formats.add("mine", text);
        let (system, name, _) = EVENTS[id % EVENTS.len()];
        let _ = formats.add(system, &format!("name: {name}\nID: {id}\nformat:\n{text}"));
    }
    for format in formats.events() {
        assert_eq!(formats.event_name(format.id), Some(format.full_name()));
    }
    let decoder = Decoder::new(&formats);
    let bytes = page(&formats, data, 1, 0);
    let page = RingPage::parse(formats.layout(), &bytes);
    for raw in page.iter().flat_map(RingPage::records).flatten() {
        let event = decoder.event(0, &raw);
        assert!(decoder.knows(raw.id) || matches!(event.what, EventData::Other { .. }));
        let _ = decoder.brief(&raw);
    }
    for id in 0..32 {
        let raw = rtproof_trace::Raw { at_ns: 1, id, data };
        let _ = (decoder.event(0, &raw), decoder.brief(&raw));
    }
}
