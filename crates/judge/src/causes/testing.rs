//! Made-up windows for the tests of causes: a FIFO 80 thread 50 on CPU 0, due at 1 ms.

use rtproof_trace::{
    Event, EventData, Task, TaskPolicy, WakeUp, WakeUpBasis, Window,
    event::{self, Comm, Vector},
};

use super::scene::Scene;
use super::{Attribution, Cause, Explanation, explain};

pub(super) const LATE: i32 = 50;

/// When it is due, ns.
pub(super) const DUE: u64 = 1_000_000;

/// One microsecond.
pub(super) const US: u64 = 1000;

/// A window under construction. Times are microseconds after the due time, and may be negative.
pub(super) struct Story {
    pub(super) window: Window,
}

fn at(us: i64) -> u64 {
    DUE.saturating_add_signed(us * 1000)
}

impl Story {
    /// The late thread has slept since long ago; the CPU runs task 7, an ordinary one.
    pub(super) fn new() -> Self {
        let mut story = Self { window: Window { to_ns: u64::MAX, ..Window::default() } };
        story.window.surroundings.guest = Some(false);
        story.task(LATE, "control", TaskPolicy::Fifo, 80);
        story.task(7, "worker", TaskPolicy::Other, 0);
        story.switch(-500, LATE, 19, 1, 7, 120)
    }

    pub(super) fn task(&mut self, tid: i32, comm: &str, policy: TaskPolicy, rt_priority: u32) {
        let task = Task { comm: comm.into(), tgid: tid, rt_priority, ..Task::default() };
        self.window.tasks.insert(tid, Task { policy: Some(policy), ..task });
    }

    pub(super) fn with(
        mut self,
        tid: i32,
        comm: &str,
        policy: TaskPolicy,
        rt_priority: u32,
    ) -> Self {
        self.task(tid, comm, policy, rt_priority);
        self
    }

    pub(super) fn event(mut self, us: i64, pid: i32, flags: u8, what: EventData) -> Self {
        self.window.events.push(Event { at_ns: at(us), cpu: 0, pid, flags, preempt: 0, what });
        self
    }

    pub(super) fn switch(
        self,
        us: i64,
        prev_pid: i32,
        prev_prio: i32,
        prev_state: u64,
        next_pid: i32,
        next_prio: i32,
    ) -> Self {
        let what = EventData::Switch {
            prev_comm: Comm::default(),
            prev_pid,
            prev_prio,
            prev_state,
            next_comm: Comm::default(),
            next_pid,
            next_prio,
        };
        self.event(us, prev_pid, 0, what)
    }

    /// The timer interrupt over task `pid`, from `us` on for 3 us, wakes the thread after 2 us.
    pub(super) fn timer(self, us: i64, pid: i32) -> Self {
        let vector = Vector::LocalTimer;
        self.event(us, pid, event::flags::IRQS_OFF, EventData::VectorEntry { vector })
            .waking(us + 2, pid)
            .event(
                us + 3,
                pid,
                event::flags::IRQS_OFF | event::flags::HARDIRQ,
                EventData::VectorExit { vector },
            )
    }

    pub(super) fn waking(self, us: i64, pid: i32) -> Self {
        let what = EventData::Waking { comm: "control".into(), pid: LATE, prio: 19, target_cpu: 0 };
        self.event(us, pid, event::flags::IRQS_OFF | event::flags::HARDIRQ, what)
    }

    /// The stack that the timer interrupt at `us` interrupted, innermost first.
    pub(super) fn stack(mut self, us: i64, pid: i32, names: &[&str]) -> Self {
        let first = self.window.symbols.len() as u64 + 1;
        let frames: Vec<u64> = (first..).take(names.len()).collect();
        for (&frame, &name) in frames.iter().zip(names) {
            self.window.symbols.insert(frame, name.into());
        }
        let frames = frames.into_boxed_slice();
        let flags = event::flags::IRQS_OFF | event::flags::HARDIRQ;
        self = self.event(us, pid, flags, EventData::Stack { frames });
        self
    }

    /// The thread is switched to at `us` from `prev` and runs 2 us later. Checks what holds for
    /// every explanation.
    pub(super) fn runs(self, us: i64, prev: i32, prev_prio: i32) -> Explanation {
        self.switch(us, prev, prev_prio, 0, LATE, 19).ran(us + 2)
    }

    /// The thread runs at `us`.
    pub(super) fn ran(mut self, us: i64) -> Explanation {
        self.window.events.sort_by_key(|event| event.at_ns);
        let wake =
            WakeUp { tid: LATE, cpu: 0, due_ns: DUE, ran_ns: at(us), how: WakeUpBasis::Measured };
        let explanation = explain(&wake, &self.window);
        assert_eq!(explanation, explain(&wake, &self.window), "the same twice");
        sums(&explanation);
        explanation
    }
}

impl Story {
    /// What one cause alone attributes until the thread runs at `us`, in nanoseconds.
    pub(super) fn attributed_to(mut self, cause: &Cause, us: i64) -> Vec<(u64, Attribution)> {
        self.window.events.sort_by_key(|event| event.at_ns);
        let wake =
            WakeUp { tid: LATE, cpu: 0, due_ns: DUE, ran_ns: at(us), how: WakeUpBasis::Measured };
        let scene = Scene::new(&wake, &self.window);
        let moments = scene.moments();
        moments
            .iter()
            .filter_map(|moment| Some((moment.ns(), (cause.attribute)(moment)?)))
            .collect()
    }
}

/// Shares and spans sum to the latency, without gap or overlap.
pub(super) fn sums(explanation: &Explanation) {
    let latency_ns = explanation.wake.latency_ns();
    let shares: u64 = explanation.shares.iter().map(|share| share.ns).sum();
    assert_eq!(shares, latency_ns, "{explanation:#?}");
    let mut at_ns = explanation.wake.due_ns;
    for span in &explanation.spans {
        assert_eq!(span.from_ns, at_ns);
        assert!(span.to_ns > span.from_ns && (span.share as usize) < explanation.shares.len());
        at_ns = span.to_ns;
    }
    assert_eq!(at_ns, explanation.wake.ran_ns);
    assert!(explanation.shares.is_sorted_by(|a, b| a.ns >= b.ns));
}

/// Cause, culprit and microseconds of the largest share.
pub(super) fn top(explanation: &Explanation) -> (&str, &str, u64) {
    let top = explanation.top().expect("a share");
    (&top.cause, &top.culprit, top.ns / US)
}
