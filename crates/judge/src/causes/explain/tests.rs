//! Every cause, planted in a made-up window.

use rtproof_trace::{
    Event, EventData, Lost, TaskPolicy, WakeUpBasis, WindowIdleState,
    event::{Comm, Vector},
};

use super::*;
use crate::causes::testing::{DUE, LATE, Story, US, sums, top};

const ENTRY: &str = "asm_sysvec_apic_timer_interrupt+0x1a/0x20";

#[test]
fn an_undisturbed_wake_up_is_the_normal_path() {
    let explained = Story::new().timer(1, 7).runs(8, 7, 120);
    let ids: Vec<&str> = explained.shares.iter().map(|share| share.cause.as_str()).collect();
    assert!(ids.iter().all(|id| ["switch", "timer-work"].contains(id)), "{ids:?}");
    assert_eq!(explained.irq_ns, Some(DUE + US));
    assert_eq!(explained.woken_ns, Some(DUE + 3 * US));
    assert_eq!(explained.switched_ns, Some(DUE + 8 * US));
    assert_eq!((explained.task.as_str(), explained.incomplete.len()), ("control [FIFO 80]", 0));
    assert_eq!(explained.wakers, ["local timer on CPU 0"]);
    // The interrupt has begin and end.
    assert_eq!(explained.certain_ns(), 3 * US);
}

#[test]
fn a_task_of_higher_priority() {
    let mut story = Story::new().with(60, "multipathd", TaskPolicy::Rr, 99);
    if let Some(task) = story.window.tasks.get_mut(&60) {
        task.unit = Some("multipathd.service".into());
    }
    let explained = story.switch(-5, 7, 120, 0, 60, 0).timer(1, 60).runs(700, 60, 0);
    assert_eq!(top(&explained), ("preempted", "multipathd [RR 99]", 696));
    let share = explained.top().expect("a share");
    assert_eq!(share.owner.as_deref(), Some("multipathd.service"));
    assert!(share.checks.contains(&"rogue-rt-tasks".into()));
    assert!(share.remedies[0].to_string().contains("multipathd.service"));
    assert!(share.alternatives.is_empty());
}

#[test]
fn preempted_again_on_the_way_out() {
    let explained = Story::new()
        .with(60, "rogue", TaskPolicy::Fifo, 99)
        .timer(1, 7)
        .switch(8, 7, 120, 0, LATE, 19)
        .switch(9, LATE, 19, 0, 60, 0)
        .runs(509, 60, 0);
    assert_eq!(top(&explained), ("preempted", "rogue [FIFO 99]", 500));
}

#[test]
fn a_name_is_the_one_at_the_end() {
    // Forked as init, later hog: the window's tasks know the name it has now.
    let story = Story::new().with(60, "hog", TaskPolicy::Fifo, 99);
    let what = EventData::Switch {
        prev_comm: Comm::default(),
        prev_pid: 7,
        prev_prio: 120,
        prev_state: 0,
        next_comm: "init".into(),
        next_pid: 60,
        next_prio: 0,
    };
    let explained = story.event(-5, 7, 0, what).timer(1, 60).runs(300, 60, 0);
    assert_eq!(top(&explained).1, "hog [FIFO 99]");
}

#[test]
fn a_task_of_the_same_priority() {
    let story = Story::new().with(61, "twin", TaskPolicy::Fifo, 80);
    let explained = story.switch(-5, 7, 120, 0, 61, 19).timer(1, 61).runs(400, 61, 19);
    assert_eq!(top(&explained), ("queued", "twin [FIFO 80]", 396));
}

#[test]
fn a_kworker_with_its_function_and_an_interrupt_thread() {
    let mut story = Story::new().with(62, "kworker/0:1", TaskPolicy::Fifo, 90);
    story.window.symbols.insert(900, "vmstat_update+0x0/0x90".into());
    let explained = story
        .switch(-5, 7, 120, 0, 62, 9)
        .event(-4, 62, 0, EventData::WorkStart { work: 1, function: 900 })
        .timer(1, 62)
        .runs(200, 62, 9);
    assert_eq!(top(&explained), ("kworker", "vmstat_update (kworker/0:1)", 196));
    let story = Story::new().with(63, "irq/24-eth0", TaskPolicy::Fifo, 90);
    let explained = story.switch(-5, 7, 120, 0, 63, 9).timer(1, 63).runs(200, 63, 9);
    assert_eq!(top(&explained), ("irq-thread", "irq/24-eth0 [FIFO 90]", 196));
    assert_eq!(explained.top().and_then(|share| share.owner.as_deref()), Some("eth0"));
}

