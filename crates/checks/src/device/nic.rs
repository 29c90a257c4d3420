//! Queues, offloads, flow control and power saving of network interfaces.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::net::{Channels, Coalesce, Interface, Offloads, Pause},
    knobs::device as knobs,
};

use super::{InterfaceAnswer, InterfaceQuestion, command, driver, judge_interfaces as ask, on};
use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::{Evidence, Finding, Impact, Intent, Remedy, machine};

pub(super) static QUEUES: Check = Check {
    id: "nic-queues",
    title: "queues of network interfaces, each with an interrupt (ethtool -l)",
    why: "drivers spread the interrupts of their queues over all CPUs, the real-time ones included",
    source: "Documentation/networking/scaling.rst, RSS; OpenShift node tuning operator, \
             net.userLevelNetworking; tuned, plugin net (channels)",
    trade_off: Some("fewer queues, less throughput; changing them gives new interrupt numbers"),
    knobs: &[&knobs::CHANNELS],
    wanted: Wanted::Of(|intent| match intent.housekeeping.len() {
        0 => "one for each CPU that is not real-time".into(),
        room => format!("at most {room}, one for each housekeeping CPU"),
    }),
    judge: Judge::Ask(judge_queues),
    ..Check::NEW
};

fn judge_queues(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let room = intent.housekeeping.len();
    if machine::is_all_rt(facts, intent) {
        return draft
            .read(&facts.cpus.online, CpuList::to_string)
            .not_applicable("every CPU is real-time: interrupts can go nowhere else");
    }
    if room == 0 {
        return draft.no_rt_cpus(facts);
    }
    let question = InterfaceQuestion {
        of: |interface| &interface.channels,
        show: |channels: &Channels| {
            let Channels { rx, tx, combined, combined_max } = channels;
            format!("combined {combined} of {combined_max}, rx {rx}, tx {tx}")
        },
        unsupported: "not supported",
        not_applicable: "no driver here has queues that can be set",
        otherwise: None,
    };
    ask(draft, facts, &question, |interface, channels| {
        let queues = (channels.combined + channels.rx.max(channels.tx)) as usize;
        let counted = machine::count(queues, "queue");
        if queues <= room {
            return InterfaceAnswer::Fine(counted);
        }
        let name = &interface.name;
        let set = match channels.combined {
            0 => format!("ethtool -L {name} rx {room} tx {room}"),
            _ => format!("ethtool -L {name} combined {room}"),
        };
        let cpus = machine::count(room, "housekeeping CPU");
        InterfaceAnswer::Wrong(format!("{counted} for {cpus}"), command(set))
    })
}

pub(super) static OFFLOAD_FLOW: Check = Check {
    id: "nic-offload-flow",
    title: "packets put together by the card, and pause frames (ethtool -k, -a)",
    why: "the card holds a packet back to put others to it, and a pause frame from the other end \
          stops all sending",
    source: "Documentation/networking/netdev-features.rst; \
             Documentation/networking/segmentation-offloads.rst; IEEE 802.3 annex 31B",
    trade_off: Some("without them: more packets for the CPU, and lost ones where a switch is full"),
    impact: Impact::Hundreds,
    knobs: &[&knobs::OFFLOADS],
    wanted: Wanted::Text("no LRO, no GRO in hardware, no pause frames"),
    judge: Judge::Ask(judge_offloads),
    ..Check::NEW
};

fn judge_offloads(mut draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    for interface in facts.net.interfaces.value().into_iter().flatten() {
        draft = draft.read(&interface.offloads, |offloads| match offloads {
            Some(Offloads { gro, gro_hw, lro }) => {
                format!("rx-gro {}, rx-gro-hw {}, rx-lro {}", on(*gro), on(*gro_hw), on(*lro))
            }
            None => "not supported".into(),
        });
    }
    let question = InterfaceQuestion {
        of: |interface| &interface.pause,
        show: |pause: &Pause| format!("rx {}, tx {}", on(pause.rx), on(pause.tx)),
        unsupported: "not supported",
        not_applicable: "no network interface",
        // A driver without pause frames sends none and obeys none.
        otherwise: Some(Pause::default()),
    };
    ask(draft, facts, &question, |interface, pause| {
        let Some(offloads) = interface.offloads.value() else {
            return InterfaceAnswer::Unclear(interface.offloads.as_ref().map(|_| String::new()));
        };
        let offloads = offloads.unwrap_or_default();
        let name = &interface.name;
        let wrong = [
            (offloads.lro, "LRO", "-K", "lro off"),
            (offloads.gro_hw, "GRO in hardware", "-K", "rx-gro-hw off"),
            (pause.rx, "obeys pause frames", "-A", "autoneg off rx off"),
            (pause.tx, "sends pause frames", "-A", "autoneg off tx off"),
        ];
        let wrong: Vec<_> = wrong.into_iter().filter(|(is_on, ..)| *is_on).collect();
        if wrong.is_empty() {
            return InterfaceAnswer::Fine(
                "no pause frames, nothing put together by the card".into(),
            );
        }
        let what: Vec<&str> = wrong.iter().map(|(_, what, ..)| *what).collect();
        let set: Vec<String> = wrong
            .iter()
            .map(|(_, _, option, set)| format!("ethtool {option} {name} {set}"))
            .collect();
        InterfaceAnswer::Wrong(what.join(", "), command(set.join("; ")))
    })
}

