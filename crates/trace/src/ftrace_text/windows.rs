//! The windows of late wake-ups, taken while a text is read a second time: only the events round
//! those that are still to come are kept.

use std::collections::{BTreeMap, VecDeque};

use super::{
    TextTrace,
    span::{EVENTS_MAX, span},
};
use crate::{Event, Lost, WakeUp, What, Window};

/// Events of all windows together, where they lie closer than elsewhere in the trace.
const HANDED_MAX: usize = 10_000_000;

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
    /// What was left out of the middle.
    left_out: Option<Lost>,
    /// Events that were looked through for windows.
    handed: usize,
    /// Windows that were too much.
    unexamined: u64,
}

impl<'a> Windows<'a> {
    /// Of these wake-ups of a trace.
    pub fn new(trace: &'a TextTrace, mut late: Vec<WakeUp>) -> Self {
        late.sort_by_key(|wake| std::cmp::Reverse(span(wake).1));
        let mut windows = Self {
            trace,
            waiting: late,
            from_ns: 0,
            events: VecDeque::new(),
            switches: BTreeMap::new(),
            left_out: None,
            handed: 0,
            unexamined: 0,
        };
        windows.advance();
        windows
    }

    /// The next event; hands on the windows that end before it.
    pub fn take(&mut self, event: &Event, found: &mut dyn FnMut(&WakeUp, Window)) {
        while self.waiting.last().is_some_and(|wake| span(wake).1 < event.at_ns) {
            self.next(found);
        }
        if event.at_ns >= self.from_ns && !self.waiting.is_empty() {
            if self.events.len() >= EVENTS_MAX {
                self.leave_out();
            }
            self.events.push_back(event.clone());
        } else {
            self.carry(event);
        }
    }

    /// Makes room: many at once, so that the time stays linear. The beginning shows who ran, the
    /// end what came last; what is between them is unknown from then on.
    fn leave_out(&mut self) {
        let mut gone = self.events.drain(EVENTS_MAX / 2..EVENTS_MAX / 4 * 3);
        let first_ns = gone.next().map_or(0, |event| event.at_ns);
        let to_ns = gone.next_back().map_or(first_ns, |event| event.at_ns);
        let before = self.left_out;
        self.left_out = Some(Lost {
            from_ns: before.map_or(first_ns, |lost| lost.from_ns),
            to_ns,
            count: Some(before.and_then(|lost| lost.count).unwrap_or(0) + EVENTS_MAX as u64 / 4),
        });
    }

    /// The text ends: hands on the windows that are left. How many were not handed on.
    pub fn finish(mut self, found: &mut dyn FnMut(&WakeUp, Window)) -> u64 {
        while !self.waiting.is_empty() {
            self.next(found);
        }
        self.unexamined
    }

    fn next(&mut self, found: &mut dyn FnMut(&WakeUp, Window)) {
        let Some(wake) = self.waiting.pop() else { return };
        let (from_ns, _) = span(&wake);
        self.handed += self.events.len();
        if self.handed > HANDED_MAX {
            self.unexamined += 1;
            return self.advance();
        }
        let events = self.events.make_contiguous();
        let is_before = |event: &&Event| {
            event.cpu == wake.cpu
                && event.at_ns < from_ns
                && matches!(event.what, What::Switch { .. })
        };
        let carried = events.iter().rfind(is_before);
        let carried = carried.or_else(|| self.switches.get(&wake.cpu));
        let mut window = self.trace.window_of(&wake, carried, events);
        if let Some(lost) = self.left_out.filter(|lost| lost.to_ns > from_ns) {
            window.cut = true;
            window.lost.push(lost);
        }
        found(&wake, window);
        self.advance();
    }

    /// Drops the events that no window needs any more.
    fn advance(&mut self) {
        let begins = self.waiting.iter().map(|wake| span(wake).0);
        self.from_ns = begins.min().unwrap_or(u64::MAX);
        while self.events.front().is_some_and(|event| event.at_ns < self.from_ns) {
            if let Some(event) = self.events.pop_front() {
                self.carry(&event);
            }
        }
        if self.events.is_empty() {
            self.left_out = None;
        }
    }

    fn carry(&mut self, event: &Event) {
        if matches!(event.what, What::Switch { .. }) {
            self.switches.insert(event.cpu, event.clone());
        }
    }
}
