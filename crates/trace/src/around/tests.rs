//! Windows out of pages: what is in them, what is not, and what they say of themselves.

use super::*;
use crate::testing::{At, Machine, Memory};
use crate::{Lost, Store, WakeUpBasis, event};

const T: i32 = 50;

const LATE: u32 = 1;

const AROUND: WindowSize = WindowSize { lead_ns: 100, tail_ns: 50, events_max: 1000 };

/// Due at 1000, ran at 1200: the window is from 900 to 1250.
const WAKE: WakeUp =
    WakeUp { tid: T, cpu: LATE, due_ns: 1000, ran_ns: 1200, how: WakeUpBasis::Timer };

fn machine() -> Machine {
    Machine::new()
}

fn take(machine: &Machine, pages: &mut dyn Pages, around: &WindowSize) -> Window {
    let decoder = Decoder::new(&machine.formats);
    window(pages, &decoder, &WAKE, around).expect("a window")
}

/// Times and CPUs of a window's events.
fn times(window: &Window) -> Vec<(u64, u32)> {
    window.events.iter().map(|event| (event.at_ns, event.cpu)).collect()
}

fn pages_of(machine: &Machine, pages: &[&[At]]) -> Vec<Vec<u8>> {
    pages.iter().map(|events| machine.page(events)).collect()
}

#[test]
fn all_of_the_late_cpu_and_the_state_at_the_beginning() {
    let m = machine();
    let late = pages_of(
        &m,
        &[
            &[m.switch(10, 3, 4), m.plain(20, "power:cpu_idle")],
            &[m.switch(100, 4, 0), m.event(110, 0, "power:cpu_idle", &[("state", 2)])],
            &[m.plain(300, "mine:thing"), m.plain(899, "mine:thing")],
            &[m.plain(900, "mine:thing"), m.switch(1200, 0, T), m.plain(1250, "mine:thing")],
            &[m.plain(1251, "mine:thing")],
        ],
    );
    let mut pages = Memory::new(&[(LATE, &late)]);
    let found = take(&m, &mut pages, &AROUND);
    assert_eq!(times(&found), [(100, 1), (110, 1), (900, 1), (1200, 1), (1250, 1)]);
    assert!(matches!(found.events[1].what, EventData::Idle { state: 2 }));
    assert_eq!((found.cpu, found.from_ns, found.to_ns), (LATE, 900, 1250));
    assert!(!found.cut && found.lost.is_empty());
    // The same out of memory.
    let mut store = Store::new(Decoder::new(&m.formats), 1 << 20);
    late.iter().for_each(|page| store.push(LATE, page).expect("a page"));
    assert_eq!(take(&m, &mut store, &AROUND), found);
}

#[test]
fn unfinished_events_are_included() {
    let m = machine();
    let vec = |vec| [("vec", vec)];
    let late = pages_of(
        &m,
        &[&[
            m.event(100, 8, "irq:softirq_entry", &vec(3)),
            m.event(110, 9, "irq:softirq_entry", &vec(1)),
            m.event(120, 9, "irq:softirq_exit", &vec(1)),
            m.event(130, 8, "workqueue:workqueue_execute_start", &[("work", 5)]),
            m.event(135, 9, "workqueue:workqueue_execute_start", &[("work", 6)]),
            m.event(136, 9, "workqueue:workqueue_execute_end", &[("work", 6)]),
            // The end of this one was not recorded: no interrupt lives through a switch.
            m.plain(140, "irq_vectors:local_timer_entry"),
            m.switch(200, 8, 9),
            m.event(300, 9, "irq:irq_handler_entry", &[("irq", 4)]),
            m.event(310, 9, "irq:irq_handler_entry", &[("irq", 5)]),
            m.event(320, 9, "irq:irq_handler_exit", &[("irq", 5)]),
            m.plain(330, "preemptirq:irq_disable"),
            m.plain(340, "preemptirq:preempt_disable"),
            m.plain(350, "preemptirq:preempt_enable"),
            m.event(360, 9, "timer:hrtimer_expire_entry", &[("hrtimer", 5)]),
            m.event(370, 9, "timer:hrtimer_expire_entry", &[("hrtimer", 6)]),
            m.event(380, 9, "timer:hrtimer_expire_exit", &[("hrtimer", 5)]),
            m.switch(1200, 9, T),
        ]],
    );
    let found = take(&m, &mut Memory::new(&[(LATE, &late)]), &AROUND);
    let at: Vec<u64> = found.events.iter().map(|event| event.at_ns).collect();
    assert_eq!(at, [100, 130, 200, 300, 330, 370, 1200]);
}