#[test]
fn a_task_that_should_give_way() {
    let explained = Story::new().timer(1, 7).runs(900, 7, 120);
    assert_eq!(top(&explained), ("preempt-off", "worker [OTHER]", 896));
    assert_eq!(
        explained.top().map(|share| share.alternatives.clone()),
        Some(vec!["stall".to_owned()])
    );
    // A stack inside the kernel proves it.
    let explained = Story::new()
        .timer(1, 7)
        .stack(1, 7, &[ENTRY, "plant_preemptoff+0x9/0x20 [plant]"])
        .runs(900, 7, 120);
    assert_eq!(top(&explained).0, "preempt-off");
    let share = explained.top().expect("a share");
    assert!(
        share.alternatives.is_empty()
            && share.detail.iter().any(|l| l.contains("plant_preemptoff"))
    );
    assert_eq!(share.owner.as_deref(), Some("module plant"));
    // One that ends in user mode rules it out.
    let explained = Story::new().timer(1, 7).stack(1, 7, &[ENTRY]).runs(900, 7, 120);
    assert_eq!(top(&explained).0, "stall");
}

#[test]
fn the_scheduler_passes_it_over() {
    // Woken at 3 us, the rogue is throttled at 50 us and the ordinary task chosen.
    let story = Story::new().with(60, "hog", TaskPolicy::Fifo, 90);
    let mut story = story.switch(-5, 7, 120, 0, 60, 9).timer(1, 60);
    story.window.surroundings.rt_runtime_us = Some(950_000);
    story.window.surroundings.rt_period_us = Some(1_000_000);
    let explained = story.switch(50, 60, 9, 0, 7, 120).runs(50_050, 7, 120);
    assert_eq!(top(&explained), ("throttled", "RT throttling or fair server", 50_000));
    assert!(explained.top().is_some_and(|share| share.detail[0].contains("worker [OTHER]")));
    let explained = Story::new().timer(1, 7).switch(5, 7, 120, 0, 0, 120).runs(50_005, 0, 120);
    assert_eq!(top(&explained).1, "RT throttling", "nobody at all may run");
}

#[test]
fn a_cpu_that_goes_idle_with_a_runnable_thread() {
    // Throttled already when it is woken: the idle task stays where it is, and sleeps again.
    let idle = |state| EventData::Idle { state };
    let explained = Story::new()
        .switch(-400, 7, 120, 1, 0, 120)
        .event(-399, 0, 0, idle(1))
        .timer(2, 0)
        .event(24, 0, 0, EventData::IdleExit)
        .event(30, 0, 0, idle(1))
        .event(50_050, 0, 0, EventData::IdleExit)
        .runs(50_060, 0, 120);
    assert_eq!(top(&explained), ("throttled", "RT throttling", 50_020));
}

#[test]
fn others_were_passed_over_before_it_was_woken() {
    // A FIFO 10 hog has to make way for ordinary tasks before the thread is even due.
    let served = |state: u64| {
        let story = Story::new().with(60, "hog", TaskPolicy::Fifo, 10).with(
            8,
            "other",
            TaskPolicy::Other,
            0,
        );
        story
            .switch(-300, 7, 120, 0, 60, 89)
            .switch(-200, 60, 89, state, 8, 120)
            .switch(-100, 8, 120, 0, 7, 120)
            .timer(1, 7)
            .stack(1, 7, &[ENTRY])
    };
    let explained = served(0x100).runs(50_003, 7, 120);
    assert_eq!(top(&explained).0, "throttled", "{explained:#?}");
    // It slept, so the scheduler passed over no task.
    let explained = served(1).runs(900, 7, 120);
    assert_eq!(top(&explained).0, "stall");
    // A real-time task has run since.
    let story = served(0).switch(-50, 7, 120, 0, 60, 89).switch(-40, 60, 89, 1, 7, 120);
    assert_eq!(top(&story.runs(900, 7, 120)).0, "stall");
}

