//! What ethtool(8) and iw(8) show, read the same way (Documentation/networking/ethtool-netlink.rst
//! and include/uapi/linux/{ethtool_netlink,nl80211}.h) and put into words, which captures keep.

use std::cell::OnceCell;

use rustix::io::Errno;

use super::netlink::{Family, attribute, attributes, nest, number, text};

/// What an interface answers where its driver has no such thing.
pub(super) const NOT_SUPPORTED: &str = "not supported";

const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;

/// A question: its word, the command, and names of the attributes by their number.
pub(super) struct Question {
    pub(super) word: &'static str,
    command: u8,
    names: &'static [(u16, &'static str)],
}

pub(super) const COALESCE: Question = Question {
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

pub(super) const CHANNELS: Question = Question {
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

pub(super) const PAUSE: Question =
    Question { word: "pause", command: 21, names: &[(2, "autoneg"), (3, "rx"), (4, "tx")] };

pub(super) const EEE: Question =
    Question { word: "eee", command: 23, names: &[(4, "active"), (5, "enabled"), (6, "tx-lpi")] };

/// Features that are on, by their names.
pub(super) const FEATURES: Question = Question { word: "features", command: 11, names: &[] };
const FEATURES_ACTIVE: u16 = 4;
const BITSET_BITS: u16 = 3;
const BITSET_BITS_BIT: u16 = 1;
const BITSET_BIT_NAME: u16 = 2;

const NL80211_CMD_GET_POWER_SAVE: u8 = 62;
const NL80211_ATTR_IFINDEX: u16 = 3;
const NL80211_ATTR_PS_STATE: u16 = 93;

/// The two families, found when they are first needed.
#[derive(Debug, Default)]
pub(super) struct Asker {
    ethtool: OnceCell<Result<Family, Errno>>,
    nl80211: OnceCell<Result<Family, Errno>>,
}

impl Asker {
    /// Asks an interface: `rx-usecs 3 adaptive-rx 1`.
    ///
    /// # Errors
    /// ENOENT where the kernel has no such family; what the driver answers.
    pub(super) fn ask(&self, interface: &str, question: &Question) -> Result<String, Errno> {
        let family = self.ethtool.get_or_init(|| Family::named("ethtool"));
        let family = family.as_ref().map_err(|errno| *errno)?;
        let header = nest(HEADER, &text(HEADER_DEV_NAME, interface));
        supported(family.ask(question.command, &header).map(|answer| match question.names {
            [] => features(&answer),
            names => words(&answer, names),
        }))
    }

    /// Whether a wireless interface saves power: `on` or `off`.
    pub(super) fn power_save(&self, interface: &str) -> Result<String, Errno> {
        let family = self.nl80211.get_or_init(|| Family::named("nl80211"));
        let family = family.as_ref().map_err(|errno| *errno)?;
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::DGRAM,
            None,
        )?;
        let index = rustix::net::netdevice::name_to_index(socket, interface)?;
        let index = attribute(NL80211_ATTR_IFINDEX, &index.to_ne_bytes());
        supported(family.ask(NL80211_CMD_GET_POWER_SAVE, &index).and_then(|answer| {
            let state = attributes(&answer).find(|(kind, _)| *kind == NL80211_ATTR_PS_STATE);
            match state.and_then(|(_, value)| number(value)) {
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
        Some(format!("{name} {}", number(value)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_become_words() {
        let answer = [
            nest(HEADER, &text(HEADER_DEV_NAME, "eth0")),
            attribute(2, &3u32.to_ne_bytes()),
            attribute(11, &[1]),
            attribute(99, &[1]),
        ];
        assert_eq!(words(&answer.concat(), COALESCE.names), "rx-usecs 3 adaptive-rx 1");
        assert_eq!(words(&[], COALESCE.names), "");
    }

    #[test]
    fn active_features_by_name() {
        let bit = |name: &str| nest(BITSET_BITS_BIT, &text(BITSET_BIT_NAME, name));
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
