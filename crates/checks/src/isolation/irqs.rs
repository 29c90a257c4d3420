//! Which interrupts may reach the real-time CPUs, and what places them.

use rtproof_host::{
    CpuList, Facts, Reading,
    arch::Family,
    facts::{
        irq::{self, Irq},
        isolation::{CounterRow, DeviceCount},
    },
    knobs::cpu::{self as knobs, IRQ_CPUS, IRQ_DEFAULT},
    reading::ReadingState,
};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{CmdlineValue, built_with, container, is_all_rt, option};
use crate::value::mask;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, known, machine};

// Do device interrupts go to the real-time CPUs?
//
// Judged by the effective affinity. The requested affinity may differ: a chip may move an
// interrupt only when it next fires, managed interrupts of multi-queue devices cannot be moved at
// all, and a mask of all CPUs still ends on one. Per-CPU interrupts (timers) have no effective
// affinity and are not devices; they are left out. The default affinity counts too: the next
// driver that asks for an interrupt gets it.

/// Most interrupts whose counts are shown.
const COUNTS_SHOWN_MAX: usize = 5;

pub(super) static IRQ_AFFINITY: Check = Check {
    id: "irq-affinity",
    title: "device interrupts on the real-time CPUs",
    why: "an interrupt stops the real-time task for its handler, and wakes threads on the same CPU",
    source: "Documentation/core-api/irq/irq-affinity.rst; \
             Documentation/admin-guide/cpu-isolation.rst; kernel/irq/proc.c \
             (effective_affinity_list)",
    wanted: Wanted::Text("off the real-time CPUs"),
    judge: Judge::Ask(judge_irq_affinity),
    ..Check::NEW
};

fn judge_irq_affinity(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let listed = &facts.irqs.irqs;
    let draft = draft
        .read(listed, |irqs| format!("{} with a handler", machine::count(irqs.len(), "interrupt")));
    let Some(irqs) = listed.value() else {
        return draft.unreadable(listed);
    };
    if irqs.is_empty() {
        return draft.unknown("no interrupt is listed: /proc/interrupts may be hidden");
    }
    if is_all_rt(facts, intent) {
        return draft.read(&facts.cpus.online, CpuList::to_string).not_applicable(format!(
            "every CPU is a real-time CPU: {} have nowhere else to go",
            machine::count(irqs.len(), "interrupt")
        ));
    }
    let views = Views(irqs.iter().map(|irq| (irq, view(irq, &intent.rt_cpus))).collect());
    let on = views.of(&[View::On, View::NotMoved]);
    if !on.is_empty() {
        let not_moved = views.of(&[View::NotMoved]).len();
        let silent = views.of(&[View::Silent]).len();
        return judge_on(draft, facts, intent, &on, (not_moved, silent));
    }
    judge_off(draft, facts, intent, &views)
}

/// Every interrupt with its relation to the real-time CPUs.
struct Views<'a>(Vec<(&'a Irq, View)>);

impl<'a> Views<'a> {
    fn of(&self, wanted: &[View]) -> Vec<&'a Irq> {
        self.0.iter().filter(|(_, view)| wanted.contains(view)).map(|(irq, _)| *irq).collect()
    }
}

/// Relation of an interrupt to the real-time CPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Goes there and has fired.
    On,
    /// Goes there although it was asked to go elsewhere, and has fired.
    NotMoved,
    /// Goes there, but has never fired.
    Silent,
    /// May go there: no effective affinity on this kernel, and the one asked for allows it.
    Maybe,
    /// Does not go there.
    Off,
    Unreadable,
}

