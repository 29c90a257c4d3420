//! Do the real-time CPUs wake the threads that run their RCU callbacks, or do these poll?

use rtproof_host::Facts;

use crate::boot_params::Given;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static RCU_NOCB_POLL: Check = Check {
    id: "rcu-nocb-poll",
    title: "threads for offloaded RCU callbacks that poll (rcu_nocb_poll)",
    why: "without polling a CPU that queues a callback wakes a thread, which takes a few \
          microseconds of the real-time task",
    source: "Documentation/admin-guide/kernel-parameters.txt, rcu_nocb_poll",
    trade_off: Some("a thread that polls uses energy and a part of a housekeeping CPU"),
    impact: Impact::Microseconds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("known; not with one housekeeping CPU"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let is_set = line.all("rcu_nocb_poll").next().is_some();
    let draft = draft
        .read(cmdline, |_| if is_set { "rcu_nocb_poll".into() } else { "no rcu_nocb_poll".into() });
    let is_offloaded = Given::of(facts, line, "rcu_nocbs") != Given::Not
        || line.all("nohz_full").next().is_some()
        || line.all("rcu_nocbs").next().is_some();
    match (is_set, is_offloaded) {
        (true, false) => draft
            .remedies([Remedy::Boot { parameter: format!("rcu_nocbs={}", intent.rt_cpus) }])
            .doubtful("rcu_nocb_poll without rcu_nocbs: no callback is offloaded"),
        (true, true) if intent.housekeeping.len() < 2 => draft.doubtful(format!(
            "rcu_nocb_poll polls on {}, the only housekeeping CPU",
            text::cpus(&intent.housekeeping)
        )),
        (true, true) => draft.good("the threads poll"),
        (false, true) => draft.good("the threads sleep and are woken"),
        (false, false) => draft.not_applicable("the command line offloads no RCU callbacks"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str, hk: &[u32]) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        let intent = Intent { housekeeping: cpus(hk), ..intent() };
        RCU_NOCB_POLL.judge(&facts, &intent).status
    }

    #[test]
    fn both_are_good_and_alone_it_does_nothing() {
        assert_eq!(with("rcu_nocbs=2-3", &[0, 1]), Good);
        assert_eq!(with("rcu_nocbs=2-3 rcu_nocb_poll", &[0, 1]), Good);
        assert_eq!(with("rcu_nocbs=2-3 rcu_nocb_poll", &[0]), Doubtful);
        assert_eq!(with("rcu_nocb_poll", &[0, 1]), Doubtful);
        assert_eq!(with("quiet", &[0, 1]), NotApplicable);
        let mut facts = good();
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(RCU_NOCB_POLL.judge(&facts, &intent()).status, Unknown);
    }
}
