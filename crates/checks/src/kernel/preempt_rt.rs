//! Is the kernel fully preemptible? Everything else is second to this.
//!
//! A kernel without PREEMPT_RT has no bound, only habits: under stress hundreds of microseconds
//! with full or lazy preemption, and no promise at all with voluntary preemption or none. So it is
//! bad, unless the budget is so large that only a measurement can tell.

use rtproof_host::{Facts, facts::kernel::Preemption};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::built_with;
use crate::{Finding, Impact, Intent, Remedy, When, quantity};

/// Budget from which a preemptible stock kernel may do: measured maxima under stress lie below.
const PREEMPTIBLE_NS: u64 = 1_000_000;
/// Budget from which any kernel may do.
const ANY_NS: u64 = 10_000_000;

pub(super) static CHECK: Check = Check {
    id: "preempt-rt",
    title: "fully preemptible kernel",
    why: "without PREEMPT_RT, spinlock, softirq and interrupt sections are not preemptible: a \
          real-time task waits for the longest of them",
    source: "Documentation/core-api/real-time/kernel-configuration.rst; Wu, \"Real-time \
             programming with Linux, part 2\" (Raspberry Pi 4 under stress: 717 µs stock, 279 µs \
             PREEMPT_RT)",
    impact: Impact::Milliseconds,
    when: When::Kernel,
    wanted: Wanted::Text("PREEMPT_RT"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let model = &facts.kernel.preemption;
    let build = &facts.kernel.build;
    let draft = draft.read(model, |&found| match build.value() {
        // /sys/kernel/realtime went with 7.0 or so: the build string is what tells.
        Some(text) if build.path == model.path => text.clone(),
        _ => name(found).into(),
    });
    let Some(&found) = model.value() else {
        return draft.blind(model);
    };
    let release = facts.kernel.release.value().map_or("this kernel", String::as_str);
    if found == Preemption::Rt {
        return draft.good(format!("{release} is fully preemptible (PREEMPT_RT)"));
    }
    let summary = format!("{release} is not PREEMPT_RT: {}", name(found));
    let draft = draft.remedies(remedies(facts, found));
    let Some(budget_ns) = intent.budget_ns else {
        return draft.bad(summary);
    };
    let summary = format!("{summary}; the budget is {}", quantity::ns(budget_ns));
    match found {
        _ if budget_ns >= ANY_NS => draft.doubtful(summary),
        Preemption::Full | Preemption::Lazy if budget_ns >= PREEMPTIBLE_NS => {
            draft.doubtful(summary)
        }
        Preemption::DynamicUnknown if budget_ns >= PREEMPTIBLE_NS => draft.unknown(summary),
        _ => draft.bad(summary),
    }
}

fn name(model: Preemption) -> &'static str {
    match model {
        Preemption::Rt => "PREEMPT_RT",
        Preemption::Full => "full preemption",
        Preemption::Lazy => "lazy preemption",
        Preemption::Voluntary => "voluntary preemption",
        Preemption::None => "no preemption",
        Preemption::DynamicUnknown => "PREEMPT_DYNAMIC, the mode in force cannot be read",
    }
}

fn remedies(facts: &Facts, found: Preemption) -> Vec<Remedy> {
    let mut remedies = vec![Remedy::Manual {
        text: "install and boot a PREEMPT_RT kernel (Debian linux-image-rt-amd64 or -arm64, RHEL \
               kernel-rt, Ubuntu Pro realtime-kernel), or build 6.12 or later with \
               CONFIG_PREEMPT_RT=y"
            .into(),
    }];
    remedies.push(Remedy::Build { options: vec!["PREEMPT_RT=y".into()] });
    let is_full = found == Preemption::Full;
    if !is_full && built_with(facts, "PREEMPT_DYNAMIC") == Some(true) {
        remedies.push(Remedy::Boot { parameter: "preempt=full".into() });
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, good_stock, intent};
    use rtproof_host::Reading;

    fn status(model: Preemption, budget_ns: Option<u64>) -> Status {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/sys/kernel/debug/sched/preempt", model);
        CHECK.judge(&facts, &Intent { budget_ns, ..intent() }).status
    }

    #[test]
    fn an_rt_kernel_is_good() {
        let finding = CHECK.judge(&good(), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "6.12.95-rt-amd64 is fully preemptible (PREEMPT_RT)");
    }

    #[test]
    fn another_is_bad_unless_the_budget_is_large() {
        assert_eq!(status(Preemption::Full, Some(100_000)), Bad);
        assert_eq!(status(Preemption::Full, None), Bad);
        assert_eq!(status(Preemption::Full, Some(1_000_000)), Doubtful);
        assert_eq!(status(Preemption::Lazy, Some(1_000_000)), Doubtful);
        assert_eq!(status(Preemption::Voluntary, Some(9_999_999)), Bad);
        assert_eq!(status(Preemption::None, Some(10_000_000)), Doubtful);
    }

    #[test]
    fn an_unreadable_mode_is_unknown_where_it_decides() {
        assert_eq!(status(Preemption::DynamicUnknown, Some(100_000)), Bad);
        assert_eq!(status(Preemption::DynamicUnknown, Some(2_000_000)), Unknown);
        assert_eq!(status(Preemption::DynamicUnknown, Some(20_000_000)), Doubtful);
    }

    #[test]
    fn a_dynamic_kernel_can_at_least_boot_with_full_preemption() {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/proc/cmdline", Preemption::Voluntary);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.remedies[2], Remedy::Boot { parameter: "preempt=full".into() });
    }
}
