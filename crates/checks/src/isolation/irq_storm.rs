//! How often have devices interrupted the real-time CPUs?
//!
//! Where an interrupt goes now is `irq-affinity`'s question; this counts what came since boot, so
//! it also sees what was moved meanwhile. A mean since boot says nothing of bursts: what comes
//! during a run, the run counts.

use rtproof_host::{Facts, facts::isolation::DeviceCount};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Intent, Remedy};

/// Interrupts a second that are worth a look: what was left of the tick on a tickless CPU before
/// 4.17, which was thought little.
const WORTH_A_LOOK: f64 = 1.0;

pub(super) static IRQ_STORM: Check = Check {
    id: "irq-storm",
    title: "rate of device interrupts on the real-time CPUs since boot",
    why: "each interrupt stops the real-time task for its handler and takes its lines out of the \
          cache",
    source: "Documentation/filesystems/proc.rst, /proc/interrupts; Documentation/timers/no_hz.rst",
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("fewer than one a second on each"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, counters, uptime_ms) = match common::counters(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let of_rt: Vec<&DeviceCount> =
        counters.devices.iter().filter(|device| intent.rt_cpus.contains(device.cpu)).collect();
    if of_rt.len() < intent.rt_cpus.len() {
        return draft.unknown("a real-time CPU has no column in /proc/interrupts");
    }
    let rate = |device: &DeviceCount| common::per_second(device.count, uptime_ms);
    let mut often: Vec<&DeviceCount> =
        of_rt.iter().filter(|device| rate(device) >= WORTH_A_LOOK).copied().collect();
    often.sort_by_key(|device| std::cmp::Reverse(device.count));
    let Some(worst) = often.first() else {
        let most = of_rt.iter().map(|device| rate(device)).fold(0.0, f64::max);
        return draft.good(format!("at most {} on a real-time CPU", common::rate(most)));
    };
    let name = |number: u32| {
        let irqs = facts.irqs.irqs.value().into_iter().flatten();
        let mut named = irqs.filter(|irq| irq.number == number);
        named.next().map_or_else(|| number.to_string(), |irq| format!("{number} ({})", irq.actions))
    };
    let most = worst.most.map_or_else(String::new, |(number, count)| {
        let rate = common::rate(common::per_second(count, uptime_ms));
        format!(", most of all interrupt {} with {rate}", name(number))
    });
    let path = facts.isolation.counters.path.clone();
    let show = |device: &&DeviceCount| Evidence {
        path: path.clone(),
        value: format!("CPU {}: {} since boot", device.cpu, device.count),
    };
    let text = "move the interrupt (irq-affinity), or take its device out of use".into();
    draft.saw(often.iter().take(16).map(show)).remedies([Remedy::Manual { text }]).doubtful(
        format!(
            "{} since boot on CPU {}{most}; {} in all",
            common::rate(rate(worst)),
            worst.cpu,
            text::count(often.len(), "such CPU")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(count: u64) -> Finding {
        let mut facts = good();
        let mut counters = facts.isolation.counters.value().cloned().unwrap();
        counters.devices[3] = DeviceCount { cpu: 3, count, most: Some((24, count)) };
        facts.isolation.counters = Reading::known("/proc/interrupts", counters);
        IRQ_STORM.judge(&facts, &intent())
    }

    #[test]
    fn the_mean_since_boot() {
        assert_eq!(with(12).status, Good);
        let finding = with(50_000);
        assert_eq!(finding.status, Doubtful);
        assert!(
            finding.summary.starts_with(
                "50/s since boot on CPU 3, most of all interrupt 24 (nvme0q0) with 50/s"
            )
        );
        let mut facts = good();
        facts.isolation.uptime_ms = Reading::absent("/proc/uptime");
        assert_eq!(IRQ_STORM.judge(&facts, &intent()).status, Unknown);
    }
}
