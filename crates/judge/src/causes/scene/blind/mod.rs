//! Stretches in which nothing is certain, because events are missing.
//!
//! The kernel marks what it overwrote. It does not mark what it refused to record: while a ring
//! buffer is resized, by whoever may do that, recording is off (rb_remove_pages in
//! kernel/trace/ring_buffer.c) and events are gone without a trace. Where an event shows that
//! another task is current than the one that was switched to last, `context::reconstruct` infers
//! the switch. A text may end early, and people leave lines out.

use rtproof_trace::{Event, How, WakeUp, What, Window};

use super::thread::{Thread, change};

/// A stretch in which nothing is known.
#[derive(Clone, Copy, Debug)]
pub struct Blind {
    pub from_ns: u64,
    pub to_ns: u64,
    pub why: &'static str,
}

/// A stretch in which events are missing, and the same task was current before and after.
pub type Doubt = Blind;

/// The kernel says so, or the window does not reach as far.
const LOST: &str = "events of this time were lost, or had already been overwritten";
/// Whoever copied a text left them out.
const LEFT_OUT: &str = "entries that are left out of the text";
/// They are not in a text: it was cut, or the tracer stopped before.
const ENDS: &str = "the recording ends before the thread ran";
/// Nothing says so, and yet the late thread never got the CPU.
const UNRECORDED: &str =
    "events of this time contradict each other: the kernel did not record all, and does not say so";

/// Where events are missing between due and run: where nothing is known until both the thread's
/// state and the CPU's are recorded again, and where what is before and after fits together.
/// `thread`: what the thread was doing, as far as the events show.
pub(super) fn stretches(
    wake: &WakeUp,
    window: &Window,
    thread: &[(u64, u64, Thread)],
) -> (Vec<Blind>, Vec<Doubt>) {
    let is_about = |event: &Event| event.pid == wake.tid || change(event, wake, window).is_some();
    if !window.events.iter().any(is_about) {
        return (vec![Blind { from_ns: wake.due_ns, to_ns: wake.ran_ns, why: LOST }], Vec::new());
    }
    let own = || window.events.iter().filter(|event| event.cpu == wake.cpu);
    let known_ns = |from_ns: u64| {
        let cpu = own().find(|event| event.at_ns >= from_ns);
        let thread = window
            .events
            .iter()
            .find(|event| event.at_ns >= from_ns && change(event, wake, window).is_some());
        let at = |event: Option<&Event>| event.map_or(u64::MAX, |event| event.at_ns);
        at(cpu).max(at(thread))
    };
    let (mut blind, mut doubts) = (Vec::new(), Vec::new());
    let add = |list: &mut Vec<Blind>, from_ns: u64, to_ns: u64, why| {
        let (from_ns, to_ns) = (from_ns.max(wake.due_ns), to_ns.min(wake.ran_ns));
        if from_ns < to_ns {
            list.push(Blind { from_ns, to_ns, why });
        }
    };
    for lost in &window.lost {
        let before = own().rfind(|event| event.at_ns <= lost.from_ns).map(after);
        let behind = own().find(|event| event.at_ns >= lost.to_ns).map(current);
        // A kernel that loses events loses many; people leave out what looks the same.
        let by_hand = lost.count.is_none() && !window.coverage.is_all();
        if by_hand && before.is_some() && before == behind && behind != Some(wake.tid) {
            add(&mut doubts, lost.from_ns, lost.to_ns, LEFT_OUT);
        } else {
            add(&mut blind, lost.from_ns, known_ns(lost.to_ns), LOST);
        }
    }
    if window.from_ns > wake.due_ns {
        add(&mut blind, 0, known_ns(window.from_ns), LOST);
    }
    if window.to_ns < wake.ran_ns {
        add(&mut blind, window.to_ns, u64::MAX, ENDS);
    }
    // Nothing where switches are not recorded at all.
    let has_switches = own().any(|event| matches!(event.what, What::Switch { .. }));
    let is_whole = || runs_in_the_end(wake, window, thread) || ends_before_it_ran(wake, window);
    if has_switches && blind.is_empty() && !is_whole() {
        let last = own().rfind(|event| event.at_ns < wake.ran_ns);
        add(&mut blind, last.map_or(0, |event| event.at_ns), wake.ran_ns, UNRECORDED);
    }
    (blind, doubts)
}

/// The task that is current when an event is written.
const fn current(event: &Event) -> i32 {
    match event.what {
        What::Switch { prev_pid, .. } => prev_pid,
        _ => event.pid,
    }
}

/// The task that is current after an event.
const fn after(event: &Event) -> i32 {
    match event.what {
        What::Switch { next_pid, .. } => next_pid,
        _ => event.pid,
    }
}

/// Whether the events show that the late thread got the CPU.
fn runs_in_the_end(wake: &WakeUp, window: &Window, thread: &[(u64, u64, Thread)]) -> bool {
    let is_running = |state: Thread| matches!(state, Thread::Running { .. });
    // The switch itself may be the end of the wait; or the thread's own event.
    let at_the_end = || {
        window.events.iter().any(|event| {
            let is_end = event.at_ns == wake.ran_ns;
            let runs = change(event, wake, window).is_some_and(|(.., then)| is_running(then));
            is_end && (runs || event.pid == wake.tid)
        })
    };
    thread.last().is_some_and(|&(.., state)| is_running(state)) || at_the_end()
}

/// Whether the wake-up ends with an event of another task, as the switch from that to the thread
/// was not recorded: see [`rtproof_trace::scan::Totals::at_least`].
pub(super) fn ends_before_it_ran(wake: &WakeUp, window: &Window) -> bool {
    let at_its_end = |event: &&Event| event.cpu == wake.cpu && event.at_ns == wake.ran_ns;
    // In a text several may have the same time; and a wake-up that is itself the end is another.
    let is_other = |event: &Event| {
        current(event) != wake.tid
            && after(event) != wake.tid
            && !matches!(event.what, What::Wakeup { pid, .. } if pid == wake.tid)
    };
    let mut last = window.events.iter().filter(at_its_end).peekable();
    matches!(wake.how, How::Timer | How::Woken) && last.peek().is_some() && last.all(is_other)
}

#[cfg(test)]
mod tests;
