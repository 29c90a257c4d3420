//! Which daemons set frequencies and power behind everybody's back?
//!
//! power-profiles-daemon, tlp, tuned and others write the same files, each at its own moments: what
//! was set by hand holds until the next one. tuned alone is no fault, it does what its profile
//! says; two of them undo each other (power-profiles-daemon names its rivals in `Conflicts=`).

use rtproof_host::{Facts, facts::units::Unit, knobs::power as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::container;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

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

pub(super) static CHECK: Check = Check {
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
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let Some(units) = facts.units.value() else {
        return draft.blind(&facts.units);
    };
    let rtproof_host::knob::Place::Units(named) = knobs::POWER_DAEMONS.place else {
        return draft.blind(&facts.units);
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
            .doubtful(format!("not running now, but enabled: {}", text::first_few(&later, 4)));
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

#[cfg(test)]
mod tests {
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
        CHECK.judge(&facts, &intent())
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
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
