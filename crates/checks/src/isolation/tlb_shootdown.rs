//! Do other threads of the same process interrupt the real-time CPUs when they unmap memory?

use rtproof_host::Facts;

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

const WORTH_A_LOOK: f64 = 1.0;

pub(super) static TLB_SHOOTDOWN: Check = Check {
    id: "tlb-shootdown",
    title: "TLB shootdowns on the real-time CPUs since boot",
    why: "a thread that unmaps or protects memory interrupts every CPU that runs another thread of \
          its process, and waits for it",
    source: "arch/x86/mm/tlb.c (native_flush_tlb_multi); Documentation/timers/no_hz.rst; \
             rigtorp.se, low latency guide",
    impact: Impact::Microseconds,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("fewer than one a second on each"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if arch.value().is_some_and(|name| name == "aarch64") {
        return draft
            .read(arch, String::clone)
            .not_applicable("aarch64 tells other CPUs of unmapped memory without interrupts");
    }
    let (draft, counters, uptime_ms) = match common::counters(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let Some(row) = counters.rows.iter().find(|row| row.what == "TLB shootdowns") else {
        return draft.unknown("this kernel does not count TLB shootdowns");
    };
    let Some(counts) = common::of_rt(counters, &row.counts, intent) else {
        return draft.unknown("a real-time CPU has no column in /proc/interrupts");
    };
    let worst = counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default();
    let rate = common::per_second(worst.1, uptime_ms);
    if rate < WORTH_A_LOOK {
        return draft.good(format!(
            "at most {} since boot on {}",
            common::rate(rate),
            text::cpus(&intent.rt_cpus)
        ));
    }
    let text = "keep threads that map and unmap memory out of the real-time process, or have the \
                process \
                allocate all it needs before it starts. Avoid munmap, madvise and free of large \
                blocks";
    draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
        "{} since boot on CPU {}",
        common::rate(rate),
        worst.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_row};
    use rtproof_host::Reading;

    #[test]
    fn the_mean_since_boot_and_machines_without() {
        let mut facts = good();
        assert_eq!(TLB_SHOOTDOWN.judge(&facts, &intent()).status, Good);
        set_row(&mut facts, "TLB", "TLB shootdowns", [9, 9, 2_000, 0]);
        let finding = TLB_SHOOTDOWN.judge(&facts, &intent());
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Doubtful, "2.0/s since boot on CPU 2")
        );
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(TLB_SHOOTDOWN.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "riscv64".into());
        facts.isolation.counters = Reading::absent("/proc/interrupts");
        assert_eq!(TLB_SHOOTDOWN.judge(&facts, &intent()).status, Unknown);
    }
}
