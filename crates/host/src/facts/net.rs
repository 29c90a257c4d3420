//! Hardware network interfaces: interrupts, power saving, coalescing.
//!
//! Names and settings, never an address. Virtual interfaces (loopback, bridges, veth) are left out:
//! they have no interrupt.

use std::{cell::OnceCell, collections::BTreeMap, os::fd::OwnedFd, time::Duration};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv,
        send, socket_with, sockopt,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root};

/// Where the interfaces are.
const FOLDER: &str = "/sys/class/net";

/// First kernel that answers these questions by netlink; 5.6 knows the family and not all of them,
/// and would say of each interface that it does not support them.
const SINCE: (u32, u32) = (5, 7);

/// Facts about the network interfaces of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Net {
    /// Interfaces with a device behind them, by name.
    pub interfaces: Reading<Vec<Interface>>,
}

/// One interface. Of what its driver does not support the value is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Name, e.g. `eth0`.
    pub name: String,
    /// Driver, e.g. `igb`.
    pub driver: Reading<String>,
    /// Whether it is wireless.
    pub wireless: bool,
    /// Interrupt moderation (`ethtool -c`).
    pub coalesce: Reading<Option<Coalesce>>,
    /// Queues (`ethtool -l`).
    pub channels: Reading<Option<Channels>>,
    /// Packets put together before the stack sees them (`ethtool -k`).
    pub offloads: Reading<Option<Offloads>>,
    /// Pause frames (`ethtool -a`).
    pub pause: Reading<Option<Pause>>,
    /// Energy-Efficient Ethernet (`ethtool --show-eee`).
    pub eee: Reading<Option<Eee>>,
    /// Whether a wireless interface saves power (`iw dev X get power_save`); `None` of a wired one.
    pub power_save: Reading<Option<bool>>,
}

/// Interrupt moderation; `None`: the driver has no such setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coalesce {
    /// Microseconds that an interrupt is delayed after a packet.
    pub rx_usecs: Option<u32>,
    /// Packets that make it come earlier.
    pub rx_frames: Option<u32>,
    /// Microseconds after a packet has gone.
    pub tx_usecs: Option<u32>,
    /// Whether the driver changes the delay of received packets by itself.
    pub adaptive_rx: Option<bool>,
    /// The same for sent packets.
    pub adaptive_tx: Option<bool>,
}

/// Queues; zero where the driver has none of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// Queues that receive only.
    pub rx: u32,
    /// Queues that send only.
    pub tx: u32,
    pub combined: u32,
    /// Most queues for both.
    pub combined_max: u32,
}

/// Receive offloads that put packets together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offloads {
    /// Generic receive offload, in software, within one poll.
    pub gro: bool,
    /// The same in hardware.
    pub gro_hw: bool,
    pub lro: bool,
}

/// Pause frames (IEEE 802.3x).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// Whether the two ends negotiate it.
    pub autoneg: bool,
    /// Whether sending stops when the other end asks for it.
    pub rx: bool,
    /// Whether we ask the other end to stop.
    pub tx: bool,
}

/// Energy-Efficient Ethernet (IEEE 802.3az).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Eee {
    /// Whether it is allowed.
    pub enabled: bool,
    /// Whether both ends have agreed on it.
    pub active: bool,
}

impl Net {
    /// Reads the interfaces. Devices that sleep are not read: the kernel would wake them up.
    pub fn read(root: &Root, version: &Reading<(u32, u32)>) -> Self {
        let asker = Asker::default();
        let is_old = version.value().is_some_and(|&version| version < SINCE);
        let mut unseen = None;
        let mut interface = |name: &String| {
            let entries = root.list_dir(&format!("{FOLDER}/{name}"));
            let Some(found) = entries.value() else {
                // Gone since, or not to be seen.
                unseen = unseen.take().or((!entries.is_absent()).then_some(entries));
                return None;
            };
            let has = |entry: &str| found.iter().any(|found| found == entry);
            let wireless = has("phy80211");
            has("device").then(|| Interface::read(root, &asker, name, wireless, is_old))
        };
        let names = root.list_dir(FOLDER);
        let interfaces = names.map(|names| names.iter().filter_map(&mut interface).collect());
        Self { interfaces: unseen.map_or(interfaces, |unseen| unseen.map(|_| Vec::new())) }
    }
}