pub(super) static EEE: Check = Check {
    id: "nic-eee",
    title: "Energy-Efficient Ethernet (ethtool --show-eee)",
    why: "an idle link sleeps, and the first packet waits until both ends have woken up",
    source: "IEEE 802.3az, table 78-2 and clause 79; Documentation/networking/ethtool-netlink.rst",
    knobs: &[&knobs::EEE],
    wanted: Wanted::Text("off"),
    judge: Judge::Ask(|draft, facts, _| {
        let question = InterfaceQuestion {
            of: |interface| &interface.eee,
            show: |eee: &rtproof_host::facts::net::Eee| {
                format!("enabled {}, active {}", on(eee.enabled), on(eee.active))
            },
            unsupported: "not supported",
            not_applicable: "no driver here has Energy-Efficient Ethernet",
            otherwise: None,
        };
        ask(draft, facts, &question, |interface, eee| {
            let set = format!("ethtool --set-eee {} eee off", interface.name);
            match (eee.active, eee.enabled) {
                (true, _) => {
                    InterfaceAnswer::Wrong("active: the idle link sleeps".into(), command(set))
                }
                (_, true) => InterfaceAnswer::Wrong(
                    "allowed, not active with this link".into(),
                    command(set),
                ),
                _ => InterfaceAnswer::Fine("off".into()),
            }
        })
    }),
    ..Check::NEW
};

pub(super) static WIFI_POWERSAVE: Check = Check {
    id: "wifi-powersave",
    title: "power saving of wireless interfaces (iw get power_save)",
    why: "the station sleeps between beacons, and what comes in waits at the access point until it \
          asks for it",
    source: "include/uapi/linux/nl80211.h, NL80211_CMD_GET_POWER_SAVE; IEEE 802.11, power \
             management",
    impact: Impact::Milliseconds,
    knobs: &[&knobs::WIFI_POWERSAVE],
    wanted: Wanted::Text("off"),
    judge: Judge::Ask(|draft, facts, _| {
        let question = InterfaceQuestion {
            of: |interface| &interface.power_save,
            show: |is_on: &bool| on(*is_on).into(),
            unsupported: "wired, or not supported",
            not_applicable: "no wireless interface that saves power",
            otherwise: None,
        };
        ask(draft, facts, &question, |interface, is_on| match is_on {
            false => InterfaceAnswer::Fine("off".into()),
            true => InterfaceAnswer::Wrong(
                "on".into(),
                command(format!("iw dev {} set power_save off", interface.name)),
            ),
        })
    }),
    ..Check::NEW
};

pub(super) static TRANSMIT: Check = Check {
    id: "xps-rfs-transmit",
    title: "real-time CPUs that share a transmit queue with others (XPS)",
    why: "a real-time task that sends waits for the lock of the queue while another CPU holds it",
    source: "Documentation/networking/scaling.rst, XPS",
    impact: Impact::Microseconds,
    knobs: &[&knobs::XPS],
    wanted: Wanted::Text("no queue for real-time CPUs and others"),
    judge: Judge::Ask(judge_transmit),
    ..Check::NEW
};

