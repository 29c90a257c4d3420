//! Which firmware decides, who looked through its set-up, and does what shows agree?
//!
//! Most of what firmware does cannot be read. So someone looks through a list once and ticks it
//! (`rtproof check tick`); ticks of another firmware are stale, and what the system shows goes over
//! what was ticked.

use rtproof_host::{
    Facts, Reading,
    facts::platform::firmware::{Found, TICKS, Tick},
};

use super::firmware_list::{ITEMS, Item};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

const FIRMWARE: [&str; 3] = ["bios-vendor", "bios-version", "bios-date"];

pub(super) static CHECK: Check = Check {
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
    judge: Judge::Ask(judge),
    ..Check::NEW
};

/// How an item stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Ticked,
    Open,
    Stale,
    Contradicted,
}

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
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
            return draft.blind(reading);
        };
        draft =
            draft.read(reading, |word| if word.is_empty() { "empty".into() } else { word.clone() });
        words.push(word.clone());
    }
    let name = words.join(" ");
    let ticks = &facts.platform.firmware;
    let draft = draft.read(ticks, |ticks| text::count(ticks.len(), "tick"));
    let Some(ticked) = ticks.value() else {
        return draft.blind(ticks);
    };
    let version = version(facts).unwrap_or_default();
    let stands = |item: &'static Item| (item, standing(item, ticked, &version, facts));
    let all: Vec<(&Item, (Standing, String))> = ITEMS.iter().map(stands).collect();
    let draft = draft.saw(all.iter().map(|(item, (_, value))| Evidence {
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
            false => format!("{what}: {}", text::first_few(ids, 4)),
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
                text::first_few(&[against.clone(), stale, open].concat(), ITEMS.len())
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

/// How an item stands, and in words.
fn standing(item: &Item, ticks: &[Tick], version: &str, facts: &Facts) -> (Standing, String) {
    let advice = format!("{}; {} ({})", item.advice, item.why, item.source);
    let Some(tick) = ticks.iter().find(|tick| tick.item == item.id) else {
        return (Standing::Open, format!("not ticked: {advice}"));
    };
    let found = match tick.found {
        Found::Set => "set as advised",
        Found::Kept => "otherwise, on purpose",
        Found::Absent => "no such setting",
    };
    let note = if tick.note.is_empty() { String::new() } else { format!(": {}", tick.note) };
    let said = format!("{found}{note}; {} by {}, firmware {}", tick.date, tick.who, tick.firmware);
    if tick.firmware != version {
        return (Standing::Stale, format!("stale, firmware is now {version}: {said}"));
    }
    match (item.against)(facts).filter(|_| tick.found == Found::Set) {
        Some(shown) => (Standing::Contradicted, format!("{shown}, and yet: {said}")),
        None => (Standing::Ticked, said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest, set_setting};
    use rtproof_host::knobs::platform as knobs;

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    fn with(change: impl Fn(&mut Vec<Tick>)) -> Facts {
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
    fn what_nobody_looked_at_is_unknown() {
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
                    tick.found = Found::Set;
                });
            }))
        };
        assert_eq!(set("c-states").status, Doubtful, "C6 is there");
        assert_eq!(set("frequency").status, Doubtful, "a governor is there");
        assert_eq!(set("aspm").status, Good, "nothing shows");
    }

    #[test]
    fn every_item_says_what_why_and_where_from() {
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
