//! Additional work of the kernel: messages on slow consoles, auditing, tracing; and the clocks
//! of a Raspberry Pi, which its firmware sets.

use rtproof_host::{
    Facts, Reading,
    facts::{
        devices::{Card, Console},
        kernel::Preemption,
        settings::SettingValue,
    },
    knob::{KnobArch, Place},
    knobs::device as knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::profile::{Choice, WorkloadKind};
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine, value};

pub(super) static SERIAL_CONSOLE: Check = Check {
    id: "serial-console",
    title: "kernel messages on a serial line",
    why: "a console without a thread is written by whoever prints, with interrupts off, at some 87 \
          µs a character with 115200 baud",
    source: "Documentation/filesystems/proc.rst, /proc/consoles; kernel/printk/printk.c, \
             console_flush_all, and internal.h, force_legacy_kthread (6.12)",
    trade_off: Some("without it the last words of a kernel that dies are lost"),
    impact: Impact::Milliseconds,
    when: When::Boot,
    knobs: &[&knobs::SERIAL_CONSOLE, &knobs::PRINTK],
    wanted: Wanted::Text("none, or one that a thread writes"),
    judge: Judge::Ask(judge_serial),
    ..Check::NEW
};

/// `ttyS0`, `ttyAMA0`, `ttymxc1`; not `tty0`, which is a screen.
fn is_serial(console: &Console) -> bool {
    let rest = console.name.strip_prefix("tty");
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn judge_serial(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let consoles = &facts.devices.consoles;
    let draft = draft.read(consoles, |consoles| {
        let show = |console: &Console| match console.nbcon {
            true => format!("{} with a thread", console.name),
            false => console.name.clone(),
        };
        let shown: Vec<String> = consoles.iter().map(show).collect();
        if shown.is_empty() { "no console".into() } else { shown.join(", ") }
    });
    let Some(found) = consoles.value() else {
        return draft.unreadable(consoles);
    };
    let slow: Vec<&str> = found
        .iter()
        .filter(|console| is_serial(console) && !console.nbcon)
        .map(|console| console.name.as_str())
        .collect();
    let [first, ..] = slow.as_slice() else {
        return draft.good("no serial console that is written with interrupts off");
    };
    let names = slow.join(", ");
    let model = &facts.kernel.preemption;
    let is_rt = matches!(model.value(), Some(Preemption::Rt));
    if is_rt && machine::since(facts, (6, 12)) == Some(true) {
        return draft
            .read(model, |_| "PREEMPT_RT".into())
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .good(format!("{names}: PREEMPT_RT writes to it in a thread"));
    }
    draft
        .remedies([Remedy::Manual {
            text: format!(
                "take console={first} out of the boot entry, or keep messages off it: \
                 dmesg -n 1"
            ),
        }])
        .doubtful(format!("{names}: each message is written before the kernel goes on"))
}

pub(super) static AUDIT: Check = Check {
    id: "audit",
    title: "auditing of system calls",
    why: "every system call is looked at, and where the queue of records is full a task waits for \
          auditd",
    source: "Documentation/admin-guide/kernel-parameters.txt, audit= and audit_backlog_limit=; \
             kernel/audit.c, audit_log_start; kernel/auditsc.c",
    trade_off: Some("the log of who did what, which some rules of security demand, is lost"),
    when: When::Boot,
    knobs: &[&knobs::AUDIT, &knobs::AUDIT_UNITS],
    wanted: Wanted::Text("off"),
    judge: Judge::Ask(judge_audit),
    ..Check::NEW
};

fn judge_audit(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let draft = draft.remedies([
        Remedy::Boot { parameter: "audit=0".into() },
        Remedy::Unit { unit: "auditd.service".into(), action: "disable".into() },
    ]);
    let status = &facts.devices.audit_enabled;
    if let Some(enabled) = status.value() {
        let draft = draft.read(status, |enabled| format!("enabled {enabled}"));
        return match enabled {
            0 => draft.good("the kernel does not audit"),
            2 => draft.doubtful("the kernel audits, and that is locked until the next boot"),
            _ => draft.doubtful("the kernel audits"),
        };
    }
    let line = &facts.kernel.cmdline;
    let given = line.value().and_then(|line| line.last("audit").flatten());
    if matches!(given, Some("0" | "off")) {
        return draft.read(line, |_| "audit=0".into()).good("audit=0: off until the next boot");
    }
    if machine::built_with(facts, "AUDIT") == Some(false) {
        return draft.built_without(facts, "AUDIT");
    }
    let unit = facts.units.value().and_then(|units| units.get("auditd.service"));
    if unit.is_some_and(|unit| unit.running == Some(true)) {
        return draft
            .read(&facts.units, |_| "auditd.service running".into())
            .doubtful("auditd runs, which turns auditing on");
    }
    draft.unreadable(status)
}

pub(super) static TRACING: Check = Check {
    id: "perf-tracing-active",
    title: "tracers, events and probes left on",
    why: "a tracer runs at every function, switch or interrupt, and an event or probe wherever it \
          was put",
    source: "Documentation/trace/ftrace.rst; Documentation/trace/events.rst; Wu, \"Real-time \
             programming with Linux, part 2\" (279 µs became 400 µs with wakeup_rt)",
    impact: Impact::Hundreds,
    knobs: &[
        &knobs::TRACER,
        &knobs::TRACE_EVENTS,
        &knobs::TRACE_PROBES,
        &knobs::TRACE_INSTANCES,
        &knobs::TRACE_INSTANCE_EVENTS,
    ],
    wanted: Wanted::Text("tracer nop, no events, no probes"),
    judge: Judge::Ask(judge_tracing),
    ..Check::NEW
};

fn judge_tracing(mut draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let tracers: [&'static rtproof_host::Knob; 2] = [&knobs::TRACER, &knobs::TRACE_INSTANCES];
    let others = [&knobs::TRACE_EVENTS, &knobs::TRACE_INSTANCE_EVENTS, &knobs::TRACE_PROBES];
    let all = tracers.into_iter().chain(others);
    let all =
        all.flat_map(|knob| value::knob_values(facts, knob).iter().map(move |value| (knob, value)));
    let Some(tracer) = value::knob_values(facts, &knobs::TRACER).first() else {
        let path = "/sys/kernel/tracing/current_tracer";
        return draft.unreadable(&Reading::<()>::denied(path, "not asked"));
    };
    if tracer.reading.is_absent() && machine::built_with(facts, "TRACING") == Some(false) {
        return draft.built_without(facts, "TRACING");
    }
    let lacking =
        facts.settings.get(knobs::TRACER.id).and_then(|setting| setting.missing_from.as_ref());
    if let Some(lacking) = lacking.filter(|lacking| lacking.value().is_some()) {
        return draft
            .read(lacking, String::clone)
            .unknown("tracefs is not mounted: what is traced cannot be seen");
    }
    // Without probes in the kernel there is no such file; without instances, no value.
    let is_missing = |value: &&SettingValue| {
        value.reading.is_absent() && value.reading.path.ends_with("kprobe_events")
    };
    let (mut running, mut left, mut unreadable) = (vec![], vec![], None);
    for (knob, value) in all {
        let is_tracer = tracers.contains(&knob);
        if is_missing(&value) && machine::built_with(facts, "KPROBE_EVENTS") == Some(false) {
            draft = draft.evidence([machine::option(facts, "KPROBE_EVENTS")]);
            continue;
        }
        let reading = &value.reading;
        draft = draft.read(reading, |text| match text.lines().collect::<Vec<_>>().as_slice() {
            [] => "empty".into(),
            lines => machine::first_few(lines, 4),
        });
        match reading.value().map(String::as_str) {
            None => unreadable = unreadable.or(Some(reading)),
            Some("") => {}
            Some("nop") if is_tracer => {}
            Some(tracer) if is_tracer => {
                let of =
                    if value.of.is_empty() { String::new() } else { format!(" in {}", value.of) };
                let remedy = Remedy::set(knob, vec![reading.path.clone()], "nop");
                running.push((format!("tracer {tracer}{of}"), remedy));
            }
            Some(text) => {
                let name = reading.path.rsplit('/').next().unwrap_or_default();
                let count = machine::count(text.lines().count(), "line");
                let remedy = Remedy::set(knob, vec![reading.path.clone()], "");
                left.push((format!("{name}: {count}"), remedy));
            }
        }
    }
    let is_running = !running.is_empty();
    let (found, remedies): (Vec<String>, Vec<Remedy>) = running.into_iter().chain(left).unzip();
    if !found.is_empty() {
        let draft = draft.remedies(remedies);
        let summary = machine::first_few(&found, 4);
        return if is_running { draft.bad(summary) } else { draft.doubtful(summary) };
    }
    match unreadable {
        Some(reading) => draft.unreadable(reading),
        None => draft.good("no tracer, no events, no probes"),
    }
}

pub(super) static RPI_FIRMWARE: Check = Check {
    id: "rpi-firmware",
    title: "clocks of a Raspberry Pi that its firmware changes (config.txt)",
    why: "the firmware lowers the clocks of the cores, the bus and the memory while they are idle, \
          and they rise again late",
    source: "Raspberry Pi documentation, config.txt, Overclocking options (force_turbo)",
    trade_off: Some("more heat; together with over_voltage it sets a bit that ends the warranty"),
    when: When::Boot,
    knobs: &[&knobs::RPI_FIRMWARE],
    wanted: Wanted::Text("force_turbo=1"),
    judge: Judge::Ask(judge_rpi),
    ..Check::NEW
};

fn judge_rpi(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let config = &facts.devices.raspberry_pi;
    let draft = draft.read(config, |settings| match settings {
        None => "not a Raspberry Pi".into(),
        Some(settings) => {
            let all: Vec<String> =
                settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
            if all.is_empty() { "no clock is set".into() } else { all.join(", ") }
        }
    });
    let arch = &facts.kernel.arch;
    if let (None, Some(name)) = (config.value(), arch.value())
        && KnobArch::X86.has(name)
    {
        let draft = draft.read(arch, String::clone);
        return draft.not_applicable(format!("not a Raspberry Pi: {name}"));
    }
    let settings = match config.value() {
        None => return draft.unreadable(config),
        Some(None) => return draft.not_applicable("not a Raspberry Pi"),
        Some(Some(settings)) => settings,
    };
    if settings.get("force_turbo").is_some_and(|value| value == "1") {
        return draft.good("force_turbo=1: the clocks stay at their highest");
    }
    if intent.profile.choices.fixed_frequency != Choice::On {
        return draft.good("the clocks change, which this profile does not mind");
    }
    let line = "force_turbo=1".to_owned();
    let path = config.path.split(", ").next().unwrap_or_default().to_owned();
    let draft = draft.remedies([Remedy::File { path, line }]);
    match settings.keys().find(|key| key.starts_with("force_turbo [")) {
        Some(key) => draft.doubtful(format!("{key}: only under this condition")),
        None => draft.doubtful("the firmware changes the clocks with the load"),
    }
}

// Graphics on the processor's own chip, NVIDIA's driver, a graphical login, modules from outside.

pub(super) static ON_CHIP: Check = Check {
    id: "gpu-i915",
    title: "Intel graphics in use on the processor's own chip",
    why: "it shares the last-level cache and the memory with the CPUs, and takes them away when it \
          draws",
    source: "LinuxCNC pull request 4087 (50 to 226 µs with i915, 52 to 95 µs with another card)",
    trade_off: Some("without its driver there is a plain screen or none"),
    when: When::Boot,
    knobs: &[&knobs::GRAPHICS_I915],
    wanted: Wanted::Text("none, or another card"),
    judge: Judge::Ask(judge_on_chip),
    ..Check::NEW
};

fn judge_on_chip(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let cards = &facts.devices.graphics;
    let Some(found) = cards.value() else {
        return draft.unreadable(cards);
    };
    let show = |card: &Card| match &card.driver {
        Some(driver) => format!("{} {driver}", card.name),
        None => format!("{} without a driver that is named", card.name),
    };
    let shown: Vec<String> = found.iter().map(show).collect();
    let draft = draft.read(cards, |_| match shown.as_slice() {
        [] => "no graphics card".into(),
        shown => shown.join(", "),
    });
    let is_on_chip = |card: &&Card| matches!(card.driver.as_deref(), Some("i915" | "xe"));
    let Some(card) = found.iter().find(is_on_chip) else {
        return draft.good(match shown.as_slice() {
            [] => "no graphics card has a driver".into(),
            shown => machine::first_few(shown, 4),
        });
    };
    // Discrete Intel cards have the same drivers.
    let driver = card.driver.as_deref().unwrap_or_default();
    draft
        .remedies([
            Remedy::Command { command: "systemctl set-default multi-user.target".into() },
            Remedy::Boot { parameter: "nomodeset".into() },
        ])
        .doubtful(format!("{} is driven by {driver}: shared, unless it is a card", card.name))
}

pub(super) static NVIDIA: Check = Check {
    id: "gpu-nvidia",
    title: "NVIDIA's own graphics driver",
    why: "it is not written for PREEMPT_RT: it spins and sleeps where a real-time kernel may not",
    source: "github.com/ApolloAuto/apollo issue 14320 (scheduling while atomic); \
             Documentation/admin-guide/tainted-kernels.rst",
    trade_off: Some("no graphics and no computing on that card"),
    impact: Impact::Milliseconds,
    when: When::Boot,
    knobs: &[&knobs::GRAPHICS_NVIDIA],
    wanted: Wanted::Text("not loaded"),
    judge: Judge::Ask(judge_nvidia),
    ..Check::NEW
};

fn judge_nvidia(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let modules = &facts.devices.tainting_modules;
    let draft = draft.read(modules, show_modules);
    let Some(loaded) = modules.value() else {
        return draft.unreadable(modules);
    };
    let Some((name, letters)) = loaded.iter().find(|(name, _)| name.starts_with("nvidia")) else {
        return draft.good("not loaded");
    };
    let text = "try the workload under load on this kernel, or move it to another machine";
    draft
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(format!("{name} is loaded (taint {letters})"))
}

pub(super) static MODULES: Check = Check {
    id: "oot-modules",
    title: "modules from outside the kernel's tree, or staging, forced, proprietary",
    why: "nobody has looked for how long these modules turn interrupts or preemption off",
    source: "Documentation/admin-guide/tainted-kernels.rst; Wu, \"Real-time programming with \
             Linux, part 2\" (3 ms by one driver)",
    impact: Impact::Milliseconds,
    knobs: &[&knobs::MODULES],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_modules),
    ..Check::NEW
};

const NAMED_MAX: usize = 6;

fn judge_modules(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let modules = &facts.devices.tainting_modules;
    let draft = draft.read(modules, show_modules);
    let Some(loaded) = modules.value() else {
        return draft.unreadable(modules);
    };
    if loaded.is_empty() {
        return draft.good("no module taints the kernel");
    }
    let names: Vec<String> =
        loaded.iter().map(|(name, letters)| format!("{name} ({letters})")).collect();
    let text = "measure with and without them: modprobe -r NAME";
    draft
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(machine::first_few(&names, NAMED_MAX))
}

fn show_modules(modules: &std::collections::BTreeMap<String, String>) -> String {
    let names: Vec<String> =
        modules.iter().map(|(name, letters)| format!("{name} {letters}")).collect();
    if names.is_empty() { "no module taints".into() } else { machine::first_few(&names, 32) }
}

pub(super) static LOGIN: Check = Check {
    id: "vt-graphics",
    title: "a graphical login",
    why: "the compositor draws by itself, and with it the graphics card uses memory and cache",
    source: "systemd.special(7), graphical.target; LinuxCNC pull request 4087",
    trade_off: Some("no graphical login at this machine"),
    when: When::Boot,
    knobs: &[&knobs::DISPLAY_MANAGERS],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_login),
    ..Check::NEW
};