fn judge_transmit(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let values = facts.settings.get(knobs::XPS.id).map(|setting| setting.values.as_slice());
    let values = values.unwrap_or_default();
    let draft = draft.evidence(machine::by_path(values.iter().map(|value| &value.reading)));
    if values.is_empty() {
        return no_transmit_queues(draft, facts);
    }
    let mut shared = Vec::new();
    for value in values {
        let Some(mask) = value.reading.value() else {
            return draft.unreadable(&value.reading);
        };
        let Ok(mask) = CpuList::parse_mask(mask) else {
            let path = value.reading.path.clone();
            return draft.unreadable(&Reading::<()>::malformed(path, mask, "a mask of CPUs"));
        };
        let rt = mask.intersection(&intent.rt_cpus);
        if !rt.is_empty() && !mask.intersection(&intent.housekeeping).is_empty() {
            shared.push((value.of.clone(), rt, value.reading.path.clone()));
        }
    }
    if shared.is_empty() {
        return draft.good("no transmit queue is set for real-time CPUs and others");
    }
    let names: Vec<String> =
        shared.iter().map(|(of, rt, _)| format!("{of} ({})", machine::cpus(rt))).collect();
    let remedy = Remedy::Manual {
        text: "give the real-time CPUs a transmit queue of their own (xps_cpus), where the \
               application sends"
            .into(),
    };
    let names = machine::first_few(&names, 4);
    draft.remedies([remedy]).doubtful(format!("shared with other CPUs: {names}"))
}

/// The kernel answers ENOENT for a device of one queue.
fn no_transmit_queues(draft: FindingBuilder, facts: &Facts) -> Finding {
    let interfaces = &facts.net.interfaces;
    let queues = |interface: &Interface| {
        let channels = interface.channels.value()?.unwrap_or_default();
        Some(channels.combined.max(channels.tx))
    };
    let all: Option<Vec<u32>> = interfaces.value().and_then(|all| all.iter().map(queues).collect());
    match all {
        Some(queues) if queues.iter().all(|queues| *queues <= 1) => {
            let counted = format!("{} interfaces, none with several queues", queues.len());
            draft
                .evidence([Evidence { path: interfaces.path.clone(), value: counted }])
                .not_applicable("no interface has several transmit queues")
        }
        _ => draft.unreadable(&Reading::<()>::absent("/sys/class/net/*/queues/tx-*/xps_cpus")),
    }
}

pub(super) static NAPI_THREADED: Check = Check {
    id: "napi-threaded",
    title: "threads that receive packets (threaded NAPI)",
    why: "the threads are ordinary ones: packets wait for every real-time task of their CPU, \
          unless somebody gives them a priority",
    source: "Documentation/networking/napi.rst, Threaded NAPI; \
             Documentation/ABI/testing/sysfs-class-net; net/core/dev.c, napi_kthread_create",
    trade_off: Some(
        "without threads packets are handled in soft interrupts, which no priority sets apart",
    ),
    impact: Impact::Hundreds,
    knobs: &[&knobs::NAPI_THREADED],
    wanted: Wanted::Text("no threads, or threads with a real-time priority"),
    judge: Judge::Ask(judge_napi),
    ..Check::NEW
};

/// Longest name of a thread.
const COMM_CHARS_MAX: usize = 15;

fn judge_napi(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let setting = facts.settings.get(knobs::NAPI_THREADED.id);
    let values = setting.map(|setting| setting.values.as_slice()).unwrap_or_default();
    let draft = draft.evidence(machine::by_path(values.iter().map(|value| &value.reading)));
    if values.iter().all(|value| value.reading.is_absent()) {
        let release = &facts.kernel.release;
        if machine::since(facts, (5, 12)) == Some(false) {
            let draft = draft.read(release, String::clone);
            return draft.not_applicable("kernels before 5.12 do not have it");
        }
        return draft.unreadable(&Reading::<()>::absent("/sys/class/net/*/threaded"));
    }
    let mut threaded = Vec::new();
    for value in values {
        match value.reading.value().map(String::as_str) {
            Some("0") => {}
            Some(_) => threaded.push(value),
            None => return draft.unreadable(&value.reading),
        }
    }
    if threaded.is_empty() {
        return draft.good("no interface has them");
    }
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.unreadable(&facts.rt_tasks);
    };
    let is_ordinary = |of: &str| {
        let name: String = format!("napi/{of}-").chars().take(COMM_CHARS_MAX).collect();
        !tasks.iter().any(|task| task.kernel_thread && task.comm.starts_with(&name))
    };
    let ordinary: Vec<&str> =
        threaded.iter().map(|value| value.of.as_str()).filter(|of| is_ordinary(of)).collect();
    let draft = draft.read(&facts.rt_tasks, |tasks| machine::count(tasks.len(), "real-time task"));
    if ordinary.is_empty() {
        return draft.good("the threads have a real-time priority");
    }
    let name = machine::first_few(&ordinary, 4);
    let remedies = ordinary.iter().map(|of| {
        let text = format!("for each thread napi/{of}-*: chrt -f -p PRIORITY TID, taskset -p");
        Remedy::Manual { text }
    });
    draft.remedies(remedies).doubtful(format!("{name}: threads without a real-time priority"))
}

