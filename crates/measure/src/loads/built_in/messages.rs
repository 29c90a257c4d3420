//! A storm of short messages between many threads, as hackbench makes it. Brings out the scheduler:
//! wake-ups by the hundred thousand, run queues with many tasks, migrations, locks of sockets, and
//! interrupts between processors.
//!
//! Bounded: one group of [`SENDERS`] senders and as many receivers for each load CPU, at most
//! [`GROUPS_MAX`] groups; the threads run on any of the load CPUs.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use super::super::load::{Context, Load};
use crate::failure::Failure;

/// Senders of a group, and receivers.
const SENDERS: usize = 10;
const GROUPS_MAX: usize = 8;
/// Size of a message in bytes, as of hackbench.
const MESSAGE_BYTES: usize = 100;
/// A call that waits looks at the stop flag this often.
const WAIT: Duration = Duration::from_millis(50);
/// Messages between two counts.
const BATCH: u64 = 64;

type Task<'a> = Box<dyn FnOnce() -> Result<(), Failure> + Send + 'a>;

/// Groups of senders and receivers.
pub(super) const LOAD: Load = Load {
    name: "messages",
    about: "A storm of messages of 100 bytes through Unix sockets, as of hackbench. Each load \
            CPU, at most 8, has a group of 10 senders that write to each of 10 receivers",
    unit: "messages",
    parameter: None,
    prepare: None,
    work,
};

fn work(ctx: &Context) -> Result<(), Failure> {
    let groups = ctx.before.cpus.len().clamp(1, GROUPS_MAX);
    let mut tasks: Vec<Task> = Vec::new();
    for _ in 0..groups {
        let mut to = Vec::new();
        for _ in 0..SENDERS {
            let (sender, receiver) = pair().map_err(|error| {
                format!("cannot make a pair of sockets: {error}; raise `ulimit -n`")
            })?;
            to.push(sender);
            tasks.push(Box::new(move || receive(&receiver, ctx)));
        }
        let to = Arc::new(to);
        for _ in 0..SENDERS {
            let to = Arc::clone(&to);
            tasks.push(Box::new(move || send(&to, ctx)));
        }
    }
    (ctx.detail)(&format!("{groups} x ({SENDERS} senders, {SENDERS} receivers)"));
    ctx.together(tasks)
}

fn pair() -> std::io::Result<(UnixDatagram, UnixDatagram)> {
    let (sender, receiver) = UnixDatagram::pair()?;
    sender.set_write_timeout(Some(WAIT))?;
    receiver.set_read_timeout(Some(WAIT))?;
    Ok((sender, receiver))
}

fn send(to: &[UnixDatagram], ctx: &Context) -> Result<(), Failure> {
    let message = [0x5a; MESSAGE_BYTES];
    for socket in to.iter().cycle() {
        if ctx.stopped() {
            break;
        }
        match socket.send(&message) {
            Ok(_) => {}
            // Its queue is full, or its receiver has ended because all do.
            Err(error) if is_passing(&error) || ctx.stopped() => {}
            Err(error) => return Err(format!("cannot send a message: {error}").into()),
        }
    }
    Ok(())
}

fn receive(socket: &UnixDatagram, ctx: &Context) -> Result<(), Failure> {
    let mut buffer = [0; MESSAGE_BYTES];
    let mut received = 0;
    while !ctx.stopped() {
        match socket.recv(&mut buffer) {
            Ok(_) => received += 1,
            Err(error) if is_passing(&error) || ctx.stopped() => {}
            Err(error) => return Err(format!("cannot receive a message: {error}").into()),
        }
        if received == BATCH {
            ctx.counter.add(received);
            received = 0;
        }
    }
    ctx.counter.add(received);
    Ok(())
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