fn view(irq: &Irq, rt_cpus: &CpuList) -> View {
    let touches = |cpus: &CpuList| !cpus.intersection(rt_cpus).is_empty();
    let requested = irq.requested.value().map(touches);
    match (irq.effective.value().map(touches), requested) {
        (Some(true), _) if irq.count == 0 => View::Silent,
        (Some(true), Some(false)) => View::NotMoved,
        (Some(true), _) => View::On,
        (Some(false), _) | (None, Some(false)) => View::Off,
        (None, Some(true)) if irq.effective.is_absent() && irq.count == 0 => View::Off,
        (None, Some(true)) if irq.effective.is_absent() => View::Maybe,
        (None, _) => View::Unreadable,
    }
}

fn names(irqs: &[&Irq]) -> Vec<String> {
    let name = |irq: &&Irq| {
        let actions = if irq.actions.is_empty() { &irq.chip } else { &irq.actions };
        format!("{} ({actions})", irq.number)
    };
    irqs.iter().map(name).collect()
}

fn effective(irqs: &[&Irq]) -> Vec<Evidence> {
    let known = irqs.iter().filter(|irq| irq.effective.value().is_some_and(|on| !on.is_empty()));
    machine::grouped(known.map(|irq| (irq.number, &irq.effective)), CpuList::to_string)
}

/// Requested CPUs where the effective ones are not known.
fn requested(irqs: &[&Irq]) -> Vec<Evidence> {
    let only = irqs.iter().filter(|irq| irq.effective.value().is_none());
    machine::grouped(only.map(|irq| (irq.number, &irq.requested)), CpuList::to_string)
}

fn judge_on(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
    on: &[&Irq],
    (not_moved, silent): (usize, usize),
) -> Finding {
    let mut by_count = on.to_vec();
    by_count.sort_by_key(|irq| std::cmp::Reverse(irq.count));
    let names = names(&by_count);
    let hit = on.iter().filter_map(|irq| irq.effective.value());
    let cpus = hit.fold(CpuList::default(), |all, on| all.union(on)).intersection(&intent.rt_cpus);
    let mut summary = format!(
        "{} on {}: {}",
        machine::count(on.len(), "interrupt"),
        machine::cpus(&cpus),
        machine::first_few(&names, 3)
    );
    if not_moved > 0 {
        summary.push_str(&format!("; {not_moved} of them asked elsewhere and not moved"));
    }
    let unhandled = unhandled(facts, intent);
    if silent > 0 {
        summary.push_str(&format!("; {silent} more that never fired"));
    }
    if unhandled > 0 {
        summary.push_str(&format!("; {unhandled} more without a handler"));
    }
    if silent + unhandled > 0 {
        summary.push_str(&format!(", {} in all", on.len() + silent + unhandled));
    }
    let path = &facts.irqs.irqs.path;
    let most = by_count.iter().zip(&names).take(COUNTS_SHOWN_MAX).map(|(irq, name)| Evidence {
        path: path.clone(),
        value: format!("{name}: {} since boot", irq.count),
    });
    let most: Vec<Evidence> = most.collect();
    draft
        .evidence(most)
        .evidence(effective(on))
        .remedies(remedies_irq_affinity(facts, intent, on))
        .bad(summary)
}

/// Lines without a handler that would go to the real-time CPUs.
fn unhandled(facts: &Facts, intent: &Intent) -> usize {
    let lines = facts.irqs.unhandled.value().into_iter().flatten();
    lines.filter(|(_, cpus)| !cpus.intersection(&intent.rt_cpus).is_empty()).count()
}