// How long does an interface delay its interrupt?
//
// A fixed delay is part of the latency, so that it is held against the budget like the exit
// latency of an idle state: up to a quarter of it is good, and without a budget none. An adaptive
// delay has no bound that can be read. Some Intel drivers give small numbers that are no times but
// modes: `rx-usecs 3` of igb is an adaptive mode, and its default.

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
        ns => format!("at most {}, a quarter of the budget, and not adaptive", crate::ns(ns)),
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

fn judge(mut draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let good_ns = good_ns(intent);
    // What a small number means depends on the driver.
    for interface in facts.net.interfaces.value().into_iter().flatten() {
        let usecs = interface.coalesce.value().and_then(|c| c.as_ref()?.rx_usecs);
        if usecs.is_some_and(|usecs| (1..=MODES_MAX).contains(&usecs)) {
            draft = draft.evidence([driver(interface)]);
        }
    }
    let question = InterfaceQuestion {
        of: |interface| &interface.coalesce,
        show,
        unsupported: "not supported",
        not_applicable: "no driver here can put interrupts off",
        otherwise: None,
    };
    ask(draft, facts, &question, |interface, coalesce| {
        judge_interface(interface, coalesce, good_ns)
    })
}

fn judge_interface(interface: &Interface, coalesce: &Coalesce, good_ns: u64) -> InterfaceAnswer {
    let name = &interface.name;
    if coalesce.adaptive_rx == Some(true) {
        let set = format!("ethtool -C {name} adaptive-rx off rx-usecs 0");
        return InterfaceAnswer::Wrong(
            "the driver adapts the delay to the traffic".into(),
            command(set),
        );
    }
    let Some(usecs) = coalesce.rx_usecs else {
        return InterfaceAnswer::Fine("no delay that can be set".into());
    };
    let set = command(format!("ethtool -C {name} rx-usecs 0"));
    if (1..=MODES_MAX).contains(&usecs) {
        let Some(driver) = interface.driver.value() else {
            return InterfaceAnswer::Unclear(interface.driver.clone());
        };
        let is_mode = |(known, most): &&(&str, u32)| known == driver && usecs <= *most;
        if MODES.iter().any(|mode| is_mode(&mode)) {
            return InterfaceAnswer::Wrong(
                format!("rx-usecs {usecs} of {driver} is a mode that adapts the delay"),
                set,
            );
        }
    }
    if usecs == 0 {
        return match coalesce.rx_frames {
            Some(frames) if frames > 1 => InterfaceAnswer::Wrong(
                format!("no interrupt before {frames} packets have come"),
                command(format!("ethtool -C {name} rx-frames 1")),
            ),
            _ => InterfaceAnswer::Fine("no delay".into()),
        };
    }
    let delay = crate::ns(u64::from(usecs) * 1_000);
    match u64::from(usecs) * 1_000 <= good_ns {
        true => InterfaceAnswer::Fine(format!("at most {delay}")),
        false => InterfaceAnswer::Wrong(format!("interrupts come up to {delay} late"), set),
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
    use crate::testing::{cpus, fill_setting, good, intent, set_setting, task};
    use rtproof_host::facts::net::Eee;

    /// The good machine with one interface, changed.
    fn with(change: impl FnOnce(&mut Interface)) -> Facts {
        let mut facts = good();
        let mut interface = facts.net.interfaces.value().unwrap()[0].clone();
        change(&mut interface);
        facts.net.interfaces = Reading::known("/sys/class/net", vec![interface]);
        facts
    }

    fn denied<T>() -> Reading<T> {
        Reading::denied("ethtool eth0 x", "EPERM")
    }

    #[test]
    fn more_queues_than_housekeeping_cpus() {
        let queues = |channels: Option<Channels>| {
            let facts = with(|i| i.channels = Reading::known("ethtool eth0 channels", channels));
            QUEUES.judge(&facts, &intent())
        };
        let of = |combined, rx| Some(Channels { combined, rx, tx: rx, ..Channels::default() });
        let finding = queues(of(4, 0));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "eth0: 4 queues for 2 housekeeping CPUs");
        assert_eq!(finding.remedies, [command("ethtool -L eth0 combined 2".into())]);
        assert_eq!(queues(of(0, 3)).remedies, [command("ethtool -L eth0 rx 2 tx 2".into())]);
        assert_eq!((queues(of(2, 0)).status, queues(None).status), (Good, NotApplicable));
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        let finding = QUEUES.judge(&good(), &all);
        assert_eq!(finding.status, NotApplicable);
        assert!(!finding.wanted.contains("housekeeping"), "{}", finding.wanted);
        let facts = with(|i| i.channels = denied());
        assert_eq!(QUEUES.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn offloads_and_pause_frames_need_each_other_s_answer() {
        let judge = |pause: Reading<Option<Pause>>, offloads: Reading<Option<Offloads>>| {
            let facts = with(|i| (i.pause, i.offloads) = (pause, offloads));
            OFFLOAD_FLOW.judge(&facts, &intent())
        };
        let pause = |pause| Reading::known("ethtool eth0 pause", pause);
        let offloads = |offloads| Reading::known("ethtool eth0 features", Some(offloads));
        let (none, some) = (Offloads::default(), Offloads { lro: true, ..Offloads::default() });
        let rx = Some(Pause { rx: true, ..Pause::default() });
        assert_eq!(judge(pause(None), offloads(none)).status, Good);
        let finding = judge(pause(rx), offloads(some));
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Doubtful, "eth0: LRO, obeys pause frames")
        );
        let set = "ethtool -K eth0 lro off; ethtool -A eth0 autoneg off rx off";
        assert_eq!(finding.remedies, [command(set.into())]);
        assert_eq!(judge(pause(rx), denied()).status, Unknown);
        assert_eq!(judge(denied(), offloads(none)).status, Unknown);
    }

    #[test]
    fn links_and_stations_that_sleep() {
        let eee = |eee: Option<Eee>| {
            let facts = with(|i| i.eee = Reading::known("ethtool eth0 eee", eee));
            EEE.judge(&facts, &intent()).status
        };
        assert_eq!(eee(Some(Eee { enabled: true, active: false })), Doubtful);
        assert_eq!(eee(Some(Eee { enabled: true, active: true })), Doubtful);
        assert_eq!((eee(Some(Eee::default())), eee(None)), (Good, NotApplicable));
        let wifi =
            |reading| WIFI_POWERSAVE.judge(&with(|i| i.power_save = reading), &intent()).status;
        let path = "nl80211 wlan0 power_save";
        assert_eq!(wifi(Reading::known(path, Some(true))), Doubtful);
        assert_eq!(wifi(Reading::known(path, Some(false))), Good);
        assert_eq!((wifi(Reading::known(path, None)), wifi(denied())), (NotApplicable, Unknown));
    }

    #[test]
    fn transmit_queues_of_both_kinds_of_cpu() {
        let judge = |mask: &str| -> Status {
            let mut facts = good();
            fill_setting(&mut facts, &knobs::XPS, mask);
            TRANSMIT.judge(&facts, &intent()).status
        };
        assert_eq!((judge("3"), judge("c"), judge("0")), (Good, Good, Good));
        assert_eq!((judge("6"), judge("x")), (Doubtful, Unknown));
        let mut facts = with(|i| i.channels = Reading::known("c", None));
        facts.settings.get_mut(knobs::XPS.id).unwrap().values.clear();
        assert_eq!(TRANSMIT.judge(&facts, &intent()).status, NotApplicable);
        facts.net.interfaces = Reading::absent("/sys/class/net");
        assert_eq!(TRANSMIT.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn threads_that_poll_want_a_priority() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::NAPI_THREADED, "1");
        assert_eq!(NAPI_THREADED.judge(&facts, &intent()).status, Doubtful);
        let mut tasks = facts.rt_tasks.value().unwrap().clone();
        tasks.push(task(300, "napi/x-8193", 50, &[0], true));
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", tasks);
        assert_eq!(NAPI_THREADED.judge(&facts, &intent()).status, Good);
        facts.rt_tasks = denied();
        assert_eq!(NAPI_THREADED.judge(&facts, &intent()).status, Unknown);
        set_setting(&mut facts, &knobs::NAPI_THREADED, Reading::absent(""));
        assert_eq!(NAPI_THREADED.judge(&facts, &intent()).status, Unknown);
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (5, 10));
        assert_eq!(NAPI_THREADED.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod nic_coalescing_tests {
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
