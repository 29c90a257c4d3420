//! ICMP echo requests and their replies through a raw socket, as ping(8) sends them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::failure::Failure;
use crate::sys;

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// Of ICMP; of IPv4 without options, which a raw socket hands out before it.
pub(crate) const ICMP_BYTES: usize = 8;
const IP_BYTES: usize = 20;
/// Bytes of a packet that are read: header of IPv4, and of ICMP with its first data.
pub(crate) const READ_BYTES: usize = IP_BYTES + ICMP_BYTES + 64;

/// Requests to one peer.
#[derive(Debug)]
pub(crate) struct Echo {
    socket: OwnedFd,
    id: u16,
    peer: Ipv4Addr,
}

impl Echo {
    /// Opens the socket in the calling thread's network namespace. `id` tells its replies from
    /// those of others; with an interface nothing goes another way.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, without such an interface, or where no route leads to the peer.
    pub(crate) fn open(peer: Ipv4Addr, id: u16, interface: Option<&str>) -> Result<Self, Failure> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let icmp = Some(rustix::net::ipproto::ICMP);
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::RAW, flags, icmp)
            .map_err(|error| {
                format!("cannot open a raw socket: {error}; it takes root or CAP_NET_RAW")
            })?;
        if let Some(interface) = interface {
            // Before a route is looked up, which decides on the address that it sends from.
            sys::bind_to_device(socket.as_fd(), interface).map_err(|error| {
                format!("interface {interface}: {error}; `ip link` shows which there are")
            })?;
        }
        // Replies of others are not ours to count.
        rustix::net::connect(&socket, &SocketAddrV4::new(peer, 0))
            .map_err(|error| format!("{peer}: {error}; is there a route to it?"))?;
        Ok(Self { socket, id, peer })
    }

    pub(crate) fn peer(&self) -> Ipv4Addr {
        self.peer
    }

    /// The socket, to be waited for.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// An echo request of number 0.
    pub(crate) fn request(&self, data_bytes: usize) -> Vec<u8> {
        request(self.id, data_bytes)
    }

    /// Sends a request; never waits.
    ///
    /// # Errors
    /// A full queue (EAGAIN, ENOBUFS), or what the network answered.
    #[inline(always)]
    pub(crate) fn send(&self, request: &[u8]) -> Result<(), Errno> {
        rustix::net::send(&self.socket, request, SendFlags::empty()).map(|_| ())
    }

    /// Takes a packet that has come, and the data of it if it is a reply to this socket's
    /// requests; never waits.
    ///
    /// # Errors
    /// EAGAIN: none has. Others: an earlier request was answered with an error.
    #[inline(always)]
    pub(crate) fn receive<'a>(
        &self,
        buffer: &'a mut [u8; READ_BYTES],
    ) -> Result<Option<&'a [u8]>, Errno> {
        let (_, size) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::TRUNC)?;
        Ok(reply(buffer, size, self.id))
    }
}

fn request(id: u16, data_bytes: usize) -> Vec<u8> {
    let mut request = vec![0x5a; ICMP_BYTES + data_bytes];
    request[..ICMP_BYTES].fill(0);
    request[0] = ECHO_REQUEST;
    request[4..6].copy_from_slice(&id.to_be_bytes());
    request
}

/// Sets number and checksum.
#[inline(always)]
pub(crate) fn set_number(request: &mut [u8], number: u16) {
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

/// The data of a packet that is a reply to `id`; `size` is its own, of which the buffer may hold
/// a part.
#[inline(always)]
fn reply(packet: &[u8; READ_BYTES], size: usize, id: u16) -> Option<&[u8]> {
    let header = usize::from(packet[0] & 0xf) * 4;
    let at = header + ICMP_BYTES;
    let icmp = packet.get(header..at)?;
    let is_ours = icmp[0] == ECHO_REPLY && icmp[4..6] == id.to_be_bytes();
    packet.get(at..size.min(READ_BYTES)).filter(|_| is_ours)
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
    fn replies_to_this_socket_are_its_own() {
        let mut packet = [0_u8; READ_BYTES];
        packet[0] = 0x45;
        packet[20] = ECHO_REPLY;
        packet[24..26].copy_from_slice(&9_u16.to_be_bytes());
        packet[28..30].copy_from_slice(b"ab");
        assert_eq!(reply(&packet, 30, 9), Some(&b"ab"[..]));
        assert_eq!(reply(&packet, 1500, 9).map(<[u8]>::len), Some(64), "more than is read");
        assert_eq!(reply(&packet, 84, 8), None, "of another");
        assert_eq!(reply(&packet, 27, 9), None, "cut short");
        packet[20] = ECHO_REQUEST;
        assert_eq!(reply(&packet, 84, 9), None, "a request");
        packet[0] = 0x4f;
        assert_eq!(reply(&packet, 84, 9), None, "options to where nothing is");
    }
}
