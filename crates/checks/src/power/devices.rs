//! Power saving of devices (ASPM, runtime PM), power limits and the daemons that manage power.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{settings::SettingValue, virt::Unit},
    knobs::power as knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{container, guest, without_cpu_folder};
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine, value};

// May the kernel suspend PCI devices that a real-time application could use?
//
// Named are those whose kind is one that applications wait for: networks, sound, serial lines and
// field buses, wireless, signal processing, USB controllers. Bridges, graphics and memory
// controllers suspend on most machines and are left alone.

/// Starts of the class, and what it is (PCI Code and ID Assignment).
const KINDS: [(&str, &str); 7] = [
    ("0x02", "network"),
    ("0x04", "sound or video"),
    ("0x07", "serial line"),
    ("0x0c03", "USB controller"),
    ("0x0c09", "CAN bus"),
    ("0x0d", "wireless"),
    ("0x11", "signal processing"),
];

pub(super) static PCI_RUNTIME_PM: Check = Check {
    id: "pci-runtime-pm",
    title: "PCI devices that may be suspended while idle",
    why: "a device that was suspended has to be resumed before its next use, which takes 10 ms \
          from D3hot and more from D3cold",
    source: "Documentation/power/pci.rst; drivers/pci/pci.h (PCI_PM_D3HOT_WAIT); \
             Documentation/ABI/testing/sysfs-devices-power (power/control)",
    trade_off: Some("only devices that the real-time application uses need it; others save power"),
    impact: Impact::Milliseconds,
    knobs: &[&knobs::PCI_RUNTIME_PM, &knobs::PCI_CLASS],
    wanted: Wanted::Text("on, for devices that the application uses"),
    judge: Judge::Ask(judge_pci_runtime_pm),
    ..Check::NEW
};

fn judge_pci_runtime_pm(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let devices = value::knob_values(facts, &knobs::PCI_RUNTIME_PM);
    if devices.is_empty() {
        return super::missing_value(draft, facts, &knobs::PCI_RUNTIME_PM, "no PCI devices");
    }
    if let Some(unreadable) = devices.iter().find(|device| device.reading.value().is_none()) {
        return draft.unreadable(&unreadable.reading);
    }
    let is_auto =
        |device: &&SettingValue| device.reading.value().is_some_and(|text| text == "auto");
    let auto: Vec<&SettingValue> = devices.iter().filter(is_auto).collect();
    if auto.is_empty() {
        return draft
            .evidence(machine::by_path(devices.iter().map(|device| &device.reading)))
            .good("no device may be suspended");
    }
    let mut draft = draft;
    let mut named: Vec<(String, &SettingValue)> = Vec::new();
    for device in auto.iter().copied() {
        let class = super::value_of(facts, &knobs::PCI_CLASS, &device.of);
        let Some(class) = class.and_then(|class| class.value()) else {
            return draft.unreadable(&value::knob_text(facts, &knobs::PCI_CLASS));
        };
        if let Some((_, kind)) = KINDS.iter().find(|(start, _)| class.starts_with(start)) {
            named.push((format!("{} ({kind})", device.of), device));
        }
    }
    let classes =
        auto.iter().filter_map(|device| super::value_of(facts, &knobs::PCI_CLASS, &device.of));
    draft = draft
        .evidence(machine::by_path(devices.iter().map(|device| &device.reading)))
        .evidence(machine::by_path(classes));
    if named.is_empty() {
        return draft.good(format!(
            "{} may be, none of a kind that applications wait for",
            machine::count(auto.len(), "device")
        ));
    }
    let paths = named.iter().map(|(_, device)| device.reading.path.clone()).collect();
    let names: Vec<&String> = named.iter().map(|(name, _)| name).collect();
    draft
        .remedies([Remedy::set(&knobs::PCI_RUNTIME_PM, paths, "on")])
        .doubtful(format!("may be suspended: {}", machine::first_few(&names, 4)))
}

