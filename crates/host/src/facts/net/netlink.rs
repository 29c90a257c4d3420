//! Netlink, as far as one question and one answer need it: messages, attributes, the families of
//! generic netlink. Sizes and numbers are those of include/uapi/linux/{netlink,genetlink}.h.
//!
//! The kernel answers such a question before `send` returns; only the audit subsystem lets a thread
//! answer, for which a socket waits at most [`WAIT`].

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv,
        send, socket_with, sockopt,
    },
};

/// Longest wait for an answer.
const WAIT: Duration = Duration::from_millis(50);

/// Largest answer: the names of all features of an interface take some ten thousand bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Messages of others that are passed over before ours.
const OTHERS_MAX: usize = 8;

const MESSAGE_HEADER_BYTES: usize = 16;
const GENERIC_HEADER_BYTES: usize = 4;
const ATTRIBUTE_HEADER_BYTES: usize = 4;

const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLA_F_NESTED: u16 = 1 << 15;
/// Flags in the type of an attribute.
const NLA_TYPE_MASK: u16 = 0x3fff;

const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A family of generic netlink.
#[derive(Debug)]
pub(super) struct Family {
    socket: OwnedFd,
    id: u16,
}

impl Family {
    /// The family with a name.
    ///
    /// # Errors
    /// ENOENT where the kernel has no such family; no sockets; an answer that is none.
    pub(super) fn named(name: &str) -> Result<Self, Errno> {
        let socket = open(netlink::GENERIC)?;
        let name = text(CTRL_ATTR_FAMILY_NAME, name);
        let answer = ask_generic(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name)?;
        let id = attributes(&answer).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        let id = id.and_then(|(_, value)| Some(u16::from_ne_bytes(value.try_into().ok()?)));
        Ok(Self { socket, id: id.ok_or(Errno::BADMSG)? })
    }

    /// The attributes of the answer to a command.
    pub(super) fn ask(&self, command: u8, attributes: &[u8]) -> Result<Vec<u8>, Errno> {
        ask_generic(&self.socket, self.id, command, attributes)
    }
}

pub(crate) fn open(protocol: Protocol) -> Result<OwnedFd, Errno> {
    let kind = SocketType::RAW;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(protocol))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(WAIT))?;
    Ok(socket)
}

fn ask_generic(
    socket: &OwnedFd,
    family: u16,
    command: u8,
    attributes: &[u8],
) -> Result<Vec<u8>, Errno> {
    let payload = [&[command, 1, 0, 0], attributes].concat();
    let mut answer = ask(socket, family, &payload)?;
    if answer.len() < GENERIC_HEADER_BYTES {
        return Err(Errno::BADMSG);
    }
    Ok(answer.split_off(GENERIC_HEADER_BYTES))
}

/// Asks once; what comes back without the header of its message.
pub(crate) fn ask(socket: &OwnedFd, kind: u16, payload: &[u8]) -> Result<Vec<u8>, Errno> {
    // One question a time and socket, so that one number is enough for all of them.
    const SEQUENCE: u32 = 1;
    let length = u32::try_from(MESSAGE_HEADER_BYTES + payload.len()).map_err(|_| Errno::MSGSIZE)?;
    let mut question = Vec::new();
    question.extend(length.to_ne_bytes());
    question.extend(kind.to_ne_bytes());
    question.extend(NLM_F_REQUEST.to_ne_bytes());
    question.extend(SEQUENCE.to_ne_bytes());
    question.extend(0u32.to_ne_bytes());
    question.extend(payload);
    // Without an address it goes to the kernel.
    send(socket, &question, SendFlags::empty())?;
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    for _ in 0..OTHERS_MAX {
        let (length, _) = recv(socket, &mut buffer, RecvFlags::TRUNC)?;
        let datagram = buffer.get(..length).ok_or(Errno::MSGSIZE)?;
        if let Some((kind, sequence, payload)) = message(datagram)
            && sequence == SEQUENCE
        {
            return match kind {
                NLMSG_ERROR => Err(error(payload)),
                _ => Ok(payload.to_vec()),
            };
        }
    }
    Err(Errno::BADMSG)
}

/// Type, number and payload of the first message.
fn message(datagram: &[u8]) -> Option<(u16, u32, &[u8])> {
    let length = number(datagram.get(..4)?)? as usize;
    let kind = u16::from_ne_bytes(datagram.get(4..6)?.try_into().ok()?);
    Some((kind, number(datagram.get(8..12)?)?, datagram.get(MESSAGE_HEADER_BYTES..length)?))
}

/// The error of a message of that type; zero, which confirms, is no answer to what we ask.
fn error(payload: &[u8]) -> Errno {
    let code = payload.get(..4).and_then(|code| Some(i32::from_ne_bytes(code.try_into().ok()?)));
    match code.and_then(i32::checked_neg) {
        Some(code @ 1..4096) => Errno::from_raw_os_error(code),
        _ => Errno::BADMSG,
    }
}

/// An attribute with a text.
pub(super) fn text(kind: u16, text: &str) -> Vec<u8> {
    attribute(kind, &[text.as_bytes(), b"\0"].concat())
}

/// An attribute that holds others.
pub(super) fn nest(kind: u16, attributes: &[u8]) -> Vec<u8> {
    attribute(kind | NLA_F_NESTED, attributes)
}

/// An attribute, filled up to a multiple of four bytes.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    // Names of interfaces and families: far below 64 KiB.
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Types and values of attributes, up to the first that is cut off.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & NLA_TYPE_MASK, value))
    })
}

/// A number of one or four bytes.
pub(super) fn number(value: &[u8]) -> Option<u32> {
    match value {
        [byte] => Some(u32::from(*byte)),
        value => Some(u32::from_ne_bytes(value.try_into().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_and_damaged_ones_end_the_list() {
        let inner = [text(2, "eth0"), attribute(3, &7u32.to_ne_bytes())].concat();
        let outer = [nest(1, &inner), attribute(9, &[1])].concat();
        let found: Vec<_> = attributes(&outer).collect();
        assert_eq!((found[0].0, found[1]), (1, (9, &[1u8][..])));
        let inner: Vec<_> = attributes(found[0].1).collect();
        assert_eq!(inner, [(2, &b"eth0\0"[..]), (3, &7u32.to_ne_bytes()[..])]);
        assert_eq!((number(&[1]), number(inner[1].1), number(&[1, 2])), (Some(1), Some(7), None));
        for cut in 0..outer.len() {
            assert!(attributes(&outer[..cut]).count() <= 2);
        }
        assert_eq!(attributes(&[0; 64]).count(), 0);
    }

    #[test]
    fn messages_that_are_none() {
        assert_eq!(message(&[1; 12]), None);
        assert_eq!(message(&[0xff; 40]), None);
        assert_eq!(message(&[0; 40]), None);
        assert_eq!(error(&(-95i32).to_ne_bytes()), Errno::OPNOTSUPP);
        assert_eq!(error(&0i32.to_ne_bytes()), Errno::BADMSG);
        assert_eq!(error(&i32::MIN.to_ne_bytes()), Errno::BADMSG);
        assert_eq!(error(&[]), Errno::BADMSG);
    }

    #[test]
    fn a_family_that_is_not_there() {
        // A sandbox may refuse the socket itself.
        match Family::named("rtproof-none") {
            Ok(family) => panic!("{family:?}"),
            Err(errno) => assert_ne!(errno, Errno::BADMSG),
        }
    }
}