#[test]
fn of_other_cpus_only_what_concerns_the_late_one() {
    let m = machine();
    let to = |cpu: i64| [("cpu", cpu)];
    let other = [
        m.waking(890, 60, T, 1),
        m.waking(900, 70, 60, 0),
        m.waking(905, 71, 99, 1),
        m.waking(906, 71, 99, 0),
        m.event(910, 60, "sched:sched_wakeup", &[("pid", 99)]),
        m.waking(1000, 60, T, 1),
        m.event(1001, 60, "sched:sched_wakeup", &[("pid", 50)]),
        m.event(1002, 60, "ipi:ipi_send_cpu", &to(1)),
        m.event(1003, 60, "ipi:ipi_send_cpu", &to(0)),
        m.event(1004, 61, "timer:hrtimer_start", &[]),
        m.event(1005, T, "timer:hrtimer_start", &[]),
        m.event(1006, 61, "sched:sched_pi_setprio", &[("pid", 99)]),
        m.event(1007, 61, "sched:sched_pi_setprio", &[("pid", 50)]),
        m.event(1008, 61, "sched:sched_migrate_task", &[("pid", 99), ("dest_cpu", 1)]),
        m.event(1009, 61, "sched:sched_migrate_task", &[("pid", 99), ("dest_cpu", 2)]),
        m.event(1010, 61, "signal:signal_generate", &[("pid", 70)]),
        m.event(1011, 61, "signal:signal_generate", &[("pid", 71)]),
        m.event(1012, 61, "power:cpu_frequency", &[("cpu_id", 1)]),
        m.event(1013, 61, "power:cpu_frequency", &[("cpu_id", 0)]),
        m.event(1014, 61, "cpuhp:cpuhp_enter", &to(3)),
        m.switch(1020, 61, 60),
        m.switch(1021, 60, 70),
        m.switch(1022, 80, 81),
        m.switch(1250, 60, 61),
        m.switch(1251, 61, 60),
    ];
    let mask = |at_ns, bits: u64| {
        let record = crate::testing::KERNELS[0].record(&m.formats, "ipi:ipi_send_cpumask");
        (at_ns, record.longs("cpumask", &[bits]).data)
    };
    let masks = [mask(1030, 0b10), mask(1031, 0b01), mask(1032, 0)];
    let late = [m.switch(500, 1, 2), m.switch(1020, 2, 3), m.switch(1200, 3, T)];
    let late = pages_of(&m, &[&late]);
    let mut pages = Memory::new(&[
        (0, &pages_of(&m, &[&other[..12], &other[12..]])),
        (LATE, &late),
        (2, &pages_of(&m, &[&masks])),
    ]);
    let found = take(&m, &mut pages, &AROUND);
    let expected = [
        (500, 1),
        // 70 woke 60, which woke the late one.
        (900, 0),
        (905, 0),
        (1000, 0),
        (1001, 0),
        (1002, 0),
        (1005, 0),
        (1007, 0),
        (1008, 0),
        (1010, 0),
        (1012, 0),
        (1014, 0),
        (1020, 0),
        (1020, 1),
        (1021, 0),
        (1030, 2),
        (1200, 1),
        (1250, 0),
    ];
    assert_eq!(times(&found), expected);
}

