//! Settings of the firmware that only a person can look up, and firmware that is busy meanwhile.

use rtproof_host::{
    Facts, Reading,
    facts::{
        platform::{FirmwareChoice, FirmwareItem, TICKS},
        virt::Unit,
    },
    knobs::{device as knobs, power},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine, value};

// Which firmware is it, was its set-up checked, and do the visible facts agree?
//
// Most of what firmware does cannot be read. So someone looks through a list once and ticks it
// (`rtproof check tick`); ticks of another firmware are stale, and what the system shows goes over
// what was ticked.

const FIRMWARE: [&str; 3] = ["bios-vendor", "bios-version", "bios-date"];

pub(super) static BIOS_PROFILE: Check = Check {
    id: "bios-profile",
    title: "firmware, and the list of what to set in it",
    why: "its energy profile, C1E, legacy USB and memory scrubbing add latency that no setting of \
          the system takes away",
    source: "Documentation/core-api/real-time/hardware.rst (Firmware); Wu, \"Real-time programming \
             with Linux, part 2\"; Flatscher, \"Real-time Optimizations\"; rigtorp.se, \"Low \
             latency tuning guide\"",
    impact: Impact::Information,
    when: When::Firmware,
    wanted: Wanted::Text("each item looked at in this version of the firmware, and ticked"),
    judge: Judge::Ask(judge_bios_profile),
    ..Check::NEW
};

/// State of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Ticked,
    Open,
    Stale,
    Contradicted,
}

fn judge_bios_profile(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let mut draft = draft;
    let hypervisor = &facts.virt.hypervisor;
    if machine::guest(facts).is_some() {
        let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_default());
        return draft.not_applicable("the firmware of a guest is the hypervisor");
    }
    let mut words = Vec::new();
    for id in FIRMWARE {
        let none = Reading::absent(format!("/sys/class/dmi/id/{}", id.replace('-', "_")));
        let setting = facts.settings.get(id).and_then(|setting| setting.values.first());
        let reading = setting.map_or(&none, |value| &value.reading);
        let Some(word) = reading.value() else {
            return draft.unreadable(reading);
        };
        draft =
            draft.read(reading, |word| if word.is_empty() { "empty".into() } else { word.clone() });
        words.push(word.clone());
    }
    let name = words.join(" ");
    let ticks = &facts.platform.firmware;
    let draft = draft.read(ticks, |ticks| machine::count(ticks.len(), "tick"));
    let Some(ticked) = ticks.value() else {
        return draft.unreadable(ticks);
    };
    let version = version(facts).unwrap_or_default();
    let stands = |item: &'static FirmwareAdvice| (item, item_state(item, ticked, &version, facts));
    let all: Vec<(&FirmwareAdvice, (Standing, String))> = ITEMS.iter().map(stands).collect();
    let draft = draft.evidence(all.iter().map(|(item, (_, value))| Evidence {
        path: format!("{TICKS}: {}", item.id),
        value: value.clone(),
    }));
    let of = |wanted: Standing| -> Vec<&str> {
        all.iter().filter(|(_, (is, _))| *is == wanted).map(|(item, _)| item.id).collect()
    };
    let (open, stale, against) =
        (of(Standing::Open), of(Standing::Stale), of(Standing::Contradicted));
    let parts = [
        (&against, "ticked, and the machine shows otherwise"),
        (&stale, "ticked in another version"),
        (&open, "not ticked"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(ids, _)| !ids.is_empty())
        .map(|(ids, what)| match ids.len() == ITEMS.len() {
            true => format!("all {} items {what}", ITEMS.len()),
            false => format!("{what}: {}", machine::first_few(ids, 4)),
        })
        .collect();
    if parts.is_empty() {
        return draft.good(format!("{name}; all of {} items ticked", ITEMS.len()));
    }
    let summary = format!("{name}; {}", parts.join("; "));
    let draft = draft.remedies([
        Remedy::Manual {
            text: format!(
                "look through the firmware's set-up once: {}",
                machine::first_few(&[against.clone(), stale, open].concat(), ITEMS.len())
            ),
        },
        Remedy::Command { command: "rtproof check tick ITEM".into() },
    ]);
    match against.is_empty() {
        true => draft.unknown(summary),
        false => draft.doubtful(summary),
    }
}

