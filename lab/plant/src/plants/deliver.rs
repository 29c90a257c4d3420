//! A long soft interrupt of known begin and end: one datagram that the kernel delivers to thousands
//! of sockets, all within the sender's own system call.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::OwnedFd,
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SendFlags, SocketType, bind, getsockname, sendto, socket, sockopt},
    process::{Resource, Rlimit, setrlimit},
};

use crate::args::Args;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::run::Frame;

const COUNT: u64 = 8_000;
const COUNT_MAX: u64 = 50_000;
/// Every socket of the machine that is bound to the port.
const ALL: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);

pub(super) fn deliver(frame: Frame, args: &Args) -> Result<(), Failure> {
    let every_ns = args.needed_ns("every").map_err(Failure::Usage)?;
    let count = args.number("count").map_err(Failure::Usage)?.unwrap_or(COUNT);
    if count > COUNT_MAX {
        return Err(Failure::Usage(format!("--count: at most {COUNT_MAX}")));
    }
    // Before the frame: it takes a while, and must not disturb.
    let failed = |error: Errno| format!("{count} sockets: {error}");
    let (receivers, port) = receivers(count).map_err(failed)?;
    let sender = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(failed)?;
    sockopt::set_socket_broadcast(&sender, true).map_err(failed)?;
    let to = SocketAddrV4::new(ALL, port);
    frame.run("deliver", args, |run, truth| {
        let room = (run.end_ns - run.begin_ns).div_ceil(every_ns);
        let mut all = Occurrences::with_room(room);
        let sent = run.each(every_ns, |due_ns| {
            run.sleep_until(due_ns);
            let begin_ns = now_ns();
            sendto(&sender, &[0; 64], SendFlags::empty(), &to)
                .map_err(|error| format!("{to}: {error}; is `lo` up?"))?;
            all.add(begin_ns, now_ns());
            Ok(())
        });
        all.tell(truth);
        truth.set("sockets", receivers.len());
        sent
    })
}

/// Sockets bound to the same port. Nobody reads: what does not fit is dropped at the end of the
/// path.
fn receivers(count: u64) -> Result<(Vec<OwnedFd>, u16), Errno> {
    let files = Some(count + 64);
    setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files })?;
    let mut all = Vec::new();
    let mut port = 0;
    for _ in 0..count {
        let one = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        sockopt::set_socket_reuseaddr(&one, true)?;
        sockopt::set_socket_recv_buffer_size(&one, 0)?;
        bind(&one, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
        if port == 0 {
            port = SocketAddrV4::try_from(getsockname(&one)?)?.port();
        }
        all.push(one);
    }
    Ok((all, port))
}