#[test]
fn interrupts_off_or_a_stall() {
    // Without a stack the cause is ambiguous.
    let explained = Story::new().timer(3000, 7).runs(3008, 7, 120);
    assert_eq!(top(&explained), ("irqs-off", "worker [OTHER]", 3000));
    assert_eq!(explained.top().map(|share| share.alternatives.len()), Some(1));
    // User mode cannot turn interrupts off.
    let explained = Story::new().timer(3000, 7).stack(3000, 7, &[ENTRY]).runs(3008, 7, 120);
    assert_eq!(top(&explained), ("stall", "hardware or firmware", 3000));
    assert!(explained.top().is_some_and(|share| share.alternatives.is_empty()));
    // An interrupt that comes just where interrupts are turned on was held up by that code.
    let frames = [ENTRY, "_raw_spin_unlock_irq+0x1/0x9", "move_expired_inodes+0x50/0x200"];
    let explained = Story::new().timer(457, 7).stack(457, 7, &frames).runs(465, 7, 120);
    assert_eq!(top(&explained), ("irqs-off", "move_expired_inodes in worker [OTHER]", 457));
    assert!(explained.top().is_some_and(|share| share.alternatives.is_empty()));
}

#[test]
fn idle_and_what_is_longer_than_its_way_out() {
    let idle = |us: i64| {
        let mut story = Story::new().switch(-400, 7, 120, 1, 0, 120);
        let state = WindowIdleState { name: "C6".into(), exit_latency_ns: 85_000 };
        story.window.surroundings.idle_states.insert(3, state);
        let story = story.event(-399, 0, 0, EventData::Idle { state: 3 });
        let story = story.event(us, 0, 0, EventData::IdleExit).timer(us + 1, 0);
        story.runs(us + 8, 0, 120)
    };
    assert_eq!(top(&idle(200)).0, "idle-exit");
    assert_eq!(top(&idle(200)).1, "C6");
    let explained = idle(5000);
    assert_eq!(top(&explained).0, "stall");
    let exit = explained.shares.iter().find(|share| share.cause == "idle-exit").expect("a share");
    assert_eq!(exit.ns, 265 * US, "three times the declared latency and a little");
}

#[test]
fn interrupts_mask_and_delay() {
    let irq = |us, end| {
        let name = "nvme0q1".into();
        let story = Story::new().event(us, 7, 0, EventData::IrqEntry { irq: 30, name });
        story.event(end, 7, 8, EventData::IrqExit { irq: 30 })
    };
    let explained = irq(-10, 300).timer(301, 7).runs(308, 7, 120);
    assert_eq!(top(&explained), ("masked", "IRQ 30 nvme0q1", 300));
    let explained = irq(5, 305).timer(1, 7).runs(308, 7, 120);
    assert_eq!(top(&explained), ("irq", "IRQ 30 nvme0q1", 300));
}

#[test]
fn a_softirq_on_top_and_on_preempt_rt() {
    let flood = |rt: bool| {
        let mut story = Story::new().timer(1, 7);
        story.window.surroundings.preempt_rt = Some(rt);
        let story = story.event(5, 7, 0, EventData::SoftirqEntry { vec: 3 });
        story.event(900, 7, 0x10, EventData::SoftirqExit { vec: 3 }).runs(905, 7, 120)
    };
    assert_eq!(top(&flood(false)), ("softirq", "NET_RX", 895));
    // There a softirq of a lower task can be preempted: it is that task that could not be.
    assert_eq!(top(&flood(true)).0, "preempt-off");
}

