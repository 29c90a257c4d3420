//! Does something look for new firmware by itself?
//!
//! fwupd asks devices and the platform's firmware; with some of both that raises system management
//! interrupts. Distributions turn its timer on by default.

use rtproof_host::{Facts, facts::units::Unit, knobs::platform as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

const TIMER: &str = "fwupd-refresh.timer";
const SERVICE: &str = "fwupd.service";

pub(super) static CHECK: Check = Check {
    id: "fwupd",
    title: "search for firmware updates (fwupd)",
    why: "its queries of the firmware can raise system management interrupts, which stop all CPUs, \
          isolated ones too",
    source: "openshift/cluster-node-tuning-operator pull request 1591; fwupdmgr(1)",
    trade_off: Some("firmware updates have to be looked for by hand, in a maintenance window"),
    impact: Impact::Hundreds,
    knobs: &[&knobs::FWUPD],
    wanted: Wanted::Text("no timer, not running"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let units = &facts.units;
    let Some(found) = units.value() else {
        return draft.blind(units);
    };
    let of = |name: &str| found.get(name).filter(|unit| !unit.masked);
    let shown = |name: &str| Evidence {
        path: found.get(name).map_or(units.path.clone(), |unit| unit.file.clone()),
        value: found.get(name).map_or(format!("no {name}"), state),
    };
    let draft = draft.saw([Evidence {
        path: units.path.clone(),
        value: format!("{TIMER}, {SERVICE} asked for"),
    }]);
    let draft = draft.saw([shown(TIMER), shown(SERVICE)]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(name: &str, enabled: bool, masked: bool, running: Option<bool>) -> Finding {
        let mut facts = good();
        let file = format!("/usr/lib/systemd/system/{name}");
        let units = [(name.to_owned(), Unit { file, enabled, masked, running })].into();
        facts.units = Reading::known("/etc/systemd/system", units);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn what_is_on_is_named() {
        assert_eq!(CHECK.judge(&good(), &intent()).status, Good);
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
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