fn judge_off(draft: FindingBuilder, facts: &Facts, intent: &Intent, views: &Views<'_>) -> Finding {
    let unreadable = views.of(&[View::Unreadable]);
    if let Some(first) = unreadable.first() {
        let unread = unreadable.iter().map(|irq| (irq.number, &irq.effective));
        return draft
            .evidence(machine::grouped(unread, CpuList::to_string))
            .unreadable(&first.effective);
    }
    let default = &facts.irqs.default_affinity;
    let draft = draft
        .evidence(effective(&views.of(&[View::Off, View::Silent])))
        .evidence(requested(&views.of(&[View::Off, View::Maybe])))
        .read(default, CpuList::to_string);
    let Some(new) = default.value() else {
        return draft.unreadable(default);
    };
    for (view, what) in [
        (View::Maybe, "may go to the real-time CPUs, this kernel does not tell"),
        (View::Silent, "would go to the real-time CPUs but never fired"),
    ] {
        let irqs = views.of(&[view]);
        if !irqs.is_empty() {
            let number = machine::count(irqs.len(), "interrupt");
            return draft
                .remedies(remedies_irq_affinity(facts, intent, &irqs))
                .doubtful(format!("{number} {what}: {}", machine::first_few(&names(&irqs), 3)));
        }
    }
    let overlap = new.intersection(&intent.rt_cpus);
    if !overlap.is_empty() {
        let overlap = machine::cpus(&overlap);
        return draft
            .remedies(irqaffinity(facts, intent))
            .doubtful(format!("new interrupts may go to {overlap}: default affinity {new}"));
    }
    draft.good(format!("no device interrupt on {}", machine::cpus(&intent.rt_cpus)))
}

fn remedies_irq_affinity(facts: &Facts, intent: &Intent, irqs: &[&Irq]) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if !intent.housekeeping.is_empty() {
        let paths = irqs.iter().map(|irq| irq.requested.path.clone()).collect();
        remedies.push(Remedy::set(&IRQ_CPUS, paths, intent.housekeeping.to_string()));
    }
    remedies.extend(irqaffinity(facts, intent));
    // The list replaces the one of before: CPUs that are isolated now stay in it.
    let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
    remedies.push(Remedy::Manual {
        text: format!(
            "an interrupt that refuses (managed, of a multi-queue device): {}",
            known::of_managed(facts, &intent.rt_cpus.union(&isolated))
        ),
    });
    remedies
}

/// The boot parameter for the default affinity, unless it is there.
fn irqaffinity(facts: &Facts, intent: &Intent) -> Option<Remedy> {
    let parameter = intent.housekeeping.to_string();
    let line = facts.kernel.cmdline.value();
    let is_there = line.and_then(|l| l.last("irqaffinity")) == Some(Some(parameter.as_str()));
    (!parameter.is_empty() && !is_there)
        .then(|| Remedy::Boot { parameter: format!("irqaffinity={parameter}") })
}

pub(super) static IRQ_SHARED: Check = Check {
    id: "irq-shared",
    title: "interrupts of the real-time CPUs that several drivers share",
    why: "each interrupt runs the handlers of all the drivers on its line, one after the other",
    source: "kernel/irq/handle.c (__handle_irq_event_percpu); Documentation/PCI/msi-howto.rst; \
             rtcqs",
    when: When::Firmware,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("one driver for each"),
    judge: Judge::Ask(judge_irq_shared),
    ..Check::NEW
};

const OTHER_SLOT: &str =
    "give the device an interrupt of its own: MSI in its driver, or another slot";

const WIRED: &str = "keep the line off the real-time CPUs (irq-affinity): the board wires these \
                     devices to one; another controller, or the device tree where it leaves the \
                     choice, parts them";

