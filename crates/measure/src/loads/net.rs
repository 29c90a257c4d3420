//! Loads of the network: loopback, echo requests, frames through an interface.

use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::OwnedFd,
    time::Duration,
};

use super::{Load, LoadContext, LoadInput, LoadParameter};
use crate::apart::{Echo, parse_interface_and_peer};
use crate::{Failure, apart};

// Floods the loopback device with datagrams and a stream. Brings out network softirqs, ksoftirqd,
// socket locks, timers and wake-ups between CPUs, without a cable and without another machine:
// only 127.0.0.1 and ::1 on ports that the kernel chooses are used, nothing leaves the machine.
// Interrupts of a real network card are not brought out by it; for them use `cmd:` with iperf3.
//
// Bounded: at most `PAIRS_MAX` pairs of datagram sockets and one stream.

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
pub(super) const NET: Load = Load {
    name: "net",
    about: "UDP flood and a TCP stream over loopback (127.0.0.1 and ::1 only); one UDP pair for \
            each load CPU, at most 8",
    unit: "bytes",
    parameter: None,
    prepare: None,
    work: work_net,
};

fn work_net(ctx: &LoadContext) -> Result<(), Failure> {
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

fn send(socket: &UdpSocket, ctx: &LoadContext) -> Result<(), Failure> {
    let buffer = [0x5a; DATAGRAM_BYTES[2]];
    let mut sizes = DATAGRAM_BYTES.iter().cycle();
    repeat(ctx, || sizes.next().map_or(Ok(0), |size| socket.send(&buffer[..*size])).map(|_| true))
}

fn receive(socket: &UdpSocket, ctx: &LoadContext) -> Result<(), Failure> {
    let mut buffer = [0; DATAGRAM_BYTES[2]];
    repeat(ctx, || {
        ctx.counter.add(socket.recv(&mut buffer)? as u64);
        Ok(true)
    })
}

fn write(mut stream: TcpStream, ctx: &LoadContext) -> Result<(), Failure> {
    let buffer = vec![0xa5; STREAM_BYTES];
    repeat(ctx, || match stream.write(&buffer) {
        // The reader may end first.
        Err(_) if ctx.stopped() => Ok(false),
        written => written.map(|_| true),
    })
}

fn read(mut stream: TcpStream, ctx: &LoadContext) -> Result<(), Failure> {
    let mut buffer = vec![0; STREAM_BYTES];
    repeat(ctx, || {
        let size = stream.read(&mut buffer)?;
        ctx.counter.add(size as u64);
        // 0: the writer has ended, as requested or with an error of its own.
        Ok(size > 0)
    })
}

/// Calls until the load shall end, or `call` returns false.
fn repeat(
    ctx: &LoadContext,
    mut call: impl FnMut() -> std::io::Result<bool>,
) -> Result<(), Failure> {
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

// The loads of rtproof's sources, as lists of built-in ones. S0
// to S4 are the documents of docs/coverage.md.

/// Name, loads, and what the source says.
pub struct NamedLoad {
    /// On the command line.
    pub name: &'static str,
    /// The loads it stands for, as the record holds them.
    pub loads: &'static str,
    /// What the source used, with its line, and what differs.
    pub about: &'static str,
}

pub const NAMED: &[NamedLoad] = &[
    NamedLoad {
        name: "s0",
        loads: "cpu+memory+net+disk",
        about: "S0:224 asks for a stress test of CPU, memory, storage and network; S0:287 traced \
                beside `stress-ng -c 4`, which is `cpu` alone",
    },
    NamedLoad {
        name: "s1",
        loads: "cpu+memory+disk",
        about: "S1:127 points to a page on stress-ng and names no stressors: these three are the \
                choice of rtproof",
    },
    NamedLoad {
        name: "s2",
        loads: "cpu+memory+disk+fork",
        about: "S2:10 used stress-ng beside the measured program, on CPUs 1 to 3 (S2:36, give \
                --load-cpus 1-3), and names no stressors: these four are the choice of rtproof",
    },
    NamedLoad {
        name: "s3",
        loads: "net",
        about: "S3:94 had two ssh sessions and a player of Internet radio, 7 to 8 % of a CPU; this \
                flood is far heavier",
    },
    NamedLoad {
        name: "s4",
        loads: "memory+ping",
        about: "S4:163 and S4:174: memory threads on each CPU, random reads and writes of large \
                blocks, and several ping floods",
    },
];

/// The loads of a name.
pub(super) fn loads_of(name: &str) -> Option<&'static str> {
    NAMED.iter().find(|named| named.name == name).map(|named| named.loads)
}

// Floods the kernel with ICMP echo requests and replies over virtual Ethernet devices. Brings out
// what network traffic does on the CPUs that handle it: the NET_RX softirq with driver, bridge of
// namespaces, IP, ICMP and socket, ksoftirqd where that is too much, and memory of packets.
//
// The softirq of a veth device runs on the CPU that sends, so it is the load CPUs that get it.
// Interrupts of hardware are not brought out by it; `traffic` does that.
//
// Bounded: at most `FLOODS_MAX` floods, each with some packets under way, in two network
// namespaces of the worker's own, which end with it.

const FLOODS_MAX: u32 = 64;

/// Most floods that are not asked for by their number.
const FLOODS_DEFAULT_MAX: u32 = 8;

/// Raw ICMP between two network namespaces.
pub(super) const PING: Load = Load {
    name: "ping",
    about: "Floods of ICMP echo requests over virtual Ethernet devices, between two network \
            namespaces of its own. One for each load CPU, at most 8, or as many as follow the \
            colon, as in ping:4. The devices' softirqs run on the load CPUs. A kernel that has \
            veth as a module loads it, and keeps it",
    unit: "echo replies",
    parameter: Some(LoadParameter {
        is_needed: false,
        expected: "a number of floods from 1 to 64",
        check,
    }),
    prepare: Some(prepare),
    work: work_ping,
};

fn check(parameter: &str) -> bool {
    // As it is printed again: no sign, no zero before it.
    parameter
        .parse()
        .is_ok_and(|n: u32| (1..=FLOODS_MAX).contains(&n) && n.to_string() == parameter)
}

fn floods(before: &LoadInput) -> u32 {
    let by_cpus = u32::try_from(before.cpus.len()).unwrap_or(u32::MAX);
    let asked = before.parameter.and_then(|text| text.parse().ok());
    asked.unwrap_or_else(|| by_cpus.clamp(1, FLOODS_DEFAULT_MAX))
}

fn prepare(before: &LoadInput) -> Result<OwnedFd, Failure> {
    apart::pairs(floods(before))
}

fn work_ping(ctx: &LoadContext) -> Result<(), Failure> {
    let count = floods(&ctx.before);
    let plural = if count == 1 { "" } else { "s" };
    let cpus = ctx.before.cpus;
    (ctx.detail)(&format!("{count} flood{plural} of ICMP echo over veth on CPU {cpus}"));
    let tasks = (0..count).zip(cpus.as_slice().iter().copied().cycle()).map(|(number, cpu)| {
        move || {
            super::pin_thread(cpu)?;
            // Numbers of floods are below 64.
            let echo = Echo::open(apart::address(number, true), number as u16 + 1, None)?;
            super::run_flood(&echo, ctx)
        }
    });
    ctx.together(tasks.collect())
}

/// Floods a peer of the user's own with ICMP echo requests through an interface that the user
/// names. Brings out what a real network card does: its interrupts, the driver's NAPI poll, DMA.
///
/// Never without both names: what goes out reaches other people's machines. Bounded: one flood, the
/// next requests only after replies or 10 ms.
pub(super) const TRAFFIC: Load = Load {
    name: "traffic",
    about: "A flood of ICMP echo requests to a peer of your own (IPv4) through the interface that \
            you name, as in traffic:eth1:192.0.2.7. So the interrupts of its driver run; on \
            which CPU is up to their affinity. Needs root or CAP_NET_RAW, and a peer that \
            replies",
    unit: "echo replies",
    parameter: Some(LoadParameter {
        is_needed: true,
        expected: "the interface and the IPv4 address of a peer of your own, as in \
                   traffic:eth1:192.0.2.7",
        check: |text| parse_interface_and_peer(text).is_some(),
    }),
    prepare: None,
    work: work_traffic,
};

fn work_traffic(ctx: &LoadContext) -> Result<(), Failure> {
    let (interface, peer) = ctx
        .before
        .parameter
        .and_then(parse_interface_and_peer)
        .ok_or("which interface and which peer?")?;
    let echo = Echo::open(peer, std::process::id() as u16, Some(interface))?;
    (ctx.detail)(&format!("1 flood of ICMP echo to {peer} through {interface}"));
    super::run_flood(&echo, ctx)
}

#[cfg(test)]
mod named_tests {
    use super::*;
    use crate::loads::LoadSet;

    #[test]
    fn a_name_is_its_loads() {
        for named in NAMED {
            let set = LoadSet::from_command_line(named.name).expect(named.name);
            assert_eq!(set.to_string(), named.loads);
            assert!(
                crate::loads::find_load(named.name).is_none() && loads_of(named.name).is_some()
            );
        }
        let more = LoadSet::from_command_line("s4+disk").expect("with another");
        assert_eq!(more.to_string(), "memory+ping+disk");
        let twice = LoadSet::from_command_line("s4+memory").expect_err("memory is in s4");
        assert!(twice.to_string().contains("memory is named twice"), "{twice}");
    }
}

#[cfg(test)]
mod ping_tests {
    use super::*;

    #[test]
    fn the_number_of_floods_is_as_given() {
        for (text, is_good) in [
            ("1", true),
            ("64", true),
            ("0", false),
            ("65", false),
            ("", false),
            ("+1", false),
            ("01", false),
            ("x", false),
            ("-1", false),
            ("1 ", false),
        ] {
            assert_eq!(check(text), is_good, "{text:?}");
        }
        let cpus = rtproof_host::CpuList::new(0..20);
        let before = |parameter| LoadInput { cpus: &cpus, dir: "/tmp".as_ref(), parameter };
        assert_eq!((floods(&before(None)), floods(&before(Some("3")))), (8, 3));
    }
}
