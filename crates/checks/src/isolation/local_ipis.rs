//! How often do other CPUs and the machine itself interrupt the real-time CPUs?
//!
//! Left out: wake-ups (rescheduling interrupts) and the local timer, which are the application's
//! own most of the time, and TLB shootdowns, which are a check of their own.

use rtproof_host::{Facts, facts::isolation::CounterRow};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

/// What the kernel calls the rows that count (arch/x86/kernel/irq.c, arch/arm64/kernel/smp.c).
const ROWS: &[&str] = &[
    "Function call interrupts",
    "IRQ work interrupts",
    "Non-maskable interrupts",
    "Performance monitoring interrupts",
    "Machine check polls",
    "Thermal event interrupts",
    "Threshold APIC interrupts",
    "Deferred Error APIC interrupts",
];
const WORTH_A_LOOK: f64 = 1.0;

pub(super) static LOCAL_IPIS: Check = Check {
    id: "local-ipis",
    title: "interrupts between CPUs on the real-time CPUs since boot",
    why: "a CPU that wants something done everywhere interrupts all others and waits for them",
    source: "arch/x86/kernel/irq.c (arch_show_interrupts), arch/arm64/kernel/smp.c, kernel/smp.c; \
             rigtorp.se, low latency guide",
    impact: Impact::Microseconds,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("fewer than one a second of each kind"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, counters, uptime_ms) = match common::counters(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let rows: Vec<&CounterRow> =
        counters.rows.iter().filter(|row| ROWS.contains(&row.what.as_str())).collect();
    if rows.is_empty() {
        return draft.unknown("this kernel counts no interrupts between CPUs");
    }
    let mut worst: Vec<(f64, u32, &CounterRow)> = Vec::new();
    for row in rows {
        let Some(counts) = common::of_rt(counters, &row.counts, intent) else {
            return draft.unknown("a real-time CPU has no column in /proc/interrupts");
        };
        if let Some((cpu, count)) = counts.into_iter().max_by_key(|(_, count)| *count) {
            worst.push((common::per_second(count, uptime_ms), cpu, row));
        }
    }
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    let show = |(rate, cpu, row): &(f64, u32, &CounterRow)| {
        format!("{} {} on CPU {cpu}", row.what.to_ascii_lowercase(), common::rate(*rate))
    };
    let often: Vec<String> =
        worst.iter().filter(|(rate, ..)| *rate >= WORTH_A_LOOK).map(show).collect();
    if often.is_empty() {
        let most = worst.first().map_or(0.0, |(rate, ..)| *rate);
        return draft.good(format!("at most {} of a kind since boot", common::rate(most)));
    }
    let path = &facts.isolation.counters.path;
    let text = "find who sends them: trace ipi:ipi_send_cpumask, or ipi:ipi_send_cpu, with stacks";
    draft
        .saw(often.iter().map(|value| Evidence { path: path.clone(), value: value.clone() }))
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(format!("since boot {}", text::first_few(&often, 3)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_row};
    use rtproof_host::Reading;

    #[test]
    fn rates_of_real_time_cpus_only() {
        let mut facts = good();
        set_row(&mut facts, "CAL", "Function call interrupts", [90_000, 90_000, 3, 5]);
        assert_eq!(LOCAL_IPIS.judge(&facts, &intent()).status, Good);
        set_row(&mut facts, "CAL", "Function call interrupts", [0, 0, 3, 30_000]);
        let finding = LOCAL_IPIS.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "since boot function call interrupts 30/s on CPU 3");
        facts.isolation.counters = Reading::denied("/proc/interrupts", "EACCES");
        assert_eq!(LOCAL_IPIS.judge(&facts, &intent()).status, Unknown);
    }
}
