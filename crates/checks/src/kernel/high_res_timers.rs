//! Do timers expire between ticks?
//!
//! The resolution that the kernel reports tells what is in force, whatever the build and the boot
//! line say. /proc/timer_list would tell, too, and turns interrupts off on every CPU to be read.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When, quantity};

pub(super) static CHECK: Check = Check {
    id: "high-res-timers",
    title: "high-resolution timers",
    why: "without them a timer expires at the next tick: a wake-up is late by up to 1/HZ",
    source: "Documentation/timers/hrtimers.rst; kernel/time/hrtimer.c (hrtimer_resolution); \
             clock_getres(2)",
    impact: Impact::Milliseconds,
    when: When::Boot,
    wanted: Wanted::Text("a resolution of 1 ns"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let resolution = &facts.platform.timer_resolution_ns;
    let draft = draft.read(resolution, |&ns| quantity::ns(ns));
    if let Some(&ns) = resolution.value() {
        let summary = format!("timers have a resolution of {}", quantity::ns(ns));
        return match ns {
            1 => draft.good(summary),
            _ => draft.remedies(remedies(facts)).bad(summary),
        };
    }
    // No call can be asked of a folder: the build and the boot line can only tell that they
    // are off.
    let cmdline = &facts.kernel.cmdline;
    let is_off = cmdline.value().and_then(|line| line.last("highres")) == Some(Some("off"));
    let draft = draft.remedies(remedies(facts));
    if is_off {
        let draft = draft.read(cmdline, |_| "highres=off".into());
        return draft.bad("highres=off: timers expire at ticks only");
    }
    if machine::built_with(facts, "HIGH_RES_TIMERS") == Some(false) {
        let draft = draft.saw([machine::option(facts, "HIGH_RES_TIMERS")]);
        return draft.bad("CONFIG_HIGH_RES_TIMERS is not set: timers expire at ticks only");
    }
    draft.blind(resolution)
}

fn remedies(facts: &Facts) -> Vec<Remedy> {
    let given = facts.kernel.cmdline.value().and_then(|line| line.last("highres").flatten());
    if given == Some("off") {
        return vec![Remedy::Unboot { parameter: "highres".into() }];
    }
    if machine::built_with(facts, "HIGH_RES_TIMERS") == Some(false) {
        return vec![Remedy::Build { options: vec!["HIGH_RES_TIMERS=y".into()] }];
    }
    let text = "look in the kernel's log for why no CPU has a one-shot timer";
    vec![Remedy::Manual { text: text.into() }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    #[test]
    fn the_resolution_in_force_decides() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.platform.timer_resolution_ns = Reading::known("clock_getres", 4_000_000);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "timers have a resolution of 4 ms");
    }

    #[test]
    fn without_it_only_what_is_off_can_be_told() {
        let mut facts = good();
        facts.platform.timer_resolution_ns = Reading::absent("clock_getres");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "highres=off");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Bad);
        set_cmdline(&mut facts, "quiet");
        set_config(&mut facts, "HIGH_RES_TIMERS", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Bad);
    }
}
