//! Does the kernel build huge pages behind the application's back?
//!
//! PREEMPT_RT kernels have no transparent huge pages, so there the file is missing rightly. Writing
//! the knob moves `vm.min_free_kbytes` with it: whoever applies the remedy saves both.

use rtproof_host::{Facts, knobs::memory as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "thp",
    title: "transparent huge pages",
    why: "khugepaged collapses pages under the process's memory lock and interrupts its CPUs, and \
          a page fault may compact memory first",
    source: "Documentation/admin-guide/mm/transhuge.rst; mm/Kconfig (TRANSPARENT_HUGEPAGE depends \
             on !PREEMPT_RT); rigtorp.se/low-latency-guide",
    impact: Impact::Hundreds,
    knobs: &[&knobs::THP],
    wanted: Wanted::Text("never"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let enabled = &facts.memory.thp_enabled;
    let draft = draft.read(enabled, String::clone);
    if enabled.is_absent() && built_with(facts, "TRANSPARENT_HUGEPAGE") == Some(false) {
        return draft
            .saw([option(facts, "TRANSPARENT_HUGEPAGE")])
            .not_applicable("this kernel has no transparent huge pages");
    }
    let Some(value) = enabled.value() else {
        return draft.blind(enabled);
    };
    let draft = draft.remedies([
        Remedy::set(&knobs::THP, vec![enabled.path.clone()], "never"),
        Remedy::Boot { parameter: "transparent_hugepage=never".into() },
    ]);
    match value.as_str() {
        "never" => draft.good("never"),
        "always" => draft.bad("always: any mapping may be collapsed at any time"),
        "madvise" => draft.doubtful("madvise: for programs and allocators that ask for it"),
        other => draft.unknown(format!("\"{other}\" is not a mode this check knows")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent};
    use rtproof_host::Reading;

    fn status(mode: &str) -> Status {
        let mut facts = good_stock();
        facts.memory.thp_enabled = Reading::known(facts.memory.thp_enabled.path, mode.into());
        CHECK.judge(&facts, &intent()).status
    }

    #[test]
    fn by_mode() {
        assert_eq!(status("never"), Good);
        assert_eq!(status("madvise"), Doubtful);
        assert_eq!(status("always"), Bad);
        assert_eq!(status("sometimes"), Unknown);
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let mut facts = good_stock();
        facts.memory.thp_enabled = Reading::absent("/sys/kernel/mm/transparent_hugepage/enabled");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
