//! Rows: network, consoles.

use rtproof_host::knobs::device as knobs;
use rtproof_host::{CpuList, Facts, cpu_list::CPU_MAX};

use crate::check::{Check, Judge};
use crate::machine;
use crate::profile::Kind;
use crate::value::{Absent, Applies, Want, mask};
use crate::{Evidence, Impact, Intent};

pub(super) static GRO_FLUSH: Check = Check {
    title: "polls of network interfaces put off by a timer (gro_flush_timeout)",
    why: "with deferred interrupts a packet waits for this timer, and joined packets are held",
    source: "Documentation/networking/napi.rst, Software IRQ coalescing; net/core/dev.c, \
             napi_complete_done",
    trade_off: Some("sockets that prefer busy polling need it"),
    judge: Judge::value(
        |intent| match intent.profile.kind {
            Kind::BusyPoll => Want::any(),
            _ => Want::is("0").or_doubtful(),
        },
        Absent::NoSuchThing("no network interface has it"),
    ),
    ..Check::of(&[&knobs::GRO_FLUSH])
};

pub(super) static DEFER_IRQS: Check = Check {
    title: "polls without a packet before interrupts come back (napi_defer_hard_irqs)",
    why: "until they come back a packet waits for a timer and not for its interrupt",
    source: "Documentation/networking/napi.rst, Software IRQ coalescing; net/core/dev.c, \
             napi_complete_done",
    trade_off: Some("sockets that prefer busy polling need it"),
    judge: Judge::value(
        |intent| match intent.profile.kind {
            Kind::BusyPoll => Want::any(),
            _ => Want::is("0").or_doubtful(),
        },
        Absent::NoSuchThing("no network interface has it"),
    ),
    ..Check::of(&[&knobs::DEFER_IRQS])
};

pub(super) static RPS: Check = Check {
    title: "received packets handed to real-time CPUs (RPS)",
    why: "a CPU in the mask is interrupted to handle packets that came in elsewhere",
    source: "Documentation/networking/scaling.rst, RPS; OpenShift node tuning operator, RPS mask",
    judge: Judge::value_where(no_rt_cpu, Absent::WithoutOption("RPS"), has_others),
    ..Check::of(&[&knobs::RPS])
};

pub(super) static RPS_DEFAULT: Check = Check {
    title: "the same for interfaces that appear later (net.core.rps_default_mask)",
    why: "a container's interface takes this mask over, and hands its packets to these CPUs",
    source: "Documentation/admin-guide/sysctl/net.rst, rps_default_mask; OpenShift node tuning \
             operator, RPS mask",
    judge: Judge::value_where(no_rt_cpu, Absent::WithoutOption("RPS"), has_others),
    ..Check::of(&[&knobs::RPS_DEFAULT])
};

pub(super) static RFS: Check = Check {
    title: "packets steered to the CPU of their reader (RFS)",
    why: "packets for a real-time task are handled on its own CPU, in soft interrupts",
    source: "Documentation/networking/scaling.rst, RFS",
    trade_off: Some("the data of a packet is then in another CPU's cache"),
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("RPS")),
    ..Check::of(&[&knobs::RFS])
};

pub(super) static BUSY_POLL: Check = Check {
    title: "spinning in poll and select (net.core.busy_poll)",
    why: "every caller with a socket that polls spins this long before it sleeps, daemons too",
    source: "Documentation/admin-guide/sysctl/net.rst, busy_poll; tuned, profile network-latency \
             (50); OpenShift's real-time profile sets none",
    trade_off: Some("a packet that is waited for takes an interrupt and a wake-up more"),
    judge: Judge::value(busy_poll, Absent::WithoutOption("NET_RX_BUSY_POLL")),
    ..Check::of(&[&knobs::BUSY_POLL])
};

pub(super) static BUSY_READ: Check = Check {
    title: "spinning in reads of sockets (net.core.busy_read)",
    why: "every socket is then one that spins in reads, those of daemons too",
    source: "Documentation/admin-guide/sysctl/net.rst, busy_read (SO_BUSY_POLL for one socket is \
             preferred); tuned, profile network-latency (50)",
    trade_off: Some("a packet that is waited for takes an interrupt and a wake-up more"),
    judge: Judge::value(busy_poll, Absent::WithoutOption("NET_RX_BUSY_POLL")),
    ..Check::of(&[&knobs::BUSY_READ])
};

pub(super) static NETDEV_BUDGET: Check = Check {
    title: "packets handled in one go (net.core.netdev_budget)",
    why: "so many packets are handled before another soft interrupt or a task gets the CPU",
    source: "Documentation/admin-guide/sysctl/net.rst, netdev_budget; net/core/hotdata.c (300)",
    trade_off: Some("packets are dropped sooner under heavy traffic"),
    impact: Impact::Hundreds,
    judge: Judge::value(
        |_| Want::at_most(300).or_doubtful().text("at most 300, the kernel's default"),
        Absent::WithoutOption("NET"),
    ),
    ..Check::of(&[&knobs::NETDEV_BUDGET])
};

pub(super) static NETDEV_BUDGET_USECS: Check = Check {
    title: "time for packets in one go (net.core.netdev_budget_usecs)",
    why: "for so long packets are handled before another soft interrupt or a task gets the CPU",
    source: "Documentation/admin-guide/sysctl/net.rst, netdev_budget_usecs; net/core/hotdata.c \
             (two ticks)",
    trade_off: Some("packets are dropped sooner under heavy traffic"),
    impact: Impact::Milliseconds,
    judge: Judge::value(
        |_| {
            let text = "at most 20000 µs, the kernel's default with 100 ticks a second";
            Want::at_most(20_000).or_doubtful().text(text)
        },
        Absent::WithoutOption("NET"),
    ),
    ..Check::of(&[&knobs::NETDEV_BUDGET_USECS])
};

pub(super) static PRINTK: Check = Check {
    title: "level of kernel messages that go to the consoles",
    why: "a message on a console is written before the kernel goes on, on slow ones for \
          milliseconds",
    source: "Documentation/core-api/printk-basics.rst; \
             Documentation/admin-guide/kernel-parameters.txt, quiet and loglevel=",
    trade_off: Some("warnings are in the kernel's log all the same (dmesg)"),
    impact: Impact::Milliseconds,
    judge: Judge::value(
        |_| Want::at_most(4).or_doubtful().text("at most 4: errors and worse"),
        Absent::WithoutOption("PRINTK"),
    ),
    ..Check::of(&[&knobs::PRINTK])
};

fn no_rt_cpu(intent: &Intent) -> Want {
    let others = CpuList::new(0..=CPU_MAX).difference(&intent.rt_cpus);
    Want::mask_within(&others).set(mask(&intent.housekeeping)).text("no real-time CPU")
}

fn busy_poll(intent: &Intent) -> Want {
    match intent.profile.kind {
        Kind::BusyPoll => Want::any(),
        _ => Want::is("0").or_doubtful(),
    }
}

/// Where every CPU is real-time there is none to hand packets to.
fn has_others(facts: &Facts, intent: &Intent) -> Applies {
    let online = Evidence::of(&facts.cpus.online, CpuList::to_string);
    match machine::is_all_rt(facts, intent) {
        true => Applies::No(online, "every CPU is real-time: there is no other".into()),
        false => Applies::Yes,
    }
}