#[test]
fn timers_that_expire_before_its_own() {
    let mut story = Story::new();
    story.window.symbols.insert(800, "timerfd_tmrproc+0x0/0x40".into());
    let vector = Vector::LocalTimer;
    let mut story = story.event(1, 7, 1, EventData::VectorEntry { vector });
    for n in 0..100_i64 {
        let expire = EventData::TimerExpire { timer: n as u64, function: 800, now_ns: DUE };
        story = story.event(2 + n * 2, 7, 9, expire);
        story = story.event(3 + n * 2, 7, 9, EventData::TimerExpired { timer: n as u64 });
    }
    let explained =
        story.waking(203, 7).event(204, 7, 9, EventData::VectorExit { vector }).runs(208, 7, 120);
    // A function had the CPU up to its end; what came between two of them is likely its own.
    let its = explained.shares.iter().filter(|share| share.culprit == "timerfd_tmrproc");
    let its: Vec<_> = its.map(|share| (share.ns / US, share.is_certain())).collect();
    assert_eq!(its, [(101, false), (100, true)]);
}

#[test]
fn a_function_that_is_always_short_did_not_run_for_milliseconds() {
    let explained = |name: &str, us: i64| {
        let mut story = Story::new();
        story.window.symbols.insert(800, name.into());
        let vector = Vector::LocalTimer;
        let story = story.event(1, 7, 1, EventData::VectorEntry { vector });
        let expire = EventData::TimerExpire { timer: 1, function: 800, now_ns: DUE };
        let story = story.event(2, 7, 9, expire).waking(us, 7);
        let story = story.event(us + 1, 7, 9, EventData::TimerExpired { timer: 1 });
        let explained =
            story.event(us + 2, 7, 9, EventData::VectorExit { vector }).runs(us + 4, 7, 120);
        (top(&explained).0.to_owned(), explained.shares[0].alternatives.join(" "))
    };
    let is = |cause: &str, or: &str| (cause.to_owned(), or.to_owned());
    assert_eq!(explained("hrtimer_wakeup+0x0/0x40", 5_000), is("stall", "timer-work"));
    assert_eq!(explained("hrtimer_wakeup+0x0/0x40", 800), is("timer-work", ""));
    assert_eq!(explained("timerfd_tmrproc+0x0/0x40", 5_000), is("timer-work", ""));
}

#[test]
fn the_timer_interrupt_began_before_it_was_due() {
    // A trap of the prototype: handled inside an interrupt that was already running.
    let explained = Story::new().timer(-2, 7).runs(6, 7, 120);
    assert_eq!(explained.irq_ns, Some(DUE - 2 * US));
    assert!(explained.shares.iter().all(|share| share.cause != "irqs-off"));
}

#[test]
fn a_page_fault_on_the_way_back() {
    let fault = EventData::PageFault { user: true, address: 0x7000, ip: 0x400 };
    let story = Story::new().timer(1, 7).switch(8, 7, 120, 0, LATE, 19);
    let explained = story.event(10, LATE, 0, fault.clone()).ran(150);
    assert_eq!(top(&explained), ("page-fault", "control", 140));
    // A major fault waits for the disk.
    let story = Story::new().timer(1, 7).switch(8, 7, 120, 0, LATE, 19);
    let story = story.event(10, LATE, 0, fault).switch(12, LATE, 19, 2, 7, 120);
    let explained = story.waking(5000, 7).runs(5010, 7, 120);
    assert_eq!(top(&explained).0, "page-fault");
}

#[test]
fn its_own_previous_cycle() {
    let explained = Story::new().timer(-400, 7).switch(-390, 7, 120, 0, LATE, 19).ran(300);
    assert_eq!(top(&explained), ("own-cycle", "control", 300));
    assert_eq!(explained.switched_ns, None);
}

#[test]
fn stopped_by_a_signal() {
    let sender = Story::new().with(70, "kill", TaskPolicy::Other, 0);
    let signal = EventData::Signal { number: 19, comm: Comm::default(), pid: LATE };
    let explained = sender
        .event(-300, 70, 0, signal)
        .waking(-299, 70)
        .switch(-290, 70, 120, 0, LATE, 19)
        .switch(-280, LATE, 19, 4, 7, 120)
        .waking(20_000, 7)
        .runs(20_010, 7, 120);
    assert_eq!(top(&explained), ("stopped", "signal 19 of kill", 20_000));
}

