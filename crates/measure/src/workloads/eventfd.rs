//! Hand-off by an eventfd: what wakes event loops and virtual machines.

use std::{os::fd::OwnedFd, sync::Arc};

use rustix::event::{EventfdFlags, eventfd};

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError,
    pair::{self, Channel, Other, Pair, Times},
};

/// write(2) and read(2) of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Eventfd {
    other: Other,
}

impl Eventfd {
    /// Both threads on the measured CPU.
    pub const USUAL: Self = Self { other: Other::Same };
}

impl Workload for Eventfd {
    fn name(&self) -> &'static str {
        "eventfd"
    }

    fn about(&self) -> &'static str {
        "Time from one thread writing into an eventfd to the thread that reads it reading the \
         clock, once a period. On one CPU the way of the caller to sleep is part of it. The \
         answer through a second eventfd is not, nor the poll(2) or epoll(7) of an event loop."
    }

    fn quantity(&self) -> Quantity {
        Quantity::HandOff
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
        let counter = || eventfd(0, EventfdFlags::CLOEXEC);
        let both = counter().and_then(|call| Ok(Counters { call, answer: counter()? }));
        let channel = both.map_err(|error| WorkloadError::unfit(self.name(), error))?;
        Ok(Box::new(Pair::start(self.name(), channel, self.other, 0, setting)?))
    }
}

/// A counter for each direction.
struct Counters {
    call: OwnedFd,
    answer: OwnedFd,
}

impl Channel for Counters {
    #[inline(always)]
    fn lead(&self, times: &Times) {
        times.begin();
        write(&self.call);
        read(&self.answer);
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        read(&self.call);
        times.end();
        write(&self.answer);
    }

    fn release(&self) {
        write(&self.call);
    }
}

/// Never waits: the counter is at most 2.
#[inline(always)]
fn write(counter: &OwnedFd) {
    let _ = rustix::io::write(counter, &1_u64.to_ne_bytes());
}

#[inline(always)]
fn read(counter: &OwnedFd) {
    let mut bytes = [0_u8; 8];
    while rustix::io::read(counter, &mut bytes) == Err(rustix::io::Errno::INTR) {}
}
