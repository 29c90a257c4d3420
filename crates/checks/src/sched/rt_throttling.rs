//! Are real-time tasks stopped once they have used their share?
//!
//! Before 6.12 they may use `sched_rt_runtime_us` of each period. From 6.12 the value stops nobody
//! unless the kernel is built with CONFIG_RT_GROUP_SCHED: what takes time then is the fair server,
//! which has a check of its own and which `-1` does not stop.
//!
//! It bites only a task that leaves less than the limit to others, so the default is doubtful: only
//! the user knows. It is bad where real-time tasks are left half of the time or less.

use rtproof_host::Facts;
use rtproof_host::knobs::sched::RT_RUNTIME;

use super::servers::{RUNAWAY, limited};
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{built_with, option, since};
use crate::profile::Choice;
use crate::{Evidence, Finding, Impact, Intent, Remedy, Status, quantity};

pub(super) static CHECK: Check = Check {
    id: "rt-throttling",
    title: "time taken from real-time tasks by RT throttling",
    why: "a real-time task that does not sleep enough is stopped for the rest of the period: 50 ms \
          of each second by default",
    source: "kernel/sched/rt.c (from 6.12 only with CONFIG_RT_GROUP_SCHED); \
             Documentation/scheduler/sched-rt-group.rst; measured on 6.1, 6.12 and 7.2 with a FIFO \
             and an ordinary spinner",
    trade_off: Some(
        "without the limit a real-time task that never sleeps locks up its CPU for good: have a \
         hardware watchdog",
    ),
    impact: Impact::Milliseconds,
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let choice = intent.profile.choices.rt_throttling;
    let draft = draft.wants(match choice {
        Choice::On => "a limit, below half of the time",
        Choice::Off | Choice::Either => "no time taken",
    });
    let (version, runtime) = (&facts.kernel.version, &facts.sched.rt_runtime_us);
    let show = |(major, minor): &(u32, u32)| format!("{major}.{minor}");
    match (since(facts, (6, 12)), has_groups(facts)) {
        (Some(false), _) => judge_throttling(draft.read(version, show), facts, choice, ""),
        _ if runtime.value() == Some(&-1) && choice != Choice::On => {
            draft.read(runtime, i64::to_string).good(format!(
                "RT throttling is off; from 6.12 that does not stop the fair server{}",
                group_caveat(facts)
            ))
        }
        (Some(true), Some(true)) => {
            let draft = draft.saw([option(facts, "RT_GROUP_SCHED")]);
            judge_throttling(draft, facts, choice, "CONFIG_RT_GROUP_SCHED keeps RT throttling: ")
        }
        (Some(true), Some(false)) => draft
            .read(version, show)
            .saw([option(facts, "RT_GROUP_SCHED")])
            .saw(groups_off(facts))
            .not_applicable(
                "from 6.12 sched_rt_runtime_us stops no task: the fair server takes its place",
            ),
        (Some(true), None) => {
            draft.saw([option(facts, "RT_GROUP_SCHED")]).read(runtime, i64::to_string).unknown(
                "from 6.12 sched_rt_runtime_us throttles only with CONFIG_RT_GROUP_SCHED, and \
                 the kernel configuration is not readable",
            )
        }
        (None, _) => draft.blind(version),
    }
}

/// RT throttling is in force; `because` opens the summary where that needs a reason.
fn judge_throttling(draft: Draft, facts: &Facts, choice: Choice, because: &str) -> Finding {
    let (runtime, period) = (&facts.sched.rt_runtime_us, &facts.sched.rt_period_us);
    let draft = draft.read(runtime, i64::to_string);
    let Some(&runtime_us) = runtime.value() else {
        return draft.blind(runtime);
    };
    let unlimited = |draft: Draft, summary: String| match choice {
        Choice::On => draft.doubtful(format!("{summary}: {RUNAWAY}")),
        Choice::Off | Choice::Either => draft.good(summary),
    };
    if runtime_us < 0 {
        let caveat = group_caveat(facts);
        return unlimited(draft, format!("{because}no limit on real-time tasks{caveat}"));
    }
    let draft = draft.read(period, i64::to_string);
    let Some(&period_us) = period.value() else {
        return draft.blind(period);
    };
    if runtime_us >= period_us {
        return unlimited(draft, format!("{because}real-time tasks may use the whole period"));
    }
    let ns = |us: i64| u64::try_from(us).unwrap_or(0).saturating_mul(1_000);
    let (runtime_ns, period_ns) = (ns(runtime_us), ns(period_us));
    let summary = format!(
        "{because}real-time tasks are stopped for {} of each {} once they use {} of it",
        quantity::ns(period_ns - runtime_ns),
        quantity::ns(period_ns),
        quantity::ns(runtime_ns),
    );
    let status = limited(period_ns - runtime_ns, period_ns, choice);
    if status == Status::Good {
        return draft.good(summary);
    }
    let remedies = [
        Remedy::set(&RT_RUNTIME, vec![runtime.path.clone()], "-1"),
        Remedy::File {
            path: rtproof_host::knobs::names::SYSCTL_FILE.into(),
            line: "kernel.sched_rt_runtime_us = -1".into(),
        },
    ];
    draft.remedies(remedies).status(status, summary)
}

