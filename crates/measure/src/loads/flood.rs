//! A flood of ICMP echo requests, as ping(8) -f makes it: the next ones as soon as the replies are
//! there.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::load::Context;
use crate::failure::Failure;
use crate::network::echo::{self, Echo};

/// Data of a request in bytes: what ping sends, and what fills an Ethernet frame.
const DATA_BYTES: [usize; 2] = [56, 1472];
/// Requests that are under way at once.
const UNDER_WAY: usize = 32;
/// Longest wait for a reply before the next requests, as of ping -f.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// A peer that has not replied for this long does not.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Sends and counts replies until the load shall end.
///
/// # Errors
/// The peer does not reply, or a request cannot be sent.
pub(super) fn run(echo: &Echo, ctx: &Context) -> Result<(), Failure> {
    let mut requests = DATA_BYTES.map(|bytes| echo.request(bytes));
    let (mut number, mut heard) = (0_u16, Instant::now());
    while !ctx.stopped() {
        for _ in 0..UNDER_WAY {
            number = number.wrapping_add(1);
            let request = &mut requests[usize::from(number) % DATA_BYTES.len()];
            echo::set_number(request, number);
            match echo.send(request) {
                Ok(()) => {}
                // A full queue is what a flood is for.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => break,
                Err(error) => return Err(format!("{}: {error}", echo.peer()).into()),
            }
        }
        let replies = replies(echo)?;
        ctx.counter.add(replies);
        if replies > 0 {
            heard = Instant::now();
        } else if heard.elapsed() > SILENCE_MAX {
            return Err(Failure(format!(
                "{} has not replied for {} s; does it answer `ping`?",
                echo.peer(),
                SILENCE_MAX.as_secs()
            )));
        }
    }
    Ok(())
}

/// Takes what has come, and waits for it where nothing has.
fn replies(echo: &Echo) -> Result<u64, Failure> {
    let socket = echo.socket();
    let mut ready = [PollFd::new(&socket, PollFlags::IN)];
    match rustix::event::poll(&mut ready, Some(&WAIT)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(format!("{}: {error}", echo.peer()).into()),
    }
    let mut replies = 0;
    let mut buffer = [0; echo::READ_BYTES];
    // More than were sent: a peer that sends by itself must not keep this loop.
    for _ in 0..2 * UNDER_WAY {
        match echo.receive(&mut buffer) {
            Ok(data) => replies += u64::from(data.is_some()),
            Err(Errno::AGAIN) => break,
            // An earlier request was answered with an error.
            Err(Errno::INTR | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::CONNREFUSED) => {}
            Err(error) => return Err(format!("{}: {error}", echo.peer()).into()),
        }
    }
    Ok(replies)
}
