//! Is the TSC checked against another clock all the time?
//!
//! Two timers do that, on one CPU after the other. `tsc=nowatchdog` ends the one that compares
//! clocks twice a second; the one that looks for a changed TSC_ADJUST register every ten minutes
//! ends with `tsc=reliable` alone, a difference that gave OpenShift latency spikes. Since 5.17
//! the first is off by itself on most machines, which no file tells.

use rtproof_host::{Facts, knob::Arch, knobs::time as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "tsc-watchdog",
    title: "watchdog of the TSC (tsc=)",
    why: "timers check the TSC on each CPU in turn, one of them by reading a slow clock over a bus",
    source: "kernel/time/clocksource.c (clocksource_watchdog), arch/x86/kernel/tsc_sync.c \
             (start_sync_check_timer), arch/x86/kernel/tsc.c (check_system_tsc_reliable); \
             github.com/openshift/cluster-node-tuning-operator pull request 756 (OCPBUGS-16348)",
    trade_off: Some(
        "a TSC that drifts or jumps is no longer found out: first see that it never was marked \
         unstable on this model",
    ),
    impact: Impact::Microseconds,
    when: When::Boot,
    knobs: &[&knobs::TSC],
    wanted: Wanted::Text("tsc=reliable"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    let draft = draft.read(arch, String::clone);
    match arch.value() {
        None => return draft.blind(arch),
        Some(name) if !Arch::X86.has(name) => {
            return draft.not_applicable(format!("not on {name}"));
        }
        Some(_) => {}
    }
    let source = &facts.clock.source;
    let draft = draft.read(source, String::clone);
    match source.value().map(String::as_str) {
        None => return draft.blind(source),
        Some("tsc") => {}
        Some(name) => return draft.not_applicable(format!("the clock is {name}")),
    }
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let given: Vec<&str> = line.all("tsc").flatten().collect();
    let written: Vec<String> = given.iter().map(|value| format!("tsc={value}")).collect();
    let draft = draft.saw([Evidence::of(cmdline, |_| match written.as_slice() {
        [] => "no tsc=".into(),
        written => written.join(" "),
    })]);
    if given.contains(&"reliable") {
        return draft.good("tsc=reliable");
    }
    let draft = draft.remedies([Remedy::Boot { parameter: "tsc=reliable".into() }]);
    if given.contains(&"nowatchdog") {
        return draft.doubtful(
            "tsc=nowatchdog leaves the timer that looks at TSC_ADJUST every ten minutes",
        );
    }
    draft.doubtful("no tsc=reliable: the TSC may be checked on each CPU in turn")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn status(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        CHECK.judge(&facts, &intent()).status
    }

    #[test]
    fn only_reliable_ends_both_timers() {
        assert_eq!(status("quiet tsc=reliable"), Good);
        assert_eq!(status("tsc=nowatchdog tsc=reliable"), Good);
        assert_eq!(status("tsc=nowatchdog"), Doubtful);
        assert_eq!(status("quiet"), Doubtful);
    }

    #[test]
    fn another_clock_or_architecture_has_no_such_watchdog() {
        let judge = |facts: &Facts| CHECK.judge(facts, &intent()).status;
        let mut facts = good();
        facts.clock.source = Reading::known("/sys/x", "kvm-clock".into());
        assert_eq!(judge(&facts), NotApplicable);
        facts.clock.source = Reading::absent("/sys/x");
        assert_eq!(judge(&facts), Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(judge(&facts), NotApplicable);
    }
}