/// Version and date of the firmware, as a tick names it.
pub fn version(facts: &Facts) -> Option<String> {
    let word = |id: &str| facts.settings.get(id)?.values.first()?.reading.value().cloned();
    let words = [word("bios-version")?, word("bios-date")?];
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    // A tick is one line of fields.
    Some(words.join(" ").replace('|', " ")).filter(|words| !words.trim().is_empty())
}

/// State of an item, and in words.
fn item_state(
    item: &FirmwareAdvice,
    ticks: &[FirmwareItem],
    version: &str,
    facts: &Facts,
) -> (Standing, String) {
    let advice = format!("{}; {} ({})", item.advice, item.why, item.source);
    let Some(tick) = ticks.iter().find(|tick| tick.item == item.id) else {
        return (Standing::Open, format!("not ticked: {advice}"));
    };
    let found = match tick.found {
        FirmwareChoice::Set => "set as advised",
        FirmwareChoice::Kept => "otherwise, on purpose",
        FirmwareChoice::Absent => "no such setting",
    };
    let note = if tick.note.is_empty() { String::new() } else { format!(": {}", tick.note) };
    let text = format!("{found}{note}; {} by {}, firmware {}", tick.date, tick.user, tick.firmware);
    if tick.firmware != version {
        return (Standing::Stale, format!("stale, firmware is now {version}: {text}"));
    }
    match (item.against)(facts).filter(|_| tick.found == FirmwareChoice::Set) {
        Some(shown) => (Standing::Contradicted, format!("{shown}, and yet: {text}")),
        None => (Standing::Ticked, text),
    }
}

// What to look for in the set-up of a firmware: the list of the check `bios-profile`, each item
// with its reason and source, and what of it can be seen from the system.

/// A firmware setting that is advised, with its reason and its source.
pub struct FirmwareAdvice {
    /// Name that is ticked.
    pub id: &'static str,
    /// What to set, and the names that firmware gives it.
    pub advice: &'static str,
    pub why: &'static str,
    /// Where that is known from.
    pub source: &'static str,
    /// A fact that contradicts the advised setting.
    pub(crate) against: fn(&Facts) -> Option<String>,
}

const HARDWARE: &str = "Documentation/core-api/real-time/hardware.rst (Firmware)";

const WU: &str = "Wu, \"Real-time programming with Linux, part 2\"";

const FLATSCHER: &str = "Flatscher, \"Real-time Optimizations\"";

const RIGTORP: &str = "rigtorp.se, \"Low latency tuning guide\"";

/// Exit latency from which on an idle state is a deep one: C1 and C1E stay below it.
const DEEP_NS: u64 = 20_000;

