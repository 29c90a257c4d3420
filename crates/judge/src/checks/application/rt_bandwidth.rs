//! Time of real-time tasks in its control groups: version 1 with CONFIG_RT_GROUP_SCHED.

use rtproof_host::facts::app::CpuGroup;

use super::{AppCheck, Case, settle};
use crate::checks::text::count;
use crate::{Finding, Impact, Remedy, When, units};

pub(super) const CHECK: AppCheck = AppCheck {
    id: "app-rt-bandwidth",
    title: "real-time runtime of the application's control groups",
    why: "with real-time group scheduling the real-time tasks of a group stop once its runtime is \
          used, and with a runtime of 0 SCHED_FIFO is refused",
    source: "Documentation/scheduler/sched-rt-group.rst; kernel/sched/rt.c",
    trade_off: None,
    impact: Impact::Milliseconds,
    when: When::Now,
    judge,
};

fn judge(case: &Case<'_>) -> Finding {
    settle(answer(case))
}

fn answer(case: &Case<'_>) -> Result<Finding, Box<Finding>> {
    let groups = &case.app.groups.cpu;
    let mut draft =
        case.draft("no limit of its own").read(groups, |groups| count(groups.len(), "group"));
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
        return Ok(draft.good("no group of its own limits real-time tasks"));
    };
    let paths = vec![group.rt_runtime_us.path.clone()];
    let draft = draft.remedies([Remedy::Write { paths, value: "950000".into() }]);
    if us == 0 {
        return Ok(draft.bad(format!("{}: real-time tasks are refused", group.folder)));
    }
    let time = units::ns(u64::try_from(us).unwrap_or(0).saturating_mul(1_000));
    Ok(draft.doubtful(format!(
        "{}: its real-time tasks may use {time} of each period, together",
        group.folder
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::checks::application::testing::{Scene, blank, cpu_group, set_some};

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
}
