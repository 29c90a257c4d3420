//! Can memory be on disk when it is needed?
//!
//! Swap in use is bad. Swap that is there and empty is doubtful: locked memory never goes to it,
//! and whether everything is locked only the application knows.

use rtproof_host::{Facts, facts::memory};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "swap",
    title: "swap areas",
    why: "a page that was swapped out takes milliseconds to come back",
    source: "proc_swaps(5), mlock(2); Bridgers, \"Real Time Linux Scheduling Comparison\"; \
             rigtorp.se/low-latency-guide",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let swaps = &facts.memory.swaps;
    let draft = draft.read(swaps, |areas| show(areas));
    if swaps.is_absent() && built_with(facts, "SWAP") == Some(false) {
        return draft.saw([option(facts, "SWAP")]).not_applicable("this kernel has no swap");
    }
    let Some(areas) = swaps.value() else {
        return draft.blind(swaps);
    };
    if areas.is_empty() {
        return draft.good("no swap");
    }
    let used = areas.iter().fold(0_u64, |sum, area| sum.saturating_add(area.used_bytes));
    let draft = draft.remedies([
        Remedy::Command { command: "swapoff --all".into() },
        Remedy::Unit { unit: "swap.target".into(), action: "mask".into() },
    ]);
    let names: Vec<&str> = areas.iter().map(|area| area.name.as_str()).collect();
    let names = text::first_few(&names, 3);
    if used > 0 {
        return draft.bad(format!("{} swapped out to {names}", text::bytes(used)));
    }
    draft.doubtful(format!("{names} is swap, unused so far: locked memory stays out of it"))
}

fn show(areas: &[memory::Swap]) -> String {
    let lines: Vec<String> = areas
        .iter()
        .map(|area| {
            let (used, size) = (text::bytes(area.used_bytes), text::bytes(area.size_bytes));
            format!("{} {used} of {size} used", area.name)
        })
        .collect();
    if lines.is_empty() { "no areas".into() } else { text::first_few(&lines, 6) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::Reading;

    fn judge(used_bytes: &[u64]) -> Finding {
        let area =
            |used_bytes| memory::Swap { name: "/dev/sda2".into(), size_bytes: 2 << 30, used_bytes };
        let mut facts = good();
        let areas = used_bytes.iter().copied().map(area).collect();
        facts.memory.swaps = Reading::known("/proc/swaps", areas);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn used_is_bad_unused_is_doubtful_none_is_good() {
        assert_eq!(judge(&[]).status, Good);
        assert_eq!(judge(&[0]).status, Doubtful);
        let finding = judge(&[0, 1_572_864]);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "1.5 MiB swapped out to /dev/sda2, /dev/sda2");
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = good();
        facts.memory.swaps = Reading::absent("/proc/swaps");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "SWAP", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