/// The list, in the order in which it is shown.
pub const ITEMS: &[FirmwareAdvice] = &[
    FirmwareAdvice {
        id: "smt",
        advice: "one thread a core: Hyper-Threading, SMT off",
        why: "the other thread of a core takes its execution units and first-level cache",
        source: WU,
        against: |facts| {
            let is_active = facts.cpus.smt_active.value() == Some(&true);
            is_active.then(|| "two threads a core are active".into())
        },
    },
    FirmwareAdvice {
        id: "turbo",
        advice: "turbo off: Turbo Boost, Core Performance Boost",
        why: "how high it goes depends on heat, power and the other cores",
        source: FLATSCHER,
        against: |facts| {
            let is =
                |knob, on: &str| value::knob_text(facts, knob).value().is_some_and(|v| v == on);
            let is_on = is(&power::NO_TURBO, "0") || is(&power::BOOST, "1");
            is_on.then(|| "the kernel finds turbo and has it on".into())
        },
    },
    FirmwareAdvice {
        id: "c-states",
        advice: "idle states no deeper than C1: C-states, C1E, package C-state limit",
        why: "a deep idle state takes long to leave; many kernels ignore this setting, so limit \
              them in the system as well (cpuidle-states)",
        source: FLATSCHER,
        against: |facts| {
            let of = |cpu: &rtproof_host::facts::cpu::Cpu| cpu.idle_states.value().cloned();
            let states = facts.cpus.cpus.iter().filter_map(of).flatten();
            let deepest = states.max_by_key(|state| state.exit_latency_ns)?;
            (deepest.exit_latency_ns >= DEEP_NS).then(|| {
                let latency = crate::ns(deepest.exit_latency_ns);
                format!("the kernel has idle state {} ({latency})", deepest.name)
            })
        },
    },
    FirmwareAdvice {
        id: "frequency",
        advice: "no frequency scaling: EIST or SpeedStep, Speed Shift, Cool'n'Quiet, CPPC off",
        why: "the frequency changes with the load; where the kernel sets it, cpufreq-governor does",
        source: WU,
        against: |facts| {
            let scales = |cpu: &rtproof_host::facts::cpu::Cpu| cpu.freq.governor.value().is_some();
            facts.cpus.cpus.iter().any(scales).then(|| "the kernel scales frequencies".into())
        },
    },
    FirmwareAdvice {
        id: "power-profile",
        advice: "power profile for performance: maximum performance, OS control off; real-time \
                 tuning (TCC mode) where there is one",
        why: "an energy-saving profile changes clocks and voltages behind the kernel's back",
        source: RIGTORP,
        against: |_| None,
    },
    FirmwareAdvice {
        id: "usb-legacy",
        advice: "legacy USB support, USB keyboard emulation, port 60/64 emulation off",
        why: "the firmware plays a PS/2 keyboard in system management interrupts, on all CPUs",
        source: HARDWARE,
        against: |_| None,
    },
    FirmwareAdvice {
        id: "smi",
        advice: "other sources of system management interrupts off: TCO watchdog, hardware \
                 monitoring and fan control by the firmware, BMC redirection",
        why: "each stops every CPU for 10 µs to milliseconds, and no kernel can prevent it",
        source: HARDWARE,
        against: |_| None,
    },
    FirmwareAdvice {
        id: "ecc-scrubbing",
        advice: "patrol scrubbing, and the log of corrected memory errors in the firmware, off",
        why: "400 µs every 14 minutes were seen where firmware corrected memory errors",
        source: WU,
        against: |_| None,
    },
    FirmwareAdvice {
        id: "aspm",
        advice: "power management of PCI Express links off: ASPM, L1 substates, Clock PM",
        why: "a link that sleeps delays each access to its device",
        source: HARDWARE,
        against: |_| None,
    },
    FirmwareAdvice {
        id: "thermal",
        advice: "fans at full speed, no power limit below the processor's own (PL1, PL2, cTDP)",
        why: "a processor at its limit of heat or power is slowed down by hardware",
        source: HARDWARE,
        against: |_| None,
    },
    FirmwareAdvice {
        id: "csm",
        advice: "compatibility module (CSM, legacy boot) and unused devices off",
        why: "legacy devices are played by the firmware in system management interrupts",
        source: HARDWARE,
        against: |_| None,
    },
];

// Does something look for new firmware by itself?
//
// fwupd asks devices and the platform's firmware; with some of both that raises system management
// interrupts. Distributions turn its timer on by default.

const TIMER: &str = "fwupd-refresh.timer";

const SERVICE: &str = "fwupd.service";