// May PCI Express links rest between transfers?
//
// The policy `default` keeps what the firmware set, so the links decide; each shows whether L0s
// and L1 are on. `pcie_aspm=off` is a trap: it leaves the firmware's setting untouched and turns
// nothing off (kernel-parameters.txt).

pub(super) static PCIE_ASPM: Check = Check {
    id: "pcie-aspm",
    title: "power saving of PCI Express links (ASPM)",
    why: "the first access over a link that rests waits until it is up again, a register read by \
          the CPU as well as a transfer by the device",
    source: "Documentation/admin-guide/kernel-parameters.txt (pcie_aspm=); \
             Documentation/ABI/testing/sysfs-bus-pci (link/l1_aspm); drivers/pci/pcie/aspm.c",
    impact: Impact::Tens,
    knobs: &[&knobs::PCIE_ASPM, &knobs::PCIE_ASPM_L0S, &knobs::PCIE_ASPM_L1],
    wanted: Wanted::Text("performance, or no link that rests"),
    judge: Judge::Ask(judge_pcie_aspm),
    ..Check::NEW
};

fn judge_pcie_aspm(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let policy = value::knob_text(facts, &knobs::PCIE_ASPM);
    if policy.is_absent() {
        let why = "this kernel has no PCI Express power saving (CONFIG_PCIEASPM)";
        return super::missing_value(draft, facts, &knobs::PCIE_ASPM, why);
    }
    let draft = draft.read(&policy, String::clone);
    let Some(name) = policy.value() else {
        return draft.unreadable(&policy);
    };
    let draft = draft.remedies([
        Remedy::set(&knobs::PCIE_ASPM, vec![policy.path.clone()], "performance"),
        Remedy::Boot { parameter: "pcie_aspm.policy=performance".into() },
    ]);
    let off = facts.kernel.cmdline.value().and_then(|line| line.last("pcie_aspm"));
    if off == Some(Some("off")) {
        return draft
            .read(&facts.kernel.cmdline, |_| "pcie_aspm=off".into())
            .doubtful("pcie_aspm=off leaves what the firmware set, which is not seen here");
    }
    if name == "performance" {
        return draft.good("performance: no link rests");
    }
    let links = || {
        let l0s = value::knob_values(facts, &knobs::PCIE_ASPM_L0S);
        l0s.iter().chain(value::knob_values(facts, &knobs::PCIE_ASPM_L1))
    };
    let is_on = |value: &&SettingValue| value.reading.value().is_some_and(|on| on != "0");
    let mut on: Vec<&str> = links().filter(is_on).map(|value| value.of.as_str()).collect();
    on.sort_unstable();
    on.dedup();
    if !on.is_empty() {
        return draft
            .evidence(machine::by_path(links().filter(is_on).map(|value| &value.reading)))
            .doubtful(format!(
                "policy {name}: {} may rest: {}",
                machine::count(on.len(), "link"),
                machine::first_few(&on, 4)
            ));
    }
    if let Some(unreadable) = links().find(|value| value.reading.value().is_none()) {
        return draft.unreadable(&unreadable.reading);
    }
    if links().next().is_some() {
        return draft
            .evidence(machine::by_path(links().map(|value| &value.reading)))
            .good(format!("policy {name}, and no link rests"));
    }
    let lacking =
        [&knobs::PCIE_ASPM_L0S, &knobs::PCIE_ASPM_L1].map(|knob| value::missing_from(facts, knob));
    match lacking {
        // Links show it from 5.5.
        [Some(l0s), Some(l1)] if facts.kernel.version.value() >= Some(&(5, 5)) => draft
            .evidence(
                [l0s, l1].map(|reading: &Reading<String>| Evidence::of(reading, String::clone)),
            )
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .not_applicable("no PCI Express link that could rest"),
        _ => draft.doubtful(format!("policy {name}; which links rest is not seen here")),
    }
}

// Which daemons set frequencies and power behind everybody's back?
//
// power-profiles-daemon, tlp, tuned and others write the same files, each at its own moments: what
// was set by hand holds until the next one. tuned alone is no fault, it does what its profile
// says; two of them undo each other (power-profiles-daemon names its rivals in `Conflicts=`).

