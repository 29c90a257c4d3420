//! Floods a peer of the user's own with ICMP echo requests through an interface that the user
//! names. Brings out what a real network card does: its interrupts, the driver's NAPI poll, DMA.
//!
//! Never without both names: what goes out reaches other people's machines. Bounded: one flood, the
//! next requests only after replies or 10 ms.

use std::net::Ipv4Addr;

use super::super::icmp::Flood;
use super::super::load::{Context, Load, Parameter};
use crate::failure::Failure;
use crate::sys;

/// Longest name of an interface: IFNAMSIZ without its end.
const NAME_BYTES_MAX: usize = 15;

/// Raw ICMP over a card.
pub(super) const LOAD: Load = Load {
    name: "traffic",
    about: "A flood of ICMP echo requests to a peer of your own (IPv4) through the interface that \
            you name, as in traffic:eth1:192.0.2.7. So the interrupts of its driver run; on \
            which CPU is up to their affinity. Needs root or CAP_NET_RAW, and a peer that \
            replies",
    unit: "echo replies",
    parameter: Some(Parameter {
        is_needed: true,
        expected: "the interface and the IPv4 address of a peer of your own, as in \
                   traffic:eth1:192.0.2.7",
        check: |text| names(text).is_some(),
    }),
    prepare: None,
    work,
};

/// Interface and peer.
fn names(parameter: &str) -> Option<(&str, Ipv4Addr)> {
    let (interface, peer) = parameter.split_once(':')?;
    let is_name = |c: char| c.is_ascii_graphic() && !"/:,+".contains(c);
    let fits = (1..=NAME_BYTES_MAX).contains(&interface.len()) && interface.chars().all(is_name);
    let peer: Ipv4Addr = peer.parse().ok()?;
    let is_one = !peer.is_multicast() && !peer.is_broadcast() && !peer.is_unspecified();
    (fits && is_one && !peer.is_loopback()).then_some((interface, peer))
}

fn work(ctx: &Context) -> Result<(), Failure> {
    let (interface, peer) =
        ctx.before.parameter.and_then(names).ok_or("which interface and which peer?")?;
    let flood = Flood::open(peer, std::process::id() as u16)?;
    sys::bind_to_device(flood.socket(), interface).map_err(|error| {
        format!("interface {interface}: {error}; `ip link` shows which there are")
    })?;
    (ctx.detail)(&format!("1 flood of ICMP echo to {peer} through {interface}"));
    flood.run(ctx)
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
