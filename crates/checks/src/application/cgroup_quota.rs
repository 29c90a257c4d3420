//! CPU bandwidth of its control groups.
//!
//! The quota stops ordinary tasks only (kernel/sched/fair.c): real-time threads run on, and wait
//! only where they need something that a stopped thread holds.

use rtproof_host::facts::app::{CpuGroup, Quota};
use rtproof_host::knobs::sched::GROUP_QUOTA;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::count;
use crate::{Impact, Remedy, quantity};

pub(super) static CHECK: Check = Check {
    id: "app-cgroup-quota",
    title: "CPU quota of the application's control groups",
    why: "ordinary threads that used their quota stand still for the rest of the period, 100 ms by \
          default, with every lock they hold",
    source: "Documentation/admin-guide/cgroup-v2.rst (cpu.max); \
             Documentation/scheduler/sched-bwc.rst; kernel/sched/fair.c (throttle_cfs_rq)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no quota on the way up"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let groups = &case.app.groups.cpu;
    let mut draft = draft.read(groups, |groups| count(groups.len(), "group"));
    let Some(list) = groups.value() else {
        return Ok(draft.blind(groups));
    };
    for group in list {
        draft = draft.read(&group.quota, |quota| show(quota.as_ref()));
    }
    let limited = |group: &&CpuGroup| {
        group.quota.value().is_some_and(|quota| quota.and_then(|quota| quota.max_us).is_some())
    };
    if let Some(group) = list.iter().find(limited) {
        let quota = group.quota.value().and_then(Option::as_ref);
        let times = group.throttled.value().copied().flatten();
        let draft = draft.read(&group.throttled, |times| {
            times.map_or_else(|| "no such file".into(), |times| format!("nr_throttled {times}"))
        });
        let is_real_time = case.app.threads().any(|thread| thread.is_real_time());
        let stopped = match times {
            Some(0) => "never reached so far".into(),
            Some(times) => format!("stopped in {times} periods"),
            None => "how often it was reached is unknown".to_owned(),
        };
        let who = if is_real_time { "its ordinary threads" } else { "it" };
        let summary = format!("{who} may use {}: {stopped} ({})", show(quota), group.folder);
        let file = group.quota.path.clone();
        let value = if file.ends_with("cpu.max") { "max" } else { "-1" };
        let draft = draft
            .remedies([Remedy::set(&GROUP_QUOTA, vec![file], value)])
            .remedies(case.drop_in("CPUQuota="));
        let is_bad = !is_real_time && times.is_some_and(|times| times > 0);
        return Ok(if is_bad { draft.bad(summary) } else { draft.doubtful(summary) });
    }
    match list.iter().find(|group| group.quota.value().is_none()) {
        Some(group) => Ok(draft.blind(&group.quota)),
        None => Ok(draft.good(format!("no quota in {}", count(list.len(), "group")))),
    }
}

fn show(quota: Option<&Quota>) -> String {
    match quota {
        None => "no such file".into(),
        Some(Quota { max_us: None, .. }) => "no limit".into(),
        Some(Quota { max_us: Some(max_us), period_us }) => {
            let time = |us: &u64| quantity::ns(us.saturating_mul(1_000));
            format!("{} of each {}", time(max_us), time(period_us))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, cpu_group, sched_of, set_some};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn none_some_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).summary, "no quota in 2 groups");
        assert_eq!(scene.judge(&CHECK).status, Good);
        let quota = Quota { max_us: Some(20_000), period_us: 100_000 };
        set_some(&mut cpu_group(&mut scene).quota, quota);
        set_some(&mut cpu_group(&mut scene).throttled, 7);
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert!(
            finding.summary.starts_with(
                "its ordinary threads may use 20 ms of each 100 ms: stopped in 7 periods"
            ),
            "{}",
            finding.summary
        );
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CHECK).status, Bad);
        blank(&mut cpu_group(&mut scene).quota);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
        blank(&mut scene.app.groups.cpu);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