/// Does what its profile says, which may well be real-time.
const TUNED: &str = "tuned.service";

/// Set something once and end, so that no process shows it.
const ONE_SHOT: &[&str] = &[
    "cpufrequtils.service",
    "laptop-mode.service",
    "ondemand.service",
    "powertop.service",
    "tlp.service",
];

/// Names of one daemon that are not the rival of the other.
const APART: &[&str] = &["powertop.service", "thermald.service"];

pub(super) static POWER_DAEMONS: Check = Check {
    id: "power-daemons",
    title: "daemons that set frequency and power",
    why: "they rewrite governor, limits and energy preference when the load, the power supply or \
          the temperature changes: what was set by hand is gone",
    source: "power-profiles-daemon.service (Conflicts=); tlp(8); thermald(8); tuned(8); \
             powertop(8); realtimeconfigquickscan (power saving daemons)",
    trade_off: Some(
        "thermald slows the processor before its firmware has to, which does so harder: leave it \
         where the cooling is short",
    ),
    impact: Impact::Tens,
    knobs: &[&knobs::POWER_DAEMONS],
    wanted: Wanted::Text("none, or tuned alone"),
    judge: Judge::Ask(judge_power_daemons),
    ..Check::NEW
};

fn judge_power_daemons(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let Some(units) = facts.units.value() else {
        return draft.unreadable(&facts.units);
    };
    let rtproof_host::knob::Place::Units(named) = knobs::POWER_DAEMONS.place else {
        return draft.unreadable(&facts.units);
    };
    let found: Vec<(&str, &Unit)> = named
        .iter()
        .filter_map(|&name| Some((name, units.get(name).filter(|unit| !unit.masked)?)))
        .collect();
    let draft = draft.read(&facts.units, |_| show(&found));
    let acts = |(name, unit): &&(&str, &Unit)| {
        unit.running == Some(true) || (unit.enabled && ONE_SHOT.contains(name))
    };
    let active: Vec<&str> = found.iter().filter(acts).map(|(name, _)| *name).collect();
    let later = |(name, unit): &&(&str, &Unit)| unit.enabled && !active.contains(name);
    let later: Vec<&(&str, &Unit)> = found.iter().filter(later).collect();
    let rivals: Vec<&str> = active.iter().copied().filter(|name| !APART.contains(name)).collect();
    let others: Vec<&str> = active.iter().copied().filter(|&name| name != TUNED).collect();
    let disable =
        |unit: &&str| Remedy::Unit { unit: (*unit).into(), action: "disable --now".into() };
    if rivals.len() > 1 {
        return draft
            .remedies(others.iter().map(disable))
            .doubtful(format!("{} set the same values: the last one wins", rivals.join(", ")));
    }
    if !others.is_empty() {
        return draft
            .remedies(others.iter().map(disable))
            .doubtful(format!("in force: {}", others.join(", ")));
    }
    if let Some(name) = container(facts) {
        return draft
            .read(&facts.virt.container, |_| name.into())
            .unknown(format!("inside a {name} container the host's daemons are not seen"));
    }
    if let Some((name, _)) = later.iter().find(|(_, unit)| unit.running.is_none()) {
        return draft.unknown(format!("{name} is enabled; whether it runs is unknown"));
    }
    let later: Vec<&str> =
        later.iter().map(|(name, _)| *name).filter(|&name| name != TUNED).collect();
    if !later.is_empty() {
        return draft
            .remedies(later.iter().map(disable))
            .doubtful(format!("not running now, but enabled: {}", machine::first_few(&later, 4)));
    }
    draft.good(match active.is_empty() {
        true => "none runs or starts by itself",
        false => "tuned alone: it does what its profile says",
    })
}

fn show(found: &[(&str, &Unit)]) -> String {
    let one = |(name, unit): &(&str, &Unit)| {
        let running = match unit.running {
            Some(true) => "running",
            Some(false) => "not running",
            None => "not known to run",
        };
        format!("{name} {running}, {}", if unit.enabled { "enabled" } else { "disabled" })
    };
    let words: Vec<String> = found.iter().map(one).collect();
    if words.is_empty() { "none of them installed".into() } else { words.join("; ") }
}

