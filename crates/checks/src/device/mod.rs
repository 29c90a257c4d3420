//! Checks: network, graphics, devices, services.

mod kernel_work;
mod nic;

use rtproof_host::{
    CpuList, Facts, Knob, Reading, cpu_list::CPU_MAX, facts::net::Interface, knob::Place,
    knobs::device as knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::profile::WorkloadKind;
use crate::value::{Absent, Applies, Want, mask};
use crate::{Evidence, Finding, Impact, Intent, Remedy, Section, machine};

pub(crate) const SECTION: Section =
    Section { name: "device", title: "network, graphics, devices, services", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &nic::CHECK,
    &nic::QUEUES,
    &nic::OFFLOAD_FLOW,
    &nic::EEE,
    &nic::WIFI_POWERSAVE,
    &nic::TRANSMIT,
    &nic::NAPI_THREADED,
    &TCP,
    &IPV6,
    &kernel_work::ON_CHIP,
    &kernel_work::NVIDIA,
    &kernel_work::MODULES,
    &kernel_work::LOGIN,
    &kernel_work::SERIAL_CONSOLE,
    &kernel_work::AUDIT,
    &kernel_work::TRACING,
    &kernel_work::RPI_FIRMWARE,
    &TIMERS,
    &MONITORS,
    &DESKTOP,
    &GRO_FLUSH,
    &DEFER_IRQS,
    &RPS,
    &RPS_DEFAULT,
    &RFS,
    &BUSY_POLL,
    &BUSY_READ,
    &NETDEV_BUDGET,
    &NETDEV_BUDGET_USECS,
    &PRINTK,
];

// One question to every hardware network interface.
//
// Which of them serves the real-time application only the user knows, so that nothing here is
// worse than doubtful, and every interface is named.

/// Most interfaces named in a summary.
const INTERFACES_NAMED_MAX: usize = 3;

/// Judgement of one interface.
enum InterfaceAnswer {
    Fine(String),
    /// It may cost latency, and what would change that.
    Wrong(String, Remedy),
    /// Depends on another reading, which has no value.
    Unclear(Reading<String>),
}

/// A question: which reading, how it is shown, what its value means.
struct InterfaceQuestion<T> {
    of: fn(&Interface) -> &Reading<Option<T>>,
    show: fn(&T) -> String,
    /// How it is shown of an interface that does not have it.
    unsupported: &'static str,
    /// Why it does not concern the machine, where no interface has the thing.
    not_applicable: &'static str,
    /// The value of an interface that does not have it; `None`: it is left out.
    otherwise: Option<T>,
}

fn judge_interfaces<T>(
    mut draft: FindingBuilder,
    facts: &Facts,
    question: &InterfaceQuestion<T>,
    look: impl Fn(&Interface, &T) -> InterfaceAnswer,
) -> Finding {
    let reading = &facts.net.interfaces;
    let Some(interfaces) = reading.value() else {
        return draft.unreadable(reading);
    };
    if interfaces.is_empty() {
        draft = draft.read(reading, |_| "no interface with a device behind it".into());
        if let Some(name) = machine::container(facts) {
            return draft
                .read(&facts.virt.container, |_| name.into())
                .unknown(format!("inside a {name} container the host's interfaces are not seen"));
        }
        return draft.not_applicable("no network interface with a device behind it");
    }
    let (mut fine, mut wrong, mut remedies, mut unreadable) = (vec![], vec![], vec![], None);
    for interface in interfaces {
        let asked = (question.of)(interface);
        draft = draft.read(asked, |value| match value {
            Some(value) => (question.show)(value),
            None => question.unsupported.into(),
        });
        let Some(value) = asked.value() else {
            unreadable = unreadable.or_else(|| Some(asked.as_ref().map(|_| String::new())));
            continue;
        };
        if let Some(value) = value.as_ref().or(question.otherwise.as_ref()) {
            match look(interface, value) {
                InterfaceAnswer::Fine(text) => fine.push(format!("{}: {text}", interface.name)),
                InterfaceAnswer::Wrong(text, remedy) => {
                    wrong.push(format!("{}: {text}", interface.name));
                    remedies.push(remedy);
                }
                InterfaceAnswer::Unclear(reading) => unreadable = unreadable.or(Some(reading)),
            }
        }
    }
    if !wrong.is_empty() {
        return draft.remedies(remedies).doubtful(machine::first_few(&wrong, INTERFACES_NAMED_MAX));
    }
    match unreadable {
        Some(reading) => draft.unreadable(&reading),
        None if fine.is_empty() => draft.not_applicable(question.not_applicable),
        None => draft.good(machine::first_few(&fine, INTERFACES_NAMED_MAX)),
    }
}

/// A driver as evidence.
fn driver(interface: &Interface) -> Evidence {
    Evidence::of(&interface.driver, String::clone)
}

/// A command for one interface.
fn command(command: String) -> Remedy {
    Remedy::Command { command }
}

const fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

// Rows: network, consoles.

static GRO_FLUSH: Check = Check {
    title: "polls of network interfaces put off by a timer (gro_flush_timeout)",
    why: "with deferred interrupts a packet waits for this timer, and joined packets are held",
    source: "Documentation/networking/napi.rst, Software IRQ coalescing; net/core/dev.c, \
             napi_complete_done",
    trade_off: Some("sockets that prefer busy polling need it"),
    judge: Judge::value(
        |intent| match intent.profile.kind {
            WorkloadKind::BusyPoll => Want::any(),
            _ => Want::is("0").or_doubtful(),
        },
        Absent::NoSuchThing("no network interface has it"),
    ),
    ..Check::of(&[&knobs::GRO_FLUSH])
};

static DEFER_IRQS: Check = Check {
    title: "polls without a packet before interrupts come back (napi_defer_hard_irqs)",
    why: "until they come back a packet waits for a timer and not for its interrupt",
    source: "Documentation/networking/napi.rst, Software IRQ coalescing; net/core/dev.c, \
             napi_complete_done",
    trade_off: Some("sockets that prefer busy polling need it"),
    judge: Judge::value(
        |intent| match intent.profile.kind {
            WorkloadKind::BusyPoll => Want::any(),
            _ => Want::is("0").or_doubtful(),
        },
        Absent::NoSuchThing("no network interface has it"),
    ),
    ..Check::of(&[&knobs::DEFER_IRQS])
};

static RPS: Check = Check {
    title: "received packets handed to real-time CPUs (RPS)",
    why: "a CPU in the mask is interrupted to handle packets that came in elsewhere",
    source: "Documentation/networking/scaling.rst, RPS; OpenShift node tuning operator, RPS mask",
    judge: Judge::value_where(no_rt_cpu, Absent::WithoutOption("RPS"), has_others),
    ..Check::of(&[&knobs::RPS])
};

static RPS_DEFAULT: Check = Check {
    title: "the same for interfaces that appear later (net.core.rps_default_mask)",
    why: "a container's interface takes this mask over, and hands its packets to these CPUs",
    source: "Documentation/admin-guide/sysctl/net.rst, rps_default_mask; OpenShift node tuning \
             operator, RPS mask",
    judge: Judge::value_where(no_rt_cpu, Absent::WithoutOption("RPS"), has_others),
    ..Check::of(&[&knobs::RPS_DEFAULT])
};

static RFS: Check = Check {
    title: "packets steered to the CPU of their reader (RFS)",
    why: "packets for a real-time task are handled on its own CPU, in soft interrupts",
    source: "Documentation/networking/scaling.rst, RFS",
    trade_off: Some("the data of a packet is then in another CPU's cache"),
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("RPS")),
    ..Check::of(&[&knobs::RFS])
};