#[test]
fn woken_before_it_switched_out() {
    // No switch to it: it goes on where it was.
    let explained = Story::new()
        .timer(-100, 7)
        .switch(-90, 7, 120, 0, LATE, 19)
        .event(5, LATE, 1, EventData::VectorEntry { vector: Vector::LocalTimer })
        .waking(6, LATE)
        .event(7, LATE, 9, EventData::VectorExit { vector: Vector::LocalTimer })
        .ran(12);
    assert!(explained.shares.iter().all(|share| share.cause != "preempted"));
    assert!(explained.incomplete.is_empty());
}

#[test]
fn a_cpu_that_goes_away() {
    let story = Story::new().with(15, "migration/0", TaskPolicy::Fifo, 99);
    let step = EventData::Hotplug { of_cpu: 2, target: 0, function: 1 };
    let explained =
        story.event(-50, 7, 0, step).switch(-5, 7, 120, 0, 15, 0).timer(1, 15).runs(1400, 15, 0);
    assert_eq!(top(&explained), ("hotplug", "CPU 2", 1398));
}

#[test]
fn rtproof_itself() {
    let mut story = Story::new().with(51, "rtproof/trace", TaskPolicy::Fifo, 80);
    if let Some(task) = story.window.tasks.get_mut(&51) {
        task.tgid = LATE;
    }
    let explained = story.switch(-5, 7, 120, 0, 51, 19).timer(1, 51).runs(300, 51, 19);
    assert_eq!(top(&explained).0, "rtproof");
}

#[test]
fn an_ipi_and_its_sender() {
    let mut story = Story::new().timer(1, 7);
    story.window.symbols.insert(700, "flush_tlb_func+0x0/0x40".into());
    let send = EventData::IpiSend { to_cpu: 0, callsite: 1, callback: 700 };
    story.window.events.push(Event {
        at_ns: DUE + 4 * US,
        cpu: 1,
        pid: 7,
        flags: 0,
        preempt: 0,
        what: send,
    });
    let vector = Vector::CallFunction;
    let explained = story
        .event(6, 7, 1, EventData::VectorEntry { vector })
        .event(206, 7, 9, EventData::VectorExit { vector })
        .runs(208, 7, 120);
    assert_eq!(top(&explained), ("ipi", "function call interrupt", 200));
    let share = explained.top().expect("a share");
    assert_eq!(share.detail, ["sent by worker on CPU 1 (flush_tlb_func)"]);
}

#[test]
fn priority_inheritance_is_not_preemption() {
    let raise = EventData::PiSetprio { comm: "worker".into(), pid: 7, old_prio: 120, new_prio: 10 };
    let story = Story::new().event(-50, 7, 0, raise).switch(-20, 0, 120, 0, 7, 10);
    let explained = story.timer(1, 7).runs(600, 7, 10);
    assert_eq!(top(&explained).0, "priority-inheritance");
}

#[test]
fn lost_events_make_it_incomplete() {
    let lost = |from_us: i64, to_us: i64| {
        let mut story = Story::new().timer(1, 7);
        let at = |us: i64| DUE.saturating_add_signed(us * 1000);
        story.window.lost = vec![Lost { from_ns: at(from_us), to_ns: at(to_us), count: None }];
        story.runs(900, 7, 120)
    };
    // Time before the loss is explained, time after it is not.
    let explained = lost(100, 200);
    assert_eq!(explained.incomplete.len(), 1);
    assert_eq!(top(&explained), ("unexplained", "", 800));
    // Before it was due: what the thread did is unknown until its own next event, its wake-up.
    let explained = lost(-200, -100);
    assert_eq!(explained.incomplete.len(), 1);
    let unexplained = explained.shares.iter().find(|share| share.cause == "unexplained");
    assert_eq!(unexplained.map(|share| share.ns), Some(3 * US), "{explained:?}");
    // A wake-up that was due before the recording began: explained from where all is known.
    let mut story = Story::new();
    story.window.events.clear();
    story.window.from_ns = DUE + 5000 * US;
    let story = story.switch(6000, 60, 19, 0, 7, 120).switch(7000, 7, 120, 0, LATE, 19);
    let explained = story.switch(7100, LATE, 19, 0, 7, 120).runs(9100, 7, 120);
    assert_eq!(top(&explained), ("unexplained", "", 7000));
    assert!(
        explained.shares.iter().any(|share| share.cause == "throttled" && share.ns == 2_000 * US)
    );
    // Both are known again.
    let explained = lost(-900, -600);
    assert!(explained.incomplete.is_empty());
    assert_eq!(top(&explained).0, "preempt-off");
    let nothing = explain(
        &WakeUp { tid: LATE, cpu: 0, due_ns: DUE, ran_ns: DUE + 99, how: WakeUpBasis::Measured },
        &Window { to_ns: u64::MAX, ..Window::default() },
    );
    assert_eq!(nothing.incomplete.len(), 1);
    sums(&nothing);
    // What is unknown is not certain.
    assert_eq!((top(&nothing), nothing.certain_ns()), (("unexplained", "", 0), 0));
}

