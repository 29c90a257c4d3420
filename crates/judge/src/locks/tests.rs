//! Made-up events: a waiter H (real-time 80), a middle thread M (50), a holder L (10).

use super::*;

const FUTEX: i64 = 202;

const FUTEX_TIME64: i64 = 422;

const WORD: u64 = 0x1000;

const H: u32 = 8;

const M: u32 = 9;

const L: u32 = 10;

/// 128: private.
const WAIT: u64 = 128;

const WAKE: u64 = 1 | 128;

const fn priority(tid: u32) -> i32 {
    match tid {
        H => 19,
        M => 49,
        L => 89,
        0 => 120,
        _ => 130,
    }
}

struct Story(Locks);

impl Story {
    fn new() -> Self {
        let mut locks = Locks::new(vec![FUTEX, FUTEX_TIME64]);
        for tid in [H, M, L] {
            locks.find(7, tid, format!("t{tid}"));
        }
        Self(locks)
    }

    fn event(&mut self, time_ns: u64, tid: u32, what: ProgramEventData) -> &mut Self {
        self.0.take(ProgramEvent { time_ns, cpu: 1, pid: 7, tid, what, stack: None });
        self
    }

    fn enter(&mut self, at: u64, tid: u32, operation: u64, value: u64) -> &mut Self {
        let args = [WORD, operation, value, 0, 0, 0];
        self.event(at, tid, ProgramEventData::Enter { number: FUTEX, args })
    }

    fn exit(&mut self, at: u64, tid: u32) -> &mut Self {
        self.event(at, tid, ProgramEventData::Exit { number: FUTEX, result: 0 })
    }

    fn switch(&mut self, at: u64, from: u32, is_runnable: bool, to: u32) -> &mut Self {
        let (from_priority, to_priority) = (priority(from), priority(to));
        let to_name = format!("t{to}");
        let what = ProgramEventData::Switched {
            from,
            from_priority,
            is_runnable,
            to,
            to_priority,
            to_name,
        };
        self.event(at, from, what)
    }

    /// H waits from `at` on; M runs for 20 in the place of L, L for 5.
    fn wait(&mut self, at: u64, value: u64) -> &mut Self {
        self.switch(at - 3, L, true, H);
        self.enter(at - 1, H, WAIT, value).switch(at, H, false, L);
        self.switch(at + 2, L, true, M).switch(at + 22, M, false, L);
        self.enter(at + 24, L, WAKE, 1);
        self.event(at + 25, L, ProgramEventData::Woken { tid: H, cpu: 1 });
        self.exit(at + 26, L).switch(at + 26, L, true, H).exit(at + 27, H)
    }

    /// H releases it, and L runs again.
    fn releases(&mut self, at: u64) -> &mut Self {
        self.enter(at, H, WAKE, 1).exit(at + 1, H).switch(at + 2, H, false, L)
    }

    /// Certain locks, possible locks, the rest.
    fn finish(self) -> (Vec<Waits>, u64, Others) {
        let (all, others) = self.0.finish();
        let (waits, not_sure): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|of| of.kind != LockKind::NotSure);
        (waits, not_sure.iter().map(|of| of.count).sum(), others)
    }
}

#[test]
fn a_middle_thread_in_the_holders_place_is_inversion() {
    let mut story = Story::new();
    story.wait(100, 2).releases(130).wait(200, 2).releases(230);
    let (waits, not_sure, others) = story.finish();
    assert_eq!((waits.len(), not_sure), (1, 0), "{waits:?}");
    let of = &waits[0];
    assert_eq!((of.kind, of.count, of.sum_ns, of.worst_ns), (LockKind::Used, 2, 50, 25));
    assert_eq!((of.waiter.tid, of.holder.tid, of.hands), (H, L, 0));
    assert_eq!((of.waiter.priority, of.holder.priority), (Some(19), Some(89)));
    let of = &of.holder_time;
    assert_eq!((of.holder_ran_ns, of.inversion_ns(), of.unknown_ns), (5, 20, 0), "{of:?}");
    assert_eq!((of.preempters[0].tid, of.preempters[0].name.as_str()), (M, "t9"));
    assert_eq!(others, Others::default());
}

#[test]
fn what_is_used_as_no_lock_is_none() {
    // Once: it may be a lock, and may be something else.
    let mut story = Story::new();
    story.wait(100, 2).releases(130);
    let (waits, not_sure, _) = story.finish();
    assert!(waits.is_empty() && not_sure == 1);
    // The waiter never releases it: it waits for work.
    let mut story = Story::new();
    story.wait(100, 2).wait(200, 2).wait(300, 2);
    assert_eq!(story.finish().1, 3);
    // Another thread waits there for another value.
    let mut story = Story::new();
    story.wait(100, 2).releases(130).wait(200, 2).releases(230).enter(240, M, WAIT, 1);
    assert!(story.finish().0.is_empty());
    // All are woken.
    let mut story = Story::new();
    story.wait(100, 2).releases(130).wait(200, 2).releases(230).enter(240, L, WAKE, 99);
    assert!(story.finish().0.is_empty());
    // A condition variable or a semaphore; the lock that a thread is parked with.
    for value in [0, 1, 7, 0x8000_0010] {
        let mut story = Story::new();
        story.wait(100, value).releases(130).wait(200, value).releases(230);
        let (waits, not_sure, others) = story.finish();
        assert!(waits.is_empty() && not_sure == 0 && others.events == 2, "{value}: {others:?}");
    }
}