pub(super) static FWUPD: Check = Check {
    id: "fwupd",
    title: "search for firmware updates (fwupd)",
    why: "its queries of the firmware can raise system management interrupts, which stop all CPUs, \
          isolated ones too",
    source: "openshift/cluster-node-tuning-operator pull request 1591; fwupdmgr(1)",
    trade_off: Some("firmware updates have to be looked for by hand, in a maintenance window"),
    impact: Impact::Hundreds,
    knobs: &[&knobs::FWUPD],
    wanted: Wanted::Text("no timer, not running"),
    judge: Judge::Ask(judge_fwupd),
    ..Check::NEW
};

fn judge_fwupd(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let units = &facts.units;
    let Some(found) = units.value() else {
        return draft.unreadable(units);
    };
    let of = |name: &str| found.get(name).filter(|unit| !unit.masked);
    let shown = |name: &str| Evidence {
        path: found.get(name).map_or(units.path.clone(), |unit| unit.file.clone()),
        value: found.get(name).map_or(format!("no {name}"), state),
    };
    let draft = draft.evidence([Evidence {
        path: units.path.clone(),
        value: format!("{TIMER}, {SERVICE} asked for"),
    }]);
    let draft = draft.evidence([shown(TIMER), shown(SERVICE)]);
    let is_timer = of(TIMER).is_some_and(|unit| unit.enabled);
    let is_running = of(SERVICE).is_some_and(|unit| unit.running == Some(true));
    if !is_timer && !is_running {
        return draft.good(match of(TIMER).or_else(|| of(SERVICE)) {
            Some(_) => "installed, and off",
            None => "not there, or masked",
        });
    }
    let unit = |name: &str, action: &str| Remedy::Unit { unit: name.into(), action: action.into() };
    let timer = is_timer.then(|| unit(TIMER, "disable --now"));
    let service = is_running.then(|| unit(SERVICE, "stop"));
    let what = [(is_timer, "its timer is on"), (is_running, "it runs")];
    let what: Vec<&str> = what.iter().filter(|(is, _)| *is).map(|(_, text)| *text).collect();
    draft.remedies(timer.into_iter().chain(service)).doubtful(what.join(", "))
}

fn state(unit: &Unit) -> String {
    let mut words = vec![if unit.enabled { "enabled" } else { "not enabled" }];
    words.extend(unit.masked.then_some("masked"));
    words.extend(unit.running.map(|running| if running { "running" } else { "not running" }));
    words.join(", ")
}

// Is this a laptop? Its power management is the firmware's, and shows after hours.
//
// The kind of case is what the maker says; a battery and a lid are what is there. A mouse's
// battery belongs to a device, and a UPS is no battery of the machine.

/// Kinds of case from 1 on (SMBIOS 7.4.1).
const CASES: [&str; 36] = [
    "other",
    "unknown",
    "desktop",
    "low profile desktop",
    "pizza box",
    "mini tower",
    "tower",
    "portable",
    "laptop",
    "notebook",
    "hand-held",
    "docking station",
    "all in one",
    "sub-notebook",
    "space-saving",
    "lunch box",
    "main server chassis",
    "expansion chassis",
    "sub-chassis",
    "bus expansion chassis",
    "peripheral chassis",
    "RAID chassis",
    "rack mount chassis",
    "sealed-case PC",
    "multi-system chassis",
    "compact PCI",
    "Advanced TCA",
    "blade",
    "blade enclosure",
    "tablet",
    "convertible",
    "detachable",
    "IoT gateway",
    "embedded PC",
    "mini PC",
    "stick PC",
];

/// Kinds that are carried about.
const PORTABLE: &[u32] = &[8, 9, 10, 11, 14, 30, 31, 32];

/// Kinds without information; a docking station may be said of what is docked.
const VAGUE: &[u32] = &[1, 2, 12];

/// Name of a kind of case; `None`: one that came later.
fn case_name(code: u32) -> Option<&'static str> {
    let at = usize::try_from(code.checked_sub(1)?).ok()?;
    CASES.get(at).copied()
}

