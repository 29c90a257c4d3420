//! A packet to a peer and its answer, once a period: what cyclic protocols do on a network.
//!
//! The packet is an ICMP echo request, because every peer's kernel answers one by itself. Each
//! carries a number and a mark of its own, so that an answer is never taken for another one.

use std::{
    net::Ipv4Addr,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
};

use rustix::event::{PollFd, PollFlags};

use super::workload::{
    Armed, Description, OwnCost, Workload, WorkloadEnding, WorkloadError, WorkloadSetting,
};
use crate::apart::{Echo, parse_interface_and_peer};
use crate::cycle::{Cycle, Exchange, ExchangeAnswer, InFlight, Sending};
use crate::{EndReason, Failure, Quantity, apart, calibrate, sys};

/// Data of a request, as ping(8) sends it: a mark, a number, padding.
const DATA_BYTES: usize = 56;

const MARK: std::ops::Range<usize> = 0..8;

const NUMBER: std::ops::Range<usize> = 8..16;

/// Packets before the run: they find the peer's hardware address, and show how long one takes.
const WARM_UP: u64 = 20;

/// Longest wait for the first answer.
const FIRST_NS: u64 = 3_000_000_000;

/// Where the packets go: an interface and a peer, or a pair of devices of its own.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    to: Option<(String, Ipv4Addr)>,
}

/// Over a pair of devices of its own.
pub(super) const WORKLOAD: Packet = Packet { to: None };

const DESCRIPTION: Description = Description {
    parameter: Some(
        "an interface and the IPv4 address of a peer of your own, as in packet:eth1:192.0.2.7; a \
         pair of virtual devices without",
    ),
    ..Description::new(
        "packet",
        "Time from right before the sending of a packet (ICMP echo, 84 bytes of IPv4) to its \
         answer in the thread's hands, once a period. A packet without an answer, or that could \
         not be sent, is missed. With an interface and a peer: driver, wire, the peer's kernel, \
         interrupt, NET_RX softirq and the wake-up, which are not told apart. Without: the network \
         stack there and back between two namespaces over virtual Ethernet, mostly within the \
         sending itself. No interrupt of a card and hardly a wake-up is part of that. The sample \
         does not begin when the packet was due: take timer-wakeup for that. Needs root.",
        Quantity::RoundTrip,
    )
};

impl Workload for Packet {
    fn describe(&self) -> &Description {
        &DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let Some(text) = parameter else { return Ok(Arc::new(WORKLOAD)) };
        let (interface, peer) = parse_interface_and_peer(text).ok_or_else(|| {
            let expected = "an interface and the IPv4 address of a peer, as eth1:192.0.2.7";
            WorkloadError::parameter(self.name(), text, expected)
        })?;
        Ok(Arc::new(Self { to: Some((interface.to_owned(), peer)) }))
    }

    fn spec(&self) -> String {
        match &self.to {
            Some((interface, peer)) => format!("{}:{interface}:{peer}", self.name()),
            None => self.name().into(),
        }
    }

    fn arm(&self, _: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        let port = Port::open(self.to.as_ref());
        let ready = port.and_then(|mut port| port.warm_up().map(|fastest_ns| (port, fastest_ns)));
        let (port, fastest_ns) =
            ready.map_err(|Failure(why)| WorkloadError::unfit(self.name(), why))?;
        let clock_ps = calibrate::clock_read_ps(crate::clock::Clock::Monotonic);
        Ok(Box::new(Ready { port, in_flight: InFlight::new(), clock_ps, fastest_ns }))
    }
}

/// A socket, and the packets of it.
struct Port {
    echo: Echo,
    request: Vec<u8>,
    mark: [u8; 8],
    read: Box<[u8; apart::READ_BYTES]>,
    /// The peer's namespace, which is there as long as this is open.
    _far: Option<OwnedFd>,
}

impl Port {
    fn open(to: Option<&(String, Ipv4Addr)>) -> Result<Self, Failure> {
        // Of each thread of this process, and hardly that of another one.
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = (std::process::id() as u16).wrapping_mul(31).wrapping_add(number);
        let (echo, far) = match to {
            Some((interface, peer)) => (Echo::open(*peer, id, Some(interface))?, None),
            None => {
                let (echo, far) = pair(id)?;
                (echo, Some(far))
            }
        };
        let mark = (sys::now_ns() ^ (u64::from(id) << 48)).to_ne_bytes();
        let mut request = echo.request(DATA_BYTES);
        request[apart::ICMP_BYTES..][MARK].copy_from_slice(&mark);
        Ok(Self { echo, request, mark, read: Box::new([0; apart::READ_BYTES]), _far: far })
    }