fn judge_irq_shared(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let listed = &facts.irqs.irqs;
    let draft = draft
        .read(listed, |irqs| format!("{} with a handler", machine::count(irqs.len(), "interrupt")));
    let Some(irqs) = listed.value() else {
        return draft.unreadable(listed);
    };
    if irqs.is_empty() {
        return draft.unknown("no interrupt is listed: /proc/interrupts may be hidden");
    }
    // Handlers of one interrupt are joined by ", " (kernel/irq/proc.c, show_interrupts). A line
    // that never fired has run none.
    let shared: Vec<&Irq> =
        irqs.iter().filter(|irq| irq.actions.contains(", ") && irq.count > 0).collect();
    let touches = |irq: &&&Irq| match irq.effective.value().or_else(|| irq.requested.value()) {
        Some(cpus) => !cpus.intersection(&intent.rt_cpus).is_empty(),
        None => true,
    };
    let on: Vec<&Irq> = shared.iter().filter(touches).copied().collect();
    if on.is_empty() {
        let draft = draft.evidence(machine::grouped(
            shared.iter().map(|irq| (irq.number, &irq.effective)),
            CpuList::to_string,
        ));
        return draft.good(match shared.len() {
            0 => "no interrupt is shared".into(),
            many => {
                format!("{} shared, none on a real-time CPU", machine::count(many, "interrupt"))
            }
        });
    }
    let names: Vec<String> =
        on.iter().map(|irq| format!("{} ({})", irq.number, irq.actions)).collect();
    // An IO-APIC, or a line that the firmware numbers for PCI, is wired to slots; all others are
    // lines of the board.
    let is_of_slots = |irq: &&Irq| irq.chip.contains("IO-APIC") || irq.chip.contains("PCI");
    let text = match on.iter().all(is_of_slots) {
        true => OTHER_SLOT,
        false => WIRED,
    };
    let text = text.into();
    draft
        .evidence(machine::grouped(
            on.iter().map(|irq| (irq.number, &irq.effective)),
            CpuList::to_string,
        ))
        .remedies([Remedy::Manual { text }])
        .doubtful(format!("shared on real-time CPUs: {}", machine::first_few(&names, 3)))
}

// How often have devices interrupted the real-time CPUs?
//
// Where an interrupt goes now is `irq-affinity`'s question; this counts what came since boot, so
// it also sees what was moved meanwhile. A mean since boot hides bursts: what comes
// during a run, the run counts.

/// Interrupts a second that are worth a look: what was left of the tick on a tickless CPU before
/// 4.17, which was thought little.
const REPORTED_RATE: f64 = 1.0;

pub(super) static IRQ_STORM: Check = Check {
    id: "irq-storm",
    title: "rate of device interrupts on the real-time CPUs since boot",
    why: "each interrupt stops the real-time task for its handler and takes its lines out of the \
          cache",
    source: "Documentation/filesystems/proc.rst, /proc/interrupts; Documentation/timers/no_hz.rst",
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("fewer than one a second on each"),
    judge: Judge::Ask(judge_irq_storm),
    ..Check::NEW
};

fn judge_irq_storm(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, counters, uptime_ms) = match super::counters(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let of_rt: Vec<&DeviceCount> =
        counters.devices.iter().filter(|device| intent.rt_cpus.contains(device.cpu)).collect();
    if of_rt.len() < intent.rt_cpus.len() {
        return draft.unknown("a real-time CPU has no column in /proc/interrupts");
    }
    let rate = |device: &DeviceCount| super::per_second(device.count, uptime_ms);
    let mut often: Vec<&DeviceCount> =
        of_rt.iter().filter(|device| rate(device) >= REPORTED_RATE).copied().collect();
    often.sort_by_key(|device| std::cmp::Reverse(device.count));
    let Some(worst) = often.first() else {
        let most = of_rt.iter().map(|device| rate(device)).fold(0.0, f64::max);
        return draft.good(format!("at most {} on a real-time CPU", super::rate(most)));
    };
    let name = |number: u32| {
        let irqs = facts.irqs.irqs.value().into_iter().flatten();
        let mut named = irqs.filter(|irq| irq.number == number);
        named.next().map_or_else(|| number.to_string(), |irq| format!("{number} ({})", irq.actions))
    };
    let most = worst.most.map_or_else(String::new, |(number, count)| {
        let rate = super::rate(super::per_second(count, uptime_ms));
        format!(", most of all interrupt {} with {rate}", name(number))
    });
    let path = facts.isolation.counters.path.clone();
    let show = |device: &&DeviceCount| Evidence {
        path: path.clone(),
        value: format!("CPU {}: {} since boot", device.cpu, device.count),
    };
    let text = "move the interrupt (irq-affinity), or take its device out of use".into();
    draft.evidence(often.iter().take(16).map(show)).remedies([Remedy::Manual { text }]).doubtful(
        format!(
            "{} since boot on CPU {}{most}; {} in all",
            super::rate(rate(worst)),
            worst.cpu,
            machine::count(often.len(), "such CPU")
        ),
    )
}

