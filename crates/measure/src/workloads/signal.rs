//! Signal round trip: one thread signals another, which signals back.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{
    pair::{Channel, HandOff, Side, Times},
    workload::Description,
};
use crate::{quantity::Quantity, sys::signals::Call, task::tid};

pub(super) const WORKLOAD: HandOff = HandOff::new(
    Description::new(
        "signal",
        "Time from one thread sending a real-time signal to another with tgkill(2), over the \
     other taking it and signalling back, to the first having taken the answer, once a \
     period. Both take signals with sigwaitinfo(2): entering a handler is not measured.",
        Quantity::RoundTrip,
    ),
    |own, setting| {
        let id = || AtomicU32::new(0);
        own.start(Signals { call: Call::new(), measuring: id(), partner: id() }, 0, setting)
    },
);

/// The signal, and the ids of both threads.
struct Signals {
    call: Call,
    measuring: AtomicU32,
    partner: AtomicU32,
}

impl Channel for Signals {
    const IS_ROUND_TRIP: bool = true;

    fn enter(&self, side: Side) {
        let id = if side == Side::Partner { &self.partner } else { &self.measuring };
        id.store(tid(), Ordering::Release);
    }

    #[inline(always)]
    fn lead(&self, times: &Times) {
        times.begin();
        self.call.send(self.partner.load(Ordering::Acquire));
        self.call.wait();
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        self.call.wait();
        times.end();
        self.call.send(self.measuring.load(Ordering::Acquire));
    }

    fn release(&self) {
        self.call.send(self.partner.load(Ordering::Acquire));
    }
}
