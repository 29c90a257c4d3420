//! Hand-off by a pipe: one byte, as programs that exchange messages do it.

use std::os::fd::OwnedFd;

use rustix::{
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};

use super::{
    pair::{HandOff, Way},
    workload::Description,
};
use crate::quantity::Quantity;

pub(super) const WORKLOAD: HandOff = HandOff::new(
    Description::new(
        "pipe",
        "Time from one thread writing a byte into a pipe to the thread that reads it reading the \
     clock, once a period. On one CPU the way of the caller to sleep is part of it. The \
     answer through a second pipe is not, nor any longer message.",
        Quantity::HandOff,
    ),
    |own, setting| {
        let pipe = || {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            Ok(Pipe { read, write })
        };
        own.both_ways(pipe, setting)
    },
);

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Way for Pipe {
    /// Never waits: there is at most one byte in a pipe.
    #[inline(always)]
    fn send(&self) {
        let _ = rustix::io::write(&self.write, &[1]);
    }

    /// Both ends are open as long as either thread is there: it can be read.
    #[inline(always)]
    fn take(&self) {
        let mut byte = [0_u8];
        while rustix::io::read(&self.read, &mut byte) == Err(Errno::INTR) {}
    }
}
