//! Is it known how the kernel is built?
//!
//! Half of the checks of this section ask the build: where it cannot be read they are unknown, and
//! this one says what to do, once.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "kernel-config-readable",
    title: "build configuration of the kernel",
    why: "a build with debug options or without what real-time needs stays unseen",
    source: "init/Kconfig (IKCONFIG_PROC); Documentation/kbuild/kconfig.rst",
    impact: Impact::Information,
    wanted: Wanted::Text("readable"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let config = &facts.kernel.config;
    let draft = draft.read(config, |found| format!("{} options", found.len()));
    if config.value().is_some() {
        return draft.good(config.path.clone());
    }
    let text = "run as root, load the module configs (/proc/config.gz), or install the \
                kernel's file /boot/config-RELEASE";
    draft.remedies([Remedy::Manual { text: text.into() }]).blind(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    #[test]
    fn good_and_unknown() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.kernel.config = Reading::absent("/proc/config.gz, /boot/config-6.1");
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert_eq!(finding.remedies.len(), 1);
    }
}
