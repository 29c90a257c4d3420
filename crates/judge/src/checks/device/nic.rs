//! Queues, offloads, flow control and power saving of network interfaces.

use rtproof_host::facts::net::{Channels, Interface, Offloads, Pause};
use rtproof_host::{CpuList, Facts, Reading, knobs::device as knobs};

use super::interfaces::{Question, Seen, command, judge as ask, on};
use super::plain::Plain;
use crate::checks::Check;
use crate::checks::draft::Draft;
use crate::checks::{machine, text};
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

pub(super) static QUEUES: Plain = Plain {
    id: "nic-queues",
    title: "queues of network interfaces, each with an interrupt (ethtool -l)",
    why: "drivers spread the interrupts of their queues over all CPUs, the real-time ones included",
    source: "Documentation/networking/scaling.rst, RSS; OpenShift node tuning operator, \
             net.userLevelNetworking; tuned, plugin net (channels)",
    trade_off: Some("fewer queues, less throughput; changing them gives new interrupt numbers"),
    impact: Impact::Tens,
    when: When::Now,
    knobs: &[&knobs::CHANNELS],
    judge: judge_queues,
};

fn judge_queues(check: &dyn Check, facts: &Facts, intent: &Intent) -> Finding {
    let room = intent.housekeeping.len();
    let draft = Draft::of(check, format!("at most {room}, one for each housekeeping CPU"));
    if machine::is_all_rt(facts, intent) {
        return draft
            .read(&facts.cpus.online, CpuList::to_string)
            .not_applicable("every CPU is real-time: interrupts can go nowhere else");
    }
    if room == 0 {
        return draft.no_rt_cpus(facts);
    }
    let question = Question {
        of: |interface| &interface.channels,
        show: |channels: &Channels| {
            let Channels { rx, tx, combined, combined_max } = channels;
            format!("combined {combined} of {combined_max}, rx {rx}, tx {tx}")
        },
        lacking: "no driver here has queues that can be set",
        otherwise: None,
    };
    ask(draft, facts, &question, |interface, channels| {
        let queues = (channels.combined + channels.rx.max(channels.tx)) as usize;
        let counted = text::count(queues, "queue");
        if queues <= room {
            return Seen::Fine(counted);
        }
        let name = &interface.name;
        let set = match channels.combined {
            0 => format!("ethtool -L {name} rx {room} tx {room}"),
            _ => format!("ethtool -L {name} combined {room}"),
        };
        let cpus = text::count(room, "housekeeping CPU");
        Seen::Wrong(format!("{counted} for {cpus}"), command(set))
    })
}

pub(super) static OFFLOAD_FLOW: Plain = Plain {
    id: "nic-offload-flow",
    title: "packets put together by the card, and pause frames (ethtool -k, -a)",
    why: "the card holds a packet back to put others to it, and a pause frame from the other end \
          stops all sending",
    source: "Documentation/networking/netdev-features.rst; \
             Documentation/networking/segmentation-offloads.rst; IEEE 802.3 annex 31B",
    trade_off: Some("without them: more packets for the CPU, and lost ones where a switch is full"),
    impact: Impact::Hundreds,
    when: When::Now,
    knobs: &[&knobs::OFFLOADS],
    judge: judge_offloads,
};

fn judge_offloads(check: &dyn Check, facts: &Facts, _: &Intent) -> Finding {
    let mut draft = Draft::of(check, "no LRO, no GRO in hardware, no pause frames");
    for interface in facts.net.interfaces.value().into_iter().flatten() {
        draft = draft.read(&interface.offloads, |offloads| match offloads {
            Some(Offloads { gro, gro_hw, lro }) => {
                format!("rx-gro {}, rx-gro-hw {}, rx-lro {}", on(*gro), on(*gro_hw), on(*lro))
            }
            None => "not supported".into(),
        });
    }
    let question = Question {
        of: |interface| &interface.pause,
        show: |pause: &Pause| format!("rx {}, tx {}", on(pause.rx), on(pause.tx)),
        lacking: "no network interface",
        // A driver without pause frames sends none and obeys none.
        otherwise: Some(Pause::default()),
    };
    ask(draft, facts, &question, |interface, pause| {
        let Some(offloads) = interface.offloads.value() else {
            return Seen::Unclear(interface.offloads.as_ref().map(|_| String::new()));
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
            return Seen::Fine("no pause frames, nothing put together by the card".into());
        }
        let what: Vec<&str> = wrong.iter().map(|(_, what, ..)| *what).collect();
        let set: Vec<String> = wrong
            .iter()
            .map(|(_, _, option, set)| format!("ethtool {option} {name} {set}"))
            .collect();
        Seen::Wrong(what.join(", "), command(set.join("; ")))
    })
}

