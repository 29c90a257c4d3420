//! Which rule chooses the idle state?
//!
//! `menu` and `teo` predict how long the CPU will be idle; `ladder` is for kernels whose tick never
//! stops, and `haltpoll` for guests, where it spins for a moment before the CPU is given back.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, guest};
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "cpuidle-governor",
    title: "governor that chooses the idle state",
    why: "a governor that expects a longer idle time than comes chooses a deeper state than \
          needed, whose exit takes longer",
    source: "Documentation/admin-guide/pm/cpuidle.rst; Documentation/virt/guest-halt-polling.rst; \
             drivers/cpuidle/governors",
    impact: Impact::Microseconds,
    wanted: Wanted::Text("menu or teo; haltpoll in a guest"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let (driver, governor) = (&facts.cpus.idle_driver, &facts.cpus.idle_governor);
    if driver.value().is_some_and(|driver| driver == "none") {
        return draft
            .read(driver, String::clone)
            .not_applicable("no idle driver: there are no states to choose from");
    }
    if built_with(facts, "CPU_IDLE") == Some(false) {
        return draft.without(facts, "CPU_IDLE");
    }
    let draft = draft.read(governor, String::clone);
    let Some(name) = governor.value() else {
        return draft.blind(governor);
    };
    let remedy = Remedy::Boot { parameter: "cpuidle.governor=menu".into() };
    match name.as_str() {
        "menu" | "teo" => draft.good(name.clone()),
        "ladder" => draft
            .remedies([remedy])
            .doubtful("ladder: made for kernels whose tick does not stop in idle"),
        "haltpoll" => match (guest(facts), facts.virt.hypervisor.value()) {
            (Some(hypervisor), _) => draft
                .read(&facts.virt.hypervisor, |_| hypervisor.into())
                .good(format!("haltpoll, in this {hypervisor} guest")),
            (None, Some(_)) => draft
                .read(&facts.virt.hypervisor, |_| "none".into())
                .remedies([remedy])
                .doubtful("haltpoll: made for guests, and this is none"),
            (None, None) => draft.blind(&facts.virt.hypervisor),
        },
        other => draft.unknown(format!("{other}: what it chooses is not known here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config, set_guest};
    use rtproof_host::Reading;

    fn with(name: &str) -> Facts {
        let mut facts = good();
        let path = facts.cpus.idle_governor.path.clone();
        facts.cpus.idle_governor = Reading::known(path, name.into());
        facts
    }

    #[test]
    fn each_governor_has_its_place() {
        let judge = |facts: &Facts| CHECK.judge(facts, &intent()).status;
        assert_eq!(judge(&with("teo")), Good);
        assert_eq!(judge(&with("ladder")), Doubtful);
        assert_eq!(judge(&with("haltpoll")), Doubtful);
        assert_eq!(judge(&with("mine")), Unknown);
        let mut facts = with("haltpoll");
        set_guest(&mut facts, "kvm");
        assert_eq!(judge(&facts), Good);
        facts.virt.hypervisor = Reading::absent("cpuid");
        assert_eq!(judge(&facts), Unknown);
    }

    #[test]
    fn without_a_driver_there_is_nothing_to_choose() {
        let mut facts = good();
        facts.cpus.idle_governor = Reading::absent("/sys/x/current_governor");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "CPU_IDLE", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        let mut facts = good();
        facts.cpus.idle_driver = Reading::known(facts.cpus.idle_driver.path.clone(), "none".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
