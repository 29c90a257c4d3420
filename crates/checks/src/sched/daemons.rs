//! Daemons that change who is real-time: rtkit gives priorities to desktop programs, stalld runs
//! starved tasks ahead of real-time ones.

use rtproof_host::{Facts, facts::units::Unit, knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::container;
use crate::profile::Kind;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

/// Highest priority that rtkit hands out unless configured otherwise.
const RTKIT_PRIORITY_MAX: u32 = 20;

const RTKIT_UNIT: &str = "rtkit-daemon.service";
const STALLD_UNIT: &str = "stalld.service";

/// State of a unit as far as it is known.
enum State<'a> {
    Running(Draft),
    Stopped(Draft, &'a Unit),
    Missing(Draft),
    Settled(Finding),
}

fn state<'a>(draft: Draft, facts: &'a Facts, name: &str) -> State<'a> {
    let units = &facts.units;
    let Some(found) = units.value() else {
        return State::Settled(draft.blind(units));
    };
    if let Some(name) = container(facts) {
        return State::Settled(
            draft
                .read(&facts.virt.container, |_| name.into())
                .unknown(format!("inside a {name} container the host's services are not seen")),
        );
    }
    let unit = found.get(name);
    let draft = draft.saw([Evidence {
        path: units.path.clone(),
        value: unit.map_or_else(|| format!("no {name}"), |unit| show(name, unit)),
    }]);
    match unit {
        None => State::Missing(draft),
        Some(unit) if unit.running == Some(true) => State::Running(draft),
        Some(unit) if unit.running == Some(false) => State::Stopped(draft, unit),
        Some(_) => State::Settled(
            draft.unknown(format!("{name} is installed; whether it runs is unknown")),
        ),
    }
}

fn show(name: &str, unit: &Unit) -> String {
    let mut words = vec![if unit.enabled { "enabled" } else { "not enabled" }];
    words.extend(unit.masked.then_some("masked"));
    words.extend(unit.running.map(|running| if running { "running" } else { "not running" }));
    format!("{name}: {}", words.join(", "))
}

fn stop(unit: &str) -> Remedy {
    Remedy::Unit { unit: unit.into(), action: "mask --now".into() }
}

pub(super) static RTKIT: Check = Check {
    id: "rtkit",
    title: "real-time priorities for programs of the desktop (rtkit)",
    why: "rtkit makes threads of desktop programs real-time, up to priority 20 unless told \
          otherwise, and takes it from them again when its own ordinary thread starves",
    source: "rtkit-daemon.c (max_realtime_priority 20, canary thread, watchdog at priority 99)",
    trade_off: Some(
        "sound servers get their priority from it where their user has no rtprio limit",
    ),
    impact: Impact::Hundreds,
    knobs: &[&knobs::sched::RTKIT],
    judge: Judge::Ask(judge_rtkit),
    ..Check::NEW
};

fn judge_rtkit(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let is_audio = intent.profile.kind == Kind::Audio;
    let draft = draft.wants(if is_audio { "known" } else { "not running, or below you" });
    match state(draft, facts, RTKIT_UNIT) {
        State::Settled(finding) => finding,
        State::Missing(draft) => draft.good("not installed"),
        State::Stopped(draft, unit) if unit.masked => draft.good("masked"),
        State::Stopped(draft, _) => {
            draft.good("not running; it starts when a program asks for a priority")
        }
        State::Running(draft) if is_audio => {
            draft.good("running: sound servers may get their priority from it")
        }
        State::Running(draft) if intent.priority > RTKIT_PRIORITY_MAX => draft.good(format!(
            "running; what it grants by default is at most {RTKIT_PRIORITY_MAX}, below \
                 your FIFO {}",
            intent.priority
        )),
        State::Running(draft) => draft.remedies([stop(RTKIT_UNIT)]).doubtful(format!(
            "running: programs of the desktop may get up to {RTKIT_PRIORITY_MAX}, not below \
             your {}",
            intent.priority
        )),
    }
}