fn judge_login(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    // The command line overrides the link.
    let line = &facts.kernel.cmdline;
    let booted = line.value().and_then(|line| line.last("systemd.unit").flatten());
    let target = &facts.devices.default_target;
    let (draft, target) = match (booted, target.value()) {
        (Some(unit), _) => (draft.read(line, |_| format!("systemd.unit={unit}")), unit),
        (None, Some(target)) => {
            (draft.read(&facts.devices.default_target, String::clone), target.as_str())
        }
        (None, None) => return draft.unreadable(target),
    };
    if !matches!(target, "graphical.target" | "runlevel5.target") {
        return draft.good(format!("boots into {target}"));
    }
    let Some(units) = facts.units.value() else {
        return draft.unreadable(&facts.units);
    };
    let names = match knobs::DISPLAY_MANAGERS.place {
        Place::Units(names) => names,
        _ => &[],
    };
    let found = units.iter().find(|(name, unit)| names.contains(&name.as_str()) && !unit.masked);
    let draft = draft.evidence([Evidence::of(&facts.units, |_| match found {
        Some((name, _)) => name.clone(),
        None => "no display manager".into(),
    })]);
    let Some((name, unit)) = found else {
        return draft.good("graphical.target, and no display manager is installed");
    };
    if intent.profile.kind == WorkloadKind::Audio {
        return draft.good(format!("{name}, as a desktop needs it"));
    }
    if let Some(container) = machine::container(facts) {
        return draft
            .read(&facts.virt.container, |_| container.into())
            .unknown(format!("inside a {container} container the host's login is not seen"));
    }
    let state = if unit.running == Some(true) { "runs" } else { "is installed" };
    draft
        .remedies([Remedy::Command { command: "systemctl set-default multi-user.target".into() }])
        .doubtful(format!("boots into graphical.target, and {name} {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::profile::WorkloadKind;
    use crate::testing::{fill_setting, good, good_stock, intent, set_cmdline};
    use crate::testing::{set_config, set_setting};

    #[test]
    fn serial_consoles_without_a_thread() {
        let judge = |mut facts: Facts, name: &str, nbcon| {
            let consoles = vec![Console { name: name.into(), nbcon }];
            facts.devices.consoles = Reading::known("/proc/consoles", consoles);
            SERIAL_CONSOLE.judge(&facts, &intent()).status
        };
        assert_eq!(judge(good_stock(), "ttyS0", false), Doubtful);
        assert_eq!(judge(good_stock(), "ttyAMA0", true), Good);
        assert_eq!(judge(good_stock(), "tty0", false), Good);
        assert_eq!(judge(good(), "ttyS0", false), Good, "PREEMPT_RT 6.12 prints in a thread");
        let mut facts = good();
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 1));
        assert_eq!(judge(facts, "ttyS0", false), Doubtful);
        let mut facts = good();
        facts.devices.consoles = Reading::absent("/proc/consoles");
        assert_eq!(SERIAL_CONSOLE.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn without_rights_audit_is_judged_by_build_and_boot_words() {
        let mut facts = good();
        let mut asked = |enabled| {
            facts.devices.audit_enabled = Reading::known("audit status", enabled);
            AUDIT.judge(&facts, &intent()).status
        };
        assert_eq!((asked(0), asked(1), asked(2)), (Good, Doubtful, Doubtful));
        facts.devices.audit_enabled = Reading::denied("audit status", "EPERM");
        set_config(&mut facts, "AUDIT", Some("y"));
        assert_eq!(AUDIT.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "audit=off");
        assert_eq!(AUDIT.judge(&facts, &intent()).status, Good);
        set_cmdline(&mut facts, "");
        set_config(&mut facts, "AUDIT", None);
        assert_eq!(AUDIT.judge(&facts, &intent()).status, NotApplicable);
    }

    #[test]
    fn tracers_are_bad_and_events_doubtful() {
        let with = |knob: &rtproof_host::Knob, text: &str| {
            let mut facts = good();
            fill_setting(&mut facts, knob, text);
            let finding = TRACING.judge(&facts, &intent());
            (finding.status, finding.summary)
        };
        assert_eq!(with(&knobs::TRACER, "nop").0, Good);
        assert_eq!(with(&knobs::TRACER, "wakeup_rt"), (Bad, "tracer wakeup_rt".into()));
        assert_eq!(with(&knobs::TRACE_INSTANCES, "osnoise"), (Bad, "tracer osnoise in x".into()));
        let events = "sched:sched_switch\nirq:irq_handler_entry";
        assert_eq!(with(&knobs::TRACE_EVENTS, events), (Doubtful, "set_event: 2 lines".into()));
    }

    #[test]
    fn tracing_that_cannot_be_seen() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::TRACER, Reading::denied("", "EACCES"));
        assert_eq!(TRACING.judge(&facts, &intent()).status, Unknown);
        set_setting(&mut facts, &knobs::TRACER, Reading::absent(""));
        set_config(&mut facts, "TRACING", Some("y"));
        assert_eq!(TRACING.judge(&facts, &intent()).status, Unknown);
        let lacking = Reading::known("/sys/kernel/tracing", "holds no current_tracer".into());
        facts.settings.get_mut(knobs::TRACER.id).unwrap().missing_from = Some(lacking);
        let finding = TRACING.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("not mounted"), "{}", finding.summary);
        set_config(&mut facts, "TRACING", None);
        assert_eq!(TRACING.judge(&facts, &intent()).status, NotApplicable);
        let mut facts = good();
        set_setting(&mut facts, &knobs::TRACE_PROBES, Reading::absent(""));
        assert_eq!(TRACING.judge(&facts, &intent()).status, Good, "no KPROBE_EVENTS");
        set_config(&mut facts, "KPROBE_EVENTS", Some("y"));
        assert_eq!(TRACING.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn clocks_of_a_raspberry_pi() {
        let judge = |settings: Option<&[(&str, &str)]>, kind| -> Status {
            let mut facts = good();
            let settings = settings.map(|settings| {
                settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
            });
            facts.devices.raspberry_pi = Reading::known("/boot/config.txt", settings);
            let intent = Intent { profile: Profile::of(kind), ..intent() };
            RPI_FIRMWARE.judge(&facts, &intent).status
        };
        assert_eq!(judge(None, WorkloadKind::Periodic), NotApplicable);
        assert_eq!(judge(Some(&[]), WorkloadKind::Periodic), Doubtful);
        assert_eq!(judge(Some(&[("force_turbo [pi4]", "1")]), WorkloadKind::Periodic), Doubtful);
        assert_eq!(judge(Some(&[("force_turbo", "1")]), WorkloadKind::Periodic), Good);
        assert_eq!(judge(Some(&[]), WorkloadKind::Audio), Good);
        let mut facts = good();
        facts.devices.raspberry_pi = Reading::absent("/proc/device-tree/model");
        assert_eq!(RPI_FIRMWARE.judge(&facts, &intent()).status, NotApplicable, "x86");
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(RPI_FIRMWARE.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod graphics_tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;
    use rtproof_host::facts::virt::Unit;

    fn cards(drivers: &[&str]) -> Status {
        let mut facts = good();
        let card = |driver: &&str| Card { name: "card0".into(), driver: Some((*driver).into()) };
        let cards = drivers.iter().map(card).collect();
        facts.devices.graphics = Reading::known("/sys/class/drm", cards);
        ON_CHIP.judge(&facts, &intent()).status
    }

    #[test]
    fn cards_by_their_driver() {
        assert_eq!((cards(&[]), cards(&["amdgpu"])), (Good, Good));
        assert_eq!((cards(&["ast", "i915"]), cards(&["xe"])), (Doubtful, Doubtful));
        let mut facts = good();
        facts.devices.graphics = Reading::absent("/sys/class/drm");
        assert_eq!(ON_CHIP.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn modules_are_named() {
        let mut facts = good();
        let modules = [("nvidia_drm", "POE"), ("vboxdrv", "OE")];
        let modules = modules.map(|(name, letters)| (name.to_owned(), letters.to_owned()));
        facts.devices.tainting_modules = Reading::known("/sys/module/*/taint", modules.into());
        let finding = MODULES.judge(&facts, &intent());
        assert_eq!(finding.summary, "nvidia_drm (POE), vboxdrv (OE)");
        assert_eq!((finding.status, NVIDIA.judge(&facts, &intent()).status), (Doubtful, Doubtful));
        facts.devices.tainting_modules = Reading::denied("/sys/module/*/taint", "EACCES");
        assert_eq!(MODULES.judge(&facts, &intent()).status, Unknown);
        assert_eq!(NVIDIA.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_login_needs_a_target_and_a_display_manager() {
        let mut facts = good();
        let path = "/etc/systemd/system/default.target";
        facts.devices.default_target = Reading::known(path, "graphical.target".into());
        assert_eq!(LOGIN.judge(&facts, &intent()).status, Good, "nothing draws");
        let file = "/usr/lib/systemd/system/gdm.service".to_owned();
        let unit = Unit { file, enabled: false, masked: false, running: Some(true) };
        let units = [("gdm.service".to_owned(), unit)];
        facts.units = Reading::known("/usr/lib/systemd/system", units.into());
        let finding = LOGIN.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "boots into graphical.target, and gdm.service runs");
        let audio = Intent { profile: Profile::of(WorkloadKind::Audio), ..intent() };
        assert_eq!(LOGIN.judge(&facts, &audio).status, Good);
        set_cmdline(&mut facts, "systemd.unit=multi-user.target");
        assert_eq!(LOGIN.judge(&facts, &intent()).status, Good);
        set_cmdline(&mut facts, "");
        facts.devices.default_target = Reading::absent(path);
        assert_eq!(LOGIN.judge(&facts, &intent()).status, Unknown);
    }
}
