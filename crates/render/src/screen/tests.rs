//! Screens of made-up frames, as text: `SNAPSHOTS=overwrite cargo test -p rtproof-render screen`
//! writes them anew.

use std::path::Path;

use ratatui_core::{buffer::Buffer, layout::Rect, style::Color};
use snapbox::{Assert, Data};

use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_judge::causes::Explanation;
use rtproof_results::watch::{
    EventRate, IdleCounter, IdleShare, ThreadLatency, WatchBin, WatchCpu, WatchFrame, WatchNote,
    WatchSource, WatchSourceKind, WatchSpike, WatchTask,
};
use rtproof_trace::Window;

use super::{
    Panel, ScreenPage, ScreenStyle, ScreenView, TypedInput, draw, once, panel_row_at, picture, text,
};
use crate::spike::sample;

const NOON_NS: u64 = 1_795_521_600_000_000_000;

const ASCII: ScreenStyle = ScreenStyle { colours: false, unicode: false };

fn source(kind: WatchSourceKind) -> WatchSource {
    WatchSource { kind, about: String::new(), load: None, ended: None, record: None }
}

fn rate(per_s: u64, top: &[(&str, u64)]) -> Option<EventRate> {
    let top = top.iter().map(|&(name, n)| (name.to_owned(), n)).collect();
    Some(EventRate { per_s, top })
}

fn cpu(cpu: u32, busy: u32) -> WatchCpu {
    let rest = 1000 - busy;
    let idle = |name: &str, permille| IdleShare { name: name.into(), permille };
    WatchCpu {
        cpu,
        isolated: cpu == 3,
        busy_permille: Some(busy),
        steal_permille: Some(cpu * 15),
        idle: vec![idle("POLL", 0), idle("C1", rest / 4), idle("C6", rest / 2)],
        idle_by: Some(if cpu == 0 { IdleCounter::Hardware } else { IdleCounter::Kernel }),
        freq_hz: Some(3_599_700_000),
        temp_mc: None,
        throttled: Some(u64::from(cpu == 2)),
        interrupts: rate(1_263, &[("LOC", 1_000), ("36 virtio1-req.0", 250), ("RES", 13)]),
        softirqs: rate(320, &[("TIMER", 200), ("SCHED", 100), ("RCU", 20)]),
        switches_per_s: Some(2_480),
    }
}

fn task(cpu: u32, comm: &str, priority: u32, above: &[&str]) -> WatchTask {
    WatchTask {
        cpu,
        tid: 4_000 + cpu,
        comm: comm.into(),
        policy: if priority == 0 { Policy::Deadline } else { Policy::Fifo },
        priority,
        kernel_thread: comm.contains('/'),
        share_permille: Some(71),
        cpus: Some(CpuList::new([cpu])),
        outranked: above.len() as u32,
        outranked_by: above.iter().map(|&name| name.to_owned()).collect(),
    }
}

fn passive() -> WatchFrame {
    WatchFrame {
        at_realtime_ns: NOON_NS + 3_000_000_000,
        span_ns: 1_000_000_000,
        host: Some("pi5".into()),
        kernel: Some("6.12.40-rt11".into()),
        context_switches_per_s: Some(8_412),
        temp_max_mc: Some(45_200),
        cpus: (0..4).map(|number| cpu(number, number * 300)).collect(),
        tasks: Some(vec![
            task(2, "control", 80, &["migration/2", "planner"]),
            task(2, "planner", 0, &["migration/2"]),
            task(3, "migration/3", 99, &[]),
        ]),
        unknown: vec!["Temperature of zone 1: it may run firmware.".into()],
        notes: vec![WatchNote { at_realtime_ns: NOON_NS, text: "Marked: cable pulled".into() }],
        ..WatchFrame::empty(source(WatchSourceKind::Passive))
    }
}

