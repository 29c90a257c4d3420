//! Pairs of virtual Ethernet devices between two network namespaces of a process's own, made
//! through rtnetlink(7): ip(8) need not be there.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::{apart, failure::Failure};

// linux/rtnetlink.h, linux/if_link.h, linux/netlink.h.
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFF_UP: u32 = 1;
/// Before the attributes: of a message.
const HEADER_BYTES: usize = 16;
/// Index of the first interface; 1 is the loopback device.
const FIRST: u32 = 2;

/// Address of one end of a pair, of those that RFC 2544 keeps for measurements.
pub(crate) fn address(pair: u32, is_far: bool) -> Ipv4Addr {
    let base = u32::from(Ipv4Addr::new(198, 18, 0, 0));
    Ipv4Addr::from(base + pair * 4 + if is_far { 2 } else { 1 })
}

/// Puts the calling thread, and those that it starts, into a network namespace with the near ends
/// of some pairs, all up. The far ends are in another one, which is there as long as the returned
/// file is open.
///
/// # Errors
/// The kernel refuses a namespace, has no veth, or no more memory.
pub(crate) fn pairs(count: u32) -> Result<OwnedFd, Failure> {
    apart::network()?;
    let far = Netlink::open()?;
    let far_namespace = own_namespace()?;
    apart::network()?;
    let near = Netlink::open()?;
    for pair in 0..count {
        near.request(&new_pair(pair, far_namespace.as_raw_fd())).map_err(|error| {
            Failure(format!(
                "cannot make a pair of virtual Ethernet devices: {error}; the kernel needs \
                 CONFIG_VETH, as a module `modprobe veth`"
            ))
        })?;
        for (end, is_far) in [(&near, false), (&far, true)] {
            let set = |error: std::io::Error| Failure(format!("virtual Ethernet device: {error}"));
            end.request(&new_address(FIRST + pair, address(pair, is_far))).map_err(set)?;
            end.request(&up(FIRST + pair)).map_err(set)?;
        }
    }
    Ok(far_namespace.into())
}

#[expect(clippy::disallowed_methods, reason = "this process's own namespace, not the machine's")]
fn own_namespace() -> Result<File, Failure> {
    File::open("/proc/thread-self/ns/net")
        .map_err(|error| Failure(format!("/proc/thread-self/ns/net: {error}; mount /proc")))
}

fn new_pair(pair: u32, far_namespace: i32) -> Vec<u8> {
    let mut message = message(RTM_NEWLINK, CREATE | EXCLUSIVE, &link(FIRST + pair, 0));
    attribute(&mut message, IFLA_IFNAME, &name(pair));
    nested(&mut message, IFLA_LINKINFO, |info| {
        attribute(info, IFLA_INFO_KIND, b"veth");
        nested(info, IFLA_INFO_DATA, |data| {
            nested(data, VETH_INFO_PEER, |peer| {
                peer.extend(link(FIRST + pair, 0));
                attribute(peer, IFLA_IFNAME, &name(pair));
                attribute(peer, IFLA_NET_NS_FD, &far_namespace.to_ne_bytes());
            });
        });
    });
    message
}

fn new_address(index: u32, address: Ipv4Addr) -> Vec<u8> {
    // Family, length of the prefix, flags, scope; index.
    let mut fixed = vec![2, 30, 0, 0];
    fixed.extend(index.to_ne_bytes());
    let mut message = message(RTM_NEWADDR, CREATE | EXCLUSIVE, &fixed);
    attribute(&mut message, IFA_LOCAL, &address.octets());
    attribute(&mut message, IFA_ADDRESS, &address.octets());
    message
}

fn up(index: u32) -> Vec<u8> {
    message(RTM_NEWLINK, 0, &link(index, IFF_UP))
}

fn name(pair: u32) -> Vec<u8> {
    format!("rtproof{pair}\0").into_bytes()
}

/// struct ifinfomsg: family, type, index, flags, and which of the flags change.
fn link(index: u32, flags: u32) -> Vec<u8> {
    [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), flags.to_ne_bytes()].concat()
}

/// struct nlmsghdr, its length not yet known, and the fixed part of a message.
fn message(kind: u16, flags: u16, fixed: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 4];
    message.extend(kind.to_ne_bytes());
    message.extend((flags | REQUEST | ACK).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(fixed);
    message
}

fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    nested(to, kind, |inner| inner.extend(value));
}

/// struct nlattr: its length without padding, its kind, its value, padding to 4 bytes. `to` begins
/// at a multiple of 4.
fn nested(to: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    let length = u16::try_from(inner.len() + 4).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(inner);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// A socket to the kernel, for the namespace in which it was opened.
struct Netlink(OwnedFd);

impl Netlink {
    fn open() -> Result<Self, Failure> {
        let flags = SocketFlags::CLOEXEC;
        // Protocol 0 is NETLINK_ROUTE.
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
            .map(Self)
            .map_err(|error| Failure(format!("cannot open a netlink socket: {error}")))
    }

    /// Sends a message and waits for the kernel's answer, which it gives before `send` returns.
    fn request(&self, message: &[u8]) -> std::io::Result<()> {
        let mut message = message.to_vec();
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        message[..4].copy_from_slice(&length.to_ne_bytes());
        rustix::net::send(self.0.as_fd(), &message, SendFlags::empty())?;
        let mut answer = [0; 1024];
        let (_, size) = rustix::net::recv(self.0.as_fd(), &mut answer[..], RecvFlags::empty())?;
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        if size < HEADER_BYTES + 4 || kind != NLMSG_ERROR {
            return Err(std::io::Error::other(format!("no acknowledgement but message {kind}")));
        }
        let [a, b, c, d] = [16, 17, 18, 19].map(|at: usize| answer[at]);
        match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(()),
            error => Err(std::io::Error::from_raw_os_error(error.wrapping_neg())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_the_kernel_reads_them() {
        let message = new_address(7, address(1, true));
        // Header, ifaddrmsg, two attributes of 4 bytes.
        assert_eq!(message.len(), HEADER_BYTES + 8 + 2 * 8);
        assert_eq!(message[20..24], 7_u32.to_ne_bytes());
        assert_eq!(message[24..28], [8_u16.to_ne_bytes(), IFA_LOCAL.to_ne_bytes()].concat());
        assert_eq!(message[28..32], [198, 18, 0, 6]);
        let mut to = Vec::new();
        attribute(&mut to, 3, b"abcde");
        assert_eq!((to.len(), &to[..2], &to[9..]), (12, &9_u16.to_ne_bytes()[..], &[0; 3][..]));
    }

    #[test]
    fn every_pair_has_a_network_of_its_own() {
        let ends = (0..64).flat_map(|pair| [address(pair, false), address(pair, true)]);
        let distinct: std::collections::BTreeSet<_> = ends.collect();
        assert_eq!(distinct.len(), 128);
        assert_eq!(address(0, false).to_string(), "198.18.0.1");
        assert_eq!(address(63, true).to_string(), "198.18.0.254");
    }
}
