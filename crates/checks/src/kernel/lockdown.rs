//! Does lockdown hide what has to be read and set?
//!
//! It adds no latency. It hides debugfs and forbids to write registers, so that the fair server
//! and others can be neither judged nor set: what it hides is unknown, never good.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "lockdown",
    title: "kernel lockdown",
    why: "a locked-down kernel refuses debugfs and writes to registers of the CPU, so that the \
          fair server and others can be neither read nor set",
    source: "kernel_lockdown(7); security/lockdown/lockdown.c; fs/debugfs/file.c",
    trade_off: Some(
        "without lockdown root can change the running kernel: Secure Boot ends with root",
    ),
    impact: Impact::Information,
    when: When::Boot,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let lockdown = &facts.kernel.lockdown;
    let draft = draft.read(lockdown, String::clone);
    match lockdown.value().map(String::as_str) {
        Some("none") => draft.good("none"),
        Some(mode) => draft
            .remedies([Remedy::Manual {
                text: "where the fair server has to be set: boot without Secure Boot and \
                       without lockdown="
                    .into(),
            }])
            .doubtful(format!("{mode}: what it hides stays unknown")),
        None if machine::built_with(facts, "SECURITY_LOCKDOWN_LSM") == Some(false) => {
            let draft = draft.saw([machine::option(facts, "SECURITY_LOCKDOWN_LSM")]);
            draft.not_applicable("this kernel is built without CONFIG_SECURITY_LOCKDOWN_LSM")
        }
        None => draft.blind(lockdown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::Reading;

    #[test]
    fn modes_and_what_is_not_there() {
        let path = "/sys/kernel/security/lockdown";
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.kernel.lockdown = Reading::known(path, "integrity".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        facts.kernel.lockdown = Reading::absent(path);
        set_config(&mut facts, "SECURITY_LOCKDOWN_LSM", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "SECURITY_LOCKDOWN_LSM", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
