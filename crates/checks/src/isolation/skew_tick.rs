//! Do all CPUs tick at the same moment?

use rtproof_host::{CpuList, Facts};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static SKEW_TICK: Check = Check {
    id: "skew-tick",
    title: "timer ticks of the CPUs spread over the period (skew_tick)",
    why: "CPUs that tick at the same moment wait for each other at the locks of the time keeping \
          and of RCU",
    source: "Documentation/admin-guide/kernel-parameters.txt, skew_tick; kernel/time/tick-sched.c \
             (tick_setup_sched_timer); tuned and OpenShift boot real-time machines with it",
    trade_off: Some("uses a little more energy: idle CPUs do not wake up together"),
    impact: Impact::Microseconds,
    when: When::Boot,
    wanted: Wanted::Text("skew_tick=1"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let value = line.last("skew_tick").flatten();
    let draft = draft.read(cmdline, |_| {
        value.map_or("no skew_tick".into(), |value| format!("skew_tick={value}"))
    });
    if value.is_some_and(|value| value.parse::<u32>().is_ok_and(|number| number > 0)) {
        return draft.good("ticks are spread");
    }
    let online = &facts.cpus.online;
    if let Some(cpus) = online.value().filter(|cpus| cpus.len() == 1) {
        return draft
            .read(online, CpuList::to_string)
            .not_applicable(format!("CPU {cpus} is the only one"));
    }
    draft
        .remedies([Remedy::Boot { parameter: "skew_tick=1".into() }])
        .doubtful("all CPUs tick at the same moment: the more CPUs, the longer they wait")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    #[test]
    fn set_not_set_one_cpu_and_unreadable() {
        let mut facts = good();
        set_cmdline(&mut facts, "skew_tick=1");
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, Good);
        set_cmdline(&mut facts, "skew_tick=0");
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, Doubtful);
        facts.cpus.online = Reading::known("/sys/devices/system/cpu/online", cpus(&[0]));
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, Unknown);
    }
}