/// A small generator: the same numbers at every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        // Steele, Lea, Flood: SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn pid(&mut self) -> i32 {
        [0, 7, 60, LATE][self.below(4) as usize]
    }

    fn what(&mut self) -> EventData {
        let (pid, prio) = (self.pid(), [0, 19, 120][self.below(3) as usize]);
        let comm = Comm::default();
        match self.below(14) {
            0..=2 => EventData::Switch {
                prev_comm: comm,
                prev_pid: self.pid(),
                prev_prio: prio,
                prev_state: [0, 1, 2, 4, 0x100][self.below(5) as usize],
                next_comm: comm,
                next_pid: pid,
                next_prio: prio,
            },
            3 => EventData::Waking { comm, pid, prio, target_cpu: self.below(2) as u32 },
            4 => EventData::Wakeup { comm, pid, prio, target_cpu: self.below(2) as u32 },
            5 => EventData::VectorEntry { vector: Vector::LocalTimer },
            6 => EventData::VectorExit { vector: Vector::LocalTimer },
            7 => EventData::IrqEntry { irq: 9, name: "x".into() },
            8 => EventData::IrqExit { irq: 9 },
            9 => EventData::SoftirqEntry { vec: 3 },
            10 => EventData::SoftirqExit { vec: 3 },
            11 => EventData::Migrate { comm, pid, prio, from_cpu: 0, to_cpu: 1 },
            12 => EventData::PageFault { user: true, address: 1, ip: 2 },
            _ => EventData::Nmi { handler: 1, delta_ns: self.below(5 * US) },
        }
    }
}

#[test]
fn any_events_in_any_order_sum_exactly() {
    let mut numbers = Numbers(1);
    for _ in 0..3000 {
        let mut story = Story::new();
        for _ in 0..numbers.below(40) {
            let us = numbers.below(400).cast_signed() - 100;
            let (pid, what) = (numbers.pid(), numbers.what());
            story = story.event(us, pid, numbers.below(256) as u8, what);
            if numbers.below(5) == 0
                && let Some(last) = story.window.events.last_mut()
            {
                last.cpu = 1;
            }
        }
        let _ = story.ran(1 + numbers.below(300).cast_signed());
    }
}

#[test]
fn a_wake_up_that_was_not_late_has_no_shares() {
    let wake = WakeUp { tid: LATE, cpu: 0, due_ns: DUE, ran_ns: DUE, how: WakeUpBasis::Woken };
    let explained = explain(&wake, &Story::new().window);
    assert!(explained.shares.is_empty() && explained.spans.is_empty());
}

