//! A flood of ICMP echo requests through a raw socket, as ping(8) -f makes it: the next ones as
//! soon as the replies are there.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::load::Context;
use crate::failure::Failure;

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// Of ICMP; of IPv4 without options, which a raw socket hands out before it.
const ICMP_BYTES: usize = 8;
const IP_BYTES: usize = 20;
/// Data of a request in bytes: what ping sends, and what fills an Ethernet frame.
const DATA_BYTES: [usize; 2] = [56, 1472];
/// Requests that are under way at once.
const UNDER_WAY: usize = 32;
/// Longest wait for a reply before the next requests, as of ping -f.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// A peer that has not replied for this long does not.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// One flood.
pub(super) struct Flood {
    socket: OwnedFd,
    id: u16,
    peer: Ipv4Addr,
}

impl Flood {
    /// Opens the socket in the calling thread's network namespace. `id` is for this flood alone.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or where no route leads to the peer.
    pub(super) fn open(peer: Ipv4Addr, id: u16) -> Result<Self, Failure> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let icmp = Some(rustix::net::ipproto::ICMP);
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::RAW, flags, icmp)
            .map_err(|error| {
                format!("cannot open a raw socket: {error}; it takes root or CAP_NET_RAW")
            })?;
        // Replies of others are not ours to count.
        rustix::net::connect(&socket, &SocketAddrV4::new(peer, 0))
            .map_err(|error| format!("{peer}: {error}; is there a route to it?"))?;
        Ok(Self { socket, id, peer })
    }

    /// The socket, to be bound to an interface.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends and counts replies until the load shall end.
    ///
    /// # Errors
    /// The peer does not reply, or a request cannot be sent.
    pub(super) fn run(&self, ctx: &Context) -> Result<(), Failure> {
        let mut requests = DATA_BYTES.map(|bytes| request(self.id, bytes));
        let (mut number, mut heard) = (0_u16, Instant::now());
        while !ctx.stopped() {
            for _ in 0..UNDER_WAY {
                number = number.wrapping_add(1);
                let request = &mut requests[usize::from(number) % DATA_BYTES.len()];
                set_number(request, number);
                match rustix::net::send(&self.socket, request, SendFlags::empty()) {
                    Ok(_) => {}
                    // A full queue is what a flood is for.
                    Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => break,
                    Err(error) => return Err(format!("{}: {error}", self.peer).into()),
                }
            }
            let replies = self.replies()?;
            ctx.counter.add(replies);
            if replies > 0 {
                heard = Instant::now();
            } else if heard.elapsed() > SILENCE_MAX {
                return Err(Failure(format!(
                    "{} has not replied for {} s; does it answer `ping`?",
                    self.peer,
                    SILENCE_MAX.as_secs()
                )));
            }
        }
        Ok(())
    }

    /// Takes what has come, and waits for it where nothing has.
    fn replies(&self) -> Result<u64, Failure> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        match rustix::event::poll(&mut ready, Some(&WAIT)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("{}: {error}", self.peer).into()),
        }
        let mut replies = 0;
        let mut buffer = [0; IP_BYTES + ICMP_BYTES + 64];
        // More than were sent: a peer that sends by itself must not keep this loop.
        for _ in 0..2 * UNDER_WAY {
            let flags = RecvFlags::TRUNC;
            match rustix::net::recv(&self.socket, &mut buffer[..], flags) {
                Ok((_, size)) => replies += u64::from(is_reply(&buffer, size, self.id)),
                Err(Errno::AGAIN) => break,
                // An earlier request was answered with an error.
                Err(Errno::INTR | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::CONNREFUSED) => {}
                Err(error) => return Err(format!("{}: {error}", self.peer).into()),
            }
        }
        Ok(replies)
    }
}

/// An echo request of number 0.
fn request(id: u16, data_bytes: usize) -> Vec<u8> {
    let mut request = vec![0x5a; ICMP_BYTES + data_bytes];
    request[..ICMP_BYTES].fill(0);
    request[0] = ECHO_REQUEST;
    request[4..6].copy_from_slice(&id.to_be_bytes());
    request
}

/// Sets number and checksum.
fn set_number(request: &mut [u8], number: u16) {
    request[6..8].copy_from_slice(&number.to_be_bytes());
    request[2..4].fill(0);
    let sum = checksum(request);
    request[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// RFC 1071: the complement of the sum of words with its carries.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // At most 0xffff now.
    !(sum as u16)
}

/// Whether these bytes of a packet, which has `size`, are a reply to `id`.
fn is_reply(packet: &[u8], size: usize, id: u16) -> bool {
    let header = usize::from(packet[0] & 0xf) * 4;
    let Some(icmp) = packet.get(header..header + ICMP_BYTES) else { return false };
    size >= header + ICMP_BYTES && icmp[0] == ECHO_REPLY && icmp[4..6] == id.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_checksum() {
        // RFC 1071, section 3.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let mut request = request(0x1234, 56);
        set_number(&mut request, 7);
        set_number(&mut request, 8);
        assert_eq!((request.len(), request[0], &request[4..8]), (64, 8, &[0x12, 0x34, 0, 8][..]));
        assert_eq!(checksum(&request), 0, "a sum over all with its checksum is 0");
    }

    #[test]
    fn replies_of_this_flood_are_counted() {
        let mut packet = [0_u8; 92];
        packet[0] = 0x45;
        packet[20] = ECHO_REPLY;
        packet[24..26].copy_from_slice(&9_u16.to_be_bytes());
        assert!(is_reply(&packet, 84, 9));
        assert!(!is_reply(&packet, 84, 8), "of another");
        assert!(!is_reply(&packet, 27, 9), "cut short");
        packet[20] = ECHO_REQUEST;
        assert!(!is_reply(&packet, 84, 9), "a request");
        packet[0] = 0x4f;
        assert!(!is_reply(&packet, 84, 9), "options to where nothing is");
        packet[0] = 0;
        assert!(!is_reply(&packet[..20], 20, 9));
    }
}
