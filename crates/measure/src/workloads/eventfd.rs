//! Hand-off by an eventfd: what wakes event loops and virtual machines.

use std::os::fd::OwnedFd;

use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
};

use super::{
    pair::{HandOff, Way},
    workload::Description,
};
use crate::quantity::Quantity;

pub(super) const WORKLOAD: HandOff = HandOff::new(
    Description::new(
        "eventfd",
        "Time from one thread writing into an eventfd to the thread that reads it reading the \
     clock, once a period. On one CPU the way of the caller to sleep is part of it. The \
     answer through a second eventfd is not, nor the poll(2) or epoll(7) of an event loop.",
        Quantity::HandOff,
    ),
    |own, setting| own.both_ways(|| Ok(Counter(eventfd(0, EventfdFlags::CLOEXEC)?)), setting),
);

struct Counter(OwnedFd);

impl Way for Counter {
    /// Never waits: the counter is at most 2.
    #[inline(always)]
    fn send(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    #[inline(always)]
    fn take(&self) {
        let mut bytes = [0_u8; 8];
        while rustix::io::read(&self.0, &mut bytes) == Err(Errno::INTR) {}
    }
}