#[test]
fn a_lock_that_names_its_holder_is_one_at_once() {
    let mut story = Story::new();
    story.wait(100, 0x8000_0000 | u64::from(L));
    assert_eq!(story.finish().0[0].kind, LockKind::Named);
    // It names another one than the thread that released it.
    let mut story = Story::new();
    story.wait(100, 0x8000_0000 | u64::from(M));
    assert!(story.finish().0.is_empty());
    struct Mutex(u32, u32);
    impl LockMemory for Mutex {
        fn words(&mut self, _: u32, _: u64) -> Option<[u32; 5]> {
            Some([2, 0, self.0, 1, self.1])
        }
    }
    // Kinds: recursive and shared, with priority inheritance; another owner.
    for (mutex, is_one) in [(Mutex(L, 129), true), (Mutex(L, 32), false), (Mutex(M, 0), false)] {
        let mut mutex = mutex;
        let mut story = Story::new();
        story.enter(99, H, WAIT, 2).switch(100, H, false, L);
        story.0.read_memory(&mut mutex);
        story.enter(124, L, WAKE, 1).event(125, L, ProgramEventData::Woken { tid: H, cpu: 1 });
        story.exit(126, L).switch(127, L, true, H).exit(128, H);
        let (waits, ..) = story.finish();
        assert_eq!(waits.iter().any(|of| of.kind == LockKind::Pthread), is_one);
    }
}

#[test]
fn a_running_task_is_not_always_an_inversion() {
    // The holder is long; it sleeps with the lock; a thread above the waiter runs; none does.
    let longest_wait = |story: &dyn Fn(&mut Story)| {
        let mut all = Story::new();
        all.switch(1, 0, true, H);
        all.enter(99, H, WAIT, 0x8000_0000 | u64::from(L)).switch(100, H, false, L);
        story(&mut all);
        all.enter(190, L, WAKE, 1)
            .event(200, L, ProgramEventData::Woken { tid: H, cpu: 1 })
            .exit(201, L);
        all.switch(202, L, true, H).exit(203, H);
        let (mut waits, ..) = all.finish();
        let of = waits.remove(0).holder_time;
        let rest: u64 = of.preempters.iter().map(|it| it.ns).sum();
        let sum = of.holder_ran_ns + of.holder_slept_ns + of.unknown_ns + rest;
        assert_eq!((sum, of.unknown_ns), (100, 0), "{of:?}");
        (of.holder_ran_ns, of.holder_slept_ns, of.inversion_ns(), of.preempters)
    };
    assert_eq!(longest_wait(&|_| {}), (100, 0, 0, vec![]));
    let (ran, slept, inversion, _) = longest_wait(&|story| {
        story.switch(110, L, false, M).event(150, M, ProgramEventData::Woken { tid: L, cpu: 1 });
        story.switch(160, M, false, L);
    });
    assert_eq!((ran, slept, inversion), (50, 40, 10));
    let (_, _, inversion, instead) = longest_wait(&|story| {
        story.switch(110, L, true, 0).switch(150, 0, true, L);
    });
    assert_eq!((inversion, instead[0].order, instead[0].ns), (0, LockOrder::Idle, 40));
    let (_, _, inversion, instead) = longest_wait(&|story| {
        story.switch(110, L, true, 77).switch(150, 77, true, L);
    });
    assert_eq!((inversion, instead[0].order), (0, LockOrder::Lower));
    let (_, _, inversion, instead) = longest_wait(&|story| {
        story.switch(110, L, true, H).switch(150, H, false, L);
    });
    assert_eq!((inversion, instead[0].order), (0, LockOrder::Higher));
}

#[test]
fn a_lock_that_goes_through_other_hands_has_each_holder_in_its_time() {
    let mut story = Story::new();
    story.switch(1, 0, true, H).enter(99, H, WAIT, 0x8000_0000 | u64::from(L));
    // M was first in the queue: L releases it to M, which sleeps with it, and M to H.
    story.switch(100, H, false, L).enter(110, L, WAKE, 1).exit(111, L).switch(120, L, false, M);
    story.switch(130, M, false, 0).event(150, 0, ProgramEventData::Woken { tid: M, cpu: 1 });
    story.switch(155, 0, true, M).enter(160, M, WAKE, 1);
    story
        .event(161, M, ProgramEventData::Woken { tid: H, cpu: 1 })
        .exit(162, M)
        .switch(163, M, true, H);
    story.exit(164, H);
    let (waits, not_sure, _) = story.finish();
    // The word named L at first: that M held it at the end is known by its release alone.
    assert!(waits.is_empty() && not_sure == 1, "{waits:?}");
}

#[test]
fn a_lock_with_priority_inheritance_is_counted_apart() {
    let mut story = Story::new();
    story.enter(99, H, 6 | 128, 0).switch(100, H, false, L);
    story
        .event(125, L, ProgramEventData::Woken { tid: H, cpu: 1 })
        .switch(127, L, true, H)
        .exit(128, H);
    let (waits, _, others) = story.finish();
    assert!(waits.is_empty());
    assert_eq!((others.inheriting, others.inheriting_worst_ns), (1, 25));
}