// Where does an interrupt go that was not placed?

pub(super) static IRQAFFINITY_BOOT: Check = Check {
    id: "irqaffinity-boot",
    title: "CPUs for interrupts that nobody has placed (irqaffinity)",
    why: "a driver that asks for an interrupt later, a card that is plugged in or an interface \
          that comes up, gets it on these CPUs",
    source: "Documentation/core-api/irq/irq-affinity.rst; kernel/irq/irqdesc.c \
             (irq_affinity_setup); seapath/ansible issue 865",
    trade_off: Some("an interrupt that a chip moves only when it fires may stay for hours"),
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", machine::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge_irqaffinity_boot),
    ..Check::NEW
};

fn judge_irqaffinity_boot(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let default = &facts.irqs.default_affinity;
    let draft = draft.read(default, CpuList::to_string);
    let Some(cpus) = default.value() else {
        return draft.unreadable(default);
    };
    let on = cpus.intersection(&intent.rt_cpus);
    if on.is_empty() {
        return draft.good(format!("new interrupts go to {}", machine::cpus(cpus)));
    }
    let draft = draft.remedies([
        Remedy::set(&IRQ_DEFAULT, vec![default.path.clone()], mask(&intent.housekeeping)),
        Remedy::Boot { parameter: format!("irqaffinity={}", intent.housekeeping) },
    ]);
    let line = facts.kernel.cmdline.value();
    let given = line.map(|line| CmdlineValue::of(facts, line, "irqaffinity"));
    let Some(parameter) = given.as_ref().and_then(CmdlineValue::once) else {
        return draft.doubtful(format!("new interrupts may go to {}", machine::cpus(&on)));
    };
    let draft =
        draft.evidence([Evidence::of(&facts.kernel.cmdline, |_| parameter.written.clone())]);
    match parameter.cpus() {
        Some(asked_cpus) if asked_cpus.intersection(&intent.rt_cpus).is_empty() => {
            draft.bad(format!(
                "{}, but the default affinity is {cpus}: it was changed since",
                parameter.written
            ))
        }
        Some(_) => {
            draft.bad(format!("{} covers the real-time {}", parameter.written, machine::cpus(&on)))
        }
        None => draft.bad(format!(
            "{} is refused by this kernel: new interrupts may go to {}",
            parameter.written,
            machine::cpus(&on)
        )),
    }
}

// Does irqbalance rewrite what was set?
//
// Every ten seconds it spreads interrupts over the CPUs that no option excludes.
// Telling it some CPUs turns off its own detection of isolated CPUs, so a list that does not name
// every real-time CPU is worse than none.

pub(super) static IRQBALANCE: Check = Check {
    id: "irqbalance",
    title: "irqbalance moving interrupts onto the real-time CPUs",
    why: "irqbalance rewrites interrupt affinities every ten seconds: what was set by hand is gone",
    source: "irqbalance(1), IRQBALANCE_BANNED_CPULIST; github.com/Irqbalance/irqbalance pull \
             request 90; Flatscher, \"Real-time Optimizations\"",
    judge: Judge::Ask(judge_irqbalance),
    ..Check::NEW
};