// Is the processor given less power than it is made for?
//
// Below the design power (`constraint_0_max_power_uw`, the TDP of a package) the firmware lowers
// the frequency under load, whatever the governor says. Above it that is a matter of cooling.

pub(super) static RAPL_LIMIT: Check = Check {
    id: "rapl-limit",
    title: "long-term power limit of the processor (RAPL)",
    why: "at its power limit the processor lowers the frequency of all cores, so that load on \
          other CPUs slows the real-time ones",
    source: "Documentation/power/powercap/powercap.rst; drivers/powercap/intel_rapl_common.c",
    trade_off: Some("a higher limit needs the cooling and the power supply for it"),
    impact: Impact::Tens,
    knobs: &[&knobs::RAPL_LIMIT, &knobs::RAPL_DESIGN, &knobs::RAPL_ENABLED],
    wanted: Wanted::Text("not below the design power"),
    judge: Judge::Ask(judge_rapl_limit),
    ..Check::NEW
};

fn judge_rapl_limit(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let zones = value::knob_values(facts, &knobs::RAPL_LIMIT);
    if zones.is_empty() {
        let why = "no power limit of the processor that the kernel knows";
        return super::missing_value(draft, facts, &knobs::RAPL_LIMIT, why);
    }
    let mut draft = draft;
    let mut compared = Vec::new();
    let mut below = Vec::new();
    let mut off = Vec::new();
    for zone in zones {
        draft = draft.read(&zone.reading, |text| watts(text));
        let Some(limit_uw) = number(&zone.reading) else {
            return draft.unreadable(&odd(&zone.reading));
        };
        let design = super::value_of(facts, &knobs::RAPL_DESIGN, &zone.of);
        // Zero: parts of a package have none.
        let Some(design) = design.filter(|design| number(design).is_some_and(|uw| uw > 0)) else {
            continue;
        };
        draft = draft.read(design, |text| watts(text));
        let design_uw = number(design).unwrap_or_default();
        let text =
            format!("intel-rapl{} {} of {}", zone.of, as_watts(limit_uw), as_watts(design_uw));
        if limit_uw >= design_uw {
            compared.push(text);
            continue;
        }
        let enabled = super::value_of(facts, &knobs::RAPL_ENABLED, &zone.of);
        match enabled.and_then(Reading::value).map(String::as_str) {
            Some("0") => {
                draft = draft.evidence(enabled.map(|on| Evidence::of(on, String::clone)));
                off.push(text);
            }
            Some("1") => below.push((text, zone.reading.path.clone(), design_uw)),
            _ => return draft.unreadable(&value::knob_text(facts, &knobs::RAPL_ENABLED)),
        }
    }
    if !below.is_empty() {
        let names: Vec<&String> = below.iter().map(|(text, ..)| text).collect();
        let summary = format!("below the design power: {}", machine::first_few(&names, 4));
        let write = |(_, path, uw): &(String, String, u64)| {
            Remedy::set(&knobs::RAPL_LIMIT, vec![path.clone()], uw.to_string())
        };
        let remedies: Vec<Remedy> = below.iter().map(write).collect();
        return draft.remedies(remedies).doubtful(summary);
    }
    if compared.is_empty() && off.is_empty() {
        return draft.unknown("no design power to compare the limits with");
    }
    compared.extend(off.into_iter().map(|text| format!("{text}, not in force")));
    draft.good(machine::first_few(&compared, 4))
}

fn number(reading: &Reading<String>) -> Option<u64> {
    reading.value()?.parse().ok()
}

/// Text that is no number is no value.
fn odd(reading: &Reading<String>) -> Reading<String> {
    reading.clone().and_then(|path, text| Reading::malformed(path, &text, "microwatts"))
}

fn watts(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), as_watts)
}

/// To a tenth of a watt.
fn as_watts(uw: u64) -> String {
    match (uw / 1_000_000, uw / 100_000 % 10) {
        (whole, 0) => format!("{whole} W"),
        (whole, tenth) => format!("{whole}.{tenth} W"),
    }
}

