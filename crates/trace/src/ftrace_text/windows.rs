//! The windows of late wake-ups, taken while a text is read a second time: only the events round
//! those that are still to come are kept.

use std::collections::{BTreeMap, VecDeque};

use super::TextTrace;
use crate::{Event, WakeUp, What, Window};

/// Events that are kept at most; of a longer wait the middle is left out.
const EVENTS_MAX: usize = 200_000;

/// Takes windows out of a stream of events.
#[derive(Debug)]
pub struct Windows<'a> {
    trace: &'a TextTrace,
    /// By the end of their windows, the first one last.
    waiting: Vec<WakeUp>,
    /// From here on events are of use.
    from_ns: u64,
    events: VecDeque<Event>,
    switches: BTreeMap<u32, Event>,
    is_cut: bool,
}

impl<'a> Windows<'a> {
    /// Of these wake-ups of a trace.
    #[must_use]
    pub fn new(trace: &'a TextTrace, mut late: Vec<WakeUp>) -> Self {
        late.sort_by_key(|wake| std::cmp::Reverse(TextTrace::span(wake).1));
        let mut windows = Self {
            trace,
            waiting: late,
            from_ns: 0,
            events: VecDeque::new(),
            switches: BTreeMap::new(),
            is_cut: false,
        };
        windows.advance();
        windows
    }

    /// The next event; hands on the windows that end before it.
    pub fn take(&mut self, event: &Event, found: &mut dyn FnMut(&WakeUp, Window)) {
        while self.waiting.last().is_some_and(|wake| TextTrace::span(wake).1 < event.at_ns) {
            self.next(found);
        }
        if event.at_ns >= self.from_ns && !self.waiting.is_empty() {
            if self.events.len() >= EVENTS_MAX {
                self.is_cut = true;
                // The beginning tells who ran; what is behind it is as good as any.
                self.events.remove(EVENTS_MAX / 2);
            }
            self.events.push_back(event.clone());
        } else {
            self.carry(event);
        }
    }

    /// The text ends: hands on the windows that are left.
    pub fn finish(mut self, found: &mut dyn FnMut(&WakeUp, Window)) {
        while !self.waiting.is_empty() {
            self.next(found);
        }
    }

    fn next(&mut self, found: &mut dyn FnMut(&WakeUp, Window)) {
        let Some(wake) = self.waiting.pop() else { return };
        let (from_ns, _) = TextTrace::span(&wake);
        let events = self.events.make_contiguous();
        let is_before = |event: &&Event| {
            event.cpu == wake.cpu
                && event.at_ns < from_ns
                && matches!(event.what, What::Switch { .. })
        };
        let carried = events.iter().rfind(is_before);
        let carried = carried.or_else(|| self.switches.get(&wake.cpu));
        let mut window = self.trace.window_of(&wake, carried, events);
        window.cut = self.is_cut;
        found(&wake, window);
        self.advance();
    }

    /// Drops the events that no window needs any more.
    fn advance(&mut self) {
        let begins = self.waiting.iter().map(|wake| TextTrace::span(wake).0);
        self.from_ns = begins.min().unwrap_or(u64::MAX);
        while self.events.front().is_some_and(|event| event.at_ns < self.from_ns) {
            if let Some(event) = self.events.pop_front() {
                self.carry(&event);
            }
        }
        self.is_cut &= !self.events.is_empty();
    }

    fn carry(&mut self, event: &Event) {
        if matches!(event.what, What::Switch { .. }) {
            self.switches.insert(event.cpu, event.clone());
        }
    }
}
