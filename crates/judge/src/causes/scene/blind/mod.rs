//! Stretches in which nothing is certain, because events are missing.
//!
//! The kernel marks what it overwrote. It does not mark what it refused to record: while a ring
//! buffer is resized, by whoever may do that, recording is off (rb_remove_pages in
//! kernel/trace/ring_buffer.c) and events are gone without a trace. Then the rest contradicts
//! itself: a task runs without a matching sched_switch.

use rtproof_trace::{Event, WakeUp, What, Window};

use super::{Thread, change};

/// A stretch in which nothing is certain.
#[derive(Clone, Copy, Debug)]
pub struct Blind {
    /// Begin, ns.
    pub from_ns: u64,
    /// End, ns.
    pub to_ns: u64,
    /// Why, in words.
    pub why: &'static str,
}

impl Blind {
    /// What to tell of it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        if self.why == LOST {
            "events of this time were lost, or had already been overwritten"
        } else {
            "events of this time contradict each other: the kernel did not record all, and does \
             not say so"
        }
    }
}

/// The kernel says so, or the window does not reach as far.
const LOST: &str = "events were lost";
/// Nothing says so: the others contradict each other.
const UNRECORDED: &str = "the kernel left events out";

/// Where events are missing between due and run, until both the thread's state and the CPU's are
/// told again; first those that somebody marked. `thread`: what the thread was doing, as far as
/// the events tell.
pub(super) fn stretches(
    wake: &WakeUp,
    window: &Window,
    thread: &[(u64, u64, Thread)],
) -> Vec<Blind> {
    let speaks_of = |event: &Event| event.pid == wake.tid || change(event, wake.tid).is_some();
    if !window.events.iter().any(speaks_of) {
        return vec![Blind { from_ns: wake.due_ns, to_ns: wake.ran_ns, why: LOST }];
    }
    let after = |from_ns: u64, tells: &dyn Fn(&Event) -> bool| {
        let told = window.events.iter().find(|event| event.at_ns >= from_ns && tells(event));
        told.map_or(u64::MAX, |event| event.at_ns)
    };
    let told_again_ns = |from_ns: u64| {
        let cpu =
            |event: &Event| event.cpu == wake.cpu && matches!(event.what, What::Switch { .. });
        let thread = |event: &Event| change(event, wake.tid).is_some();
        after(from_ns, &cpu).max(after(from_ns, &thread))
    };
    let until_told = |(from_ns, to_ns): (u64, u64)| (from_ns, told_again_ns(to_ns));
    let head = (window.from_ns > wake.due_ns).then(|| until_told((0, window.from_ns)));
    let tail = (window.to_ns < wake.ran_ns).then_some((window.to_ns, u64::MAX));
    let marked = window.lost.iter().map(|lost| until_told((lost.from_ns, lost.to_ns)));
    let marked = marked.chain(head).chain(tail).map(|stretch| (stretch, LOST));
    let unmarked = unmarked(wake, window, thread).into_iter().map(until_told);
    let all = marked.chain(unmarked.map(|stretch| (stretch, UNRECORDED)));
    let inside = all.map(|((from_ns, to_ns), why)| Blind {
        from_ns: from_ns.max(wake.due_ns),
        to_ns: to_ns.min(wake.ran_ns),
        why,
    });
    inside.filter(|blind| blind.from_ns < blind.to_ns).collect()
}

/// Where events of the late CPU contradict each other: from the last one before to the first one
/// after. Who was switched to is who runs, until the next switch; and the late thread ran in the
/// end. Nothing where switches are not recorded at all.
fn unmarked(wake: &WakeUp, window: &Window, thread: &[(u64, u64, Thread)]) -> Vec<(u64, u64)> {
    let own = || window.events.iter().filter(|event| event.cpu == wake.cpu);
    if !own().any(|event| matches!(event.what, What::Switch { .. })) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut known: Option<(i32, u64)> = None;
    for event in own() {
        let (before, after) = match event.what {
            What::Switch { prev_pid, next_pid, .. } => (prev_pid, next_pid),
            _ => (event.pid, event.pid),
        };
        // What came before the window was left out, but for the last switch.
        if let Some((current, at_ns)) = known
            && current != before
            && event.at_ns >= window.from_ns
        {
            found.push((at_ns, event.at_ns));
        }
        known = Some((after, event.at_ns));
    }
    if !runs_in_the_end(wake, window, thread) {
        let last = own().rfind(|event| event.at_ns < wake.ran_ns);
        found.push((last.map_or(0, |event| event.at_ns), wake.ran_ns));
    }
    found
}

/// Whether the events tell that the late thread got the CPU.
fn runs_in_the_end(wake: &WakeUp, window: &Window, thread: &[(u64, u64, Thread)]) -> bool {
    let is_running = |state: Thread| matches!(state, Thread::Running { .. });
    // The switch itself may be the end of the wait.
    let at_the_end = || {
        let mut changes = window.events.iter().filter_map(|event| change(event, wake.tid));
        changes.any(|(at_ns, _, then)| at_ns == wake.ran_ns && is_running(then))
    };
    thread.last().is_some_and(|&(.., state)| is_running(state)) || at_the_end()
}

#[cfg(test)]
mod tests;
