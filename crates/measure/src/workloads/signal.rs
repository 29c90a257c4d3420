//! Signal round trip: one thread signals another, which signals back.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError,
    pair::{self, Channel, Other, Pair, Side, Times},
};
use crate::{sys::signals::Call, thread::tid};

/// tgkill(2) and sigwaitinfo(2).
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    other: Other,
}

impl Signal {
    /// Both threads on the measured CPU.
    pub const USUAL: Self = Self { other: Other::Same };
}

impl Workload for Signal {
    fn name(&self) -> &'static str {
        "signal"
    }

    fn about(&self) -> &'static str {
        "Time from one thread sending a real-time signal to another with tgkill(2), over the \
         other taking it and signalling back, to the first having taken the answer, once a \
         period. Both take signals with sigwaitinfo(2): entering a handler is not measured."
    }

    fn quantity(&self) -> Quantity {
        Quantity::RoundTrip
    }

    fn parameter(&self) -> Option<&'static str> {
        Some(pair::PARAMETER)
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        Ok(Arc::new(Self { other: Other::parse(self.name(), parameter)? }))
    }

    fn spec(&self) -> String {
        self.other.spec(self.name())
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let channel =
            Signals { call: Call::new(), measuring: AtomicU32::new(0), partner: AtomicU32::new(0) };
        Ok(Box::new(Pair::start(self.name(), channel, self.other, 0, setting)?))
    }
}

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
