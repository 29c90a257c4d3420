//! Are RCU callbacks taken off the real-time CPUs, and do the threads exist that run them instead?

use rtproof_host::{CpuList, Facts};

use crate::boot_params::{Given, List};
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::text;
use crate::{Evidence, Finding, Intent, Remedy, When};

pub(super) static RCU_NOCBS: Check = Check {
    id: "rcu-nocbs",
    title: "RCU callbacks taken off the real-time CPUs",
    why: "callbacks that a CPU has queued run there in softirq or rcuc, thousands at once after a \
          close or an unmount",
    source: "Documentation/admin-guide/kernel-parameters.txt, rcu_nocbs=; kernel/rcu/tree_nocb.h \
             (rcu_init_nohz); Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
    trade_off: Some("the callbacks run in rcuo threads, which need time on other CPUs"),
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} offloaded", text::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let given = Given::of(facts, line, "rcu_nocbs");
    let bare = line.all("rcu_nocbs").any(|value| value.is_none());
    let shown = match (&given, bare) {
        (Given::Once(asked), _) => asked.written.clone(),
        (Given::Conflicting(written), _) => written.join(" "),
        (Given::Not, true) => "rcu_nocbs".into(),
        (Given::Not, false) => "no rcu_nocbs".into(),
    };
    let draft = draft.read(cmdline, |_| shown.clone());
    let all = intent.rt_cpus.clone();
    let remedy = Remedy::Boot { parameter: format!("rcu_nocbs={all}") };
    if built_with(facts, "RCU_NOCB_CPU") == Some(false) {
        let draft = draft.saw([option(facts, "RCU_NOCB_CPU")]);
        let text = "a kernel with CONFIG_RCU_NOCB_CPU=y".into();
        return draft
            .remedies([Remedy::Manual { text }])
            .doubtful("this kernel is built without CONFIG_RCU_NOCB_CPU: callbacks stay");
    }
    let none = CpuList::default();
    let by_line = match &given {
        Given::Conflicting(written) => {
            return draft.unknown(format!("{} on one command line", written.join(" and ")));
        }
        Given::Once(asked) => match &asked.list {
            List::Cpus(cpus) => cpus,
            List::Unclear => {
                return draft.unknown(format!("{}: the number of CPUs is unknown", asked.written));
            }
            // rcu_nocb_setup() offloads every CPU when it cannot read the list.
            List::Refused(why) => {
                return draft.remedies([remedy]).doubtful(format!(
                    "{} is refused, the kernel offloads every CPU: {why}",
                    asked.written
                ));
            }
        },
        Given::Not => &none,
    };
    let open = intent.rt_cpus.difference(by_line);
    if open.is_empty() {
        return judge_threads(draft, facts, &shown, &remedy);
    }
    let tickless = facts.cpus.nohz_full.value().unwrap_or(&none);
    if open.difference(tickless).is_empty() {
        return draft
            .read(&facts.cpus.nohz_full, text::or_empty)
            .good(format!("{} offloaded, by nohz_full too", text::cpus(&intent.rt_cpus)));
    }
    let is_default = built_with(facts, "RCU_NOCB_CPU_DEFAULT_ALL") == Some(true);
    // The bare word takes that back, and offloads none.
    if is_default && given == Given::Not && !bare {
        return draft
            .saw([option(facts, "RCU_NOCB_CPU_DEFAULT_ALL")])
            .good("every CPU offloaded by the kernel's build");
    }
    let open = text::cpus(&open.difference(tickless));
    draft.remedies([remedy]).doubtful(format!("RCU callbacks stay on {open} ({shown})"))
}

/// Asked for: are there the threads? Without them it is not in force.
fn judge_threads(draft: Draft, facts: &Facts, shown: &str, remedy: &Remedy) -> Finding {
    let groups = facts.placement.value().map_or(&[][..], Vec::as_slice);
    // Where RCU's own thread is seen, the others would be: a part of a machine proves nothing.
    let is_rcu = |name: &str| name == "rcu_preempt" || name == "rcu_sched";
    let sees_rcu = groups.iter().any(|group| group.kernel_thread && is_rcu(&group.name));
    if sees_rcu && !groups.iter().any(|group| group.name.starts_with("rcuo")) {
        let path = facts.placement.path.clone();
        let evidence = Evidence { path, value: "no kernel thread rcuo*".into() };
        return draft
            .saw([evidence])
            .remedies([remedy.clone()])
            .bad(format!("{shown}, but no rcuo thread runs: the kernel did not take it"));
    }
    draft.good(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    fn with(line: &str, tickless: &[u32]) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(tickless));
        RCU_NOCBS.judge(&facts, &intent()).status
    }

    #[test]
    fn by_list_by_nohz_full_or_not() {
        assert_eq!(with("rcu_nocbs=2-3", &[]), Good);
        assert_eq!(with("rcu_nocbs=2", &[3]), Good);
        assert_eq!(with("quiet", &[2, 3]), Good);
        assert_eq!(with("rcu_nocbs=2", &[]), Doubtful);
        assert_eq!(with("rcu_nocbs=2-3n", &[]), Doubtful);
        assert_eq!(with("rcu_nocbs=2 rcu_nocbs=3", &[]), Unknown);
    }

    #[test]
    fn asked_for_without_threads_is_bad_and_the_build_may_do_it() {
        let mut facts = good();
        let mut groups = facts.placement.value().cloned().unwrap();
        groups.retain(|group| !group.name.starts_with("rcuo"));
        facts.placement = Reading::known(facts.placement.path.clone(), groups);
        let finding = RCU_NOCBS.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.starts_with("rcu_nocbs=2-3, but no rcuo thread"));
        set_cmdline(&mut facts, "quiet");
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        assert_eq!(RCU_NOCBS.judge(&facts, &intent()).status, Doubtful);
        set_config(&mut facts, "RCU_NOCB_CPU_DEFAULT_ALL", Some("y"));
        assert_eq!(RCU_NOCBS.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "RCU_NOCB_CPU", None);
        assert_eq!(RCU_NOCBS.judge(&facts, &intent()).status, Doubtful);
    }
}
