//! Does something reset a machine that a real-time task has locked up?
//!
//! Only where nothing else does: with throttling or the fair server, ordinary tasks run on now and
//! then, and an administrator can log in. Not about latency: about what turning them off costs.

use rtproof_host::{Facts, facts::settings::Setting, knobs};

use super::rt_throttling::has_groups;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{option, since};
use crate::text;
use crate::value::grouped;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "watchdog-daemon",
    title: "a watchdog, where nothing limits real-time tasks",
    why: "without a limit a real-time task that never sleeps locks its CPU up for good, and with \
          it what waits for that CPU",
    source: "Documentation/ABI/testing/sysfs-class-watchdog; \
             Documentation/watchdog/watchdog-api.rst; systemd-system.conf(5), RuntimeWatchdogSec=",
    trade_off: Some("a watchdog resets the machine when its daemon starves, for whatever reason"),
    impact: Impact::Information,
    knobs: &[&knobs::sched::WATCHDOG_STATE, &knobs::sched::WATCHDOG_DAEMON],
    wanted: Wanted::Text("armed, or real-time tasks limited"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let limit = limited(facts, intent);
    if let Limit::Some(evidence, what) = limit {
        return draft.saw(evidence).good(format!("not needed: {what}"));
    }
    let empty = Setting { values: Vec::new(), lacking: None };
    let setting = facts.settings.get(knobs::sched::WATCHDOG_STATE.id).unwrap_or(&empty);
    let devices: Vec<_> = setting.values.iter().collect();
    let draft = draft.saw(grouped(&devices));
    let is = |state: &str| {
        let mut states = devices.iter().filter_map(|device| device.reading.value());
        states.any(|found| found == state)
    };
    if is("active") {
        return draft.good("a watchdog is armed");
    }
    let draft = draft.saw(limit.evidence());
    if let Limit::Unknown(_, why) = limit {
        return draft.unknown(format!("no watchdog is seen to be armed, and {why}"));
    }
    let draft = draft.remedies([Remedy::File {
        path: "/etc/systemd/system.conf.d/90-rtproof-watchdog.conf".into(),
        line: "[Manager] RuntimeWatchdogSec=30s".into(),
    }]);
    if is("inactive") {
        return draft.doubtful(format!(
            "nothing limits real-time tasks, and of {} none is armed",
            text::count(devices.len(), "watchdog")
        ));
    }
    if let Some(device) = devices.first() {
        return draft.blind(&device.reading);
    }
    match setting.lacking.as_ref().filter(|reading| reading.value().is_some()) {
        Some(lacking) => draft
            .read(lacking, String::clone)
            .doubtful("nothing limits real-time tasks, and no watchdog is seen"),
        None => draft
            .saw([Evidence { path: "/sys/class/watchdog".into(), value: "not there".into() }])
            .unknown("nothing limits real-time tasks; /sys/class/watchdog: not there"),
    }
}

/// Whether something limits real-time tasks on the real-time CPUs, and what shows it.
enum Limit {
    Some(Vec<Evidence>, &'static str),
    None(Vec<Evidence>),
    Unknown(Vec<Evidence>, &'static str),
}

impl Limit {
    fn evidence(&self) -> Vec<Evidence> {
        match self {
            Self::Some(evidence, _) | Self::None(evidence) | Self::Unknown(evidence, _) => {
                evidence.clone()
            }
        }
    }
}

fn limited(facts: &Facts, intent: &Intent) -> Limit {
    let servers = &facts.sched.fair_server;
    let (runtime, period) = (&facts.sched.rt_runtime_us, &facts.sched.rt_period_us);
    let throttling =
        || vec![Evidence::of(runtime, i64::to_string), Evidence::of(period, i64::to_string)];
    let is_throttled = match (runtime.value(), period.value()) {
        (Some(runtime_us), _) if *runtime_us < 0 => Some(false),
        (Some(runtime_us), Some(period_us)) => Some(runtime_us < period_us),
        _ => None,
    };
    if is_throttled == Some(true) && has_groups(facts) == Some(true) {
        let mut evidence = vec![
            option(facts, "RT_GROUP_SCHED"),
            Evidence::of(&facts.kernel.cmdline, |_| "rt_group_sched= leaves it on".into()),
        ];
        evidence.extend(throttling());
        return Limit::Some(evidence, "RT throttling stops real-time tasks");
    }
    if let Some(found) = servers.value() {
        let evidence = vec![Evidence::of(servers, |found| super::servers::show(found))];
        let is_meant = |cpu| intent.rt_cpus.is_empty() || intent.rt_cpus.contains(cpu);
        let mut meant = found.iter().filter(|server| is_meant(server.cpu)).peekable();
        return match meant.peek().is_some() && meant.all(|server| server.runtime_ns > 0) {
            true => Limit::Some(evidence, "the fair server runs ordinary tasks"),
            false => Limit::None(evidence),
        };
    }
    let version = &facts.kernel.version;
    let mut evidence = vec![Evidence::of(version, |(major, minor)| format!("{major}.{minor}"))];
    match (since(facts, (6, 12)), is_throttled) {
        (Some(false), Some(is_throttled)) => {
            evidence.extend(throttling());
            match is_throttled {
                true => Limit::Some(evidence, "RT throttling stops real-time tasks"),
                false => Limit::None(evidence),
            }
        }
        (Some(true), _) => {
            evidence.push(Evidence::of(servers, |found| super::servers::show(found)));
            Limit::Unknown(evidence, "whether the fair server limits real-time tasks is unknown")
        }
        _ => {
            evidence.extend(throttling());
            Limit::Unknown(evidence, "whether real-time tasks are limited is unknown")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, good_stock, intent, set_config, set_setting};
    use rtproof_host::{Reading, knobs::sched::WATCHDOG_STATE};

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    #[test]
    fn it_is_needed_where_nothing_limits() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        assert_eq!(judge(&facts).summary, "a watchdog is armed");
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Doubtful);
        let mut servers = facts.sched.fair_server.value().cloned().unwrap();
        for server in &mut servers {
            server.runtime_ns = 50_000_000;
        }
        facts.sched.fair_server = Reading::known(facts.sched.fair_server.path.clone(), servers);
        assert!(judge(&facts).summary.contains("fair server"));
        assert_eq!(judge(&facts).status, Good);
        let mut facts = good_stock();
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Doubtful);
        let path = facts.sched.rt_runtime_us.path.clone();
        facts.sched.rt_runtime_us = Reading::known(path, 950_000);
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn groups_keep_throttling() {
        let mut facts = good();
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Doubtful);
        facts.sched.rt_runtime_us = Reading::known("/x", 950_000);
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn no_watchdog_and_none_that_can_be_seen() {
        let mut facts = good();
        let lacking = Some(Reading::known("/sys/class/watchdog", "holds no *".to_owned()));
        facts.settings.insert(WATCHDOG_STATE.id.into(), Setting { values: vec![], lacking });
        assert_eq!(judge(&facts).status, Doubtful);
        facts.settings.clear();
        assert_eq!(judge(&facts).status, Unknown);
        let mut facts = good();
        set_setting(&mut facts, &WATCHDOG_STATE, Reading::denied("/x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
        let mut facts = good();
        facts.sched.fair_server = Reading::denied("/x", "lockdown");
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Unknown);
    }
}