// Has heat slowed the real-time CPUs since boot?
//
// Intel's processors count it for each core and package; a Raspberry Pi keeps it as bits, with low
// voltage beside heat. Other machines throttle without reporting it: unknown.

/// Bits of the firmware of a Raspberry Pi (raspberrypi.com, documentation of `vcgencmd`).
const PI_BITS: [(u32, &str); 8] = [
    (0, "low voltage now"),
    (1, "frequency capped now"),
    (2, "throttled now"),
    (3, "soft temperature limit now"),
    (16, "low voltage"),
    (17, "frequency capped"),
    (18, "throttled"),
    (19, "soft temperature limit"),
];

pub(super) static THERMAL_THROTTLE: Check = Check {
    id: "thermal-throttle",
    title: "slowing down because of heat, since boot",
    why: "a processor that is too hot lowers its frequency or skips clock cycles, whatever the \
          governor says",
    source: "drivers/thermal/intel/therm_throt.c; Raspberry Pi documentation, vcgencmd \
             get_throttled; Codethink, \"Configuring Linux systems to stabilise latency\"",
    impact: Impact::Hundreds,
    when: When::Firmware,
    knobs: &[&knobs::CORE_THROTTLE_COUNT, &knobs::PACKAGE_THROTTLE_COUNT, &knobs::PI_THROTTLED],
    wanted: Wanted::Text("never"),
    judge: Judge::Ask(judge_thermal_throttle),
    ..Check::NEW
};

fn judge_thermal_throttle(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let draft = draft.remedies([Remedy::Manual {
        text: "better cooling, a lower power limit, or a lower fixed frequency".into(),
    }]);
    let cores = super::of_cpus(facts, intent, &knobs::CORE_THROTTLE_COUNT);
    if cores.is_empty() {
        return judge_other(draft, facts);
    }
    let packages = super::of_cpus(facts, intent, &knobs::PACKAGE_THROTTLE_COUNT);
    let mut draft = draft;
    let mut hot = Vec::new();
    for (what, counts) in [("core", &cores), ("package", &packages)] {
        draft = draft.evidence(machine::grouped(counts.iter().copied(), String::clone));
        let mut most = 0;
        let mut cpus = Vec::new();
        for (cpu, count) in counts {
            let Some(text) = count.value() else { return draft.unreadable(count) };
            let Ok(count) = text.parse::<u64>() else {
                return draft.unreadable(&Reading::<u64>::malformed(&count.path, text, "a number"));
            };
            if count > 0 {
                cpus.push(*cpu);
                most = most.max(count);
            }
        }
        if most > 0 {
            let cpus = machine::cpus(&CpuList::new(cpus));
            hot.push(format!("the {what} of {cpus} up to {}", machine::times(most)));
        }
    }
    if !hot.is_empty() {
        return draft.doubtful(format!("too hot since boot: {}", hot.join(", ")));
    }
    let missing = super::missing(intent, &cores);
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    draft.good("never since boot")
}

/// No counters of Intel's: a Raspberry Pi, a guest, or a machine without a report.
fn judge_other(draft: FindingBuilder, facts: &Facts) -> Finding {
    let pi = value::knob_text(facts, &knobs::PI_THROTTLED);
    if let Some(text) = pi.value() {
        let draft = draft.read(&pi, String::clone);
        let hex = text.trim_start_matches("0x");
        let Ok(bits) = u32::from_str_radix(hex, 16) else {
            return draft.unreadable(&Reading::<u32>::malformed(
                &pi.path,
                text,
                "bits in hexadecimal",
            ));
        };
        let is_set = |bit: u32| bits & (1 << bit) != 0;
        let set: Vec<&str> =
            PI_BITS.iter().filter(|(bit, _)| is_set(*bit)).map(|(_, what)| *what).collect();
        return match bits {
            0 => draft.good("never since boot"),
            _ => draft.doubtful(format!("since boot: {}", set.join(", "))),
        };
    }
    let lacking = value::missing_from(facts, &knobs::CORE_THROTTLE_COUNT);
    if let (Some(hypervisor), Some(folder)) = (guest(facts), lacking) {
        return draft
            .read(&facts.virt.hypervisor, |_| hypervisor.into())
            .read(folder, String::clone)
            .not_applicable(format!("not counted in a {hypervisor} guest: see the host"));
    }
    match lacking {
        Some(folder) => draft.read(folder, String::clone).unknown("this machine counts none of it"),
        None => match without_cpu_folder(facts) {
            Some(why) => draft.no_cpu_folder(facts, why),
            None => draft.unreadable(&value::knob_text(facts, &knobs::CORE_THROTTLE_COUNT)),
        },
    }
}

