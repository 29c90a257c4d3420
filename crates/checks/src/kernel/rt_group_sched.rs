//! Does RT group scheduling stand between tasks and SCHED_FIFO?
//!
//! With it each group of control groups has a budget of its own, which is 0 until an
//! administrator gives
//! one: sched_setscheduler(2) answers EPERM to root, too. `rt_group_sched=` decides from 6.16.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When};

/// First kernel with the boot parameter.
const PARAMETER_SINCE: (u32, u32) = (6, 16);

pub(super) static CHECK: Check = Check {
    id: "config-rt-group-sched",
    title: "RT group scheduling (CONFIG_RT_GROUP_SCHED)",
    why: "tasks in a group without a budget cannot become real-time (EPERM), and those in one with \
          a budget are stopped when it is used up",
    source: "Documentation/scheduler/sched-rt-group.rst; Documentation/admin-guide/cgroup-v2.rst \
             (CPU); init/Kconfig (RT_GROUP_SCHED, RT_GROUP_SCHED_DEFAULT_DISABLED)",
    impact: Impact::Milliseconds,
    when: When::Kernel,
    wanted: Wanted::Text("not built, or rt_group_sched=0"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let config = &facts.kernel.config;
    let Some(is_built) = machine::built_with(facts, "RT_GROUP_SCHED") else {
        return draft.blind(config);
    };
    let draft = draft.saw([machine::option(facts, "RT_GROUP_SCHED")]);
    if !is_built {
        return draft.good("not built");
    }
    let cmdline = &facts.kernel.cmdline;
    let asked = cmdline.value().and_then(|line| line.last("rt_group_sched")).flatten();
    let default_off = machine::built_with(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED");
    let has_parameter = machine::since(facts, PARAMETER_SINCE);
    let draft = draft.saw([machine::option(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED")]).read(
        cmdline,
        |_| match asked {
            Some(value) => format!("rt_group_sched={value}"),
            None => "no rt_group_sched=".into(),
        },
    );
    let Some(_) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let draft = draft.read(&facts.kernel.release, String::clone);
    match (asked, has_parameter) {
        (Some(_), None) => return draft.blind(&facts.kernel.version),
        (Some("0"), Some(true)) => return draft.good("built, and off"),
        (None, _) if default_off == Some(true) => return draft.good("built, and off"),
        _ => {}
    }
    let remedy = match has_parameter {
        Some(true) => Remedy::Boot { parameter: "rt_group_sched=0".into() },
        _ => Remedy::Manual {
            text: "use a kernel built without CONFIG_RT_GROUP_SCHED, or give the application's \
                   group a budget (cpu.rt_runtime_us, control groups version 1)"
                .into(),
        },
    };
    draft.remedies([remedy]).doubtful("on: tasks outside the root group may get EPERM")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    #[test]
    fn the_build_and_from_6_16_the_parameter_decide() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_cmdline(&mut facts, "rt_group_sched=0");
        // 6.12 does not know it.
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 18));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        set_cmdline(&mut facts, "quiet");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_config(&mut facts, "RT_GROUP_SCHED_DEFAULT_DISABLED", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn unknown() {
        let mut facts = good();
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