    /// The fastest of some exchanges.
    fn warm_up(&mut self) -> Result<u64, Failure> {
        let go_on = AtomicBool::new(false);
        let mut fastest_ns = u64::MAX;
        for number in 0..WARM_UP {
            // Numbers that no packet of the run has.
            let number = u64::MAX - number;
            let Sending { at_ns, is_out } = self.send(number);
            let answer = self.answer(at_ns.saturating_add(FIRST_NS), &go_on);
            match answer.filter(|answer| is_out && answer.number == number) {
                Some(answer) => fastest_ns = fastest_ns.min(answer.at_ns.saturating_sub(at_ns)),
                // A loss later is for the run to count.
                None if fastest_ns < u64::MAX => {}
                None => {
                    return Err(Failure(format!(
                        "{} did not answer within {} s; does it answer `ping`?",
                        self.echo.peer(),
                        FIRST_NS / 1_000_000_000
                    )));
                }
            }
        }
        Ok(fastest_ns)
    }

    /// The next packet that is an answer to one of ours.
    #[inline(always)]
    fn take(&mut self) -> Result<Option<u64>, rustix::io::Errno> {
        let data = self.echo.receive(&mut self.read)?;
        let data = data.filter(|data| data.get(MARK) == Some(&self.mark[..]));
        let number = data.and_then(|data| data.get(NUMBER)?.try_into().ok());
        Ok(number.map(u64::from_ne_bytes))
    }
}

impl Exchange for Port {
    #[inline(always)]
    fn send(&mut self, number: u64) -> Sending {
        self.request[apart::ICMP_BYTES..][NUMBER].copy_from_slice(&number.to_ne_bytes());
        apart::set_number(&mut self.request, number as u16);
        let at_ns = sys::now_ns();
        Sending { at_ns, is_out: self.echo.send(&self.request).is_ok() }
    }

    #[inline(always)]
    fn answer(&mut self, until_ns: u64, stop: &AtomicBool) -> Option<ExchangeAnswer> {
        loop {
            let taken = self.take();
            let at_ns = sys::now_ns();
            if let Ok(Some(number)) = taken {
                return Some(ExchangeAnswer { number, at_ns });
            }
            if at_ns >= until_ns || stop.load(Ordering::Relaxed) {
                return None;
            }
            // A packet of others, or an error of the network, which ends with being read.
            if taken == Err(rustix::io::Errno::AGAIN) {
                let socket = self.echo.socket();
                let wait = sys::timespec(until_ns - at_ns);
                // Woken by a signal it looks again.
                let _ =
                    rustix::event::poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&wait));
            }
        }
    }
}

/// A socket in a network namespace of its own, whose peer is in another. A namespace is of a
/// thread: the measuring one stays where it is.
fn pair(id: u16) -> Result<(Echo, OwnedFd), Failure> {
    let made = std::thread::spawn(move || {
        let far = apart::pairs(1)?;
        Ok((Echo::open(apart::address(0, true), id, None)?, far))
    });
    made.join().unwrap_or_else(|_| Err(Failure("the thread that makes its devices died".into())))
}

struct Ready {
    port: Port,
    in_flight: InFlight,
    clock_ps: u64,
    fastest_ns: u64,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        let ns = self.clock_ps.div_ceil(1000);
        let sentence = format!(
            "The fastest of {WARM_UP} before the run took {} ns. Each sample holds one reading of \
             the clock, {ns} ns, and its own system calls.",
            self.fastest_ns
        );
        OwnCost { ns, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop, self)
    }

    fn code(&self) -> Vec<usize> {
        let run: fn(&mut Cycle, &AtomicBool, &mut Self) -> EndReason = run;
        vec![run as usize]
    }

    fn memory(&self) -> Vec<(usize, usize)> {
        let Port { request, read, .. } = &self.port;
        vec![
            self.in_flight.memory(),
            (request.as_ptr() as usize, request.len()),
            (read.as_ptr() as usize, read.len()),
        ]
    }

    fn ending(&self) -> WorkloadEnding {
        WorkloadEnding { unanswered: self.in_flight.lost(), ..WorkloadEnding::default() }
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, own: &mut Ready) -> EndReason {
    cycle.run_exchanges(stop, &mut own.port, &mut own.in_flight)
}