#[test]
fn an_interrupt_is_not_taken_for_the_task_it_interrupts() {
    let m = machine();
    let flags = [("pid", 50), ("target_cpu", 1), ("common_flags", event::flags::HARDIRQ.into())];
    let other = [
        m.waking(905, 71, 60, 0),
        m.event(1000, 60, "sched:sched_waking", &flags),
        m.switch(1010, 60, 61),
    ];
    let mut pages = Memory::new(&[
        (0, &pages_of(&m, &[&other])),
        (LATE, &pages_of(&m, &[&[m.switch(1200, 0, T)]])),
    ]);
    assert_eq!(times(&take(&m, &mut pages, &AROUND)), [(1000, 0), (1200, 1)]);
}

#[test]
fn lost_stretches_are_reported_and_reset_the_state() {
    let m = machine();
    let thing = |at_ns| m.plain(at_ns, "mine:thing");
    let first = m.page(&[m.switch(100, 1, 2), thing(200)]);
    let second = m.builder(&[thing(500), thing(950)]).missed(None).done();
    let third = m.builder(&[thing(1100), m.switch(1200, 2, T)]).missed(Some(7)).done();
    let after = m.builder(&[thing(2000)]).missed(None).done();
    let late = [first, second, third, after];
    let mut pages = Memory::new(&[(LATE, &late)]);
    let found = take(&m, &mut pages, &AROUND);
    assert_eq!(times(&found), [(950, 1), (1100, 1), (1200, 1)]);
    let lost = [
        Lost { from_ns: 950, to_ns: 1100, count: Some(7) },
        Lost { from_ns: 1200, to_ns: 2000, count: None },
    ];
    assert_eq!(found.lost, lost);
    assert!(found.lost_between(1000, 1200) && !found.lost_between(1100, 1200));
}

#[test]
fn a_page_that_cannot_be_understood_is_a_loss() {
    let m = machine();
    let thing = |at_ns| m.plain(at_ns, "mine:thing");
    let torn = m.builder(&[thing(910), thing(1000)]).raw(&[0xff, 0]).done();
    let mut short = m.page(&[thing(1050)]);
    short[8..16].fill(0x3f);
    let late = [m.page(&[m.switch(100, 1, 2)]), torn, short, m.page(&[m.switch(1200, 2, T)])];
    let found = take(&m, &mut Memory::new(&[(LATE, &late)]), &AROUND);
    assert_eq!(times(&found), [(100, 1), (910, 1), (1000, 1), (1200, 1)]);
    assert_eq!(found.lost, [Lost { from_ns: 1000, to_ns: 1200, count: None }]);
    // At the end there is nothing that it ends with.
    let found = take(&m, &mut Memory::new(&[(LATE, &late[..3])]), &AROUND);
    assert_eq!(found.lost, [Lost { from_ns: 1000, to_ns: 1250, count: None }]);
}

#[test]
fn too_many_events_are_cut_to_those_nearest_to_the_interval() {
    let m = machine();
    let thing = |at_ns| m.plain(at_ns, "mine:thing");
    let late = [
        m.switch(100, 1, 2),
        thing(905),
        m.switch(910, 2, 3),
        thing(980),
        thing(1000),
        m.switch(1200, 3, T),
        thing(1210),
        thing(1245),
    ];
    let other: Vec<At> = [930, 990, 1100].map(|at_ns| m.waking(at_ns, 60, T, 1)).into();
    let own = pages_of(&m, &[&late]);
    let mut pages = Memory::new(&[(0, &pages_of(&m, &[&other])), (LATE, &own)]);
    let mut of_at_most = |events_max| take(&m, &mut pages, &WindowSize { events_max, ..AROUND });
    let whole = of_at_most(10);
    assert!(!whole.cut && whole.events.len() == 11);
    // The other CPU's farthest go first.
    let found = of_at_most(8);
    assert!(found.cut && times(&found).contains(&(1100, 0)) && !times(&found).contains(&(930, 0)));
    assert_eq!((found.from_ns, found.to_ns), (900, 1245));
    // Then the late one's: the state at the new beginning is that of what was cut.
    let found = of_at_most(5);
    assert_eq!(times(&found), [(910, 1), (980, 1), (1000, 1), (1200, 1), (1210, 1), (1245, 1)]);
    assert_eq!((found.cut, found.from_ns, found.to_ns), (true, 980, 1245));
    let found = of_at_most(3);
    assert_eq!(times(&found), [(910, 1), (1000, 1), (1200, 1), (1210, 1)]);
    assert_eq!((found.cut, found.from_ns, found.to_ns), (true, 1000, 1210));
    assert!(found.lost_between(900, 1000) && !found.lost_between(1000, 1200));
    let found = of_at_most(0);
    assert!(found.cut && found.lost_between(1000, 1200));
}

