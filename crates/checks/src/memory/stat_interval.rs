//! How often does each CPU fold its memory counters?
//!
//! Since 6.5 the kernel leaves CPUs alone that are isolated from the scheduler's domains or
//! tickless, whatever the interval; before, the interval is all there is.

use rtproof_host::{CpuList, Facts, knobs::memory as knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::since;
use crate::setting;
use crate::{Finding, Intent, Remedy};

/// Seconds, as tuned's profile for isolated CPUs has it; Codethink has 120.
const SECONDS_MIN: i64 = 10;
/// First kernel that leaves isolated CPUs out (mm/vmstat.c, be5e015d107d).
const SKIPS_ISOLATED: (u32, u32) = (6, 5);

pub(super) static CHECK: Check = Check {
    id: "stat-interval",
    title: "update of memory counters on each CPU (vm.stat_interval)",
    why: "a worker folds the CPU's counters into the machine's, by default every second, on the \
          CPU itself",
    source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst (vmstat_update); mm/vmstat.c \
             (vmstat_shepherd); tuned, profile cpu-partitioning (10); Codethink, \"Configuring \
             Linux systems to stabilise latency\" (120)",
    trade_off: Some("/proc/vmstat and what reads it lag behind by so many seconds"),
    knobs: &[&knobs::STAT_INTERVAL],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let interval = setting::number(facts, &knobs::STAT_INTERVAL);
    let wanted = format!("at least {SECONDS_MIN} s, or CPUs that the kernel leaves out");
    let draft = draft.wants(wanted).read(&interval, i64::to_string);
    let Some(&seconds) = interval.value() else {
        return draft.blind(&interval);
    };
    if seconds >= SECONDS_MIN {
        return draft.good(format!("every {seconds} s"));
    }
    if !intent.rt_cpus.is_empty() && since(facts, SKIPS_ISOLATED) == Some(true) {
        let cpus = &facts.cpus;
        for (list, word) in [(&cpus.isolated, "isolated"), (&cpus.nohz_full, "tickless")] {
            let covers = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
            if list.value().is_some_and(covers) {
                return draft
                    .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
                    .read(list, CpuList::to_string)
                    .good(format!("every {seconds} s, but {word} CPUs are left out"));
            }
        }
    }
    let paths = vec![interval.path.clone()];
    draft
        .remedies([Remedy::set(&knobs::STAT_INTERVAL, paths, SECONDS_MIN.to_string())])
        .doubtful(format!("every {seconds} s a worker may run on the real-time CPUs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{cpus, fill_setting, good, good_stock, intent, set_setting};
    use rtproof_host::Reading;

    #[test]
    fn long_enough_or_left_out() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::STAT_INTERVAL, "1");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.cpus.isolated = Reading::known("/sys/x", cpus(&[3]));
        facts.cpus.nohz_full = Reading::absent("/sys/y");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        fill_setting(&mut facts, &knobs::STAT_INTERVAL, "120");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn older_kernels_leave_nothing_out() {
        let mut facts = good_stock();
        fill_setting(&mut facts, &knobs::STAT_INTERVAL, "1");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_setting(&mut facts, &knobs::STAT_INTERVAL, Reading::denied("x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
