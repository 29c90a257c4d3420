//! How does a guest wait when it has nothing to do?
//!
//! A guest that halts exits to the host and comes back when the host has scheduled it; one that
//! polls first does not. How its devices are made (virtio, passed through) and whether the host
//! keeps its CPUs free cannot be seen from here in full.

use rtproof_host::{Facts, Reading, knobs::platform as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "kvm-guest",
    title: "idle virtual CPUs: halted or polling",
    why: "a virtual CPU that halts is given up to the host, and wakes only when the host schedules \
          it again",
    source: "Documentation/virt/guest-halt-polling.rst; \
             Documentation/core-api/real-time/hardware.rst (Virtualization); \
             drivers/cpuidle/cpuidle-haltpoll.c (refuses without KVM or beside another driver; \
             needs force where the host sets no KVM_HINTS_REALTIME)",
    trade_off: Some("a guest that polls takes its CPU of the host in whole"),
    impact: Impact::Tens,
    knobs: &[&knobs::GUEST_HALT_POLL],
    wanted: Wanted::Text("bare metal, or a guest that polls before it halts"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let hypervisor = &facts.virt.hypervisor;
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "bare metal".into()));
    if hypervisor.value().is_none() {
        return draft.blind(hypervisor);
    }
    let Some(name) = machine::guest(facts) else {
        return draft.good("bare metal: no host to wait for");
    };
    let cmdline = &facts.kernel.cmdline;
    let idle = cmdline.value().and_then(|line| line.last("idle")).flatten();
    if idle == Some("poll") {
        return draft.read(cmdline, |_| "idle=poll".into()).good(format!("{name}: idle=poll"));
    }
    let driver = &facts.cpus.idle_driver;
    let draft = draft.read(driver, String::clone);
    let none = Reading::absent("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    let setting = facts.settings.get(knobs::GUEST_HALT_POLL.id);
    let limit = setting.and_then(|s| s.values.first()).map_or(&none, |value| &value.reading);
    if driver.value().map(String::as_str) == Some("haltpoll") {
        let draft = draft.read(limit, |ns| format!("{ns} ns"));
        return match limit.value().map(|text| text.parse::<u64>()) {
            Some(Ok(0)) => draft
                .remedies([Remedy::set(
                    &knobs::GUEST_HALT_POLL,
                    vec![limit.path.clone()],
                    "200000",
                )])
                .doubtful(format!("{name}: haltpoll is in force and polls for 0 ns")),
            Some(Ok(ns)) => draft.good(format!("{name}: polls for up to {ns} ns")),
            _ => draft.blind(limit),
        };
    }
    // Not idle=poll, which `idle-poll` doubts in a guest.
    let draft = draft.remedies([Remedy::Manual {
        text: "with KVM, and without another idle driver: modprobe cpuidle-haltpoll force=1".into(),
    }]);
    match driver.value() {
        Some(driver) => draft.doubtful(format!("{name}: halts when idle (driver {driver})")),
        None => draft.blind(driver),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent, set_cmdline, set_guest};

    #[test]
    fn bare_metal_and_polling_guests_are_good() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        set_guest(&mut facts, "KVM");
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(!finding.remedies.iter().any(|it| matches!(it, Remedy::Boot { .. })));
        let path = facts.cpus.idle_driver.path.clone();
        facts.cpus.idle_driver = Reading::known(path, "haltpoll".into());
        fill_setting(&mut facts, &knobs::GUEST_HALT_POLL, "200000");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::GUEST_HALT_POLL, "0");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_cmdline(&mut facts, "idle=poll");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn unknown() {
        let mut facts = good();
        set_guest(&mut facts, "KVM");
        facts.cpus.idle_driver = Reading::denied("/sys/x", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.virt.hypervisor = Reading::absent("/sys/hypervisor");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