fn judge_irqbalance(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = format!("not running, or banned from {}", intent.rt_cpus);
    let draft = draft.wanted(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let reading = &facts.irqs.irqbalance;
    let draft = draft.read(reading, show);
    let Some(state) = reading.value() else {
        if let Some((file, found)) = no_list(reading) {
            let unit = "irqbalance.service".into();
            let line = format!("IRQBALANCE_BANNED_CPULIST={}", intent.rt_cpus);
            return draft
                .remedies([
                    Remedy::Unit { unit, action: "disable --now".into() },
                    Remedy::File { path: file.into(), line },
                ])
                .doubtful(format!(
                    "{file} bans \"{found}\", which is no list of CPUs: irqbalance does not \
                     take it, and does not look for isolated CPUs itself"
                ));
        }
        return draft.unreadable(reading);
    };
    let draft = draft.remedies(remedies_irqbalance(state, intent));
    match (state.running, &state.banned) {
        (Some(pid), Some(banned)) => judge_banned(draft, state, intent, pid, banned),
        (Some(pid), None) => judge_running(draft, facts, intent, pid),
        (None, _) => match container(facts) {
            Some(name) => draft
                .read(&facts.virt.container, |_| name.into())
                .unknown(format!("inside a {name} container the host's irqbalance is not seen")),
            None if state.enabled => {
                draft.doubtful("not running now, but enabled: it starts at the next boot")
            }
            None => draft.good("neither running nor enabled"),
        },
    }
}

/// File and text of a ban that is neither list nor mask.
fn no_list(reading: &Reading<irq::Irqbalance>) -> Option<(&str, &str)> {
    match &reading.state {
        ReadingState::Malformed { found, .. } if reading.path.ends_with("/irqbalance") => {
            Some((&reading.path, found))
        }
        _ => None,
    }
}

fn judge_banned(
    draft: FindingBuilder,
    state: &irq::Irqbalance,
    intent: &Intent,
    pid: u32,
    banned: &CpuList,
) -> Finding {
    let from = state.banned_from.as_deref().unwrap_or("its environment");
    let open = intent.rt_cpus.difference(banned);
    if open.is_empty() {
        return draft.good(format!("pid {pid} leaves {} alone ({from})", machine::cpus(banned)));
    }
    draft.bad(format!(
        "pid {pid} may use {}: {from} bans only {}, which turns off its own detection of isolated \
         CPUs",
        machine::cpus(&open),
        machine::or_empty(banned)
    ))
}

/// Runs without such an option: recent versions leave isolated and nohz_full CPUs alone.
fn judge_running(draft: FindingBuilder, facts: &Facts, intent: &Intent, pid: u32) -> Finding {
    let none = CpuList::default();
    let isolated = facts.cpus.isolated.value().unwrap_or(&none);
    let quiet = isolated.union(facts.cpus.nohz_full.value().unwrap_or(&none));
    let open = intent.rt_cpus.difference(&quiet);
    if !open.is_empty() {
        return draft.bad(format!("pid {pid} moves interrupts onto {}", machine::cpus(&open)));
    }
    draft.evidence([Evidence::of(&facts.cpus.isolated, CpuList::to_string)]).doubtful(format!(
        "pid {pid} runs; whether it leaves isolated CPUs alone depends on its version"
    ))
}

fn remedies_irqbalance(state: &irq::Irqbalance, intent: &Intent) -> Vec<Remedy> {
    let unit = Remedy::Unit { unit: "irqbalance.service".into(), action: "disable --now".into() };
    let ban = state.banned_from.as_ref().map(|path| Remedy::File {
        path: path.clone(),
        line: format!("IRQBALANCE_BANNED_CPULIST={}", intent.rt_cpus),
    });
    [unit].into_iter().chain(ban).collect()
}

fn show(state: &irq::Irqbalance) -> String {
    let running = state.running.map_or("not running".into(), |pid| format!("running, pid {pid}"));
    let enabled = if state.enabled { "enabled" } else { "not enabled" };
    match &state.banned {
        Some(banned) => format!("{running}, {enabled}, banned from {}", machine::or_empty(banned)),
        None => format!("{running}, {enabled}"),
    }
}

// How often do other CPUs and the machine itself interrupt the real-time CPUs?
//
// Left out: wake-ups (rescheduling interrupts) and the local timer, which are the application's
// own most of the time, and TLB shootdowns, which are a check of their own.

/// What the kernel calls the rows that count (arch/x86/kernel/irq.c, arch/arm64/kernel/smp.c).
const ROWS: &[&str] = &[
    "Function call interrupts",
    "IRQ work interrupts",
    "Non-maskable interrupts",
    "Performance monitoring interrupts",
    "Machine check polls",
    "Thermal event interrupts",
    "Threshold APIC interrupts",
    "Deferred Error APIC interrupts",
];

pub(super) static LOCAL_IPIS: Check = Check {
    id: "local-ipis",
    title: "interrupts between CPUs on the real-time CPUs since boot",
    why: "a CPU that wants something done everywhere interrupts all others and waits for them",
    source: "arch/x86/kernel/irq.c (arch_show_interrupts), arch/arm64/kernel/smp.c, kernel/smp.c; \
             rigtorp.se, low latency guide",
    impact: Impact::Microseconds,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("fewer than one a second of each kind"),
    judge: Judge::Ask(judge_local_ipis),
    ..Check::NEW
};

fn judge_local_ipis(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, counters, uptime_ms) = match super::counters(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let rows: Vec<&CounterRow> =
        counters.rows.iter().filter(|row| ROWS.contains(&row.what.as_str())).collect();
    if rows.is_empty() {
        return draft.unknown("this kernel counts no interrupts between CPUs");
    }
    let mut worst: Vec<(f64, u32, &CounterRow)> = Vec::new();
    for row in rows {
        let Some(counts) = super::of_rt(counters, &row.counts, intent) else {
            return draft.unknown("a real-time CPU has no column in /proc/interrupts");
        };
        if let Some((cpu, count)) = counts.into_iter().max_by_key(|(_, count)| *count) {
            worst.push((super::per_second(count, uptime_ms), cpu, row));
        }
    }
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    let show = |(rate, cpu, row): &(f64, u32, &CounterRow)| {
        format!("{} {} on CPU {cpu}", row.what.to_ascii_lowercase(), super::rate(*rate))
    };
    let often: Vec<String> =
        worst.iter().filter(|(rate, ..)| *rate >= REPORTED_RATE).map(show).collect();
    let may_end_so = matches!(
        facts.kernel.family(),
        Some(Family::RiscV | Family::Power | Family::S390 | Family::Other)
    );
    if often.is_empty() && counters.is_cut && !may_end_so {
        return draft.unknown("the table is cut off: its last rows, and ERR, are missing");
    }
    if often.is_empty() {
        let most = worst.first().map_or(0.0, |(rate, ..)| *rate);
        return draft.good(format!("at most {} of a kind since boot", super::rate(most)));
    }
    let path = &facts.isolation.counters.path;
    let text = "find who sends them: trace ipi:ipi_send_cpumask, or ipi:ipi_send_cpu, with stacks";
    draft
        .evidence(often.iter().map(|value| Evidence { path: path.clone(), value: value.clone() }))
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(format!("since boot {}", machine::first_few(&often, 3)))
}

// Is the network's time-stamp key held, so that nothing patches the kernel's code meanwhile?
//
// No file shows whether the key is on. A daemon that holds it is the only evidence.

pub(super) static STATIC_KEY_IPIS: Check = Check {
    id: "static-key-ipis",
    title: "network time stamps kept switched on (realtime-entsk)",
    why: "the first socket that asks for time stamps, and the last that closes, patch the kernel's \
          code, which interrupts every CPU",
    source: "net/core/dev.c (netstamp_needed_key), arch/x86/kernel/jump_label.c, \
             arch/x86/kernel/alternative.c (text_poke_bp_batch); tuned, profile realtime, rtentsk",
    trade_off: Some("every packet gets a time stamp"),
    knobs: &[&knobs::ENTSK],
    wanted: Wanted::Text("held by realtime-entsk or tuned's rtentsk"),
    judge: Judge::Ask(judge_static_key_ipis),
    ..Check::NEW
};

fn judge_static_key_ipis(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    if built_with(facts, "JUMP_LABEL") == Some(false) {
        return draft
            .evidence([option(facts, "JUMP_LABEL")])
            .not_applicable("this kernel is built without CONFIG_JUMP_LABEL: keys patch no code");
    }
    let units = &facts.units;
    let Some(found) = units.value() else {
        return draft.unreadable(units);
    };
    let draft = draft.read(units, |_| match found.get(ENTSK_UNIT) {
        Some(unit) => {
            format!("{ENTSK_UNIT}: {}", if unit.enabled { "enabled" } else { "disabled" })
        }
        None => format!("no {ENTSK_UNIT}"),
    });
    let draft = draft.remedies([match found.contains_key(ENTSK_UNIT) {
        true => Remedy::Unit { unit: ENTSK_UNIT.into(), action: "enable --now".into() },
        false => Remedy::Manual {
            text: "run tuned's profile realtime, or install realtime-setup (RHEL) and enable \
                   realtime-entsk.service"
                .into(),
        },
    }]);
    match found.get(ENTSK_UNIT).map(|unit| (unit.running, &unit.file)) {
        Some((Some(true), _)) => draft.good(format!("{ENTSK_UNIT} runs")),
        Some((None, file)) => draft
            .evidence([Evidence { path: file.clone(), value: "installed".into() }])
            .unknown(format!("whether {ENTSK_UNIT} runs is unknown")),
        _ => draft.doubtful(
            "nothing is known to hold the key: a program that opens and closes sockets with time \
             stamps (NTP, PTP, ping) interrupts every CPU",
        ),
    }
}

/// The daemon of the realtime-setup package.
const ENTSK_UNIT: &str = "realtime-entsk.service";

// Do other threads of the same process interrupt the real-time CPUs when they unmap memory?

pub(super) static TLB_SHOOTDOWN: Check = Check {
    id: "tlb-shootdown",
    title: "TLB shootdowns on the real-time CPUs since boot",
    why: "a thread that unmaps or protects memory interrupts every CPU that runs another thread of \
          its process, and waits for it",
    source: "arch/x86/mm/tlb.c (native_flush_tlb_multi); Documentation/timers/no_hz.rst; \
             rigtorp.se, low latency guide",
    impact: Impact::Microseconds,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("fewer than one a second on each"),
    judge: Judge::Ask(judge_tlb_shootdown),
    ..Check::NEW
};

fn judge_tlb_shootdown(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if arch.value().is_some_and(|name| name == "aarch64") {
        return draft
            .read(arch, String::clone)
            .not_applicable("aarch64 tells other CPUs of unmapped memory without interrupts");
    }
    let (draft, counters, uptime_ms) = match super::counters(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let Some(row) = counters.rows.iter().find(|row| row.what == "TLB shootdowns") else {
        return draft.unknown("this kernel does not count TLB shootdowns");
    };
    let Some(counts) = super::of_rt(counters, &row.counts, intent) else {
        return draft.unknown("a real-time CPU has no column in /proc/interrupts");
    };
    let worst = counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default();
    let rate = super::per_second(worst.1, uptime_ms);
    if rate < REPORTED_RATE {
        return draft.good(format!(
            "at most {} since boot on {}",
            super::rate(rate),
            machine::cpus(&intent.rt_cpus)
        ));
    }
    let text = "keep threads that map and unmap memory out of the real-time process, or have the \
                process \
                allocate all it needs before it starts. Avoid munmap, madvise and free of large \
                blocks";
    draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
        "{} since boot on CPU {}",
        super::rate(rate),
        worst.0
    ))
}

#[cfg(test)]
mod tests;
