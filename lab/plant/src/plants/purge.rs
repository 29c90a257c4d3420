//! A long stretch of kernel code: closing a socket that holds thousands of messages frees them all
//! within one system call. Kernels without preemption do not switch meanwhile.

use std::{io::Write, os::unix::net::UnixStream};

use rustix::net::sockopt;

use crate::args::Args;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::run::Frame;

const COUNT: u64 = 20_000;
const COUNT_MAX: u64 = 200_000;
/// More than a message of one byte takes of the sender's buffer.
const MESSAGE_BYTES: u64 = 2_048;

pub(super) fn purge(frame: Frame, args: &Args) -> Result<(), Failure> {
    let every_ns = args.needed_ns("every").map_err(Failure::Usage)?;
    let count = args.number("count").map_err(Failure::Usage)?.unwrap_or(COUNT);
    if count > COUNT_MAX {
        return Err(Failure::Usage(format!("--count: at most {COUNT_MAX}")));
    }
    frame.run("purge", args, |run, truth| {
        let room = (run.end_ns - run.begin_ns).div_ceil(every_ns);
        let mut all = Occurrences::with_room(room);
        let mut held = 0;
        let result = run.each(every_ns, |due_ns| {
            let (full, messages) = full(count)?;
            held = messages;
            run.sleep_until(due_ns + every_ns / 2);
            let begin_ns = now_ns();
            drop(full);
            all.add(begin_ns, now_ns());
            Ok(())
        });
        all.tell(truth);
        truth.set("messages", held);
        result
    })
}

/// A socket with messages that nobody has read, and how many; the sender is gone.
fn full(count: u64) -> Result<(UnixStream, u64), String> {
    let failed = |error: std::io::Error| format!("a socket with {count} messages: {error}");
    let (mut from, to) = UnixStream::pair().map_err(failed)?;
    from.set_nonblocking(true).map_err(failed)?;
    let bytes = usize::try_from(count * MESSAGE_BYTES).unwrap_or(usize::MAX);
    sockopt::set_socket_send_buffer_size_force(&from, bytes).map_err(|e| failed(e.into()))?;
    let mut messages = 0;
    while messages < count && from.write(&[1]).is_ok() {
        messages += 1;
    }
    Ok((to, messages))
}