// May the kernel suspend USB devices while they are idle?
//
// Hubs are left out: the kernel lets every hub suspend, and none does while a device behind it is
// awake. Interfaces, which have no class of a device, are not asked either.

/// Class of a hub (include/uapi/linux/usb/ch9.h, `USB_CLASS_HUB`).
const HUB: &str = "09";

pub(super) static USB_AUTOSUSPEND: Check = Check {
    id: "usb-autosuspend",
    title: "USB devices that may be suspended while idle",
    why: "a device that was suspended signals resume for 20 ms before its next transfer",
    source: "Documentation/driver-api/usb/power-management.rst; USB 2.0 specification, 7.1.7.7 \
             (resume)",
    trade_off: Some("only devices that the real-time application uses need it; others save power"),
    impact: Impact::Milliseconds,
    knobs: &[&knobs::USB_AUTOSUSPEND, &knobs::USB_CLASS],
    wanted: Wanted::Text("on, for devices that the application uses"),
    judge: Judge::Ask(judge_usb_autosuspend),
    ..Check::NEW
};

fn judge_usb_autosuspend(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let classes = value::knob_values(facts, &knobs::USB_CLASS);
    if classes.is_empty() {
        return super::missing_value(draft, facts, &knobs::USB_CLASS, "no USB devices");
    }
    if let Some(unreadable) = classes.iter().find(|class| class.reading.value().is_none()) {
        return draft.unreadable(&unreadable.reading);
    }
    let draft = draft.evidence(machine::by_path(classes.iter().map(|class| &class.reading)));
    let is_hub = |class: &&SettingValue| class.reading.value().is_some_and(|class| class == HUB);
    let devices: Vec<&SettingValue> = classes.iter().filter(|class| !is_hub(class)).collect();
    if devices.is_empty() {
        return draft.not_applicable("no USB device but hubs");
    }
    let mut controls = Vec::new();
    let mut auto = Vec::new();
    for device in devices {
        // A kernel without CONFIG_PM suspends nothing and has no such file.
        let control = super::value_of(facts, &knobs::USB_AUTOSUSPEND, &device.of);
        let Some(control) = control.filter(|control| control.value().is_some()) else {
            return draft.unreadable(&value::knob_text(facts, &knobs::USB_AUTOSUSPEND));
        };
        if control.value().is_some_and(|text| text == "auto") {
            auto.push((device.of.as_str(), control.path.clone()));
        }
        controls.push(control);
    }
    let draft = draft.evidence(machine::by_path(controls.into_iter()));
    if auto.is_empty() {
        return draft.good("no device but hubs may be suspended");
    }
    let names: Vec<&str> = auto.iter().map(|(name, _)| *name).collect();
    let summary = format!("may be suspended: {}", machine::first_few(&names, 6));
    let paths = auto.into_iter().map(|(_, path)| path).collect();
    draft
        .remedies([
            Remedy::set(&knobs::USB_AUTOSUSPEND, paths, "on"),
            Remedy::Boot { parameter: "usbcore.autosuspend=-1".into() },
        ])
        .doubtful(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn with(class: &str) -> Finding {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::PCI_RUNTIME_PM, "auto");
        fill_setting(&mut facts, &knobs::PCI_CLASS, class);
        PCI_RUNTIME_PM.judge(&facts, &intent())
    }

    #[test]
    fn only_kinds_that_applications_wait_for() {
        assert_eq!(PCI_RUNTIME_PM.judge(&good(), &intent()).status, Good);
        let finding = with("0x020000");
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "may be suspended: x (network)");
        assert_eq!(with("0x060400").status, Good);
        assert_eq!(with("0x0c0330").status, Doubtful);
    }

    #[test]
    fn a_machine_without_pci_and_one_that_refuses() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::PCI_RUNTIME_PM, "auto");
        set_setting(&mut facts, &knobs::PCI_CLASS, Reading::denied("x", "EACCES"));
        assert_eq!(PCI_RUNTIME_PM.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::PCI_RUNTIME_PM.id).unwrap();
        setting.values.clear();
        assert_eq!(PCI_RUNTIME_PM.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::PCI_RUNTIME_PM.id).unwrap();
        setting.missing_from = Some(Reading::known("/sys/bus", "holds no pci".into()));
        assert_eq!(PCI_RUNTIME_PM.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod pcie_aspm_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_cmdline, set_setting};

    fn judge(facts: &Facts) -> Finding {
        PCIE_ASPM.judge(facts, &intent())
    }

    fn with(policy: &str) -> Facts {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::PCIE_ASPM, policy);
        facts
    }

    #[test]
    fn the_policy_or_the_links_decide() {
        assert_eq!(judge(&good()).status, Good);
        let mut facts = with("default");
        facts.settings.remove(knobs::PCIE_ASPM_L0S.id);
        facts.settings.remove(knobs::PCIE_ASPM_L1.id);
        assert_eq!(judge(&facts).status, Doubtful);
        fill_setting(&mut facts, &knobs::PCIE_ASPM_L1, "1");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "policy default: 1 link may rest: x");
        fill_setting(&mut facts, &knobs::PCIE_ASPM_L1, "0");
        assert_eq!(judge(&facts).status, Good);
        set_setting(&mut facts, &knobs::PCIE_ASPM_L1, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn off_is_not_off() {
        let mut facts = good();
        set_cmdline(&mut facts, "pcie_aspm=off");
        assert_eq!(judge(&facts).status, Doubtful);
    }

    #[test]
    fn no_links_and_no_option_are_not_applicable_where_that_is_known() {
        let mut facts = with("default");
        for knob in [&knobs::PCIE_ASPM_L0S, &knobs::PCIE_ASPM_L1] {
            fill_setting(&mut facts, knob, "0");
            let setting = facts.settings.get_mut(knob.id).unwrap();
            setting.values.clear();
            setting.missing_from = Some(Reading::known("/sys/bus/pci", "holds no link".into()));
        }
        assert_eq!(judge(&facts).status, NotApplicable);
        set_setting(&mut facts, &knobs::PCIE_ASPM, Reading::absent("x"));
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::PCIE_ASPM.id).unwrap();
        setting.missing_from = Some(Reading::known("/sys/module", "holds no pcie_aspm".into()));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}