pub(super) static EEE: Plain = Plain {
    id: "nic-eee",
    title: "Energy-Efficient Ethernet (ethtool --show-eee)",
    why: "an idle link sleeps, and the first packet waits until both ends have woken up",
    source: "IEEE 802.3az, table 78-2 and clause 79; Documentation/networking/ethtool-netlink.rst",
    trade_off: None,
    impact: Impact::Tens,
    when: When::Now,
    knobs: &[&knobs::EEE],
    judge: |check, facts, _| {
        let question = Question {
            of: |interface| &interface.eee,
            show: |eee: &rtproof_host::facts::net::Eee| {
                format!("enabled {}, active {}", on(eee.enabled), on(eee.active))
            },
            lacking: "no driver here has Energy-Efficient Ethernet",
            otherwise: None,
        };
        ask(Draft::of(check, "off"), facts, &question, |interface, eee| {
            let set = format!("ethtool --set-eee {} eee off", interface.name);
            match (eee.active, eee.enabled) {
                (true, _) => Seen::Wrong("active: the idle link sleeps".into(), command(set)),
                (_, true) => Seen::Wrong("allowed, not active with this link".into(), command(set)),
                _ => Seen::Fine("off".into()),
            }
        })
    },
};

pub(super) static WIFI_POWERSAVE: Plain = Plain {
    id: "wifi-powersave",
    title: "power saving of wireless interfaces (iw get power_save)",
    why: "the station sleeps between beacons, and what comes in waits at the access point until it \
          asks for it",
    source: "include/uapi/linux/nl80211.h, NL80211_CMD_GET_POWER_SAVE; IEEE 802.11, power \
             management",
    trade_off: None,
    impact: Impact::Milliseconds,
    when: When::Now,
    knobs: &[&knobs::WIFI_POWERSAVE],
    judge: |check, facts, _| {
        let question = Question {
            of: |interface| &interface.power_save,
            show: |is_on: &bool| on(*is_on).into(),
            lacking: "no wireless interface that saves power",
            otherwise: None,
        };
        ask(Draft::of(check, "off"), facts, &question, |interface, is_on| match is_on {
            false => Seen::Fine("off".into()),
            true => Seen::Wrong(
                "on".into(),
                command(format!("iw dev {} set power_save off", interface.name)),
            ),
        })
    },
};

pub(super) static TRANSMIT: Plain = Plain {
    id: "xps-rfs-transmit",
    title: "real-time CPUs that share a transmit queue with others (XPS)",
    why: "a real-time task that sends waits for the lock of the queue while another CPU holds it",
    source: "Documentation/networking/scaling.rst, XPS",
    trade_off: None,
    impact: Impact::Microseconds,
    when: When::Now,
    knobs: &[&knobs::XPS],
    judge: judge_transmit,
};

