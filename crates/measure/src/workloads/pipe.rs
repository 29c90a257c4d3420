//! Hand-off by a pipe: one byte, as programs that exchange messages do it.

use std::{os::fd::OwnedFd, sync::Arc};

use rustix::pipe::{PipeFlags, pipe_with};

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError,
    pair::{self, Channel, Other, Pair, Times},
};

/// write(2) and read(2) of one byte.
#[derive(Clone, Copy, Debug)]
pub struct Pipe {
    other: Other,
}

impl Pipe {
    /// Both threads on the measured CPU.
    pub const USUAL: Self = Self { other: Other::Same };
}

impl Workload for Pipe {
    fn name(&self) -> &'static str {
        "pipe"
    }

    fn about(&self) -> &'static str {
        "Time from one thread writing a byte into a pipe to the thread that reads it reading the \
         clock, once a period. On one CPU the way of the caller to sleep is part of it. The \
         answer through a second pipe is not, nor any longer message."
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
        let pipe = |()| pipe_with(PipeFlags::CLOEXEC);
        let both = pipe(()).and_then(|call| Ok(Pipes { call, answer: pipe(())? }));
        let channel = both.map_err(|error| WorkloadError::unfit(self.name(), error))?;
        Ok(Box::new(Pair::start(self.name(), channel, self.other, 0, setting)?))
    }
}

/// A pipe for each direction: the end to read and the end to write.
struct Pipes {
    call: (OwnedFd, OwnedFd),
    answer: (OwnedFd, OwnedFd),
}

impl Channel for Pipes {
    #[inline(always)]
    fn lead(&self, times: &Times) {
        times.begin();
        write(&self.call.1);
        read(&self.answer.0);
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        read(&self.call.0);
        times.end();
        write(&self.answer.1);
    }

    fn release(&self) {
        write(&self.call.1);
    }
}

/// Never waits: there is at most one byte in a pipe.
#[inline(always)]
fn write(pipe: &OwnedFd) {
    let _ = rustix::io::write(pipe, &[1]);
}

/// Both ends are open as long as either thread is there: it can be read.
#[inline(always)]
fn read(pipe: &OwnedFd) {
    let mut byte = [0_u8];
    while rustix::io::read(pipe, &mut byte) == Err(rustix::io::Errno::INTR) {}
}
