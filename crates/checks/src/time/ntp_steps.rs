//! Who sets the time of day?
//!
//! A daemon may step CLOCK_REALTIME; CLOCK_MONOTONIC is only made a little faster or slower. So one
//! daemon is good to know, and two that pull at one clock are not good.

use rtproof_host::{
    Facts,
    facts::units::{Unit, Units},
    knob::Place,
    knobs::time as knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::container;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "ntp-steps",
    title: "daemons that set the time of day",
    why: "an application that waits on CLOCK_REALTIME is late or early by each step of that clock, \
          which a time daemon makes; CLOCK_MONOTONIC has no steps",
    source: "clock_settime(2), clock_nanosleep(2); adjtimex(2) (a change of frequency is at most \
             500 ppm); chrony.conf(5) (makestep)",
    impact: Impact::Information,
    knobs: &[&knobs::NTP],
    wanted: Wanted::Text("at most one"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.units;
    let draft = draft.saw([Evidence::of(reading, show)]);
    let Some(units) = reading.value() else {
        return draft.blind(reading);
    };
    if let Some(name) = container(facts) {
        return draft
            .read(&facts.virt.container, |_| name.into())
            .unknown(format!("inside a {name} container the host's time daemon is not seen"));
    }
    let active: Vec<&str> =
        daemons(units).filter(|(_, unit)| is_active(unit)).map(|(name, _)| name).collect();
    match active.as_slice() {
        [] => draft.good("no daemon that this check knows"),
        [one] => draft.good(format!("{one} may step CLOCK_REALTIME, not CLOCK_MONOTONIC")),
        several => {
            let remedies: Vec<Remedy> = several[1..]
                .iter()
                .map(|&unit| Remedy::Unit { unit: unit.into(), action: "disable --now".into() })
                .collect();
            draft
                .remedies(remedies)
                .doubtful(format!("{} pull at one clock", several.join(" and ")))
        }
    }
}

fn daemons(units: &Units) -> impl Iterator<Item = (&str, &Unit)> {
    let known = match knobs::NTP.place {
        Place::Units(known) => known,
        _ => &[],
    };
    let of = move |(name, unit)| {
        let name: &String = name;
        known.contains(&name.as_str()).then_some((name.as_str(), unit))
    };
    units.iter().filter_map(of)
}

/// Whether it runs; where that is unknown, whether it will.
fn is_active(unit: &Unit) -> bool {
    unit.running.unwrap_or(unit.enabled && !unit.masked)
}

fn show(units: &Units) -> String {
    let word = |unit: &Unit| match unit.running {
        Some(true) => "running",
        Some(false) => "not running",
        None if unit.enabled => "enabled",
        None => "not enabled",
    };
    let words: Vec<String> =
        daemons(units).map(|(name, unit)| format!("{name} {}", word(unit))).collect();
    if words.is_empty() { "no time daemon".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn judge(running: &[(&str, Option<bool>)]) -> Finding {
        let unit = |&(name, running): &(&str, Option<bool>)| {
            let file = format!("/usr/lib/systemd/system/{name}");
            (name.to_owned(), Unit { file, enabled: true, masked: false, running })
        };
        let mut facts = good();
        let units = running.iter().map(unit).collect();
        facts.units = Reading::known("/usr/lib/systemd/system", units);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn none_or_one_is_good_two_are_doubtful() {
        assert_eq!(judge(&[("irqbalance.service", Some(true))]).status, Good);
        let one = [("chrony.service", Some(true)), ("systemd-timesyncd.service", Some(false))];
        let finding = judge(&one);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.starts_with("chrony.service may step"), "{}", finding.summary);
        let two = [("chrony.service", Some(true)), ("systemd-timesyncd.service", None)];
        let finding = judge(&two);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies.len(), 1);
    }

    #[test]
    fn a_container_does_not_see_the_host() {
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