fn latency(thread: u32, max_ns: u64) -> ThreadLatency {
    let history = (0..100).map(|second| match second % 17 {
        3 => None,
        16 => Some(max_ns / 2),
        n => Some(4_000 + n * 700),
    });
    ThreadLatency {
        thread,
        cpu: Some(thread + 2),
        tid: 500 + thread,
        what: "timer-wakeup".into(),
        scheduling: "fifo 80".into(),
        n: 612_004,
        missed: Some(u64::from(thread) * 12),
        late: Some(u64::from(thread) * 3),
        now_ns: Some(4_210),
        second_ns: Some(11_700),
        minute_ns: Some(max_ns / 2),
        max_ns: Some(max_ns),
        history_ns: history.collect(),
    }
}

fn spike(number: u64, culprit: &str) -> WatchSpike {
    WatchSpike {
        at_realtime_ns: NOON_NS + number * 1_000_000_000,
        thread: 1,
        due_ns: number,
        cpu: 3,
        latency_ns: 120_000 + number * 1_000,
        cause: Some("preempted".into()),
        title: "a task of higher priority".into(),
        culprit: culprit.into(),
        complete: number != 2,
        knob: Some("systemctl disable --now multipathd.service".into()),
        has_picture: number == 3,
    }
}

fn measuring() -> WatchFrame {
    let bin = |at: u64, n: u64| WatchBin { low_ns: at, high_ns: at + at / 32 - 1, n };
    let rise = (0..60).map(|at| {
        let low_ns = (2_048 * (32 + at % 32) / 32) << (at / 32);
        bin(low_ns, [40_000, 900, 9_000, 12][at as usize % 4] / (1 + at / 9))
    });
    WatchFrame {
        latencies: vec![latency(0, 48_000), latency(1, 2_944_344)],
        histogram: rise.chain([bin(2_883_584, 1)]).collect(),
        budget_ns: Some(100_000),
        threshold_ns: Some(100_000),
        spikes_seen: Some(1_203),
        spikes: vec![spike(3, "multipathd [RR 99]"), spike(2, "x"), spike(1, "")],
        source: WatchSource {
            about: "timer-wakeup on CPUs 2-3, fifo 80, 1 ms".into(),
            load: Some("cpu+memory".into()),
            record: Some("watch-pi5.rtproof".into()),
            ..source(WatchSourceKind::Measuring)
        },
        ..passive()
    }
}

/// A virtual machine without cpufreq, cpuidle and rights.
fn bare() -> WatchFrame {
    let cpu = WatchCpu {
        cpu: 0,
        busy_permille: Some(30),
        steal_permille: Some(7),
        ..WatchCpu::default()
    };
    WatchFrame {
        at_realtime_ns: NOON_NS,
        cpus: vec![cpu],
        tasks: None,
        latencies: Vec::new(),
        unknown: vec![
            "Idle states: the kernel has no cpuidle states here.".into(),
            "Real-time tasks: process 1 cannot be seen.".into(),
        ],
        ..WatchFrame::empty(source(WatchSourceKind::Passive))
    }
}

/// A spike with words of others in it, and its window.
fn hostile_spike() -> (Explanation, Window) {
    let spike = sample::hostile().worst.remove(0);
    let window = sample::window(spike.number).unwrap_or_default();
    (spike.explanation, window)
}

fn drawn(
    frame: &WatchFrame,
    view: &ScreenView,
    look: ScreenStyle,
    (columns, lines): (u16, u16),
) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines));
    draw(frame, view, look, &mut buffer);
    buffer
}

#[track_caller]
fn check(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/screen/snapshots");
    let expected = Data::read_from(&path.join(format!("{name}.txt")), None);
    Assert::new().action_env("SNAPSHOTS").eq(shown.to_owned(), expected.raw());
}

#[track_caller]
fn check_screen(
    name: &str,
    frame: &WatchFrame,
    view: &ScreenView,
    look: ScreenStyle,
    size: (u16, u16),
) {
    check(name, &text(&drawn(frame, view, look, size)));
}