#[cfg(test)]
mod power_daemons_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn judge(units: &[(&str, bool, Option<bool>)]) -> Finding {
        let mut facts = good();
        let unit = |enabled, running| Unit {
            file: "/usr/lib/systemd/system/x".into(),
            enabled,
            masked: false,
            running,
        };
        let units = units.iter().map(|(name, on, run)| ((*name).to_owned(), unit(*on, *run)));
        facts.units = Reading::known(facts.units.path.clone(), units.collect());
        POWER_DAEMONS.judge(&facts, &intent())
    }

    #[test]
    fn tuned_alone_is_good_and_two_undo_each_other() {
        let run = Some(true);
        assert_eq!(judge(&[]).status, Good);
        assert_eq!(judge(&[(TUNED, true, run)]).status, Good);
        let finding = judge(&[(TUNED, true, run), ("power-profiles-daemon.service", true, run)]);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("the last one wins"), "{}", finding.summary);
        assert_eq!(finding.remedies.len(), 1);
        let finding = judge(&[("thermald.service", true, run)]);
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Doubtful, "in force: thermald.service")
        );
    }

    #[test]
    fn what_ends_at_once_is_known_by_being_enabled() {
        let status = |name, running| -> Status { judge(&[(name, true, running)]).status };
        assert_eq!(status("tlp.service", Some(false)), Doubtful);
        assert_eq!(status("auto-cpufreq.service", Some(false)), Doubtful);
        assert_eq!(status("auto-cpufreq.service", None), Unknown);
        assert_eq!(judge(&[("tlp.service", false, Some(false))]).status, Good);
    }

    #[test]
    fn a_container_and_a_machine_without_systemd_are_unknown() {
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(POWER_DAEMONS.judge(&facts, &intent()).status, Unknown);
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(POWER_DAEMONS.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod rapl_limit_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    fn judge(facts: &Facts) -> Finding {
        RAPL_LIMIT.judge(facts, &intent())
    }

    #[test]
    fn a_limit_below_the_design_power_is_doubtful_while_it_is_in_force() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::RAPL_LIMIT, "12500000");
        fill_setting(&mut facts, &knobs::RAPL_ENABLED, "1");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "below the design power: intel-raplx 12.5 W of 15 W");
        fill_setting(&mut facts, &knobs::RAPL_ENABLED, "0");
        assert_eq!(judge(&facts).status, Good);
        set_setting(&mut facts, &knobs::RAPL_ENABLED, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn nothing_to_compare_with_is_unknown() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::RAPL_DESIGN, "0");
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::RAPL_LIMIT.id).unwrap();
        setting.values.clear();
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::RAPL_LIMIT.id).unwrap();
        setting.missing_from = Some(Reading::known("/sys/class", "holds no powercap".into()));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}