#[test]
fn in_a_guest_a_long_silence_is_more_likely_a_stall_than_kernel_code() {
    let explained = |guest: bool, us: i64, timer_us: i64| {
        let mut story = Story::new();
        story.window.surroundings.guest = Some(guest);
        let story = story.timer(timer_us, 7).stack(timer_us, 7, &[ENTRY, "memset_erms+0x1/0x2"]);
        let explained = story.runs(us, 7, 120);
        // The task on the CPU is still named.
        assert!(
            explained.shares[0].detail.iter().any(|line| line.contains("memset_erms")),
            "{explained:?}"
        );
        top(&explained).0.to_owned()
    };
    // Interrupts came late, inside code.
    assert_eq!(explained(true, 30_100, 30_000), "stall");
    assert_eq!(explained(false, 30_100, 30_000), "irqs-off");
    assert_eq!(explained(true, 10_100, 10_000), "irqs-off");
    // Just where they are turned on: either; a serial console takes so long.
    for (caller, is, or) in
        [("n_tty_write+0x1/0x2", "stall", "irqs-off"), ("uart_write+0x1/0x2", "irqs-off", "stall")]
    {
        let mut story = Story::new();
        story.window.surroundings.guest = Some(true);
        let frames = [ENTRY, "_raw_spin_unlock_irqrestore+0x1/0x2", caller];
        let both = story.timer(30_000, 7).stack(30_000, 7, &frames).runs(30_100, 7, 120);
        assert_eq!((top(&both).0, &both.shares[0].alternatives[..]), (is, &[or.to_owned()][..]));
    }
    // The switch did.
    assert_eq!(explained(true, 30_100, 1), "stall");
    assert_eq!(explained(false, 30_100, 1), "preempt-off");
    assert_eq!(explained(true, 10_100, 1), "preempt-off");
    // Not where something went on meanwhile.
    let mut story = Story::new();
    story.window.surroundings.guest = Some(true);
    let waking = EventData::Waking { comm: "x".into(), pid: 11, prio: 120, target_cpu: 0 };
    let story = story.timer(1, 7).event(15_000, 7, 0, waking);
    assert_eq!(top(&story.runs(30_100, 7, 120)).0, "preempt-off");
}

#[test]
fn a_thread_that_was_woken_on_its_way_to_sleep_is_not_queued_behind_itself() {
    for is_seen in [true, false] {
        let mut story = Story::new();
        if is_seen {
            story = story.switch(-300, 7, 120, 0, LATE, 19);
        } else {
            story.window.events.clear();
        }
        // It goes on until 400 us: the next cycle is due meanwhile.
        let explained = story.timer(-100, LATE).switch(400, LATE, 19, 1, 7, 120).timer(420, 7);
        let explained = explained.runs(430, 7, 120);
        assert_eq!(top(&explained), ("own-cycle", "control", 400), "{is_seen}: {explained:?}");
        assert!(explained.shares.iter().all(|share| share.cause != "queued"), "{explained:?}");
    }
}

#[test]
fn a_thread_that_has_started_its_timer_is_done_with_its_cycle() {
    let sleeps = |until_us: i64, stack: &[&str]| {
        let mut story = Story::new().switch(-300, 7, 120, 0, LATE, 19);
        story.window.surroundings.guest = Some(true);
        let start = EventData::TimerStart { timer: 1, function: 2, expires_ns: DUE, soft_ns: DUE };
        story = story.event(-20, LATE, 0, start);
        if !stack.is_empty() {
            // The interrupt comes before it is off the CPU.
            story = story.timer(until_us, LATE).stack(until_us, LATE, stack);
            return story.ran(until_us + 10);
        }
        story = story.switch(until_us, LATE, 19, 1, 7, 120).timer(until_us + 4, 7);
        story.runs(until_us + 12, 7, 120)
    };
    let explained = sleeps(10, &[]);
    assert!(explained.shares.iter().all(|share| share.cause != "own-cycle"), "{explained:?}");
    // Going to sleep takes no 50 ms: the machine stalled.
    assert_eq!(top(&sleeps(50_000, &[])).0, "stall");
    let ends = [ENTRY, "_raw_spin_unlock_irqrestore+0x1/0x2", "hrtimer_start_range_ns+0x3/0x4"];
    let explained = sleeps(50_000, &ends);
    assert_eq!((top(&explained).0, top(&explained).2), ("stall", 50_000), "{explained:?}");
    assert_eq!(
        (explained.woken_ns, explained.irq_ns),
        (Some(DUE + 50_002 * US), Some(DUE + 50_000 * US))
    );
    // It was late with that: until then it is its own cycle.
    let start = EventData::TimerStart { timer: 1, function: 2, expires_ns: DUE, soft_ns: DUE };
    let story = Story::new().switch(-300, 7, 120, 0, LATE, 19).event(500, LATE, 0, start);
    let explained = story.switch(505, LATE, 19, 1, 7, 120).timer(506, 7).runs(515, 7, 120);
    assert_eq!(top(&explained), ("own-cycle", "control", 500), "{explained:?}");
}
