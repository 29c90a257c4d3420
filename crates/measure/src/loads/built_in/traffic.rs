//! Floods a peer of the user's own with ICMP echo requests through an interface that the user
//! names. Brings out what a real network card does: its interrupts, the driver's NAPI poll, DMA.
//!
//! Never without both names: what goes out reaches other people's machines. Bounded: one flood, the
//! next requests only after replies or 10 ms.

use super::super::flood;
use super::super::load::{Context, Load, Parameter};
use crate::failure::Failure;
use crate::network::{echo::Echo, names};

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

fn work(ctx: &Context) -> Result<(), Failure> {
    let (interface, peer) =
        ctx.before.parameter.and_then(names).ok_or("which interface and which peer?")?;
    let echo = Echo::open(peer, std::process::id() as u16, Some(interface))?;
    (ctx.detail)(&format!("1 flood of ICMP echo to {peer} through {interface}"));
    flood::run(&echo, ctx)
}
