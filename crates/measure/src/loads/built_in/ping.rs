//! Floods the kernel with ICMP echo requests and replies over virtual Ethernet devices. Brings out
//! what network traffic does on the CPUs that handle it: the NET_RX softirq with driver, bridge of
//! namespaces, IP, ICMP and socket, ksoftirqd where that is too much, and memory of packets.
//!
//! The softirq of a veth device runs on the CPU that sends, so it is the load CPUs that get it.
//! Interrupts of hardware are not brought out by it; `traffic` does that.
//!
//! Bounded: at most [`FLOODS_MAX`] floods, each with some packets under way, in two network
//! namespaces of the worker's own, which end with it.

use std::os::fd::OwnedFd;

use super::super::flood;
use super::super::load::{Before, Context, Load, Parameter};
use super::super::place;
use crate::failure::Failure;
use crate::network::{echo::Echo, veth};

const FLOODS_MAX: u32 = 64;
/// Most floods that are not asked for by their number.
const FLOODS_DEFAULT_MAX: u32 = 8;

/// Raw ICMP between two network namespaces.
pub(super) const LOAD: Load = Load {
    name: "ping",
    about: "Floods of ICMP echo requests over virtual Ethernet devices, between two network \
            namespaces of its own. One for each load CPU, at most 8, or as many as follow the \
            colon, as in ping:4. The devices' softirqs run on the load CPUs. A kernel that has \
            veth as a module loads it, and keeps it",
    unit: "echo replies",
    parameter: Some(Parameter {
        is_needed: false,
        expected: "a number of floods from 1 to 64",
        check,
    }),
    prepare: Some(prepare),
    work,
};

fn check(parameter: &str) -> bool {
    // As it is printed again: no sign, no zero before it.
    parameter
        .parse()
        .is_ok_and(|n: u32| (1..=FLOODS_MAX).contains(&n) && n.to_string() == parameter)
}

fn floods(before: &Before) -> u32 {
    let by_cpus = u32::try_from(before.cpus.len()).unwrap_or(u32::MAX);
    let asked = before.parameter.and_then(|text| text.parse().ok());
    asked.unwrap_or_else(|| by_cpus.clamp(1, FLOODS_DEFAULT_MAX))
}

fn prepare(before: &Before) -> Result<OwnedFd, Failure> {
    veth::pairs(floods(before))
}

fn work(ctx: &Context) -> Result<(), Failure> {
    let count = floods(&ctx.before);
    let plural = if count == 1 { "" } else { "s" };
    let cpus = ctx.before.cpus;
    (ctx.detail)(&format!("{count} flood{plural} of ICMP echo over veth on CPU {cpus}"));
    let tasks = (0..count).zip(cpus.as_slice().iter().copied().cycle()).map(|(number, cpu)| {
        move || {
            place::pin_thread(cpu)?;
            // Numbers of floods are below 64.
            let echo = Echo::open(veth::address(number, true), number as u16 + 1, None)?;
            flood::run(&echo, ctx)
        }
    });
    ctx.together(tasks.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_floods_is_what_it_says() {
        for (text, is_good) in [
            ("1", true),
            ("64", true),
            ("0", false),
            ("65", false),
            ("", false),
            ("+1", false),
            ("01", false),
            ("x", false),
            ("-1", false),
            ("1 ", false),
        ] {
            assert_eq!(check(text), is_good, "{text:?}");
        }
        let cpus = rtproof_host::CpuList::new(0..20);
        let before = |parameter| Before { cpus: &cpus, dir: "/tmp".as_ref(), parameter };
        assert_eq!((floods(&before(None)), floods(&before(Some("3")))), (8, 3));
    }
}