impl Interface {
    fn read(root: &Root, asker: &Asker, name: &str, wireless: bool, is_old: bool) -> Self {
        let device = format!("{FOLDER}/{name}/device");
        let power = root.trimmed(&format!("{device}/power/runtime_status"));
        let is_asleep = power.value().is_some_and(|status| status == "suspended");
        let ask = |question: &Question| {
            let call = format!("ethtool {name} {}", question.word);
            if is_asleep {
                return Reading::denied(call, "the device sleeps, and asking it would wake it up");
            }
            // Looking for a family that is not there makes the kernel look for a module.
            let called =
                (!is_old).then(|| root.call(&call, || Ok(asker.ask(name, question)?))).flatten();
            called.unwrap_or_else(|| Reading::absent(call))
        };
        let power_save = if wireless {
            let call = format!("nl80211 {name} power_save");
            let called = root.call(&call, || Ok(asker.power_save(name)?));
            called.unwrap_or_else(|| Reading::absent(call)).parsed("on or off", power_save)
        } else {
            Reading::known(format!("{FOLDER}/{name}"), None)
        };
        let driver = root.read_link(&format!("{device}/driver"));
        Self {
            name: name.to_owned(),
            driver: driver.map(|link| link.rsplit('/').next().unwrap_or_default().to_owned()),
            wireless,
            coalesce: ask(&COALESCE).and_then(answer(|words| Coalesce {
                rx_usecs: words.number("rx-usecs"),
                rx_frames: words.number("rx-frames"),
                tx_usecs: words.number("tx-usecs"),
                adaptive_rx: words.number("adaptive-rx").map(|on| on != 0),
                adaptive_tx: words.number("adaptive-tx").map(|on| on != 0),
            })),
            channels: ask(&CHANNELS).and_then(answer(|words| Channels {
                rx: words.number("rx").unwrap_or_default(),
                tx: words.number("tx").unwrap_or_default(),
                combined: words.number("combined").unwrap_or_default(),
                combined_max: words.number("combined-max").unwrap_or_default(),
            })),
            offloads: ask(&FEATURES).map(|text| {
                let has = |feature| text.split(' ').any(|word| word == feature);
                (text != NOT_SUPPORTED).then(|| Offloads {
                    gro: has("rx-gro"),
                    gro_hw: has("rx-gro-hw"),
                    lro: has("rx-lro"),
                })
            }),
            pause: ask(&PAUSE).and_then(answer(|words| Pause {
                autoneg: words.is_on("autoneg"),
                rx: words.is_on("rx"),
                tx: words.is_on("tx"),
            })),
            eee: ask(&EEE).and_then(answer(|words| Eee {
                enabled: words.is_on("enabled"),
                active: words.is_on("active"),
            })),
            power_save,
        }
    }
}

/// Names and numbers of an answer.
struct Words<'a>(BTreeMap<&'a str, u32>);

impl Words<'_> {
    fn number(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied()
    }

    fn is_on(&self, name: &str) -> bool {
        self.number(name).is_some_and(|number| number != 0)
    }
}

/// Reads an answer like `rx-usecs 3 adaptive-rx 1`.
fn answer<T>(of: impl Fn(Words<'_>) -> T) -> impl Fn(String, String) -> Reading<Option<T>> {
    move |call, text| {
        if text == NOT_SUPPORTED {
            return Reading::known(call, None);
        }
        let all: Vec<&str> = text.split_whitespace().collect();
        let pairs = all.chunks(2).map(|pair| match pair {
            [name, number] => Some((*name, number.parse().ok()?)),
            _ => None,
        });
        match pairs.collect::<Option<BTreeMap<_, _>>>() {
            Some(words) => Reading::known(call, Some(of(Words(words)))),
            None => Reading::malformed(call, &text, "names and numbers"),
        }
    }
}

fn power_save(text: &str) -> Option<Option<bool>> {
    match text {
        "on" => Some(Some(true)),
        "off" => Some(Some(false)),
        NOT_SUPPORTED => Some(None),
        _ => None,
    }
}

// What ethtool(8) and iw(8) show, read the same way (Documentation/networking/ethtool-netlink.rst
// and include/uapi/linux/{ethtool_netlink,nl80211}.h) and put into words, which captures keep.

/// What an interface answers where its driver has no such thing.
const NOT_SUPPORTED: &str = "not supported";

const HEADER: u16 = 1;

const HEADER_DEV_NAME: u16 = 2;

/// A question: its word, the command, and names of the attributes by their number.
struct Question {
    word: &'static str,
    command: u8,
    names: &'static [(u16, &'static str)],
}

