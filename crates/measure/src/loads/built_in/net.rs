//! Floods the loopback device with datagrams and a stream. Brings out network softirqs, ksoftirqd,
//! socket locks, timers and wake-ups between CPUs, without a cable and without another machine:
//! only 127.0.0.1 and ::1 on ports that the kernel chooses are used, nothing leaves the machine.
//! Interrupts of a real network card are not brought out by it; for them use `cmd:` with iperf3.
//!
//! Bounded: at most [`PAIRS_MAX`] pairs of datagram sockets and one stream.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::super::load::{Context, Load};
use crate::failure::Failure;

/// Most pairs of datagram sockets.
const PAIRS_MAX: usize = 8;
/// A call that waits looks at the stop flag this often.
const WAIT: Duration = Duration::from_millis(50);
/// Sizes of the datagrams in bytes: small, one Ethernet frame, fragments on a real device.
const DATAGRAM_BYTES: [usize; 3] = [64, 1400, 8192];
/// Size of the writes to the stream, in bytes.
const STREAM_BYTES: usize = 64 << 10;

type Task<'a> = Box<dyn FnOnce() -> Result<(), Failure> + Send + 'a>;

/// Datagram pairs and a stream over loopback.
pub(super) const LOAD: Load = Load {
    name: "net",
    about: "UDP flood and a TCP stream over loopback (127.0.0.1 and ::1 only); one UDP pair for \
            each load CPU, at most 8",
    unit: "bytes",
    parameter: None,
    prepare: None,
    work,
};

fn work(ctx: &Context) -> Result<(), Failure> {
    let pairs = ctx.before.cpus.len().clamp(1, PAIRS_MAX);
    let has_v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let address = |pair: usize| -> IpAddr {
        if has_v6 && pair % 2 == 1 {
            Ipv6Addr::LOCALHOST.into()
        } else {
            Ipv4Addr::LOCALHOST.into()
        }
    };
    let mut tasks: Vec<Task> = Vec::new();
    for pair in 0..pairs {
        let (sender, receiver) = datagrams(address(pair)).map_err(|error| trouble(&error))?;
        tasks.push(Box::new(move || send(&sender, ctx)));
        tasks.push(Box::new(move || receive(&receiver, ctx)));
    }
    let (writer, reader) = stream(address(pairs)).map_err(|error| trouble(&error))?;
    tasks.push(Box::new(move || write(writer, ctx)));
    tasks.push(Box::new(move || read(reader, ctx)));
    let over = if has_v6 && pairs > 1 { "127.0.0.1 and ::1" } else { "127.0.0.1" };
    (ctx.detail)(&format!("{pairs} UDP pairs and 1 TCP stream over {over}"));
    ctx.together(tasks)
}

fn trouble(error: &std::io::Error) -> Failure {
    let next = match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => "this kernel has no IPv4 (CONFIG_INET)",
        _ => "is it up? Try `ip link set lo up`",
    };
    format!("loopback does not work: {error}; {next}").into()
}

/// A connected pair: sender, receiver.
fn datagrams(address: IpAddr) -> std::io::Result<(UdpSocket, UdpSocket)> {
    let sender = UdpSocket::bind((address, 0))?;
    let receiver = UdpSocket::bind((address, 0))?;
    sender.connect(receiver.local_addr()?)?;
    // Connected both ways: datagrams of others are not ours to count.
    receiver.connect(sender.local_addr()?)?;
    sender.set_write_timeout(Some(WAIT))?;
    receiver.set_read_timeout(Some(WAIT))?;
    Ok((sender, receiver))
}

/// A connected stream: the writing end, the reading end.
fn stream(address: IpAddr) -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((address, 0))?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    let ours: SocketAddr = writer.local_addr()?;
    let reader = loop {
        // Another local process may knock first.
        let (stream, peer) = listener.accept()?;
        if peer == ours {
            break stream;
        }
    };
    writer.set_write_timeout(Some(WAIT))?;
    reader.set_read_timeout(Some(WAIT))?;
    Ok((writer, reader))
}

fn send(socket: &UdpSocket, ctx: &Context) -> Result<(), Failure> {
    let buffer = [0x5a; DATAGRAM_BYTES[2]];
    let mut sizes = DATAGRAM_BYTES.iter().cycle();
    repeat(ctx, || sizes.next().map_or(Ok(0), |size| socket.send(&buffer[..*size])).map(|_| true))
}

fn receive(socket: &UdpSocket, ctx: &Context) -> Result<(), Failure> {
    let mut buffer = [0; DATAGRAM_BYTES[2]];
    repeat(ctx, || {
        ctx.counter.add(socket.recv(&mut buffer)? as u64);
        Ok(true)
    })
}

fn write(mut stream: TcpStream, ctx: &Context) -> Result<(), Failure> {
    let buffer = vec![0xa5; STREAM_BYTES];
    repeat(ctx, || match stream.write(&buffer) {
        // The reader may end first.
        Err(_) if ctx.stopped() => Ok(false),
        written => written.map(|_| true),
    })
}

fn read(mut stream: TcpStream, ctx: &Context) -> Result<(), Failure> {
    let mut buffer = vec![0; STREAM_BYTES];
    repeat(ctx, || {
        let size = stream.read(&mut buffer)?;
        ctx.counter.add(size as u64);
        // 0: the writer has ended, as requested or with an error of its own.
        Ok(size > 0)
    })
}

/// Calls until the load shall end, or `call` returns false.
fn repeat(ctx: &Context, mut call: impl FnMut() -> std::io::Result<bool>) -> Result<(), Failure> {
    while !ctx.stopped() {
        match call() {
            Ok(true) => {}
            Ok(false) => break,
            // A full queue is what a flood is for.
            Err(error) if is_passing(&error) => std::thread::yield_now(),
            Err(error) => return Err(trouble(&error)),
        }
    }
    Ok(())
}

/// Whether the next call may work: nothing there yet, no room, interrupted, the other end not
/// listening any more because it stops.
fn is_passing(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::OutOfMemory
    ) || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}