#[test]
fn screens_of_three_sizes() {
    let view = ScreenView::default();
    for (name, size) in [("80x24", (80, 24)), ("120x40", (120, 40)), ("200x60", (200, 60))] {
        check_screen(&format!("passive-{name}"), &passive(), &view, ScreenStyle::FULL, size);
        check_screen(&format!("measuring-{name}"), &measuring(), &view, ScreenStyle::FULL, size);
    }
}

#[test]
fn screens_without_unicode_without_numbers_and_without_anything() {
    let view = ScreenView::default();
    check_screen("measuring-ascii", &measuring(), &view, ASCII, (80, 24));
    check_screen("bare", &bare(), &view, ScreenStyle::FULL, (80, 24));
    check_screen(
        "nothing",
        &WatchFrame::empty(source(WatchSourceKind::Record)),
        &view,
        ScreenStyle::FULL,
        (80, 24),
    );
    check("once", &once(&measuring(), 100, ScreenStyle::FULL));
}

#[test]
fn pages_of_help_and_of_a_spike() {
    let help = ScreenView { page: ScreenPage::Help, ..ScreenView::default() };
    check_screen("help-80x24", &passive(), &help, ScreenStyle::FULL, (80, 24));
    check_screen("help-120x60", &passive(), &help, ScreenStyle::FULL, (120, 60));
    let (explanation, window) = hostile_spike();
    for (name, look) in [("picture", ScreenStyle::FULL), ("picture-ascii", ASCII)] {
        let lines = picture(&explanation, Some(&window), 100, look);
        let page = ScreenView { page: ScreenPage::Picture(lines), ..ScreenView::default() };
        check_screen(name, &measuring(), &page, look, (100, 40));
    }
}

#[test]
fn without_unicode_every_cell_is_ascii_and_without_colours_none_has_one() {
    let (explanation, window) = hostile_spike();
    let lines = picture(&explanation, Some(&window), 80, ASCII);
    for page in [ScreenPage::Main, ScreenPage::Help, ScreenPage::Picture(lines)] {
        let view = ScreenView { page, ..ScreenView::default() };
        let buffer = drawn(&measuring(), &view, ASCII, (80, 24));
        let plain = |colour: Color| colour == Color::Reset;
        for cell in &buffer.content {
            assert!(cell.symbol().is_ascii(), "{:?}", cell.symbol());
            assert!(plain(cell.fg) && plain(cell.bg), "{cell:?}");
        }
    }
    let coloured = drawn(&measuring(), &ScreenView::default(), ScreenStyle::FULL, (80, 24));
    assert!(coloured.content.iter().any(|cell| cell.fg == Color::Red), "beyond the budget");
    assert!(coloured.content.iter().all(|cell| cell.bg == Color::Reset), "any background");
}

#[test]
fn words_of_others_command_nothing() {
    let evil = "a\u{1b}]0;title\u{7}\u{202e}\u{200b}b\n漢字";
    let mut frame = measuring();
    frame.host = Some(evil.into());
    frame.source.about = evil.into();
    frame.source.ended = Some(evil.into());
    frame.tasks = Some(vec![task(0, evil, 80, &[evil, evil])]);
    frame.spikes = vec![WatchSpike { knob: Some(evil.into()), ..spike(1, evil) }];
    frame.latencies[0].what = evil.into();
    frame.cpus[0].interrupts = rate(5, &[(evil, 5)]);
    frame.cpus[0].idle[2].name = evil.into();
    frame.unknown = vec![evil.into()];
    frame.notes = vec![WatchNote { at_realtime_ns: 0, text: evil.into() }];
    for look in [ScreenStyle::FULL, ASCII] {
        for size in [(40, 10), (80, 24), (200, 60)] {
            for page in [ScreenPage::Main, ScreenPage::Help] {
                let input = Some(TypedInput::Mark(evil.into()));
                let view = ScreenView { page, input, ..ScreenView::default() };
                let buffer = drawn(&frame, &view, look, size);
                let hidden =
                    |cell: &&ratatui_core::buffer::Cell| cell.symbol().chars().any(text::is_hidden);
                assert_eq!(buffer.content.iter().find(hidden), None);
                assert!(text(&buffer).lines().count() <= usize::from(size.1));
            }
        }
    }
    assert!(!once(&frame, 80, ScreenStyle::FULL).chars().any(|c| c != '\n' && text::is_hidden(c)));
    check_screen("hostile", &frame, &ScreenView::default(), ScreenStyle::FULL, (80, 24));
}