fn judge_transmit(check: &dyn Check, facts: &Facts, intent: &Intent) -> Finding {
    let draft = Draft::of(check, "no queue for real-time CPUs and others");
    let values = facts.settings.get(knobs::XPS.id).map(|setting| setting.values.as_slice());
    let values = values.unwrap_or_default();
    let draft = draft.saw(text::by_path(values.iter().map(|value| &value.reading)));
    if values.is_empty() {
        return no_transmit_queues(draft, facts);
    }
    let mut shared = Vec::new();
    for value in values {
        let Some(mask) = value.reading.value() else {
            return draft.blind(&value.reading);
        };
        let Ok(mask) = CpuList::parse_mask(mask) else {
            let path = value.reading.path.clone();
            return draft.blind(&Reading::<()>::malformed(path, mask, "a mask of CPUs"));
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
        shared.iter().map(|(of, rt, _)| format!("{of} ({})", text::cpus(rt))).collect();
    let remedy = Remedy::Manual {
        text: "give the real-time CPUs a transmit queue of their own (xps_cpus), where the \
               application sends"
            .into(),
    };
    let names = text::first_few(&names, 4);
    draft.remedies([remedy]).doubtful(format!("shared with other CPUs: {names}"))
}

/// The kernel answers ENOENT for a device of one queue.
fn no_transmit_queues(draft: Draft, facts: &Facts) -> Finding {
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
                .saw([Evidence { path: interfaces.path.clone(), value: counted }])
                .not_applicable("no interface has several transmit queues")
        }
        _ => draft.blind(&Reading::<()>::absent("/sys/class/net/*/queues/tx-*/xps_cpus")),
    }
}

pub(super) static NAPI_THREADED: Plain = Plain {
    id: "napi-threaded",
    title: "threads that receive packets (threaded NAPI)",
    why: "the threads are ordinary ones: packets wait for every real-time task of their CPU, unless \
          somebody gives them a priority",
    source: "Documentation/networking/napi.rst, Threaded NAPI; Documentation/ABI/testing/\
             sysfs-class-net; net/core/dev.c, napi_kthread_create",
    trade_off: Some(
        "without threads packets are handled in soft interrupts, which no priority sets apart",
    ),
    impact: Impact::Hundreds,
    when: When::Now,
    knobs: &[&knobs::NAPI_THREADED],
    judge: judge_napi,
};

/// Longest name of a thread.
const COMM_CHARS_MAX: usize = 15;

fn judge_napi(check: &dyn Check, facts: &Facts, _: &Intent) -> Finding {
    let draft = Draft::of(check, "no threads, or threads with a real-time priority");
    let setting = facts.settings.get(knobs::NAPI_THREADED.id);
    let values = setting.map(|setting| setting.values.as_slice()).unwrap_or_default();
    let draft = draft.saw(text::by_path(values.iter().map(|value| &value.reading)));
    if values.iter().all(|value| value.reading.is_absent()) {
        let release = &facts.kernel.release;
        if machine::since(facts, (5, 12)) == Some(false) {
            let draft = draft.read(release, String::clone);
            return draft.not_applicable("kernels before 5.12 do not have it");
        }
        return draft.blind(&Reading::<()>::absent("/sys/class/net/*/threaded"));
    }
    let mut threaded = Vec::new();
    for value in values {
        match value.reading.value().map(String::as_str) {
            Some("0") => {}
            Some(_) => threaded.push(value),
            None => return draft.blind(&value.reading),
        }
    }
    if threaded.is_empty() {
        return draft.good("no interface has them");
    }
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.blind(&facts.rt_tasks);
    };
    let is_ordinary = |of: &str| {
        let name: String = format!("napi/{of}-").chars().take(COMM_CHARS_MAX).collect();
        !tasks.iter().any(|task| task.kernel_thread && task.comm.starts_with(&name))
    };
    let ordinary: Vec<&str> =
        threaded.iter().map(|value| value.of.as_str()).filter(|of| is_ordinary(of)).collect();
    let draft = draft.read(&facts.rt_tasks, |tasks| text::count(tasks.len(), "real-time task"));
    if ordinary.is_empty() {
        return draft.good("the threads have a real-time priority");
    }
    let name = text::first_few(&ordinary, 4);
    let remedies = ordinary.iter().map(|of| {
        command(format!("for each thread napi/{of}-*: chrt -f -p PRIORITY TID, taskset -p"))
    });
    draft.remedies(remedies).doubtful(format!("{name}: threads without a real-time priority"))
}
