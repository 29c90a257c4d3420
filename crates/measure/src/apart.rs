//! Namespaces of a process's own: nobody else sees what is made in them (interfaces, addresses,
//! files), and it ends with the process, however that ends.
//!
//! A worker enters one before it starts a thread: the kernel gives a user namespace, which is the
//! way without root, to processes of one thread alone.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType},
    thread::UnshareFlags,
};

use crate::{Failure, sys};

/// A network namespace without any interface but its own loopback, which is down.
pub(crate) fn network() -> Result<(), Failure> {
    leave(UnshareFlags::NEWNET, "network")
}

/// An empty file system in memory over a folder, for this process and those that it starts. Returns
/// the folder as it is for others, and its absolute path.
///
/// # Errors
/// There is no such folder, or the kernel refuses.
pub(crate) fn folder(dir: &Path, bytes: u64) -> Result<(OwnedFd, PathBuf), Failure> {
    let at =
        |doing: &str, error: Errno| Failure(format!("cannot {doing} {}: {error}", dir.display()));
    let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let cwd = rustix::fs::CWD;
    let real = rustix::fs::openat(cwd, dir, open, Mode::empty()).map_err(|e| at("open", e))?;
    // A relative path would go on to name what lies below the mount.
    let path = std::path::absolute(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    leave(UnshareFlags::NEWNS, "mount")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(|error| at("mount apart", error))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = std::ffi::CString::new(format!("mode=0700,size={bytes}")).unwrap_or_default();
    rustix::mount::mount("rtproof", &path, "tmpfs", flags, Some(options.as_c_str()))
        .map_err(|error| at("mount a tmpfs over", error))?;
    Ok((real, path))
}

/// Leaves a namespace of the machine, through a user namespace where the right is missing.
fn leave(what: UnshareFlags, name: &str) -> Result<(), Failure> {
    let is =
        |error: &std::io::Error, errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let refused = |error, takes| {
        Err(Failure(format!(
            "cannot have a {name} namespace of its own: {error}; it takes {takes}"
        )))
    };
    let without_right = match sys::unshare(what) {
        Ok(()) => return Ok(()),
        Err(error) if is(&error, Errno::PERM) => error,
        Err(error) => return refused(error, "root, and a kernel that has them"),
    };
    match leave_as_user(what) {
        Ok(()) => Ok(()),
        // The process has other threads.
        Err(error) if is(&error, Errno::INVAL) => refused(without_right, "root"),
        Err(error) => {
            refused(error, "root or user namespaces (/proc/sys/user/max_user_namespaces)")
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this process's own identity, not the machine's")]
fn leave_as_user(what: UnshareFlags) -> std::io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER | what)?;
    // Without a user that files can belong to, none could be made.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
}

// ICMP echo requests and their replies through a raw socket, as ping(8) sends them.

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

// What loads and workloads share of the network: pairs of virtual devices, and ICMP echo.

/// Longest name of an interface: IFNAMSIZ without its end.
const NAME_BYTES_MAX: usize = 15;

/// Interface and peer, as in `eth1:192.0.2.7`. The peer is one machine and not this one.
pub(crate) fn parse_interface_and_peer(parameter: &str) -> Option<(&str, Ipv4Addr)> {
    let (interface, peer) = parameter.split_once(':')?;
    let is_name = |c: char| c.is_ascii_graphic() && !"/:,+".contains(c);
    let fits = (1..=NAME_BYTES_MAX).contains(&interface.len()) && interface.chars().all(is_name);
    let peer: Ipv4Addr = peer.parse().ok()?;
    let is_one = !peer.is_multicast() && !peer.is_broadcast() && !peer.is_unspecified();
    (fits && is_one && !peer.is_loopback()).then_some((interface, peer))
}

// Pairs of virtual Ethernet devices between two network namespaces of a process's own, made
// through rtnetlink(7): ip(8) need not be there.

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
    network()?;
    let far = Netlink::open()?;
    let far_namespace = own_namespace()?;
    network()?;
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
mod echo_tests {
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

#[cfg(test)]
mod network_tests {
    use super::*;

    #[test]
    fn both_names_are_required_and_the_peer_is_one_address() {
        assert_eq!(
            parse_interface_and_peer("eth1:192.0.2.7"),
            Some(("eth1", Ipv4Addr::new(192, 0, 2, 7)))
        );
        for text in [
            "",
            "eth1",
            "eth1:",
            ":192.0.2.7",
            "eth1:host",
            "eth1:255.255.255.255",
            "eth1:224.0.0.1",
            "eth1:0.0.0.0",
            "eth1:127.0.0.1",
            "e/h:192.0.2.7",
            "a-name-of-16-byte:192.0.2.7",
            "eth 1:192.0.2.7",
            "eth1:192.0.2.7:1",
        ] {
            assert_eq!(parse_interface_and_peer(text), None, "{text}");
        }
    }
}

#[cfg(test)]
mod veth_tests {
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
