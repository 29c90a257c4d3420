//! Files made here, whole, torn and hostile.

use std::{collections::BTreeMap, sync::LazyLock};

use proptest::prelude::*;

use super::*;
use crate::event::Vector;
use crate::{Decoder, Event, EventData, Lost, Pages, RingPage, Task, Window};

/// Compression, and the file that is as a window says.
fn files(window: &Window) -> Vec<(Compression, Vec<u8>)> {
    let mut six = Vec::new();
    write_window(window, "mono", &mut six).expect("memory takes everything");
    let mut files = vec![(Compression::None, six)];
    for compression in [Compression::None, Compression::Zlib, Compression::Zstd] {
        files.push((compression, seven(&files[0].1, compression)));
    }
    files
}

fn pack(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::None => bytes.to_vec(),
        Compression::Zlib => {
            let mut packer = flate2::read::ZlibEncoder::new(bytes, flate2::Compression::fast());
            let mut packed = Vec::new();
            packer.read_to_end(&mut packed).expect("memory");
            packed
        }
        Compression::Zstd => {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(bytes, level)
        }
    }
}

/// The same as version 7.
struct Seven {
    bytes: Vec<u8>,
    compression: Compression,
    options: Vec<u8>,
}

impl Seven {
    fn section(&mut self, id: u16, is_packed: bool, data: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(u16::from(is_packed).to_le_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend((data.len() as u64).to_le_bytes());
        self.bytes.extend(data);
        at
    }

    fn part(&mut self, id: u16, data: &[u8]) {
        let is_packed = self.compression != Compression::None;
        let data = if is_packed { self.chunk(data) } else { data.to_vec() };
        let at = self.section(id, is_packed, &data);
        self.option(id, &at.to_le_bytes());
    }

    fn chunk(&self, data: &[u8]) -> Vec<u8> {
        let packed = pack(self.compression, data);
        let lengths = [(packed.len() as u32).to_le_bytes(), (data.len() as u32).to_le_bytes()];
        [lengths.concat(), packed].concat()
    }

    fn option(&mut self, id: u16, data: &[u8]) {
        self.options.extend(id.to_le_bytes());
        self.options.extend((data.len() as u32).to_le_bytes());
        self.options.extend(data);
    }

    /// The events of an instance, three pages a chunk.
    fn buffer(&mut self, cpus: &BTreeMap<u32, Vec<u8>>) {
        let start = self.bytes.len() as u64 + 16;
        let mut data = Vec::new();
        let mut option = Vec::new();
        for (cpu, pages) in cpus {
            let from = data.len();
            if self.compression == Compression::None {
                data.extend(pages);
            } else {
                let chunks: Vec<_> = pages.chunks(3 * 4096).map(|some| self.chunk(some)).collect();
                data.extend((chunks.len() as u32).to_le_bytes());
                data.extend(chunks.concat());
            }
            option.extend(cpu.to_le_bytes());
            option.extend((start + from as u64).to_le_bytes());
            // As trace-cmd counts: without the number of chunks.
            let count_bytes = if self.compression == Compression::None { 0 } else { 4 };
            option.extend(((data.len() - from - count_bytes) as u64).to_le_bytes());
        }
        let at = self.section(3, self.compression != Compression::None, &data);
        let head = [&at.to_le_bytes()[..], b"rtproof\0mono\0", &4096_u32.to_le_bytes()].concat();
        let count = (cpus.len() as u32).to_le_bytes();
        self.option(3, &[&head[..], &count[..], &option[..]].concat());
    }
}

fn seven(six: &[u8], compression: Compression) -> Vec<u8> {
    let dat = TraceDat::open(six).expect("what was written");
    let mut bytes = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0".to_vec();
    bytes.extend(match compression {
        Compression::None => &b"none\0\0"[..],
        Compression::Zlib => b"zlib\x001.2\0",
        Compression::Zstd => b"zstd\x001.5\0",
    });
    let options_at = bytes.len();
    bytes.extend([0; 8]);
    let mut seven = Seven { bytes, compression, options: Vec::new() };
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let formats = dat.formats();
    let headers = [
        b"header_page\0".to_vec(),
        text(formats.header_page()),
        b"header_event\0".to_vec(),
        text(formats.header_event()),
    ];
    seven.part(16, &headers.concat());
    seven.part(17, &0_u32.to_le_bytes());
    let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    formats.events().for_each(|event| systems.entry(&event.system).or_default().push(&event.text));
    let mut events = (systems.len() as u32).to_le_bytes().to_vec();
    for (system, texts) in systems {
        events.extend([system.as_bytes(), &[0], &(texts.len() as u32).to_le_bytes()].concat());
        texts.into_iter().for_each(|one| events.extend(text(one)));
    }
    seven.part(18, &events);
    let list = "ffffffff81000000 T _stext\nffffffff81000000 T first\nffffffff81000040 T second\n";
    seven.part(19, &[&(list.len() as u32).to_le_bytes()[..], list.as_bytes()].concat());
    let strings = "0xffffffff82000010 : \"Rescheduling interrupts\"\n";
    seven.part(20, &[&(strings.len() as u32).to_le_bytes()[..], strings.as_bytes()].concat());
    seven.part(21, &text("7 a b\n"));
    let mut cpus = BTreeMap::new();
    let main = dat.main_buffer().expect("events");
    let mut pages = dat.pages(main).expect("its pages");
    let mut page = Vec::new();
    for cpu in main.cpus() {
        for index in 0..pages.count(cpu) {
            pages.read(cpu, index, &mut page).expect("a page");
            cpus.entry(cpu).or_insert_with(Vec::new).extend(&page);
        }
    }
    seven.buffer(&cpus);
    seven.option(0, &0_u64.to_le_bytes());
    let at = seven.section(0, false, &seven.options.clone());
    seven.bytes[options_at..options_at + 8].copy_from_slice(&at.to_le_bytes());
    seven.bytes
}

/// Events, and how many were lost before a page.
type Found = (Vec<Event>, Vec<Option<u64>>);

/// All events of the main buffer, by CPU.
fn events(file: &[u8]) -> Result<Found, Box<dyn std::error::Error>> {
    let dat = TraceDat::open(file)?;
    let symbols = dat.symbols()?;
    let mut decoder = Decoder::new(dat.formats()).with_strings(dat.strings().clone());
    if let Some(start) = symbols.text_start() {
        decoder = decoder.with_text_start(start);
    }
    let (mut events, mut lost, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let Some(main) = dat.main_buffer() else { return Ok((events, lost)) };
    let mut pages = dat.pages(main)?;
    for cpu in pages.cpus().to_vec() {
        for index in 0..pages.count(cpu) {
            pages.read(cpu, index, &mut bytes)?;
            let page = RingPage::parse(decoder.layout(), &bytes)?;
            lost.extend(page.missed().map(|missed| missed.count));
            for raw in page.records() {
                events.push(decoder.event(cpu, &raw?));
            }
        }
    }
    Ok((events, lost))
}

fn event(at_ns: u64, cpu: u32, what: EventData) -> Event {
    Event { at_ns, cpu, pid: 7, flags: 1, preempt: 0x12, what }
}

/// One of each kind.
fn kinds() -> Vec<EventData> {
    let (comm, function, timer) = ("a name >= 1".into(), 0xffff_ffff_8100_0010, 0xffff_8880_0000);
    let frames = (0..40).map(|frame| function + frame).collect();
    vec![
        EventData::Switch {
            prev_comm: comm,
            prev_pid: 7,
            prev_prio: 120,
            prev_state: 1,
            next_comm: "swapper/3".into(),
            next_pid: 0,
            next_prio: -1,
        },
        EventData::Waking { comm, pid: 7, prio: 19, target_cpu: 3 },
        EventData::Wakeup { comm, pid: 7, prio: 19, target_cpu: 3 },
        EventData::Migrate { comm, pid: 7, prio: 19, from_cpu: 0, to_cpu: 3 },
        EventData::PiSetprio { comm, pid: 7, old_prio: 120, new_prio: 19 },
        EventData::TimerStart {
            timer,
            function,
            expires_ns: 123_456_789_012,
            soft_ns: 123_456_000_000,
        },
        EventData::TimerCancel { timer },
        EventData::TimerExpire { timer, function, now_ns: 123_456_789_013 },
        EventData::TimerExpired { timer },
        EventData::WheelExpire { timer, function },
        EventData::WheelExpired { timer },
        EventData::VectorEntry { vector: Vector::LocalTimer },
        EventData::VectorExit { vector: Vector::PlatformIpi },
        EventData::IrqEntry { irq: 38, name: "eth0-TxRx-0".into() },
        EventData::IrqExit { irq: 38 },
        EventData::IpiEntry { reason: "Function call interrupts".into() },
        EventData::IpiExit { reason: "Function call interrupts".into() },
        EventData::IpiRaise {
            cpus: 0x8000_0000_0000_0005,
            reason: "Rescheduling interrupts".into(),
        },
        EventData::IpiSend { to_cpu: 3, callsite: function, callback: 0 },
        EventData::SoftirqRaise { vec: 9 },
        EventData::SoftirqEntry { vec: 9 },
        EventData::SoftirqExit { vec: 9 },
        EventData::Nmi { handler: function, delta_ns: 5_000 },
        EventData::Idle { state: 2 },
        EventData::IdleExit,
        EventData::Frequency { of_cpu: 3, khz: 2_400_000 },
        EventData::WorkStart { work: timer, function },
        EventData::WorkEnd { work: timer },
        EventData::PageFault { user: true, address: 0x7fff_0000, ip: 0x40_1000 },
        EventData::PageFault { user: false, address: 0x7fff_0000, ip: function },
        EventData::Irqs { off: true, caller: function },
        EventData::Irqs { off: false, caller: function },
        EventData::Preempt { off: true, caller: function },
        EventData::Preempt { off: false, caller: 0xffff_ffff_c000_0000 },
        EventData::Stack { frames },
        EventData::Signal { number: 9, comm, pid: 7 },
        EventData::Hotplug { of_cpu: 3, target: 195, function },
        EventData::Timerlat { sequence: 516, context: 1, latency_ns: 5_079_644 },
        noise("nmi", "", -1),
        noise("irq", "local_timer", 236),
        noise("softirq", "", 4),
        noise("thread", "multipathd", 148),
        EventData::Hwlat { inner_ns: 41_000, outer_ns: 20_000, nmi_count: 2 },
    ]
}

fn noise(kind: &str, name: &str, number: i32) -> EventData {
    let (kind, name) = (kind.into(), name.into());
    EventData::Noise { kind, name, number, start_ns: 29_319_667_319, duration_ns: 5_059_760 }
}

fn window_of(events: Vec<Event>) -> Window {
    let symbols = BTreeMap::from([(0xffff_ffff_8100_0010, "first+0x10/0x40".to_owned())]);
    let task = Task { comm: "cyclictest".into(), ..Task::default() };
    let tasks = BTreeMap::from([(7, task)]);
    Window { cpu: 3, from_ns: 0, to_ns: u64::MAX, events, symbols, tasks, ..Window::default() }
}

#[test]
fn every_kind_of_event_comes_back_from_every_kind_of_file() {
    let whats = kinds();
    let kind = |what: &EventData| serde_json::to_value(what).expect("json");
    let names: std::collections::BTreeSet<String> = whats
        .iter()
        .map(|what| kind(what).to_string().split('"').nth(1).unwrap_or("").into())
        .collect();
    assert!(names.len() >= 35, "{names:?}");
    let wanted: Vec<Event> =
        (0_u64..).zip(whats).map(|(at, what)| event(1_000_000 * at * at, 3, what)).collect();
    for (compression, file) in files(&window_of(wanted.clone())) {
        // The list of the files made here is another one.
        let is_six = TraceDat::open(file.as_slice()).expect("a file").version() == 6;
        let (found, lost) = events(&file).expect("what was written");
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(&wanted) {
            match wanted.what {
                EventData::Irqs { .. } | EventData::Preempt { .. } if !is_six => {}
                _ => assert_eq!(found, wanted, "{compression:?}"),
            }
        }
        assert_eq!(lost, []);
    }
}

#[test]
fn times_far_apart_losses_and_many_pages_come_back() {
    let mut wanted = Vec::new();
    let mut at_ns = 0;
    for number in 0..3_000_u64 {
        // Up to 25 days apart: beyond what one word holds.
        at_ns += [3, 1 << 26, 1 << 27, 1 << 31, 1 << 51, 0][number as usize % 6];
        let cpu = [3, 0, 3, 17][number as usize % 4];
        wanted.push(event(at_ns, cpu, EventData::SoftirqEntry { vec: number as u32 }));
    }
    let mut window = window_of(wanted.clone());
    let gap = |at: usize, count| {
        let own: Vec<_> = wanted.iter().filter(|event| event.cpu == 3).collect();
        Lost { from_ns: own[at].at_ns, to_ns: own[at + 1].at_ns, count }
    };
    window.lost = vec![gap(10, Some(17)), gap(20, None)];
    wanted.sort_by_key(|event| event.cpu);
    for (_, file) in files(&window) {
        let (found, lost) = events(&file).expect("what was written");
        assert!(found == wanted, "{} of {}", found.len(), wanted.len());
        assert_eq!(lost, [Some(17), None]);
        let dat = TraceDat::open(file.as_slice()).expect("a file");
        let main = dat.main_buffer().expect("a buffer");
        assert_eq!((main.cpus(), main.clock.as_str()), (vec![0, 3, 17], "mono"));
        // Pages are read in any order.
        let mut pages = dat.pages(main).expect("its pages");
        let (mut first, mut again) = (Vec::new(), Vec::new());
        let last = pages.count(3) - 1;
        pages.read(3, last, &mut first).expect("the last");
        pages.read(17, 0, &mut again).expect("another CPU");
        pages.read(3, last, &mut again).expect("the last again");
        assert_eq!(first, again);
        assert!(pages.read(3, last + 1, &mut again).is_err());
        assert!(pages.read(5, 0, &mut again).is_err());
    }
}

#[test]
fn symbols_and_strings_of_a_file() {
    let window = window_of(vec![event(1, 3, EventData::IdleExit)]);
    for (compression, file) in files(&window) {
        let dat = TraceDat::open(file.as_slice()).expect("a file");
        let symbols = dat.symbols().expect("symbols");
        let name = symbols.name(0xffff_ffff_8100_0011);
        if dat.version() == 6 {
            assert_eq!(name.as_deref(), Some("first+0x11/0x40"), "{compression:?}");
            assert_eq!(dat.comms()[&7], "cyclictest");
        } else {
            assert_eq!(name.as_deref(), Some("_stext+0x11/0x40"), "{compression:?}");
            assert_eq!(dat.strings()[&0xffff_ffff_8200_0010], "Rescheduling interrupts");
            assert_eq!(dat.comms()[&7], "a b");
        }
    }
}

#[test]
fn many_chunks_have_few_marks_and_all_are_found() {
    let wanted: Vec<Event> = (0..300_000)
        .map(|number| event(number, 0, EventData::SoftirqRaise { vec: number as u32 }))
        .collect();
    let mut six = Vec::new();
    write_window(&window_of(wanted), "mono", &mut six).expect("memory");
    // One page a chunk.
    let dat = TraceDat::open(six.as_slice()).expect("a file");
    let mut pages = dat.pages(dat.main_buffer().expect("a buffer")).expect("its pages");
    let mut seven =
        Seven { bytes: Vec::new(), compression: Compression::Zlib, options: Vec::new() };
    let count = pages.count(0);
    // More than there are marks for.
    assert!(count > 1_024, "{count}");
    let mut page = Vec::new();
    seven.bytes.extend((count as u32).to_le_bytes());
    for index in 0..count {
        pages.read(0, index, &mut page).expect("a page");
        let chunk = seven.chunk(&page);
        seven.bytes.extend(chunk);
    }
    let size = seven.bytes.len() as u64;
    let buffer = Buffer {
        name: String::new(),
        clock: String::new(),
        page_bytes: 4096,
        data: vec![head::CpuData { cpu: 0, at: 0, size }],
        compression: Compression::Zlib,
    };
    let mut packed = DatPages::open(seven.bytes.as_slice(), &buffer, false).expect("its pages");
    assert_eq!(packed.count(0), count);
    let mut found = Vec::new();
    for index in (0..count).rev().step_by(7).chain(0..100) {
        pages.read(0, index, &mut page).expect("a page");
        packed.read(0, index, &mut found).expect("a page");
        assert!(page == found, "page {index}");
    }
}

#[test]
fn errors_have_the_next_step() {
    let window = window_of(vec![event(1, 3, EventData::IdleExit)]);
    let six = files(&window).swap_remove(0).1;
    let error = |bytes: &[u8]| TraceDat::open(bytes).expect_err("a bad file").to_string();
    assert!(error(b"PERFILE2........").contains("expected 17 08 44"));
    assert!(error(b"").contains("not a trace.dat file"));
    let table = six.windows(10).position(|part| part == b"options  \0").expect("options");
    let killed = error(&six[..table - 4]);
    assert!(killed.contains("trace-cmd restore"), "{killed}");
    assert!(error(&six[..1000]).contains("offset 1000: the file ends"), "{}", error(&six[..1000]));
    let mut other = six.clone();
    other[10] = b'8';
    assert!(error(&other).contains("trace-cmd convert --file-version 6"));
    let at = six.windows(10).position(|part| part == b"flyrecord\0").expect("the table");
    other.clone_from(&six);
    other[at..at + 10].copy_from_slice(b"latency  \0");
    assert!(error(&other).contains("trace-cmd report"));
    let torn = error(&six[..six.len() - 4096]);
    assert!(torn.contains("in a file of"), "{torn}");
    let mut killed = seven(&six, Compression::Zstd);
    killed[27..35].fill(0);
    assert!(error(&killed).contains("recording was killed"), "{}", error(&killed));
}

#[test]
fn a_torn_file_is_an_error_wherever_it_ends() {
    let window = window_of(kinds().into_iter().map(|what| event(5, 3, what)).collect());
    for (_, file) in files(&window) {
        for end in (0..file.len()).step_by(61) {
            assert!(events(&file[..end]).is_err(), "{end} of {}", file.len());
        }
    }
}

#[test]
fn the_clock_is_known_by_the_timers() {
    let is_mono = |offset_ns: u64| {
        // Also a timer of the real-time clock.
        let expire = |at_ns: u64, now_ns| EventData::TimerExpire {
            timer: 1,
            function: 2,
            now_ns: at_ns + now_ns,
        };
        let events = vec![
            event(9_000_000, 3, expire(9_000_000, 1 << 60)),
            event(9_001_000, 3, expire(8_999_500 - offset_ns, 0)),
        ];
        let mut file = Vec::new();
        write_window(&window_of(events), "mono", &mut file).expect("memory");
        let dat = TraceDat::open(file.as_slice()).expect("a file");
        let mut pages = dat.pages(dat.main_buffer().expect("a buffer")).expect("its pages");
        is_monotonic(&mut pages, &Decoder::new(dat.formats())).expect("pages")
    };
    assert_eq!((is_mono(0), is_mono(2_000_000)), (Some(true), Some(false)));
}

#[test]
fn the_scale_of_the_counter_is_applied_to_a_window() {
    let scale = TscScale { multiplier: 1 << 31, shift: 32 };
    assert_eq!(scale.ns(u64::MAX), u64::MAX / 2);
    assert_eq!(TscScale { multiplier: 1, shift: 200 }.ns(5), 0);
    let mut window = window_of(vec![event(2_000, 3, EventData::IdleExit)]);
    window.lost = vec![Lost { from_ns: 10, to_ns: 20, count: None }];
    scale.apply(&mut window);
    assert_eq!((window.events[0].at_ns, window.lost[0].to_ns), (1_000, 10));
}

/// Made once: a case is a change of a few bytes.
static FILES: LazyLock<Vec<(Compression, Vec<u8>)>> = LazyLock::new(|| {
    files(&window_of(kinds().into_iter().map(|what| event(5, 3, what)).collect()))
});

proptest! {
    #[test]
    fn bytes_from_anywhere_are_no_panic(
        which in 0_usize..4,
        at in 0.0..1.0_f64,
        put in any::<u64>(),
    ) {
        let mut file = FILES[which].1.clone();
        // Lengths and offsets are everywhere.
        let at = ((file.len() - 8) as f64 * at) as usize;
        file[at..at + 8].copy_from_slice(&put.to_le_bytes());
        let _ = events(&file);
    }
}