const COALESCE: Question = Question {
    word: "coalesce",
    command: 19,
    names: &[
        (2, "rx-usecs"),
        (3, "rx-frames"),
        (6, "tx-usecs"),
        (7, "tx-frames"),
        (11, "adaptive-rx"),
        (12, "adaptive-tx"),
    ],
};

const CHANNELS: Question = Question {
    word: "channels",
    command: 17,
    names: &[
        (2, "rx-max"),
        (3, "tx-max"),
        (5, "combined-max"),
        (6, "rx"),
        (7, "tx"),
        (9, "combined"),
    ],
};

const PAUSE: Question =
    Question { word: "pause", command: 21, names: &[(2, "autoneg"), (3, "rx"), (4, "tx")] };

const EEE: Question =
    Question { word: "eee", command: 23, names: &[(4, "active"), (5, "enabled"), (6, "tx-lpi")] };

/// Features that are on, by their names.
const FEATURES: Question = Question { word: "features", command: 11, names: &[] };

const FEATURES_ACTIVE: u16 = 4;

const BITSET_BITS: u16 = 3;

const BITSET_BITS_BIT: u16 = 1;

const BITSET_BIT_NAME: u16 = 2;

const NL80211_CMD_GET_POWER_SAVE: u8 = 62;

const NL80211_ATTR_IFINDEX: u16 = 3;

const NL80211_ATTR_PS_STATE: u16 = 93;

/// The two families, found when they are first needed.
#[derive(Debug, Default)]
struct Asker {
    ethtool: OnceCell<Result<Family, Errno>>,
    nl80211: OnceCell<Result<Family, Errno>>,
}

impl Asker {
    /// Asks an interface: `rx-usecs 3 adaptive-rx 1`.
    ///
    /// # Errors
    /// ENOENT where the kernel has no such family; what the driver answers.
    fn ask(&self, interface: &str, question: &Question) -> Result<String, Errno> {
        let family = self.ethtool.get_or_init(|| Family::named("ethtool"));
        let family = family.as_ref().map_err(|errno| *errno)?;
        let header = nest(HEADER, &text_attribute(HEADER_DEV_NAME, interface));
        supported(family.ask(question.command, &header).map(|answer| match question.names {
            [] => features(&answer),
            names => words(&answer, names),
        }))
    }

    /// Whether a wireless interface saves power: `on` or `off`.
    fn power_save(&self, interface: &str) -> Result<String, Errno> {
        let family = self.nl80211.get_or_init(|| Family::named("nl80211"));
        let family = family.as_ref().map_err(|errno| *errno)?;
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
        let index = rustix::net::netdevice::name_to_index(socket, interface)?;
        let index = write_attribute(NL80211_ATTR_IFINDEX, &index.to_ne_bytes());
        supported(family.ask(NL80211_CMD_GET_POWER_SAVE, &index).and_then(|answer| {
            let state = attributes(&answer).find(|(kind, _)| *kind == NL80211_ATTR_PS_STATE);
            match state.and_then(|(_, value)| number_attribute(value)) {
                Some(0) => Ok("off".into()),
                Some(1) => Ok("on".into()),
                _ => Err(Errno::BADMSG),
            }
        }))
    }
}

fn supported(answer: Result<String, Errno>) -> Result<String, Errno> {
    match answer {
        Err(Errno::OPNOTSUPP) => Ok(NOT_SUPPORTED.into()),
        answer => answer,
    }
}

fn words(answer: &[u8], names: &[(u16, &str)]) -> String {
    let word = |(kind, value): (u16, &[u8])| {
        let (_, name) = names.iter().find(|(known, _)| *known == kind)?;
        Some(format!("{name} {}", number_attribute(value)?))
    };
    attributes(answer).filter_map(word).collect::<Vec<_>>().join(" ")
}