pub(super) static LAPTOP: Check = Check {
    id: "laptop",
    title: "laptop, notebook or tablet",
    why: "an embedded controller manages power, heat and battery in system management interrupts; \
          a laptop may do well most of the time and be milliseconds late after hours",
    source: "Flatscher, \"Real-time Optimizations\" (a T14 notebook: up to 2 ms in long runs); \
             SMBIOS specification, 7.4.1; \
             Documentation/core-api/real-time/hardware.rst",
    impact: Impact::Milliseconds,
    when: When::Firmware,
    knobs: &[&knobs::CHASSIS, &knobs::SUPPLY, &knobs::SUPPLY_SCOPE, &knobs::LID],
    wanted: Wanted::Text("a desktop, server or industrial computer"),
    judge: Judge::Ask(judge_laptop),
    ..Check::NEW
};

fn judge_laptop(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    if machine::guest(facts).is_some() {
        let hypervisor = &facts.virt.hypervisor;
        let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_default());
        return draft.not_applicable("a guest has the case and the battery of its host");
    }
    let chassis = value::knob_number(facts, &knobs::CHASSIS);
    let code = chassis.value().and_then(|code| u32::try_from(*code).ok());
    let case = code.and_then(case_name);
    let named = |code| format!("{code}, {}", case.unwrap_or("a kind that rtproof does not know"));
    let kind = case.filter(|_| code.is_some_and(|code| PORTABLE.contains(&code)));
    let draft = draft.read(&chassis, |&code| named(code));
    let batteries = batteries(facts);
    let lids: Vec<Evidence> = value::knob_values(facts, &knobs::LID)
        .iter()
        .filter(|lid| lid.reading.value().is_some())
        .map(|lid| Evidence::of(&lid.reading, String::clone))
        .collect();
    let has_lid = !lids.is_empty();
    let has_battery = !batteries.is_empty();
    let draft = draft.evidence(batteries).evidence(lids);
    let parts = [(has_battery, "a battery"), (has_lid, "a lid")];
    let parts: Vec<&str> = parts.iter().filter(|(has, _)| *has).map(|(_, what)| *what).collect();
    let with =
        if parts.is_empty() { String::new() } else { format!(" with {}", parts.join(" and ")) };
    let looks = has_battery && has_lid;
    let is_vague = case.is_none() || code.is_none_or(|code| VAGUE.contains(&code));
    if let Some(kind) = kind {
        return warned(draft, &format!("this is a {kind}{with}"));
    }
    if looks || is_vague && has_battery {
        return warned(draft, &format!("this looks like a laptop: it comes{with}"));
    }
    match (code, is_vague) {
        (None, _) => draft.unreadable(&chassis),
        (Some(code), true) => {
            draft.unknown(format!("no kind of case that tells ({})", named(code.into())))
        }
        (Some(code), false) => {
            draft.good(format!("no laptop by its case ({}){with}", named(code.into())))
        }
    }
}

/// Batteries of the machine itself.
fn batteries(facts: &Facts) -> Vec<Evidence> {
    let scopes = value::knob_values(facts, &knobs::SUPPLY_SCOPE);
    let is_of_device = |name: &str| {
        let scope = scopes.iter().find(|scope| scope.of == name);
        scope.and_then(|scope| scope.reading.value()).is_some_and(|scope| scope == "Device")
    };
    value::knob_values(facts, &knobs::SUPPLY)
        .iter()
        .filter(|one| one.reading.value().is_some_and(|kind| kind == "Battery"))
        .filter(|one| !is_of_device(&one.of))
        .map(|one| Evidence::of(&one.reading, String::clone))
        .collect()
}

