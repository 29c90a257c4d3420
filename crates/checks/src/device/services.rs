//! Services and timers that wake up at their own times: one finding each, which names them.

use rtproof_host::knob::Place;
use rtproof_host::{Facts, Knob, knobs::device as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Remedy};
use crate::{machine, text};

/// Most units named in a summary.
const NAMED_MAX: usize = 6;

pub(super) static TIMERS: Check = Check {
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
        judge(draft, facts, &knobs::TIMERS, "no timer of this kind is enabled")
    }),
    ..Check::NEW
};

pub(super) static MONITORS: Check = Check {
    id: "monitoring-daemons",
    title: "daemons that measure the machine",
    why: "they ask every CPU for its counters, which interrupts it, and run on any CPU that they \
          may",
    source: "arch/x86/lib/msr-smp.c (rdmsr_on_cpu interrupts the CPU); netdata issue 6741",
    trade_off: Some("nobody then sees how the machine does"),
    knobs: &[&knobs::MONITORS],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(|draft, facts, _| {
        judge(draft, facts, &knobs::MONITORS, "no such daemon runs or is enabled")
    }),
    ..Check::NEW
};

pub(super) static DESKTOP: Check = Check {
    id: "bluetooth-etc",
    title: "services of a desktop: bluetooth, printing, modems, smart cards, discovery",
    why: "they wake up by themselves, and some poll their devices, USB ones above all",
    source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst (timers and soft interrupts of \
             what runs beside); systemd.unit(5)",
    knobs: &[&knobs::DESKTOP_SERVICES],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(|draft, facts, _| {
        let knob = &knobs::DESKTOP_SERVICES;
        judge(draft, facts, knob, "no such service runs or is enabled")
    }),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, knob: &Knob, none: &'static str) -> Finding {
    let Some(units) = facts.units.value() else {
        return draft.blind(&facts.units);
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
        [] => format!("none of them, {} installed and off", text::count(quiet, "unit")),
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
    draft.remedies(remedies).doubtful(text::first_few(&shown, NAMED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;
    use rtproof_host::facts::units::Unit;

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
    fn without_systemd_and_inside_a_container_nobody_knows() {
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(MONITORS.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(DESKTOP.judge(&facts, &intent()).status, Unknown);
    }
}
