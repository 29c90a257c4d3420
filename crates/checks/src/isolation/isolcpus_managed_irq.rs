//! Are managed interrupts, which no write to smp_affinity moves, kept off the isolated CPUs?

use rtproof_host::Facts;

use super::common;
use crate::boot_params::{CpuParameter, Given, List};
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Intent, Remedy, When};

pub(super) static ISOLCPUS_MANAGED_IRQ: Check = Check {
    id: "isolcpus-managed-irq",
    title: "managed interrupts of multi-queue devices kept off isolated CPUs",
    why: "the kernel spreads the queues of a disk or network card over all CPUs and refuses to \
          move their interrupts later",
    source: "kernel/irq/manage.c (irq_do_set_affinity), kernel/sched/isolation.c; \
             Documentation/admin-guide/kernel-parameters.txt, isolcpus; measured: EPERM on a write \
             to smp_affinity_list of a managed interrupt",
    trade_off: Some(
        "best effort: a queue whose CPUs are all isolated keeps its interrupt there, and fires \
         when an isolated CPU uses it",
    ),
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("isolcpus=managed_irq,…,{}", intent.rt_cpus)),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let given = Given::of(facts, line, "isolcpus");
    let shown =
        |asked: Option<&CpuParameter>| asked.map_or("no isolcpus=".into(), |a| a.written.clone());
    let draft = draft.read(cmdline, |_| shown(given.once()));
    let isolated = common::isolated(facts).unwrap_or_default();
    let parameter = format!("isolcpus=managed_irq,domain,{}", isolated.union(&intent.rt_cpus));
    let draft = draft.remedies([Remedy::Boot { parameter }]);
    let Some(asked) = given.once() else {
        if let Given::Conflicting(written) = &given {
            return draft.unknown(format!("{} on one command line", written.join(" and ")));
        }
        let by_partition = facts.isolation.partitioned.value();
        if by_partition.is_some_and(|cpus| !cpus.intersection(&intent.rt_cpus).is_empty()) {
            return draft.read(&facts.isolation.partitioned, text::or_empty).doubtful(
                "CPUs are isolated by a partition, which leaves managed interrupts where they are",
            );
        }
        return draft.not_applicable("no isolcpus= that the flag could belong to");
    };
    let has_flag = asked.flags.iter().any(|flag| flag == "managed_irq");
    match &asked.list {
        List::Unclear => draft.unknown(format!("{}: the number of CPUs is unknown", asked.written)),
        List::Refused(why) => draft.bad(format!("{} is refused: {why}", asked.written)),
        List::Cpus(_) if !has_flag => draft.doubtful(format!(
            "{} has no flag `managed_irq`: managed interrupts may go to {}",
            asked.written,
            text::cpus(&intent.rt_cpus)
        )),
        List::Cpus(cpus) => {
            let open = intent.rt_cpus.difference(cpus);
            if open.is_empty() {
                return draft.good(asked.written.clone());
            }
            let open = text::cpus(&open);
            draft.doubtful(format!("{} leaves out the real-time {open}", asked.written))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        ISOLCPUS_MANAGED_IRQ.judge(&facts, &intent()).status
    }

    #[test]
    fn the_flag_and_the_list() {
        assert_eq!(with("isolcpus=managed_irq,domain,2-3"), Good);
        assert_eq!(with("isolcpus=managed_irq,3"), Doubtful);
        assert_eq!(with("isolcpus=2-3"), Doubtful);
        assert_eq!(with("isolcpus=managed_irq,2-3n"), Bad);
        assert_eq!(with("quiet"), NotApplicable);
        assert_eq!(with("isolcpus=2 isolcpus=3"), Unknown);
    }

    #[test]
    fn a_partition_moves_no_managed_interrupt() {
        let mut facts = good();
        set_cmdline(&mut facts, "quiet");
        let path = facts.isolation.partitioned.path.clone();
        facts.isolation.partitioned = Reading::known(path, cpus(&[2, 3]));
        assert_eq!(ISOLCPUS_MANAGED_IRQ.judge(&facts, &intent()).status, Doubtful);
    }
}
