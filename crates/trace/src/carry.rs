//! What a CPU is in the middle of: the events that began something which has not ended. A window
//! begins with them, so that its first nanosecond has an owner, too.

use crate::{Decoder, Event, What, page::Raw};

/// Open sections that are kept; more would be a trace whose ends were not recorded.
const OPEN_MAX: usize = 64;

/// The events of one CPU that tell its state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carry {
    switch: Option<Event>,
    idle: Option<Event>,
    irqs: Option<Event>,
    preempt: Option<Event>,
    /// Interrupts, softirqs, timers and work that have begun, oldest first.
    open: Vec<Event>,
}

impl Carry {
    /// The next event, if it tells something of the state.
    pub(crate) fn feed(&mut self, decoder: &Decoder, cpu: u32, raw: &Raw<'_>) {
        if decoder.is_state(raw.id) {
            self.event(decoder.event(cpu, raw));
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        match &event.what {
            What::Switch { .. } => {
                // No hard interrupt lives through a switch; its end was not recorded.
                self.open.retain(|open| {
                    matches!(open.what, What::SoftirqEntry { .. } | What::WorkStart { .. })
                });
                self.switch = Some(event);
            }
            What::Idle { .. } | What::IdleExit => self.idle = Some(event),
            What::Irqs { off, .. } => self.irqs = off.then_some(event),
            What::Preempt { off, .. } => self.preempt = off.then_some(event),
            What::VectorEntry { .. }
            | What::IrqEntry { .. }
            | What::IpiEntry { .. }
            | What::SoftirqEntry { .. }
            | What::TimerExpire { .. }
            | What::WheelExpire { .. }
            | What::WorkStart { .. } => {
                // What begins again has ended.
                let is_again = |open: &Event| open.pid == event.pid && open.what == event.what;
                self.open.retain(|open| !is_again(open));
                if self.open.len() == OPEN_MAX {
                    self.open.remove(0);
                }
                self.open.push(event);
            }
            _ => {
                if let Some(at) = self.open.iter().rposition(|open| ends(&event, open)) {
                    self.open.remove(at);
                }
            }
        }
    }

    /// Events were lost: nothing is known any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The events, by time.
    pub(crate) fn events(&self) -> Vec<Event> {
        let single = [&self.switch, &self.idle, &self.irqs, &self.preempt];
        let single = single.into_iter().flatten();
        let mut events: Vec<Event> = single.chain(&self.open).cloned().collect();
        events.sort_by_key(|event| event.at_ns);
        events
    }
}

/// Whether an event ends what the other began.
fn ends(event: &Event, open: &Event) -> bool {
    match (&event.what, &open.what) {
        (What::VectorExit { vector }, What::VectorEntry { vector: begun }) => vector == begun,
        (What::IrqExit { irq }, What::IrqEntry { irq: begun, .. }) => irq == begun,
        (What::IpiExit { .. }, What::IpiEntry { .. }) => true,
        // On PREEMPT_RT softirqs belong to tasks.
        (What::SoftirqExit { vec }, What::SoftirqEntry { vec: begun }) => {
            vec == begun && event.pid == open.pid
        }
        (What::TimerExpired { timer }, What::TimerExpire { timer: begun, .. })
        | (What::WheelExpired { timer }, What::WheelExpire { timer: begun, .. })
        | (What::WorkEnd { work: timer }, What::WorkStart { work: begun, .. }) => timer == begun,
        _ => false,
    }
}