fn warned(draft: FindingBuilder, what: &str) -> Finding {
    draft
        .remedies([
            Remedy::Manual {
                text: "do not conclude from a laptop to the machine in the field. Where it has to \
                       be one: on mains power, battery charged, lid open, performance profile, \
                       cooled, and measured for hours"
                    .into(),
            },
            Remedy::Command { command: "rtproof prove --for 12h".into() },
        ])
        .doubtful(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest, set_setting};
    use rtproof_host::knobs::device as knobs;

    fn judge(facts: &Facts) -> Finding {
        BIOS_PROFILE.judge(facts, &intent())
    }

    fn with(change: impl Fn(&mut Vec<FirmwareItem>)) -> Facts {
        let mut facts = good();
        let mut ticks = facts.platform.firmware.value().cloned().unwrap();
        change(&mut ticks);
        facts.platform.firmware = Reading::known(TICKS, ticks);
        facts
    }

    #[test]
    fn ticked_in_this_version_is_good() {
        let finding = judge(&good());
        assert_eq!(finding.status, Good);
        let summary = "American Megatrends Inc. 2.1 01/02/2024; all of 11 items ticked";
        assert_eq!(finding.summary, summary);
        let smt = finding.evidence.iter().find(|it| it.path.ends_with(": smt")).unwrap();
        assert_eq!(smt.value, "set as advised; 2026-11-25 by alice, firmware 2.1 01/02/2024");
    }

    #[test]
    fn unchecked_items_are_unknown() {
        let finding = judge(&with(Vec::clear));
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.ends_with("; all 11 items not ticked"), "{}", finding.summary);
        let text = format!("{:?}", finding.evidence);
        assert!(text.contains("400 µs every 14 minutes"), "{text}");
        let finding = judge(&with(|ticks| ticks.retain(|tick| tick.item != "csm")));
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.ends_with("; not ticked: csm"), "{}", finding.summary);
        let mut facts = good();
        facts.platform.firmware = Reading::denied(TICKS, "EACCES");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn another_version_makes_ticks_stale() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::BIOS_VERSION, "2.2");
        let finding = judge(&facts);
        assert_eq!(finding.status, Unknown);
        let summary =
            "American Megatrends Inc. 2.2 01/02/2024; all 11 items ticked in another version";
        assert_eq!(finding.summary, summary);
        assert!(finding.evidence.iter().any(|it| it.value.starts_with("stale, firmware is now")));
    }

    #[test]
    fn what_the_machine_shows_contradicts_a_tick() {
        let mut facts = good();
        facts.cpus.smt_active = Reading::known("/sys/x", true);
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("shows otherwise: smt"), "{}", finding.summary);
        let set = |item: &'static str| {
            judge(&with(|ticks| {
                ticks.iter_mut().filter(|tick| tick.item == item).for_each(|tick| {
                    tick.found = FirmwareChoice::Set;
                });
            }))
        };
        assert_eq!(set("c-states").status, Doubtful, "C6 is there");
        assert_eq!(set("frequency").status, Doubtful, "a governor is there");
        assert_eq!(set("aspm").status, Good, "nothing shows");
    }

    #[test]
    fn every_item_has_advice_reason_and_source() {
        let mut ids: Vec<&str> = ITEMS.iter().map(|item| item.id).collect();
        for item in ITEMS {
            assert!(!item.advice.is_empty() && !item.why.is_empty() && !item.source.is_empty());
            assert!(item.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", item.id);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ITEMS.len());
    }

    #[test]
    fn a_guest_and_a_board_without_dmi() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::BIOS_DATE, Reading::absent("x"));
        assert_eq!(judge(&facts).status, Unknown);
        set_guest(&mut facts, "KVM");
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}