#[cfg(test)]
mod thermal_throttle_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest, set_setting};

    fn judge(facts: &Facts) -> Finding {
        THERMAL_THROTTLE.judge(facts, &intent())
    }

    #[test]
    fn a_count_since_boot_is_doubtful() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::PACKAGE_THROTTLE_COUNT, "12");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "too hot since boot: the package of CPUs 2-3 up to 12 times");
        set_setting(&mut facts, &knobs::PACKAGE_THROTTLE_COUNT, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_raspberry_pi_reports_throttling_in_bits() {
        let mut facts = good();
        facts.settings.remove(knobs::CORE_THROTTLE_COUNT.id);
        fill_setting(&mut facts, &knobs::PI_THROTTLED, "0");
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::PI_THROTTLED, "50005");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("low voltage now, throttled now"), "{}", finding.summary);
        fill_setting(&mut facts, &knobs::PI_THROTTLED, "hot");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_machine_that_does_not_count_is_unknown_and_a_guest_asks_its_host() {
        let mut facts = good();
        let setting = facts.settings.get_mut(knobs::CORE_THROTTLE_COUNT.id).unwrap();
        setting.values.clear();
        setting.missing_from = Some(Reading::known("/sys/x", "holds no thermal_throttle".into()));
        assert_eq!(judge(&facts).status, Unknown);
        set_guest(&mut facts, "kvm");
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}

#[cfg(test)]
mod usb_autosuspend_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        USB_AUTOSUSPEND.judge(facts, &intent())
    }

    #[test]
    fn a_device_that_may_be_suspended_is_doubtful_and_a_hub_is_not() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        fill_setting(&mut facts, &knobs::USB_AUTOSUSPEND, "auto");
        let finding = judge(&facts);
        assert_eq!((finding.status, finding.summary.as_str()), (Doubtful, "may be suspended: x"));
        fill_setting(&mut facts, &knobs::USB_CLASS, "09");
        assert_eq!(judge(&facts).status, NotApplicable);
    }

    #[test]
    fn no_usb_and_what_is_refused() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::USB_AUTOSUSPEND, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::USB_CLASS.id).unwrap();
        setting.values.clear();
        assert_eq!(judge(&facts).status, Unknown);
        let setting = facts.settings.get_mut(knobs::USB_CLASS.id).unwrap();
        setting.missing_from = Some(Reading::known("/sys/bus", "holds no usb".into()));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
