//! Copy this into the file of its subject to start a check; say in a comment above it where others
//! get it wrong.
//!
//! It is compiled and tested, but it is in no list. CONTRIBUTING.md has the steps.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::{Finding, Intent, Remedy};

/// Taint of a module from outside the tree (Documentation/admin-guide/tainted-kernels.rst).
const OUT_OF_TREE: u64 = 1 << 12;

pub(crate) static CHECK: Check = Check {
    id: "template",
    title: "modules from outside the kernel's tree",
    why: "nobody has measured for how long these modules turn interrupts off",
    source: "Documentation/admin-guide/tainted-kernels.rst",
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_template),
    ..Check::NEW
};

// Cite what was read before its value is used. No value is never good: `unreadable` says unknown,
// with the path and the reason.
fn judge_template(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let tainted = &facts.kernel.tainted;
    let draft = draft.read(tainted, u64::to_string);
    let Some(mask) = tainted.value() else {
        return draft.unreadable(tainted);
    };
    if mask & OUT_OF_TREE == 0 {
        return draft.good("no module from outside the tree");
    }
    draft
        .remedies([Remedy::Manual { text: "find it: grep '(.*O.*)' /proc/modules".into() }])
        .doubtful(format!("a module from outside the tree is loaded (tainted {mask})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(tainted: Reading<u64>) -> Finding {
        let mut facts = good();
        facts.kernel.tainted = tainted;
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn good_doubtful_and_unknown() {
        let path = "/proc/sys/kernel/tainted";
        assert_eq!(with(Reading::known(path, 1)).status, Good);
        assert_eq!(with(Reading::known(path, 4096 | 512)).status, Doubtful);
        let finding = with(Reading::denied(path, "EACCES"));
        assert_eq!(finding.status, Unknown);
        assert_eq!(finding.summary, "/proc/sys/kernel/tainted: refused: EACCES");
    }
}
