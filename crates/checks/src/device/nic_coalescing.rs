//! How long does an interface put off its interrupt?
//!
//! A fixed delay is part of the latency, so that it is held against the budget like the exit
//! latency of an idle state: up to a quarter of it is good, and without a budget none. An adaptive
//! delay has no bound that can be read. Some Intel drivers give small numbers that are no times but
//! modes: `rx-usecs 3` of igb is an adaptive mode, and its default.

use rtproof_host::facts::net::{Coalesce, Interface};
use rtproof_host::{Facts, knobs::device as knobs};

use super::interfaces::{Judged, Question, command, driver, judge as ask, on};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Intent, quantity};

pub(super) static CHECK: Check = Check {
    id: "nic-coalescing",
    title: "interrupts that network interfaces put off (ethtool -c)",
    why: "a packet waits in the card until its interrupt comes, for up to the delay that is set",
    source: "Documentation/networking/ethtool-netlink.rst; \
             Documentation/networking/device_drivers/ethernet/intel/e1000e.rst, \
             InterruptThrottleRate; drivers/net/ethernet/intel/{igb,igc,e1000e}/ethtool.c, \
             get_coalesce",
    trade_off: Some("without a delay every packet may interrupt: more load at high packet rates"),
    knobs: &[&knobs::COALESCE],
    wanted: Wanted::Of(|intent| match good_ns(intent) {
        0 => "no delay, not adaptive".into(),
        ns => format!("at most {}, a quarter of the budget, and not adaptive", quantity::ns(ns)),
    }),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

/// Drivers whose numbers up to the given one are modes, all but zero adaptive.
const MODES: &[(&str, u32)] = &[("e1000", 4), ("e1000e", 4), ("igb", 3), ("igc", 3)];
const MODES_MAX: u32 = 4;

/// Delay that is good: none without a budget.
fn good_ns(intent: &Intent) -> u64 {
    intent.budget_ns.map_or(0, |budget_ns| budget_ns / 4)
}

fn judge(mut draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let good_ns = good_ns(intent);
    // What a small number means depends on the driver.
    for interface in facts.net.interfaces.value().into_iter().flatten() {
        let usecs = interface.coalesce.value().and_then(|c| c.as_ref()?.rx_usecs);
        if usecs.is_some_and(|usecs| (1..=MODES_MAX).contains(&usecs)) {
            draft = draft.saw([driver(interface)]);
        }
    }
    let question = Question {
        of: |interface| &interface.coalesce,
        show,
        none: "not supported",
        lacking: "no driver here can put interrupts off",
        otherwise: None,
    };
    ask(draft, facts, &question, |interface, coalesce| look(interface, coalesce, good_ns))
}

fn look(interface: &Interface, coalesce: &Coalesce, good_ns: u64) -> Judged {
    let name = &interface.name;
    if coalesce.adaptive_rx == Some(true) {
        let set = format!("ethtool -C {name} adaptive-rx off rx-usecs 0");
        return Judged::Wrong("the driver adapts the delay to the traffic".into(), command(set));
    }
    let Some(usecs) = coalesce.rx_usecs else {
        return Judged::Fine("no delay that can be set".into());
    };
    let set = command(format!("ethtool -C {name} rx-usecs 0"));
    if (1..=MODES_MAX).contains(&usecs) {
        let Some(driver) = interface.driver.value() else {
            return Judged::Unclear(interface.driver.clone());
        };
        let is_mode = |(known, most): &&(&str, u32)| known == driver && usecs <= *most;
        if MODES.iter().any(|mode| is_mode(&mode)) {
            return Judged::Wrong(
                format!("rx-usecs {usecs} of {driver} is a mode that adapts the delay"),
                set,
            );
        }
    }
    if usecs == 0 {
        return match coalesce.rx_frames {
            Some(frames) if frames > 1 => Judged::Wrong(
                format!("no interrupt before {frames} packets have come"),
                command(format!("ethtool -C {name} rx-frames 1")),
            ),
            _ => Judged::Fine("no delay".into()),
        };
    }
    let delay = quantity::ns(u64::from(usecs) * 1_000);
    match u64::from(usecs) * 1_000 <= good_ns {
        true => Judged::Fine(format!("at most {delay}")),
        false => Judged::Wrong(format!("interrupts come up to {delay} late"), set),
    }
}

fn show(coalesce: &Coalesce) -> String {
    let number = |name: &str, value: Option<u32>| value.map(|value| format!("{name} {value}"));
    let words = [
        coalesce.adaptive_rx.map(|is_on| format!("adaptive-rx {}", on(is_on))),
        number("rx-usecs", coalesce.rx_usecs),
        number("rx-frames", coalesce.rx_frames),
        number("tx-usecs", coalesce.tx_usecs),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { "nothing that can be set".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(coalesce: Option<Coalesce>, driver: &str, budget_ns: Option<u64>) -> (Status, String) {
        let mut facts = good();
        let mut interface = facts.net.interfaces.value().unwrap()[0].clone();
        interface.coalesce = Reading::known("ethtool eth0 coalesce", coalesce);
        interface.driver = match driver {
            "" => Reading::absent("/sys/class/net/eth0/device/driver"),
            driver => Reading::known("/sys/class/net/eth0/device/driver", driver.into()),
        };
        facts.net.interfaces = Reading::known("/sys/class/net", vec![interface]);
        let finding = CHECK.judge(&facts, &Intent { budget_ns, ..intent() });
        (finding.status, finding.summary)
    }

    fn usecs(usecs: u32) -> Option<Coalesce> {
        let off = Some(false);
        Some(Coalesce { rx_usecs: Some(usecs), adaptive_rx: off, ..Coalesce::default() })
    }

    #[test]
    fn a_fixed_delay_is_held_against_the_budget() {
        assert_eq!(with(usecs(0), "ixgbe", None).0, Good);
        assert_eq!(with(usecs(20), "ixgbe", Some(100_000)).0, Good);
        let found = with(usecs(50), "ixgbe", Some(100_000));
        assert_eq!(found, (Doubtful, "eth0: interrupts come up to 50 µs late".into()));
        assert_eq!(with(usecs(5), "ixgbe", None).0, Doubtful);
    }

    #[test]
    fn what_adapts_has_no_bound_be_it_called_a_number() {
        let adaptive = Coalesce { adaptive_rx: Some(true), ..usecs(0).unwrap() };
        assert_eq!(with(Some(adaptive), "ixgbe", Some(100_000)).0, Doubtful);
        let found = with(usecs(3), "igb", Some(100_000));
        assert_eq!(found.0, Doubtful);
        assert!(found.1.contains("is a mode"), "{}", found.1);
        assert_eq!(with(usecs(4), "igb", Some(100_000)).0, Good);
        assert_eq!(with(usecs(4), "e1000e", Some(100_000)).0, Doubtful);
        assert_eq!(with(usecs(3), "", Some(100_000)).0, Unknown);
    }

    #[test]
    fn packets_that_are_waited_for() {
        let frames = Coalesce { rx_frames: Some(32), ..usecs(0).unwrap() };
        assert_eq!(with(Some(frames), "ixgbe", None).0, Doubtful);
        let frames = Coalesce { rx_frames: Some(1), ..usecs(0).unwrap() };
        assert_eq!(with(Some(frames), "virtio_net", None).0, Good);
    }

    #[test]
    fn drivers_without_it_and_machines_without_interfaces() {
        assert_eq!(with(None, "r8169", None).0, NotApplicable);
        let mut facts = good();
        facts.net.interfaces = Reading::known("/sys/class/net", Vec::new());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.net.interfaces = Reading::absent("/sys/class/net");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
