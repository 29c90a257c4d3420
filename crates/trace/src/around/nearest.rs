//! A bounded number of events: those nearest to the interval of the wake-up.

use std::collections::VecDeque;

use crate::{Event, WakeUp, carry::Carry};

/// Events of one CPU, pushed by time.
pub(super) struct Nearest {
    due_ns: u64,
    ran_ns: u64,
    max: usize,
    events: VecDeque<Event>,
    kept_to_ns: u64,
    is_cut: bool,
    /// What the events before the first kept one tell of the state there.
    pub(super) carry: Carry,
}

impl Nearest {
    pub(super) fn new(wake: &WakeUp, max: usize) -> Self {
        Self {
            due_ns: wake.due_ns,
            ran_ns: wake.ran_ns,
            max,
            events: VecDeque::new(),
            kept_to_ns: u64::MAX,
            is_cut: false,
            carry: Carry::default(),
        }
    }

    /// The next event; `false`: none that follows can be kept.
    pub(super) fn push(&mut self, at_ns: u64, event: impl FnOnce() -> Event) -> bool {
        if self.events.len() < self.max {
            self.events.push_back(event());
            return true;
        }
        self.is_cut = true;
        let front_ns = self.events.front().map_or(self.due_ns, |front| front.at_ns);
        let is_behind = at_ns > self.ran_ns;
        if is_behind && self.due_ns.saturating_sub(front_ns) <= at_ns - self.ran_ns {
            self.kept_to_ns = self.events.back().map_or(0, |back| back.at_ns);
            return false;
        }
        if let Some(front) = self.events.pop_front() {
            self.carry.event(front);
            self.events.push_back(event());
        }
        true
    }

    /// Whether any was left out.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// From when to when all that were pushed are kept.
    pub(super) fn kept(&self) -> (u64, u64) {
        let is_front_cut = self.is_cut && self.events.len() == self.max;
        let front_ns = self.events.front().filter(|_| is_front_cut).map_or(0, |event| event.at_ns);
        (front_ns, self.kept_to_ns)
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events.into()
    }
}

/// Keeps at most `max` of events of several CPUs. Whether any was left out.
pub(super) fn keep_nearest(events: &mut Vec<Event>, wake: &WakeUp, max: usize) -> bool {
    if events.len() <= max {
        return false;
    }
    events.sort_by_key(|event| {
        wake.due_ns.saturating_sub(event.at_ns).max(event.at_ns.saturating_sub(wake.ran_ns))
    });
    events.truncate(max);
    // Within one CPU by time again.
    events.sort_by_key(|event| (event.cpu, event.at_ns));
    true
}
