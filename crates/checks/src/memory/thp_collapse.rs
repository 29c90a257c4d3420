//! Does making huge pages stop a thread: in its page fault, or by khugepaged?
//!
//! Both are beside the point where no transparent huge page is made at all. Since 6.8 each size has
//! a switch of its own, so `never` on top alone does not say that.

use std::ops::ControlFlow::{self, Break, Continue};

use rtproof_host::{Facts, Reading, knobs::memory as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::setting;
use crate::{Evidence, Finding, Intent, Remedy};

pub(super) static DEFRAG: Check = Check {
    id: "thp-defrag",
    title: "compaction in the page fault for a huge page",
    why: "a page fault that wants a huge page reclaims and compacts memory before it returns",
    source: "Documentation/admin-guide/mm/transhuge.rst (defrag)",
    knobs: &[&knobs::THP_DEFRAG, &knobs::THP_SIZES],
    wanted: Wanted::Text("never"),
    judge: Judge::Ask(judge_defrag),
    ..Check::NEW
};

fn judge_defrag(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let draft = match without_thp(draft, facts) {
        Break(finding) => return finding,
        Continue(draft) => draft,
    };
    let defrag = &facts.memory.thp_defrag;
    let draft = draft.read(defrag, String::clone);
    let Some(mode) = defrag.value() else {
        return draft.blind(defrag);
    };
    let paths = vec![defrag.path.clone()];
    let draft = draft.remedies([Remedy::set(&knobs::THP_DEFRAG, paths, "never")]);
    match mode.as_str() {
        "never" => draft.good("never: a fault takes a huge page only where one is free"),
        "always" => draft.bad("always: any page fault may compact memory"),
        "defer" => draft.doubtful("defer: kcompactd compacts memory in the background"),
        "madvise" | "defer+madvise" => {
            draft.doubtful(format!("{mode}: faults of programs that ask for huge pages compact"))
        }
        other => draft.unknown(format!("\"{other}\" is not a mode this check knows")),
    }
}

pub(super) static KHUGEPAGED: Check = Check {
    id: "khugepaged",
    title: "compaction by khugepaged",
    why: "khugepaged compacts memory to collapse pages, under the memory lock of the process and \
          with interrupts of its CPUs",
    source: "Documentation/admin-guide/mm/transhuge.rst (khugepaged/defrag); mm/khugepaged.c \
             (collapse_huge_page)",
    knobs: &[&knobs::KHUGEPAGED, &knobs::THP_SIZES],
    wanted: Wanted::Text("0"),
    judge: Judge::Ask(judge_khugepaged),
    ..Check::NEW
};

fn judge_khugepaged(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let draft = match without_thp(draft, facts) {
        Break(finding) => return finding,
        Continue(draft) => draft,
    };
    let defrag = setting::number(facts, &knobs::KHUGEPAGED);
    let draft = draft.read(&defrag, i64::to_string);
    match defrag.value() {
        None => draft.blind(&defrag),
        Some(0) => draft.good("off: khugepaged collapses only into huge pages that are free"),
        Some(_) => {
            let paths = vec![defrag.path.clone()];
            draft
                .remedies([Remedy::set(&knobs::KHUGEPAGED, paths, "0")])
                .doubtful("khugepaged may compact memory")
        }
    }
}

/// The answer where no transparent huge page is made, or where that is unknown.
fn without_thp(draft: Draft, facts: &Facts) -> ControlFlow<Finding, Draft> {
    let enabled = &facts.memory.thp_enabled;
    let draft = draft.read(enabled, String::clone);
    if enabled.is_absent() && built_with(facts, "TRANSPARENT_HUGEPAGE") == Some(false) {
        return Break(
            draft
                .saw([option(facts, "TRANSPARENT_HUGEPAGE")])
                .not_applicable("this kernel has no transparent huge pages"),
        );
    }
    let Some(mode) = enabled.value() else {
        return Break(draft.blind(enabled));
    };
    match of_one_size(facts) {
        Some(size) => Continue(draft.saw([Evidence::of(size, String::clone)])),
        None if mode == "never" => Break(draft.good("no transparent huge pages are made")),
        None => Continue(draft),
    }
}

/// A size that is made whatever the switch on top says.
fn of_one_size(facts: &Facts) -> Option<&Reading<String>> {
    let values = &facts.settings.get(knobs::THP_SIZES.id)?.values;
    let is_made = |mode: &String| mode == "always" || mode == "madvise";
    values.iter().map(|value| &value.reading).find(|reading| reading.value().is_some_and(is_made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, good_stock, intent, set_setting};

    fn machine(enabled: &str, defrag: &str, khugepaged: &str) -> Facts {
        let mut facts = good_stock();
        facts.memory.thp_enabled = Reading::known(facts.memory.thp_enabled.path, enabled.into());
        facts.memory.thp_defrag = Reading::known(facts.memory.thp_defrag.path, defrag.into());
        fill_setting(&mut facts, &knobs::KHUGEPAGED, khugepaged);
        facts
    }

    fn both(facts: &Facts) -> [Status; 2] {
        [DEFRAG.judge(facts, &intent()).status, KHUGEPAGED.judge(facts, &intent()).status]
    }

    #[test]
    fn never_makes_the_rest_good() {
        assert_eq!(both(&machine("never", "always", "1")), [Good, Good]);
        let mut facts = machine("never", "always", "1");
        fill_setting(&mut facts, &knobs::THP_SIZES, "always");
        assert_eq!(both(&facts), [Bad, Doubtful]);
    }

    #[test]
    fn by_mode() {
        assert_eq!(both(&machine("madvise", "never", "0")), [Good, Good]);
        assert_eq!(both(&machine("madvise", "madvise", "1")), [Doubtful, Doubtful]);
        assert_eq!(both(&machine("always", "always", "1")), [Bad, Doubtful]);
        assert_eq!(both(&machine("always", "often", "x")), [Unknown, Unknown]);
    }

    #[test]
    fn kernels_without_and_files_that_are_refused() {
        assert_eq!(both(&good()), [NotApplicable, NotApplicable]);
        let mut facts = machine("always", "never", "0");
        facts.memory.thp_defrag = Reading::denied("x", "EACCES");
        set_setting(&mut facts, &knobs::KHUGEPAGED, Reading::absent("x"));
        assert_eq!(both(&facts), [Unknown, Unknown]);
        facts.memory.thp_enabled = Reading::denied("x", "EACCES");
        assert_eq!(both(&facts), [Unknown, Unknown]);
    }
}