#[cfg(test)]
mod fwupd_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(name: &str, enabled: bool, masked: bool, running: Option<bool>) -> Finding {
        let mut facts = good();
        let file = format!("/usr/lib/systemd/system/{name}");
        let units = [(name.to_owned(), Unit { file, enabled, masked, running })].into();
        facts.units = Reading::known("/etc/systemd/system", units);
        FWUPD.judge(&facts, &intent())
    }

    #[test]
    fn what_is_on_is_named() {
        assert_eq!(FWUPD.judge(&good(), &intent()).status, Good);
        let finding = with(TIMER, true, false, None);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies[0].to_string(), "systemctl disable --now fwupd-refresh.timer");
        assert_eq!(with(TIMER, true, true, None).status, Good);
        assert_eq!(with(TIMER, false, false, None).status, Good);
        assert_eq!(with(SERVICE, false, false, Some(true)).summary, "it runs");
    }

    #[test]
    fn units_that_cannot_be_read() {
        let mut facts = good();
        facts.units = Reading::denied("/etc/systemd/system", "EACCES");
        assert_eq!(FWUPD.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod laptop_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest, set_setting};
    use rtproof_host::{
        Reading,
        facts::settings::{Setting, SettingValue},
    };

    fn judge(facts: &Facts) -> Finding {
        LAPTOP.judge(facts, &intent())
    }

    /// A machine with a case (`""`: none is known), supplies as (name, type, scope), and lids.
    fn machine(case: &str, supplies: &[(&str, &str, &str)], lids: &[&str]) -> Facts {
        let mut facts = good();
        match case {
            "" => set_setting(&mut facts, &knobs::CHASSIS, Reading::absent("/sys/class/dmi/id")),
            case => fill_setting(&mut facts, &knobs::CHASSIS, case),
        }
        let mut set = |id: &str, values: Vec<(String, String)>| {
            let value = |(of, text): (String, String)| SettingValue {
                reading: Reading::known(format!("/sys/{of}"), text),
                of,
            };
            let values = values.into_iter().map(value).collect();
            facts.settings.insert(id.into(), Setting { values, missing_from: None });
        };
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        set(knobs::SUPPLY.id, supplies.iter().map(|(of, kind, _)| pair(of, kind)).collect());
        let scopes = supplies.iter().filter(|(_, _, scope)| !scope.is_empty());
        set(knobs::SUPPLY_SCOPE.id, scopes.map(|(of, _, scope)| pair(of, scope)).collect());
        set(knobs::LID.id, lids.iter().map(|lid| pair(lid, "state: open")).collect());
        facts
    }

    const BATTERY: (&str, &str, &str) = ("BAT0", "Battery", "");
    const MAINS: (&str, &str, &str) = ("AC", "Mains", "");

    #[test]
    fn by_its_case() {
        assert_eq!(judge(&machine("3", &[MAINS], &[])).status, Good);
        for code in ["8", "9", "10", "14", "30", "31", "32"] {
            assert_eq!(judge(&machine(code, &[], &[])).status, Doubtful, "{code}");
        }
        let finding = judge(&machine("10", &[MAINS, BATTERY], &["LID"]));
        assert_eq!(finding.summary, "this is a notebook with a battery and a lid");
    }

    #[test]
    fn by_what_is_there() {
        assert_eq!(judge(&machine("2", &[BATTERY], &["LID0"])).status, Doubtful);
        assert_eq!(judge(&machine("", &[BATTERY], &[])).status, Doubtful);
        assert_eq!(judge(&machine("3", &[BATTERY], &["LID0"])).status, Doubtful);
        let mouse = ("hidpp_battery_0", "Battery", "Device");
        assert_eq!(judge(&machine("3", &[mouse], &[])).status, Good);
        assert_eq!(judge(&machine("1", &[mouse], &[])).status, Unknown, "no word of its maker");
        assert_eq!(judge(&machine("17", &[("ups", "UPS", "System")], &[])).status, Good);
        assert_eq!(judge(&machine("17", &[BATTERY], &[])).status, Good, "a controller's battery");
    }

    #[test]
    fn without_dmi_it_is_unknown_and_a_guest_has_none() {
        assert_eq!(judge(&machine("", &[], &[])).status, Unknown);
        let mut facts = machine("10", &[BATTERY], &[]);
        set_guest(&mut facts, "KVM");
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
