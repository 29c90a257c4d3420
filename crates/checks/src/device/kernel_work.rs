//! Work that the kernel does beside: messages on slow consoles, auditing, tracing; and the clocks
//! of a Raspberry Pi, which its firmware sets.

use rtproof_host::facts::devices::Console;
use rtproof_host::facts::kernel::Preemption;
use rtproof_host::facts::settings::Value;
use rtproof_host::knob::Arch;
use rtproof_host::{Facts, Reading, knobs::device as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::profile::Choice;
use crate::setting;
use crate::{Finding, Impact, Intent, Remedy, When};
use crate::{machine, text};

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

fn judge_serial(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
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
        return draft.blind(consoles);
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

fn judge_audit(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
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
        return draft.without(facts, "AUDIT");
    }
    let unit = facts.units.value().and_then(|units| units.get("auditd.service"));
    if unit.is_some_and(|unit| unit.running == Some(true)) {
        return draft
            .read(&facts.units, |_| "auditd.service running".into())
            .doubtful("auditd runs, which turns auditing on");
    }
    draft.blind(status)
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

fn judge_tracing(mut draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let tracers: [&'static rtproof_host::Knob; 2] = [&knobs::TRACER, &knobs::TRACE_INSTANCES];
    let others = [&knobs::TRACE_EVENTS, &knobs::TRACE_INSTANCE_EVENTS, &knobs::TRACE_PROBES];
    let all = tracers.into_iter().chain(others);
    let all = all.flat_map(|knob| setting::all(facts, knob).iter().map(move |value| (knob, value)));
    let Some(tracer) = setting::all(facts, &knobs::TRACER).first() else {
        let path = "/sys/kernel/tracing/current_tracer";
        return draft.blind(&Reading::<()>::denied(path, "not asked"));
    };
    if tracer.reading.is_absent() && machine::built_with(facts, "TRACING") == Some(false) {
        return draft.without(facts, "TRACING");
    }
    let lacking = facts.settings.get(knobs::TRACER.id).and_then(|setting| setting.lacking.as_ref());
    if let Some(lacking) = lacking.filter(|lacking| lacking.value().is_some()) {
        return draft
            .read(lacking, String::clone)
            .unknown("tracefs is not mounted: what is traced cannot be seen");
    }
    // Without probes in the kernel there is no such file; without instances, no value.
    let is_lacking =
        |value: &&Value| value.reading.is_absent() && value.reading.path.ends_with("kprobe_events");
    let (mut running, mut left, mut blind) = (vec![], vec![], None);
    for (knob, value) in all {
        let is_tracer = tracers.contains(&knob);
        if is_lacking(&value) && machine::built_with(facts, "KPROBE_EVENTS") == Some(false) {
            draft = draft.saw([machine::option(facts, "KPROBE_EVENTS")]);
            continue;
        }
        let reading = &value.reading;
        draft = draft.read(reading, |text| match text.lines().collect::<Vec<_>>().as_slice() {
            [] => "empty".into(),
            lines => text::first_few(lines, 4),
        });
        match reading.value().map(String::as_str) {
            None => blind = blind.or(Some(reading)),
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
                let count = text::count(text.lines().count(), "line");
                let remedy = Remedy::set(knob, vec![reading.path.clone()], "");
                left.push((format!("{name}: {count}"), remedy));
            }
        }
    }
    let is_running = !running.is_empty();
    let (found, remedies): (Vec<String>, Vec<Remedy>) = running.into_iter().chain(left).unzip();
    if !found.is_empty() {
        let draft = draft.remedies(remedies);
        let summary = text::first_few(&found, 4);
        return if is_running { draft.bad(summary) } else { draft.doubtful(summary) };
    }
    match blind {
        Some(reading) => draft.blind(reading),
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

fn judge_rpi(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
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
        && Arch::X86.has(name)
    {
        let draft = draft.read(arch, String::clone);
        return draft.not_applicable(format!("not a Raspberry Pi: {name}"));
    }
    let settings = match config.value() {
        None => return draft.blind(config),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, good_stock, intent, set_cmdline};
    use crate::testing::{set_config, set_setting};
    use crate::{Profile, profile::Kind};

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
    fn who_may_not_ask_for_auditing_looks_elsewhere() {
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
        facts.settings.get_mut(knobs::TRACER.id).unwrap().lacking = Some(lacking);
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
        assert_eq!(judge(None, Kind::Periodic), NotApplicable);
        assert_eq!(judge(Some(&[]), Kind::Periodic), Doubtful);
        assert_eq!(judge(Some(&[("force_turbo [pi4]", "1")]), Kind::Periodic), Doubtful);
        assert_eq!(judge(Some(&[("force_turbo", "1")]), Kind::Periodic), Good);
        assert_eq!(judge(Some(&[]), Kind::Audio), Good);
        let mut facts = good();
        facts.devices.raspberry_pi = Reading::absent("/proc/device-tree/model");
        assert_eq!(RPI_FIRMWARE.judge(&facts, &intent()).status, NotApplicable, "x86");
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(RPI_FIRMWARE.judge(&facts, &intent()).status, Unknown);
    }
}