#[test]
fn every_size_is_drawn() {
    let step = if rtproof_judge::testing::is_full() { 1 } else { 9 };
    let views = [Panel::Latency, Panel::Cpus, Panel::Spikes, Panel::Tasks]
        .map(|panel| ScreenView { panel, ..ScreenView::default() });
    for frame in
        [passive(), measuring(), bare(), WatchFrame::empty(source(WatchSourceKind::Application))]
    {
        for (columns, lines) in
            (0..260).step_by(13).flat_map(|w| (w % 9..70).step_by(step).map(move |h| (w, h)))
        {
            for view in &views {
                drawn(&frame, view, ScreenStyle::FULL, (columns, lines));
            }
        }
    }
}

#[test]
fn what_is_chosen_stays_under_new_spikes() {
    let mut frame = measuring();
    let mut view = ScreenView::default();
    view.next_panel(&frame, true);
    assert_eq!(view.panel, Panel::Spikes);
    assert_eq!(view.row(&frame, Panel::Spikes), 0, "the newest");
    view.step(&frame, 1);
    frame.spikes.insert(0, spike(4, "new"));
    assert_eq!(view.row(&frame, Panel::Spikes), 2, "the same spike, one further down");
    view.home(&frame);
    frame.spikes.insert(0, spike(5, "newer"));
    assert_eq!(view.row(&frame, Panel::Spikes), 0);
    view.sort(true);
    assert_eq!(view.spikes(&frame)[0].latency_ns, 125_000);
}

#[test]
fn rows_are_sorted_and_filtered() {
    let frame = measuring();
    let mut view = ScreenView { panel: Panel::Cpus, ..ScreenView::default() };
    view.sort(true);
    assert_eq!(view.cpus(&frame).iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(), [3, 2, 1, 0]);
    view.sort(false);
    view.filter = Some(CpuList::new([2]));
    assert_eq!((view.cpus(&frame).len(), view.tasks(&frame).len()), (1, 2));
    assert_eq!((view.latencies(&frame).len(), view.spikes(&frame).len()), (1, 0));
    view.step(&frame, 50);
    assert_eq!((view.row(&frame, Panel::Cpus), view.chosen_cpu(&frame)), (0, Some(2)));
    let shown = text(&drawn(&frame, &view, ScreenStyle::FULL, (80, 24)));
    assert!(shown.contains("1 203 spikes, none on the CPUs") || shown.contains("none on the CPUs"));
    // Nothing of a machine that has none.
    let nothing = WatchFrame::empty(source(WatchSourceKind::Record));
    view.step(&nothing, 3);
    view.sort(true);
    assert_eq!(view.chosen_cpu(&nothing), None);
}

#[test]
fn a_click_finds_what_is_drawn_there() {
    let (frame, view) = (measuring(), ScreenView::default());
    let area = Rect::new(0, 0, 80, 24);
    let shown = text(&drawn(&frame, &view, ScreenStyle::FULL, (80, 24)));
    let line = |part: &str| {
        let at = shown.lines().position(|line| line.contains(part));
        u16::try_from(at.unwrap_or_else(|| panic!("{part}: {shown}"))).expect("a screen")
    };
    let at = |y| panel_row_at(&frame, &view, area, 5, y).map(|place| (place.panel, place.row));
    assert_eq!(at(line("multipathd")), Some((Panel::Spikes, Some(0))));
    assert_eq!(at(line("spike at")), Some((Panel::Spikes, None)));
    assert_eq!(at(line("real-time task") + 1), Some((Panel::Tasks, Some(0))));
    assert_eq!(at(line("busy and idle") + 2), Some((Panel::Cpus, Some(1))));
    assert_eq!((at(0), at(23)), (None, None));
}
