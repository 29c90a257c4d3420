//! What loads and workloads share of the network: pairs of virtual devices, and ICMP echo.

pub(crate) mod echo;
pub(crate) mod veth;

use std::net::Ipv4Addr;

/// Longest name of an interface: IFNAMSIZ without its end.
const NAME_BYTES_MAX: usize = 15;

/// Interface and peer, as in `eth1:192.0.2.7`. The peer is one machine and not this one.
pub(crate) fn names(parameter: &str) -> Option<(&str, Ipv4Addr)> {
    let (interface, peer) = parameter.split_once(':')?;
    let is_name = |c: char| c.is_ascii_graphic() && !"/:,+".contains(c);
    let fits = (1..=NAME_BYTES_MAX).contains(&interface.len()) && interface.chars().all(is_name);
    let peer: Ipv4Addr = peer.parse().ok()?;
    let is_one = !peer.is_multicast() && !peer.is_broadcast() && !peer.is_unspecified();
    (fits && is_one && !peer.is_loopback()).then_some((interface, peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_are_needed_and_one_peer_is_meant() {
        assert_eq!(names("eth1:192.0.2.7"), Some(("eth1", Ipv4Addr::new(192, 0, 2, 7))));
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
            assert_eq!(names(text), None, "{text}");
        }
    }
}