pub(super) static STALLD: Check = Check {
    id: "stalld",
    title: "starved tasks run ahead of real-time ones (stalld)",
    why: "stalld gives a starved task SCHED_DEADLINE, which runs in front of every priority: 20 µs \
          of each second by default",
    source: "stalld(8); OpenShift, profile openshift-node-performance (stalld started for \
             real-time)",
    trade_off: Some(
        "where a real-time task owns its CPU and throttling is off, threads of the kernel on that \
         CPU starve without it, and the machine may hang. OpenShift starts it for that reason",
    ),
    knobs: &[&knobs::sched::STALLD],
    judge: Judge::Ask(judge_stalld),
    ..Check::NEW
};

fn judge_stalld(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let owns_cpus = matches!(
        intent.profile.kind,
        Kind::BusyPoll | Kind::ContainerHost | Kind::RtVmHost | Kind::RtVmGuest
    );
    let wanted = if owns_cpus { "known" } else { "not running" };
    match state(draft.wants(wanted), facts, STALLD_UNIT) {
        State::Settled(finding) => finding,
        State::Missing(draft) => draft.good("not installed"),
        State::Stopped(draft, unit) if unit.enabled && !unit.masked && !owns_cpus => draft
            .remedies([stop(STALLD_UNIT)])
            .doubtful("not running now, but enabled: it starts at the next boot"),
        State::Stopped(draft, _) => draft.good("not running"),
        State::Running(draft) if owns_cpus => {
            draft.good("running: starved tasks get 20 µs of each second unless told otherwise")
        }
        State::Running(draft) => draft
            .remedies([stop(STALLD_UNIT)])
            .doubtful("running: it runs starved tasks in front of the application"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(name: &str, enabled: bool, running: Option<bool>) -> Facts {
        let mut facts = good();
        let file = format!("/usr/lib/systemd/system/{name}");
        let unit = Unit { file, enabled, masked: false, running };
        let units = [(name.to_owned(), unit)].into();
        facts.units = Reading::known(facts.units.path.clone(), units);
        facts
    }

    fn for_kind(kind: Kind, priority: u32) -> Intent {
        Intent { profile: Profile::of(kind), priority, ..intent() }
    }

    #[test]
    fn rtkit_by_priority_and_work() {
        let judge = |facts: &Facts, intent: &Intent| RTKIT.judge(facts, intent).status;
        let running = with(RTKIT_UNIT, false, Some(true));
        assert_eq!(judge(&good(), &intent()), Good);
        assert_eq!(judge(&running, &intent()), Good);
        assert_eq!(judge(&running, &for_kind(Kind::Periodic, 20)), Doubtful);
        assert_eq!(judge(&running, &for_kind(Kind::Audio, 15)), Good);
        assert_eq!(judge(&with(RTKIT_UNIT, false, Some(false)), &intent()), Good);
        assert_eq!(judge(&with(RTKIT_UNIT, false, None), &intent()), Unknown);
    }

    #[test]
    fn stalld_by_work() {
        let judge = |facts: &Facts, kind| STALLD.judge(facts, &for_kind(kind, 80)).status;
        let running = with(STALLD_UNIT, true, Some(true));
        assert_eq!(judge(&good(), Kind::Periodic), Good);
        assert_eq!(judge(&running, Kind::Periodic), Doubtful);
        assert_eq!(judge(&running, Kind::ContainerHost), Good);
        assert_eq!(judge(&with(STALLD_UNIT, true, Some(false)), Kind::Periodic), Doubtful);
        assert_eq!(judge(&with(STALLD_UNIT, false, Some(false)), Kind::Periodic), Good);
    }

    #[test]
    fn services_that_cannot_be_seen_are_unknown() {
        let mut facts = good();
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(RTKIT.judge(&facts, &intent()).status, Unknown);
        let mut facts = with(STALLD_UNIT, false, Some(false));
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        let finding = STALLD.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("podman"), "{}", finding.summary);
    }
}
