//! Is the boot CPU one of the real-time CPUs?

use rtproof_host::{CpuList, Facts};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CPU0_ISOLATED: Check = Check {
    id: "cpu0-isolated",
    title: "the boot CPU among the real-time or isolated CPUs",
    why: "what the kernel and its drivers set up at boot stays on CPU 0: interrupts of the \
          platform, timers, work that is not told where to run",
    source: "kernel/time/tick-common.c (tick_do_timer_cpu), arch/x86/kernel/apic/vector.c; \
             github.com/raspberrypi/linux issue 4106 (isolcpus=0 from 4.20)",
    trade_off: Some(
        "a machine with few CPUs, or one that reserves CPUs of another node, may have a reason",
    ),
    impact: Impact::Microseconds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("CPU 0 left to housekeeping"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let online = &facts.cpus.online;
    let draft = draft.read(online, CpuList::to_string);
    let Some(cpus) = online.value() else {
        return draft.blind(online);
    };
    if !cpus.contains(0) {
        return draft.not_applicable("CPU 0 is offline");
    }
    let instead = Remedy::Manual {
        text: "choose real-time CPUs without CPU 0; where it has to be, move interrupts and \
               workers off it by hand"
            .into(),
    };
    if intent.rt_cpus.contains(0) {
        let text = format!("CPU 0 is one of the real-time {}", text::cpus(&intent.rt_cpus));
        return draft.remedies([instead]).doubtful(text);
    }
    let isolated = common::isolated(facts).filter(|isolated| isolated.contains(0));
    if let Some(isolated) = isolated {
        return draft
            .read(&facts.cpus.isolated, text::or_empty)
            .remedies([instead])
            .doubtful(format!("CPU 0 is isolated ({isolated}) and no real-time CPU"));
    }
    draft.good("CPU 0 does housekeeping")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::Reading;

    #[test]
    fn real_time_isolated_or_neither() {
        let mut facts = good();
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, Good);
        let boot = Intent { rt_cpus: cpus(&[0]), housekeeping: cpus(&[1, 2, 3]), ..intent() };
        assert_eq!(CPU0_ISOLATED.judge(&facts, &boot).status, Doubtful);
        facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(&[0, 2, 3]));
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, Doubtful);
        facts.cpus.online = Reading::known("/sys/devices/system/cpu/online", cpus(&[1, 2, 3]));
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, NotApplicable);
        facts.cpus.online = Reading::denied("/sys/devices/system/cpu/online", "EACCES");
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, Unknown);
    }
}