fn features(answer: &[u8]) -> String {
    let inside = |bytes, kind| {
        attributes(bytes).filter(move |(found, _)| *found == kind).map(|(_, value)| value)
    };
    let mut names: Vec<String> = inside(answer, FEATURES_ACTIVE)
        .flat_map(|set| inside(set, BITSET_BITS))
        .flat_map(|bits| inside(bits, BITSET_BITS_BIT))
        .flat_map(|bit| inside(bit, BITSET_BIT_NAME))
        .map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
        .collect();
    names.sort_unstable();
    names.join(" ")
}

// Netlink, as far as one question and one answer need it: messages, attributes, the families of
// generic netlink. Sizes and numbers are those of include/uapi/linux/{netlink,genetlink}.h.
//
// The kernel answers such a question before `send` returns; only the audit subsystem lets a thread
// answer, for which a socket waits at most `WAIT`.

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
struct Family {
    socket: OwnedFd,
    id: u16,
}

impl Family {
    /// The family with a name.
    ///
    /// # Errors
    /// ENOENT where the kernel has no such family; no sockets; an invalid answer.
    fn named(name: &str) -> Result<Self, Errno> {
        let socket = open_socket(netlink::GENERIC)?;
        let name = text_attribute(CTRL_ATTR_FAMILY_NAME, name);
        let answer = ask_generic(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name)?;
        let id = attributes(&answer).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        let id = id.and_then(|(_, value)| Some(u16::from_ne_bytes(value.try_into().ok()?)));
        Ok(Self { socket, id: id.ok_or(Errno::BADMSG)? })
    }

    /// The attributes of the answer to a command.
    fn ask(&self, command: u8, attributes: &[u8]) -> Result<Vec<u8>, Errno> {
        ask_generic(&self.socket, self.id, command, attributes)
    }
}

pub(crate) fn open_socket(protocol: Protocol) -> Result<OwnedFd, Errno> {
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
    let mut answer = ask_kernel(socket, family, &payload)?;
    if answer.len() < GENERIC_HEADER_BYTES {
        return Err(Errno::BADMSG);
    }
    Ok(answer.split_off(GENERIC_HEADER_BYTES))
}

