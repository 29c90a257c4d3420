//! Is the tick allowed to stop at all?

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static NOHZ_ON: Check = Check {
    id: "nohz-on",
    title: "tick of idle CPUs allowed to stop (nohz)",
    why: "with nohz=off every CPU ticks at all times, nohz_full= has no effect, and the tick may \
          come in front of the wake-up",
    source: "Documentation/admin-guide/kernel-parameters.txt, nohz=; kernel/time/tick-sched.c \
             (setup_tick_nohz); tuned and OpenShift boot with nohz=on",
    impact: Impact::Microseconds,
    when: When::Boot,
    wanted: Wanted::Text("not off"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let value = line.last("nohz").flatten();
    let draft =
        draft.read(cmdline, |_| value.map_or("no nohz=".into(), |value| format!("nohz={value}")));
    // kstrtobool takes these for no.
    let is_off = value.is_some_and(|value| {
        matches!(value.to_ascii_lowercase().as_str(), "off" | "0" | "n" | "no" | "f" | "false")
    });
    let draft = draft.remedies([Remedy::Boot { parameter: "nohz=on".into() }]);
    match (is_off, line.last("nohz_full").flatten()) {
        (true, Some(list)) => draft.bad(format!("nohz=off takes the effect from nohz_full={list}")),
        (true, None) => draft.doubtful("nohz=off: every CPU ticks, idle or not"),
        _ => draft.good("the tick may stop"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        NOHZ_ON.judge(&facts, &intent()).status
    }

    #[test]
    fn off_is_doubtful_and_bad_with_nohz_full() {
        assert_eq!(with("nohz=on"), Good);
        assert_eq!(with(""), Good);
        assert_eq!(with("nohz=off"), Doubtful);
        assert_eq!(with("nohz=off nohz_full=2-3"), Bad);
        let mut facts = good();
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        assert_eq!(NOHZ_ON.judge(&facts, &intent()).status, Unknown);
    }
}
