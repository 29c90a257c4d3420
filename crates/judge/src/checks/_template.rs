//! Copy this file to start a check. It is compiled and tested, so it cannot rot; it is in no list,
//! so it judges no machine.
//!
//! 1. Copy it to `SECTION/your_check.rs`; rename the type; set the id to the file's name with `-`
//!    for `_`.
//! 2. Say here, in the header, what the check decides and where others get it wrong.
//! 3. Add `mod your_check;` and one line in `CHECKS` of the section's `mod.rs`.
//! 4. `cargo test -p rtproof-judge checks`: `contract.rs` blanks every reading in turn and refuses
//!    a check that stays good without what it cites, or that cites too little. It starts from
//!    `testing::good()`: give that machine a good value for what you read.
//!
//! If the fact is not read yet, it comes first: a plain file is a knob in `crates/host/src/knobs`
//! (then look at `rules.rs`: it may be a row), anything else a field and a reader in
//! `crates/host/src/facts`.

use rtproof_host::Facts;

use crate::checks::Check;
use crate::checks::draft::Draft;
use crate::{Finding, Intent, Remedy};

/// Taint of a module from outside the tree (Documentation/admin-guide/tainted-kernels.rst).
const OUT_OF_TREE: u64 = 1 << 12;

/// One unit type per check, named like the file.
pub(super) struct Template;

impl Check for Template {
    // Short, kebab-case, the field's own word; it is in records and scripts and never changes.
    fn id(&self) -> &'static str {
        "template"
    }

    // What it looks at, not what it wants.
    fn title(&self) -> &'static str {
        "modules from outside the kernel's tree"
    }

    // How a bad answer becomes latency, in one sentence.
    fn why(&self) -> &'static str {
        "nobody has looked for how long these modules turn interrupts off"
    }

    // Public titles: a document, a kernel file, a measurement with its number.
    fn source(&self) -> &'static str {
        "Documentation/admin-guide/tainted-kernels.rst; Wu, \"Real-time programming with Linux, \
         part 2\""
    }

    fn judge(&self, facts: &Facts, _: &Intent) -> Finding {
        let tainted = &facts.kernel.tainted;
        // Say what is wanted, then what was read, before looking at the value. A check about CPUs
        // adds `.cpus(&intent.rt_cpus)` and answers `no_rt_cpus(facts)` where there are none.
        let draft = Draft::of(self, "none").read(tainted, u64::to_string);
        // No value is never good: `blind` says unknown, with the path and the reason. Where a
        // missing file means that the kernel does not have the thing, ask the kernel configuration
        // (`machine::built_with`) and say `not_applicable`.
        let Some(mask) = tainted.value() else {
            return draft.blind(tainted);
        };
        if mask & OUT_OF_TREE == 0 {
            return draft.good("no module from outside the tree");
        }
        // `bad` adds latency for certain; `doubtful` may, and depends on what only the user knows.
        // Remedies are data: `good` drops them again.
        draft
            .remedies([Remedy::Manual {
                text: "find the module: grep '(.*O.*)' /proc/modules".into(),
            }])
            .doubtful(format!("a module from outside the tree is loaded (tainted {mask})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::checks::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(tainted: Reading<u64>) -> Finding {
        let mut facts = good();
        facts.kernel.tainted = tainted;
        Template.judge(&facts, &intent())
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