/// Whether real-time group scheduling is in force: from 6.16 `rt_group_sched=` turns it on or off,
/// and CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED says which it is without.
pub(super) fn has_groups(facts: &Facts) -> Option<bool> {
    if !built_with(facts, "RT_GROUP_SCHED")? {
        return Some(false);
    }
    let is_off = match facts.kernel.cmdline.value()?.last("rt_group_sched") {
        Some(value) => value == Some("0"),
        None => built_with(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED")?,
    };
    if is_off { since(facts, (6, 16)).map(|knows_it| !knows_it) } else { Some(true) }
}

/// What turned real-time groups off in a kernel that has them.
fn groups_off(facts: &Facts) -> Option<Evidence> {
    let is_built_in = built_with(facts, "RT_GROUP_SCHED") == Some(true);
    is_built_in.then(|| {
        Evidence::of(&facts.kernel.cmdline, |line| match line.last("rt_group_sched") {
            Some(_) => "rt_group_sched=0".into(),
            None => "no rt_group_sched=1".into(),
        })
    })
}

fn group_caveat(facts: &Facts) -> &'static str {
    match has_groups(facts) {
        Some(true) => {
            "; CONFIG_RT_GROUP_SCHED: SCHED_FIFO is refused in control groups without rt_runtime"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    fn with_runtime(mut facts: Facts, runtime_us: i64) -> Facts {
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        facts.sched.rt_runtime_us = Reading::known(path, runtime_us);
        facts
    }

    #[test]
    fn before_6_12_the_limit_decides() {
        assert_eq!(judge(&good_stock()).status, Good);
        let finding = judge(&with_runtime(good_stock(), 950_000));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "real-time tasks are stopped for 50 ms of each 1 s once they use 950 ms of it"
        );
        assert_eq!(judge(&with_runtime(good_stock(), 500_000)).status, Bad);
        assert_eq!(judge(&with_runtime(good_stock(), 0)).status, Bad);
        assert_eq!(judge(&with_runtime(good_stock(), 1_000_000)).status, Good);
        let mut facts = good_stock();
        facts.sched.rt_runtime_us = Reading::denied("/proc/sys/kernel", "EACCES");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn from_6_12_it_stops_nobody_without_groups() {
        let finding = judge(&with_runtime(good(), 950_000));
        assert_eq!(finding.status, NotApplicable);
        assert!(finding.evidence[1].value.contains("RT_GROUP_SCHED is not set"), "{finding:?}");
        assert_eq!(judge(&with_runtime(good(), -1)).status, Good);
        let mut facts = with_runtime(good(), 950_000);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(judge(&facts).status, Unknown);
        facts.kernel.version = Reading::absent("/proc/sys/kernel/osrelease");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_profile_may_want_the_limit() {
        let profile = crate::Profile::of(crate::profile::Kind::Audio);
        let audio = Intent { profile, ..intent() };
        let judge = |facts: &Facts| CHECK.judge(facts, &audio).status;
        assert_eq!(judge(&with_runtime(good_stock(), 950_000)), Good);
        assert_eq!(judge(&with_runtime(good_stock(), 500_000)), Bad);
        assert_eq!(judge(&good_stock()), Doubtful);
        assert_eq!(judge(&good()), NotApplicable);
    }

    #[test]
    fn group_scheduling_keeps_the_old_limit() {
        let mut facts = with_runtime(good(), 950_000);
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        assert_eq!(judge(&facts).status, Doubtful);
        let finding = judge(&with_runtime(facts.clone(), -1));
        assert_eq!(finding.status, Good);
        assert!(finding.summary.contains("SCHED_FIFO is refused"), "{}", finding.summary);
        set_cmdline(&mut facts, "rt_group_sched=0");
        assert_eq!(judge(&facts).status, Doubtful, "6.12 does not know rt_group_sched");
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 16));
        assert_eq!(judge(&facts).status, NotApplicable);
        set_cmdline(&mut facts, "quiet");
        assert_eq!(judge(&facts).status, Doubtful);
        set_config(&mut facts, "RT_GROUP_SCHED_DEFAULT_DISABLED", Some("y"));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}
