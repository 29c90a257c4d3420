//! Time of real-time tasks in its control groups, on a kernel with CONFIG_RT_GROUP_SCHED.
//!
//! Version 1 has a file for it. Version 2 has none: a group with the CPU controller has a runtime
//! of 0, and SCHED_FIFO is refused in it. A thread that is real-time there already shows that it
//! is not.

use rtproof_host::facts::app::CpuGroup;
use rtproof_host::knobs::sched::GROUP_RT_RUNTIME;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option, since};
use crate::text::count;
use crate::{Finding, Impact, Remedy, quantity};

pub(super) static CHECK: Check = Check {
    id: "app-rt-bandwidth",
    title: "real-time runtime of the application's control groups",
    why: "with real-time group scheduling the real-time tasks of a group stop once its runtime is \
          used, and with a runtime of 0 SCHED_FIFO is refused",
    source: "Documentation/scheduler/sched-rt-group.rst; Documentation/admin-guide/cgroup-v2.rst \
             (cpu controller); init/Kconfig (RT_GROUP_SCHED)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no limit of its own"),
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
        draft = draft.read(&group.rt_runtime_us, |us| {
            us.map_or_else(|| "no limit of its own".into(), |us| us.to_string())
        });
    }
    if let Some(group) = list.iter().find(|group| group.rt_runtime_us.value().is_none()) {
        return Ok(draft.blind(&group.rt_runtime_us));
    }
    let runtime = |group: &CpuGroup| group.rt_runtime_us.value().copied().flatten();
    let limits = list.iter().filter_map(|group| Some((group, runtime(group)?)));
    let Some((group, us)) = limits.filter(|&(_, us)| us >= 0).min_by_key(|&(_, us)| us) else {
        return Ok(version_2(case, draft, list));
    };
    let paths = vec![group.rt_runtime_us.path.clone()];
    let draft = draft.remedies([Remedy::set(&GROUP_RT_RUNTIME, paths, "950000")]);
    if us == 0 {
        return Ok(draft.bad(format!("{}: real-time tasks are refused", group.folder)));
    }
    let time = quantity::ns(u64::try_from(us).unwrap_or(0).saturating_mul(1_000));
    Ok(draft.doubtful(format!(
        "{}: its real-time tasks may use {time} of each period, together",
        group.folder
    )))
}

/// No file limits real-time tasks: version 2 may, without one.
fn version_2(case: &Case<'_>, draft: Draft, list: &[CpuGroup]) -> Finding {
    let good = "no group of its own limits real-time tasks";
    let mut draft = draft;
    let mut enabled = None;
    for group in list {
        let shown = |quota: &Option<_>| if quota.is_some() { "there" } else { "no such file" };
        draft = draft.read(&group.quota, |quota| shown(quota).into());
        match group.quota.value() {
            None => return draft.blind(&group.quota),
            Some(Some(_)) if group.quota.path.ends_with("/cpu.max") => {
                enabled.get_or_insert(group);
            }
            _ => {}
        }
    }
    let Some(group) = enabled else {
        return draft.good(good);
    };
    let (draft, threads) = match case.scheduled(draft) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    if threads.iter().any(|thread| thread.sched.policy.is_real_time()) {
        return draft.good("real-time threads are not refused in its group");
    }
    let facts = case.facts;
    let draft = draft.saw([option(facts, "RT_GROUP_SCHED")]);
    match built_with(facts, "RT_GROUP_SCHED") {
        None => return draft.blind(&facts.kernel.config),
        Some(false) => return draft.good(good),
        Some(true) => {}
    }
    let draft = draft.read(&facts.kernel.cmdline, |line| {
        let word = line.last("rt_group_sched");
        word.map_or_else(
            || "no rt_group_sched".into(),
            |value| format!("rt_group_sched={}", value.unwrap_or_default()),
        )
    });
    let Some(cmdline) = facts.kernel.cmdline.value() else {
        return draft.blind(&facts.kernel.cmdline);
    };
    // From 6.16 it can be turned off, by default, too (CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED).
    let is_off = match cmdline.last("rt_group_sched").flatten() {
        Some(value) => value == "0",
        None => built_with(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED") == Some(true),
    };
    match since(facts, (6, 16)) {
        None => return draft.blind(&facts.kernel.version),
        Some(true) if is_off => {
            let version = |(major, minor): &(u32, u32)| format!("{major}.{minor}");
            let draft = draft.read(&facts.kernel.version, version);
            return draft.good("real-time group scheduling is turned off");
        }
        Some(_) => {}
    }
    draft
        .remedies([
            Remedy::Boot { parameter: "rt_group_sched=0".into() },
            Remedy::Manual {
                text: "before 6.16: a kernel without CONFIG_RT_GROUP_SCHED, or the process in the \
                       root group when it becomes real-time"
                    .into(),
            },
        ])
        .bad(format!("{}: CONFIG_RT_GROUP_SCHED refuses real-time tasks in it", group.folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, cpu_group, sched_of, set_some};
    use crate::testing::{set_cmdline, set_config};
    use rtproof_host::{Reading, facts::app::Quota, facts::tasks::Policy};

    #[test]
    fn none_some_zero_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_some(&mut cpu_group(&mut scene).rt_runtime_us, 500_000);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        set_some(&mut cpu_group(&mut scene).rt_runtime_us, 0);
        assert_eq!(scene.judge(&CHECK).status, Bad);
        set_some(&mut cpu_group(&mut scene).rt_runtime_us, -1);
        assert_eq!(scene.judge(&CHECK).status, Good);
        blank(&mut cpu_group(&mut scene).rt_runtime_us);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }

    #[test]
    fn version_2_refuses_without_a_file() {
        let mut scene = Scene::good();
        let none = Quota { max_us: None, period_us: 100_000 };
        set_some(&mut cpu_group(&mut scene).quota, none);
        set_config(&mut scene.facts, "RT_GROUP_SCHED", Some("y"));
        assert_eq!(scene.judge(&CHECK).status, Good, "it has a real-time thread there");
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CHECK).status, Bad);
        scene.facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 16));
        assert_eq!(scene.judge(&CHECK).status, Bad);
        set_cmdline(&mut scene.facts, "rt_group_sched=0");
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_cmdline(&mut scene.facts, "quiet");
        set_config(&mut scene.facts, "RT_GROUP_SCHED_DEFAULT_DISABLED", Some("y"));
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_config(&mut scene.facts, "RT_GROUP_SCHED", None);
        assert_eq!(scene.judge(&CHECK).status, Good);
        blank(&mut scene.facts.kernel.config);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