/// Asks once; what comes back without the header of its message.
pub(crate) fn ask_kernel(socket: &OwnedFd, kind: u16, payload: &[u8]) -> Result<Vec<u8>, Errno> {
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
    let length = number_attribute(datagram.get(..4)?)? as usize;
    let kind = u16::from_ne_bytes(datagram.get(4..6)?.try_into().ok()?);
    Some((
        kind,
        number_attribute(datagram.get(8..12)?)?,
        datagram.get(MESSAGE_HEADER_BYTES..length)?,
    ))
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
fn text_attribute(kind: u16, text: &str) -> Vec<u8> {
    write_attribute(kind, &[text.as_bytes(), b"\0"].concat())
}

/// An attribute that holds others.
fn nest(kind: u16, attributes: &[u8]) -> Vec<u8> {
    write_attribute(kind | NLA_F_NESTED, attributes)
}

/// An attribute, filled up to a multiple of four bytes.
fn write_attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    // Names of interfaces and families: far below 64 KiB.
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Types and values of attributes, up to the first that is cut off.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
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
fn number_attribute(value: &[u8]) -> Option<u32> {
    match value {
        [byte] => Some(u32::from(*byte)),
        value => Some(u32::from_ne_bytes(value.try_into().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_folder_has_interfaces_but_no_netlink() {
        let tree = Tree::new(&[
            ("sys/class/net/lo/mtu", "65536\n"),
            ("sys/class/net/eth0/device/vendor", "0x8086\n"),
            ("sys/class/net/wlan0/device/vendor", "0x8086\n"),
            ("sys/class/net/wlan0/phy80211/index", "0\n"),
        ]);
        let net = Net::read(&tree.root(), &Reading::known("", (6, 12)));
        let found = net.interfaces.value().unwrap();
        let names: Vec<_> =
            found.iter().map(|found| (found.name.as_str(), found.wireless)).collect();
        assert_eq!(names, [("eth0", false), ("wlan0", true)]);
        assert!(found[0].coalesce.is_absent() && found[1].power_save.is_absent());
        assert_eq!(found[0].power_save.value(), Some(&None));
        let none = Net::read(&Tree::new(&[("proc/stat", "")]).root(), &Reading::absent(""));
        assert!(none.interfaces.is_absent());
    }

    #[test]
    fn a_device_that_sleeps_is_not_asked() {
        let tree = Tree::new(&[("sys/class/net/eth0/device/power/runtime_status", "suspended\n")]);
        let net = Net::read(&tree.root(), &Reading::known("", (6, 12)));
        let why = net.interfaces.value().unwrap()[0].eee.why_unknown().unwrap();
        assert!(why.contains("would wake it up"), "{why}");
    }

    #[test]
    fn answers_in_words() {
        let read = |text: &str| {
            answer(|words| (words.number("rx-usecs"), words.is_on("adaptive-rx")))(
                "ethtool eth0 coalesce".into(),
                text.into(),
            )
        };
        assert_eq!(read("rx-usecs 3 adaptive-rx 1").value(), Some(&Some((Some(3), true))));
        assert_eq!(read("").value(), Some(&Some((None, false))));
        assert_eq!(read("not supported").value(), Some(&None));
        assert!(read("rx-usecs").value().is_none() && read("rx-usecs x").value().is_none());
        assert_eq!(power_save("on"), Some(Some(true)));
        assert!(power_save("maybe").is_none());
    }

    #[test]
    fn a_capture_keeps_the_answers_and_hides_an_address_in_a_name() {
        let text = "rtproof capture 1\nfrom live, read by root\n== /sys/class/net folder\n|enx0a1b2c3d4e5f\n\
            == /sys/class/net/enx0a1b2c3d4e5f folder\n|device\n\
            == ethtool enx0a1b2c3d4e5f coalesce call\n|rx-usecs 3\n== end\n";
        let mut capture = crate::Capture::read(text.as_bytes()).unwrap().unwrap();
        capture.redact();
        let net = Net::read(&Root::captured(capture), &Reading::known("", (6, 12)));
        let interface = &net.interfaces.value().unwrap()[0];
        assert_eq!(interface.name, "enxmac-1");
        assert_eq!(interface.coalesce.value().unwrap().unwrap().rx_usecs, Some(3));
    }
}

#[cfg(test)]
mod ethtool_tests {
    use super::*;

    #[test]
    fn attributes_become_words() {
        let answer = [
            nest(HEADER, &text_attribute(HEADER_DEV_NAME, "eth0")),
            write_attribute(2, &3u32.to_ne_bytes()),
            write_attribute(11, &[1]),
            write_attribute(99, &[1]),
        ];
        assert_eq!(words(&answer.concat(), COALESCE.names), "rx-usecs 3 adaptive-rx 1");
        assert_eq!(words(&[], COALESCE.names), "");
    }

    #[test]
    fn active_features_by_name() {
        let bit = |name: &str| nest(BITSET_BITS_BIT, &text_attribute(BITSET_BIT_NAME, name));
        let set = |names: &[&str]| {
            let bits: Vec<u8> = names.iter().flat_map(|name| bit(name)).collect();
            nest(BITSET_BITS, &bits)
        };
        let answer =
            [nest(2, &set(&["rx-lro"])), nest(FEATURES_ACTIVE, &set(&["tx-checksum", "rx-gro"]))];
        assert_eq!(features(&answer.concat()), "rx-gro tx-checksum");
    }

    #[test]
    fn what_a_driver_lacks_is_an_answer() {
        assert_eq!(supported(Err(Errno::OPNOTSUPP)), Ok(NOT_SUPPORTED.into()));
        assert_eq!(supported(Err(Errno::PERM)), Err(Errno::PERM));
    }
}

#[cfg(test)]
mod netlink_tests {
    use super::*;

    #[test]
    fn attributes_come_back_and_damaged_ones_end_the_list() {
        let inner = [text_attribute(2, "eth0"), write_attribute(3, &7u32.to_ne_bytes())].concat();
        let outer = [nest(1, &inner), write_attribute(9, &[1])].concat();
        let found: Vec<_> = attributes(&outer).collect();
        assert_eq!((found[0].0, found[1]), (1, (9, &[1u8][..])));
        let inner: Vec<_> = attributes(found[0].1).collect();
        assert_eq!(inner, [(2, &b"eth0\0"[..]), (3, &7u32.to_ne_bytes()[..])]);
        assert_eq!(
            (number_attribute(&[1]), number_attribute(inner[1].1), number_attribute(&[1, 2])),
            (Some(1), Some(7), None)
        );
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