static BUSY_POLL: Check = Check {
    title: "spinning in poll and select (net.core.busy_poll)",
    why: "every caller with a socket that polls spins this long before it sleeps, daemons too",
    source: "Documentation/admin-guide/sysctl/net.rst, busy_poll; tuned, profile network-latency \
             (50); OpenShift's real-time profile sets none",
    trade_off: Some("a packet that is waited for takes an interrupt and a wake-up more"),
    judge: Judge::value(busy_poll, Absent::WithoutOption("NET_RX_BUSY_POLL")),
    ..Check::of(&[&knobs::BUSY_POLL])
};

static BUSY_READ: Check = Check {
    title: "spinning in reads of sockets (net.core.busy_read)",
    why: "every socket is then one that spins in reads, those of daemons too",
    source: "Documentation/admin-guide/sysctl/net.rst, busy_read (SO_BUSY_POLL for one socket is \
             preferred); tuned, profile network-latency (50)",
    trade_off: Some("a packet that is waited for takes an interrupt and a wake-up more"),
    judge: Judge::value(busy_poll, Absent::WithoutOption("NET_RX_BUSY_POLL")),
    ..Check::of(&[&knobs::BUSY_READ])
};

static NETDEV_BUDGET: Check = Check {
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

static NETDEV_BUDGET_USECS: Check = Check {
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

static PRINTK: Check = Check {
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
        WorkloadKind::BusyPoll => Want::any(),
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

// Services and timers that wake up at their own times: one finding each, which names them.

/// Most units named in a summary.
const UNITS_NAMED_MAX: usize = 6;

static TIMERS: Check = Check {
    id: "background-timers",
    title: "timers of work in the background: updates, indexes, trimming, firmware",
    why: "they read and write disks in bursts, and asking for firmware makes some machines enter \
          system management mode",
    source: "systemd.timer(5), fwupd-refresh.timer; OpenShift node tuning operator pull request \
             1591",
    trade_off: Some("updates, trimming and scrubbing then have to be run by hand"),
    impact: Impact::Milliseconds,
    knobs: &[&knobs::TIMERS],
    wanted: Wanted::Text("none enabled"),
    judge: Judge::Ask(|draft, facts, _| {
        judge_services(draft, facts, &knobs::TIMERS, "no timer of this kind is enabled")
    }),
    ..Check::NEW
};

static MONITORS: Check = Check {
    id: "monitoring-daemons",
    title: "daemons that measure the machine",
    why: "they ask every CPU for its counters, which interrupts it, and run on any CPU that they \
          may",
    source: "arch/x86/lib/msr-smp.c (rdmsr_on_cpu interrupts the CPU); netdata issue 6741",
    trade_off: Some("nobody then sees how the machine does"),
    knobs: &[&knobs::MONITORS],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(|draft, facts, _| {
        judge_services(draft, facts, &knobs::MONITORS, "no such daemon runs or is enabled")
    }),
    ..Check::NEW
};

static DESKTOP: Check = Check {
    id: "bluetooth-etc",
    title: "services of a desktop: bluetooth, printing, modems, smart cards, discovery",
    why: "they wake up by themselves, and some poll their devices, USB ones above all",
    source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst (timers and soft interrupts of \
             what runs beside); systemd.unit(5)",
    knobs: &[&knobs::DESKTOP_SERVICES],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(|draft, facts, _| {
        let knob = &knobs::DESKTOP_SERVICES;
        judge_services(draft, facts, knob, "no such service runs or is enabled")
    }),
    ..Check::NEW
};

fn judge_services(
    draft: FindingBuilder,
    facts: &Facts,
    knob: &Knob,
    none: &'static str,
) -> Finding {
    let Some(units) = facts.units.value() else {
        return draft.unreadable(&facts.units);
    };
    let names = match knob.place {
        Place::Units(names) => names,
        _ => &[],
    };
    let mut active = Vec::new();
    let mut quiet = 0;
    for (name, unit) in units.iter().filter(|(name, _)| names.contains(&name.as_str())) {
        let is_running = unit.running == Some(true);
        if is_running || (unit.enabled && !unit.masked) {
            let state = if is_running { "running" } else { "enabled" };
            active.push((name.as_str(), state));
        } else {
            quiet += 1;
        }
    }
    let shown: Vec<String> = active.iter().map(|(name, state)| format!("{name} {state}")).collect();
    let draft = draft.read(&facts.units, |_| match shown.as_slice() {
        [] => format!("none of them, {} installed and off", machine::count(quiet, "unit")),
        shown => shown.join(", "),
    });
    if active.is_empty() {
        if let Some(name) = machine::container(facts) {
            return draft
                .read(&facts.virt.container, |_| name.into())
                .unknown(format!("inside a {name} container the host's services are not seen"));
        }
        return draft.good(none);
    }
    let remedies = active
        .iter()
        .map(|(name, _)| Remedy::Unit { unit: (*name).into(), action: "disable --now".into() });
    draft.remedies(remedies).doubtful(machine::first_few(&shown, UNITS_NAMED_MAX))
}

// Settings without a right value: the finding reports them and what they mean.

const NO_BEST: &str = "known: no value is best for all";

static TCP: Check = Check {
    id: "tcp-knobs",
    title: "time stamps and Fast Open of TCP",
    why: "each time stamp costs a little for each segment, and Fast Open saves a round trip: which \
          counts depends on the application",
    source: "Documentation/networking/ip-sysctl.rst, tcp_timestamps and tcp_fastopen; tuned, \
             profile network-latency (tcp_fastopen 3)",
    trade_off: Some("without time stamps a wrapped sequence number is not noticed on fast links"),
    impact: Impact::Information,
    knobs: &[&knobs::TCP_TIMESTAMPS, &knobs::TCP_FASTOPEN],
    wanted: Wanted::Of(|_| NO_BEST.into()),
    judge: Judge::Ask(|draft, facts, _| {
        judge_sysctls(draft, facts, &[&knobs::TCP_TIMESTAMPS, &knobs::TCP_FASTOPEN], "INET", "IPv4")
    }),
    ..Check::NEW
};

static IPV6: Check = Check {
    id: "ipv6",
    title: "whether IPv6 is in use",
    why: "router advertisements and duplicate address detection run timers, also where nobody uses \
          IPv6",
    source: "Documentation/networking/ip-sysctl.rst, disable_ipv6; \
             Documentation/networking/ipv6.rst",
    trade_off: Some("without IPv6 what needs it fails: many daemons listen on [::1]"),
    impact: Impact::Information,
    knobs: &[&knobs::IPV6],
    wanted: Wanted::Of(|_| NO_BEST.into()),
    judge: Judge::Ask(|draft, facts, _| {
        judge_sysctls(draft, facts, &[&knobs::IPV6], "IPV6", "IPv6")
    }),
    ..Check::NEW
};

fn judge_sysctls(
    mut draft: FindingBuilder,
    facts: &Facts,
    knobs: &[&Knob],
    option: &str,
    protocol: &str,
) -> Finding {
    let mut shown = Vec::new();
    for knob in knobs {
        let setting = facts.settings.get(knob.id);
        let Some(value) = setting.and_then(|setting| setting.values.first()) else {
            let pattern = knob.patterns().next().unwrap_or(knob.id);
            let not_asked = Reading::<String>::denied(pattern, "not asked");
            return draft.unreadable(&not_asked);
        };
        let reading = &value.reading;
        draft = draft.read(reading, String::clone);
        let Some(text) = reading.value() else {
            if reading.is_absent() && machine::built_with(facts, option) == Some(false) {
                let why = format!("this kernel is built without {protocol}");
                return draft.evidence([machine::option(facts, option)]).not_applicable(why);
            }
            let lacking = setting.and_then(|setting| setting.missing_from.as_ref());
            return match lacking.filter(|lacking| reading.is_absent() && lacking.value().is_some())
            {
                Some(lacking) => draft
                    .read(lacking, String::clone)
                    .not_applicable(format!("{protocol} is not there: off, or not loaded")),
                None => draft.unreadable(reading),
            };
        };
        let name = reading.path.rsplit('/').next().unwrap_or_default();
        shown.push(format!("{name} {text}"));
    }
    draft.good(shown.join(", "))
}

#[cfg(test)]
mod services_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;
    use rtproof_host::facts::virt::Unit;

    fn with(name: &str, enabled: bool, masked: bool, running: Option<bool>) -> Facts {
        let mut facts = good();
        let file = format!("/usr/lib/systemd/system/{name}");
        let units = [(name.to_owned(), Unit { file, enabled, masked, running })];
        facts.units = Reading::known("/usr/lib/systemd/system", units.into());
        facts
    }

    #[test]
    fn enabled_or_running_is_doubtful_and_masked_is_not() {
        let timer = "fwupd-refresh.timer";
        let finding = TIMERS.judge(&with(timer, true, false, None), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "fwupd-refresh.timer enabled");
        let remedy = Remedy::Unit { unit: timer.into(), action: "disable --now".into() };
        assert_eq!(finding.remedies, [remedy]);
        assert_eq!(TIMERS.judge(&with(timer, true, true, None), &intent()).status, Good);
        assert_eq!(TIMERS.judge(&with(timer, false, false, None), &intent()).status, Good);
        let running = with("netdata.service", false, false, Some(true));
        assert_eq!(MONITORS.judge(&running, &intent()).status, Doubtful);
        assert_eq!(DESKTOP.judge(&running, &intent()).status, Good);
    }

    #[test]
    fn unknown_without_systemd_and_in_a_container() {
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(MONITORS.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(DESKTOP.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod told_tests {
    use super::*;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    #[test]
    fn any_value_is_reported() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::IPV6, "0");
        let finding = IPV6.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Good, "disable_ipv6 0"));
    }

    #[test]
    fn what_is_not_there_or_refused() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::IPV6, Reading::absent(""));
        assert_eq!(IPV6.judge(&facts, &intent()).status, NotApplicable, "not in the configuration");
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(IPV6.judge(&facts, &intent()).status, Unknown);
        let lacking = Reading::known("/proc/sys/net", "holds no ipv6".into());
        facts.settings.get_mut("ipv6").unwrap().missing_from = Some(lacking);
        assert_eq!(IPV6.judge(&facts, &intent()).status, NotApplicable);
        set_setting(&mut facts, &knobs::IPV6, Reading::denied("", "EACCES"));
        assert_eq!(IPV6.judge(&facts, &intent()).status, Unknown);
    }
}