#[test]
fn only_the_pages_round_it_are_read() {
    let m = machine();
    let late: Vec<Vec<u8>> = (0..10_000_u64)
        .map(|page| m.page(&[m.switch(page * 10, 1, 2), m.plain(page * 10 + 5, "mine:thing")]))
        .collect();
    let mut pages = Memory::new(&[(LATE, &late)]);
    let around = WindowSize { lead_ns: 20, tail_ns: 20, events_max: 1000 };
    let found = take(&m, &mut pages, &around);
    assert_eq!((found.from_ns, found.to_ns), (980, 1220));
    assert!(pages.reads < 200, "{} pages were read", pages.reads);
}

#[test]
fn dropped_events_give_the_initial_state() {
    let m = machine();
    let mut store = Store::new(Decoder::new(&m.formats), 600);
    store.note_read(LATE, 5);
    let idle = m.event(20, 0, "power:cpu_idle", &[("state", 1)]);
    store.push(LATE, &m.page(&[m.switch(10, 9, 0), idle])).expect("a page");
    for at_ns in (30..1250).step_by(10) {
        store.push(LATE, &m.page(&[m.plain(at_ns, "mine:thing")])).expect("a page");
    }
    store.note_read(LATE, 1300);
    assert!(store.dropped_pages() > 100 && store.bytes() <= 600);
    let (from_ns, to_ns) = store.covered(LATE).expect("covered");
    assert!(from_ns > 900 && to_ns == 1300, "{from_ns} {to_ns}");
    let found = take(&m, &mut store, &AROUND);
    assert_eq!(times(&found)[..2], [(10, 1), (20, 1)]);
    assert_eq!((found.from_ns, found.to_ns), (from_ns, 1250));
}

#[test]
fn completeness_is_noted_or_follows_from_the_pages() {
    let m = machine();
    let events = [m.switch(950, 1, 2), m.switch(1100, 2, 3)];
    let late = pages_of(&m, &[&events]);
    // A file: to the last event of any CPU.
    let found = take(&m, &mut Memory::new(&[(LATE, &late)]), &AROUND);
    assert_eq!((found.from_ns, found.to_ns), (950, 1100));
    let other = pages_of(&m, &[&[m.switch(1230, 1, 2)]]);
    let found = take(&m, &mut Memory::new(&[(0, &other), (LATE, &late)]), &AROUND);
    assert_eq!((found.from_ns, found.to_ns), (950, 1230));
    // A CPU of which nothing is known.
    let found = take(&m, &mut Memory::new(&[(0, &other)]), &AROUND);
    assert!(found.events.is_empty() && found.lost_between(1000, 1200));
    // Running: up to where its ring was found empty.
    let mut store = Store::new(Decoder::new(&m.formats), 1 << 20);
    store.note_read(LATE, 800);
    store.note_read(LATE, 1190);
    let found = take(&m, &mut store, &AROUND);
    assert_eq!((found.from_ns, found.to_ns), (900, 1190));
    assert!(!found.lost_between(1000, 1190) && found.lost_between(1000, 1200));
    store.note_read(LATE, 1300);
    assert!(!take(&m, &mut store, &AROUND).lost_between(1000, 1200));
}

#[test]
fn a_page_that_cannot_be_read_is_an_error() {
    let m = machine();
    let mut pages = Memory::new(&[(LATE, &pages_of(&m, &[&[m.switch(950, 1, 2)]]))]);
    pages.unreadable.push((LATE, 0));
    let error = window(&mut pages, &Decoder::new(&m.formats), &WAKE, &AROUND);
    assert_eq!(error.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
}
