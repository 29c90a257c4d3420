//! Containers, guests, and hosts of real-time guests (KVM).

use rtproof_host::{Facts, Knob, Reading, knobs::device as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::profile::WorkloadKind;
use crate::remedies::of_runtime;
use crate::{Finding, Impact, Intent, Remedy, Status, When, machine};

// Is this a container, and may it do what real-time needs?
//
// A container adds no latency of its own, but it cannot tune: the host's settings decide, /sys is
// read-only, and without CAP_SYS_NICE or a limit there is no SCHED_FIFO.

pub(super) static CONTAINER: Check = Check {
    id: "container",
    title: "container, and its right to be real-time",
    why: "in a container the host's settings decide, and without CAP_SYS_NICE or RLIMIT_RTPRIO its \
          tasks stay ordinary ones",
    source: "sched(7); capabilities(7) (CAP_SYS_NICE); Flatscher, \"Real-time Optimizations\" \
             (latencies as on the host)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("none, or one that may use the application's priority"),
    judge: Judge::Ask(judge_container),
    ..Check::NEW
};

fn judge_container(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let container = &facts.virt.container;
    let draft = draft.read(container, |name| name.clone().unwrap_or_else(|| "none".into()));
    let Some(found) = container.value() else {
        return draft.unreadable(container);
    };
    let Some(name) = found else {
        return draft.good("none");
    };
    let (rtprio, capability) = (&facts.limits.rtprio, &facts.limits.cap_sys_nice);
    // Of another user namespace (a rootless container) the kernel does not count it.
    let counts = facts.rights.initial_user_namespace.value() != Some(&false);
    let draft = draft
        .read(capability, |has| match has {
            true if counts => "CAP_SYS_NICE held".into(),
            true => "CAP_SYS_NICE, of another user namespace".into(),
            false => "CAP_SYS_NICE not held".into(),
        })
        .read(rtprio, |limit| match limit.soft {
            Some(most) => format!("RLIMIT_RTPRIO {most}"),
            None => "RLIMIT_RTPRIO unlimited".into(),
        });
    let is_enough = rtprio
        .value()
        .map(|limit| limit.soft.is_none_or(|most| most >= u64::from(intent.priority)));
    match (capability.value().map(|has| *has && counts), is_enough) {
        (Some(true), _) | (_, Some(true)) => {
            let text = format!(
                "rtproof check --prove priority --priority {}, and `rtproof prove` on the host",
                intent.priority
            );
            draft.remedies([Remedy::Manual { text }]).doubtful(format!(
                "{name}: it has the right to the priority, which --prove priority tries; the \
                 host's settings decide, prove it too"
            ))
        }
        (Some(false), Some(false)) => {
            let text = of_runtime(name, "rtprio", &intent.priority.to_string());
            draft
                .remedies([Remedy::Manual { text }])
                .bad(format!("{name}: it may not use priority {}", intent.priority))
        }
        (None, _) => draft.unreadable(capability),
        (_, None) => draft.unreadable(rtprio),
    }
}

// What else is between this system and the hardware?
//
// In a guest every other finding and every latency holds as seen from inside: the host may stop
// the CPU at any time, and steal time is what it admits to.

pub(super) static HYPERVISOR: Check = Check {
    id: "hypervisor",
    title: "hypervisor or container round this system",
    why: "a host that stops a virtual CPU adds latency that no setting of the guest removes",
    source: "Documentation/virt/kvm/x86/msr.rst (steal time); proc_stat(5); Flatscher, \"Real-time \
             Optimizations\" (containers: no measurable difference)",
    impact: Impact::Hundreds,
    when: When::Firmware,
    wanted: Wanted::Text("bare metal"),
    judge: Judge::Ask(judge_hypervisor),
    ..Check::NEW
};

fn judge_hypervisor(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (hypervisor, container) = (&facts.virt.hypervisor, &facts.virt.container);
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "none".into()));
    let Some(guest_of) = hypervisor.value() else {
        return draft.unreadable(hypervisor);
    };
    let draft = draft.read(container, |name| name.clone().unwrap_or_else(|| "none".into()));
    let inside = container.value().and_then(Option::as_ref);
    let steal = steal(facts, intent);
    let draft = if steal.is_some() {
        draft.read(&facts.virt.steal_ticks, |ticks| show(ticks))
    } else {
        draft
    };
    if let Some(name) = guest_of {
        let inside = inside.map_or(String::new(), |c| format!(", in a {c} container"));
        return draft
            .remedies([host()])
            .doubtful(format!("{name} guest{inside}: every verdict holds as seen from inside"));
    }
    if let Some(name) = inside {
        return draft.doubtful(format!(
            "{name} container: the host's tuning decides, and part of it cannot be seen"
        ));
    }
    if container.value().is_none() {
        return draft.unreadable(container);
    }
    match steal {
        Some(ticks) if ticks > 0 => draft.doubtful(format!(
            "no hypervisor shows itself, yet {ticks} clock ticks were stolen since boot"
        )),
        _ => draft.good("bare metal, no container"),
    }
}

/// Clock ticks stolen from the real-time CPUs, or from all where none are named.
fn steal(facts: &Facts, intent: &Intent) -> Option<u64> {
    let ticks = facts.virt.steal_ticks.value()?;
    let concerns = |cpu: u32| intent.rt_cpus.is_empty() || intent.rt_cpus.contains(cpu);
    let counted = ticks.iter().filter(|(cpu, _)| concerns(*cpu));
    Some(counted.fold(0, |sum: u64, (_, ticks)| sum.saturating_add(*ticks)))
}

fn show(ticks: &[(u32, u64)]) -> String {
    let all = ticks.iter().fold(0_u64, |sum, (_, ticks)| sum.saturating_add(*ticks));
    format!("{all} ticks stolen on {}", machine::count(ticks.len(), "CPU"))
}

fn host() -> Remedy {
    Remedy::Manual {
        text:
            "on the host: pin the virtual CPUs to isolated CPUs at a real-time priority, lock the \
               guest's memory, and prove the host too"
                .into(),
    }
}

// How does a guest wait when it has nothing to do?
//
// A guest that halts exits to the host and comes back when the host has scheduled it; one that
// polls first does not. How its devices are made (virtio, passed through) and whether the host
// keeps its CPUs free cannot be seen from here in full.

pub(super) static KVM_GUEST: Check = Check {
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
    judge: Judge::Ask(judge_kvm_guest),
    ..Check::NEW
};

fn judge_kvm_guest(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let hypervisor = &facts.virt.hypervisor;
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "bare metal".into()));
    if hypervisor.value().is_none() {
        return draft.unreadable(hypervisor);
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
            _ => draft.unreadable(limit),
        };
    }
    // Not idle=poll, which `idle-poll` doubts in a guest.
    let draft = draft.remedies([Remedy::Manual {
        text: "with KVM, and without another idle driver: modprobe cpuidle-haltpoll force=1".into(),
    }]);
    match driver.value() {
        Some(driver) => draft.doubtful(format!("{name}: halts when idle (driver {driver})")),
        None => draft.unreadable(driver),
    }
}

// Is KVM set for guests that are real-time? One check for each parameter of its modules.
//
// Only the profile rt-vm-host asks: elsewhere KVM is loaded because a distribution loads it, and
// its parameters do not matter.

pub(super) static CLOCK_SYNC: Check = Check {
    title: "periodic setting of the guests' clocks (kvm.kvmclock_periodic_sync)",
    why: "every 300 s each virtual CPU of every guest is interrupted to set its clock again",
    source: "arch/x86/kvm/x86.c (KVMCLOCK_SYNC_PERIOD); tuned, profile realtime-virtual-host",
    when: When::Boot,
    judge: Judge::Ask(|draft, facts, intent| {
        parameter(
            draft,
            facts,
            intent,
            &knobs::KVM_CLOCK_SYNC,
            &["N"],
            Status::Bad,
            Some("options kvm kvmclock_periodic_sync=0"),
        )
    }),
    ..Check::of(&[&knobs::KVM_CLOCK_SYNC])
};

pub(super) static PLE: Check = Check {
    title: "exits of guests that spin (kvm_intel.ple_gap)",
    why: "a guest that spins on a lock is made to exit to the host, though its CPU is its own",
    source: "arch/x86/kvm/vmx/vmx.c (ple_gap); tuned, profile realtime-virtual-host",
    trade_off: Some("with more virtual CPUs than CPUs a spinning guest wastes its time"),
    impact: Impact::Microseconds,
    when: When::Boot,
    judge: Judge::Ask(|draft, facts, intent| {
        parameter(
            draft,
            facts,
            intent,
            &knobs::KVM_PLE,
            &["0"],
            Status::Bad,
            Some("options kvm_intel ple_gap=0"),
        )
    }),
    ..Check::of(&[&knobs::KVM_PLE])
};

pub(super) static NX_HUGE_PAGES: Check = Check {
    title: "huge pages of guests split where they are executed (kvm.nx_huge_pages)",
    why: "the first instruction in a huge page exits to the host, which splits it, and a thread \
          joins split pages again",
    source: "Documentation/admin-guide/hw-vuln/multihit.rst; tuned, profile realtime-virtual-host",
    trade_off: Some("with it off a guest can stop a host whose CPU has the iTLB multihit erratum"),
    when: When::Now,
    judge: Judge::Ask(|draft, facts, intent| {
        parameter(
            draft,
            facts,
            intent,
            &knobs::KVM_NX_HUGE_PAGES,
            &["N", "never"],
            Status::Doubtful,
            None,
        )
    }),
    ..Check::of(&[&knobs::KVM_NX_HUGE_PAGES])
};

pub(super) static HALT_POLL: Check = Check {
    title: "polling of the host for guests that have halted (kvm.halt_poll_ns)",
    why: "without polling a guest that was idle wakes only after the host has scheduled its \
          virtual CPU again",
    source: "Documentation/virt/kvm/halt-polling.rst",
    trade_off: Some(
        "CPU time and power while guests are idle; a guest that polls by itself does not need it",
    ),
    when: When::Now,
    judge: Judge::Ask(|draft, facts, intent| {
        parameter(draft, facts, intent, &knobs::KVM_HALT_POLL, &["200000"], Status::Doubtful, None)
    }),
    ..Check::of(&[&knobs::KVM_HALT_POLL])
};

/// Whether a parameter has a value that is good for guests; the first of `good` is what to set.
/// `module_option` is the line for modprobe.d, where the parameter cannot be written.
fn parameter(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
    knob: &'static Knob,
    good: &[&str],
    otherwise: Status,
    module_option: Option<&str>,
) -> Finding {
    let wanted = match knob.id == knobs::KVM_HALT_POLL.id {
        true => "more than 0".to_owned(),
        false => good.join(" or "),
    };
    let draft = draft.wanted(wanted);
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !knob.arch.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let path = knob.patterns().next().unwrap_or_default();
    let none = Reading::absent(path);
    let setting = facts.settings.get(knob.id);
    let reading = setting.and_then(|s| s.values.first()).map_or(&none, |value| &value.reading);
    let Some(value) = reading.value() else {
        let lacking = setting.and_then(|setting| setting.missing_from.as_ref());
        return match lacking.filter(|lacking| lacking.value().is_some()) {
            Some(lacking) if reading.is_absent() => {
                draft.read(lacking, String::clone).not_applicable("KVM is not loaded")
            }
            _ => draft.unreadable(reading),
        };
    };
    let draft = draft.read(reading, String::clone);
    // Polling: any time is as wanted.
    let is_good = match knob.id == knobs::KVM_HALT_POLL.id {
        true => value.parse::<u64>().is_ok_and(|ns| ns > 0),
        false => good.contains(&value.as_str()),
    };
    if is_good {
        return draft.good(value.clone());
    }
    if intent.profile.kind != WorkloadKind::RtVmHost {
        return draft.not_applicable(format!("{value}; matters to the profile rt-vm-host alone"));
    }
    let remedy = match (module_option, good.first()) {
        (None, Some(value)) => Remedy::set(knob, vec![path.into()], *value),
        (option, _) => Remedy::File {
            // One file each: the facts do not say which one holds what.
            path: format!("/etc/modprobe.d/rtproof-{}.conf", knob.id),
            line: option.unwrap_or_default().into(),
        },
    };
    draft.remedies([remedy]).status(otherwise, value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;
    use rtproof_host::facts::rights::Limit;

    #[test]
    fn rights_decide_in_a_container() {
        let mut facts = good();
        assert_eq!(CONTAINER.judge(&facts, &intent()).status, Good);
        facts.virt.container = Reading::known("/.dockerenv", Some("docker".into()));
        let finding = CONTAINER.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        // A group without real-time runtime may still refuse it: not checked.
        assert!(finding.summary.starts_with("docker: it has the right"), "{}", finding.summary);
        let fix = finding.remedies[0].to_string();
        assert!(fix.contains("--prove priority") && !fix.contains("--cap-add"), "{fix}");
        let limit = Limit { soft: Some(0), hard: Some(0) };
        facts.limits.rtprio = Reading::known("/proc/self/limits", limit);
        let finding = CONTAINER.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "docker: it may not use priority 80");
        let fix = finding.remedies[0].to_string();
        assert!(fix.contains("--cap-add SYS_NICE, or with --ulimit rtprio=80"), "{fix}");
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", true);
        assert_eq!(CONTAINER.judge(&facts, &intent()).status, Doubtful);
        facts.rights.initial_user_namespace = Reading::known("/proc/self/uid_map", false);
        assert_eq!(CONTAINER.judge(&facts, &intent()).status, Bad);
    }

    #[test]
    fn unknown() {
        let mut facts = good();
        facts.virt.container = Reading::denied("/proc/1/environ", "EACCES");
        assert_eq!(CONTAINER.judge(&facts, &intent()).status, Unknown);
        facts.virt.container = Reading::known("/.dockerenv", Some("docker".into()));
        facts.limits.cap_sys_nice = Reading::absent("/proc/self/status");
        facts.limits.rtprio = Reading::absent("/proc/self/limits");
        assert_eq!(CONTAINER.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod hypervisor_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn a_guest_is_named_with_its_steal_time() {
        let mut facts = good();
        set_guest(&mut facts, "kvm");
        facts.virt.steal_ticks = Reading::known("/proc/stat", vec![(0, 99), (2, 5), (3, 2)]);
        let finding = HYPERVISOR.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "kvm guest: every verdict holds as seen from inside");
    }

    #[test]
    fn a_container_is_named() {
        let mut facts = good();
        facts.virt.container = Reading::known("/.dockerenv", Some("docker".into()));
        let finding = HYPERVISOR.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("docker container"), "{}", finding.summary);
    }

    #[test]
    fn bare_metal_is_good_and_stolen_time_gives_a_host_away() {
        let mut facts = good();
        assert_eq!(HYPERVISOR.judge(&facts, &intent()).status, Good);
        facts.virt.steal_ticks = Reading::known("/proc/stat", vec![(2, 5)]);
        assert_eq!(HYPERVISOR.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn half_known_is_unknown() {
        let mut facts = good();
        facts.virt.container = Reading::denied("/proc/1/environ", "EACCES");
        assert_eq!(HYPERVISOR.judge(&facts, &intent()).status, Unknown);
        facts.virt.hypervisor = Reading::absent("/sys/hypervisor");
        assert_eq!(HYPERVISOR.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod kvm_guest_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent, set_cmdline, set_guest};

    #[test]
    fn bare_metal_and_polling_guests_are_good() {
        let mut facts = good();
        assert_eq!(KVM_GUEST.judge(&facts, &intent()).status, Good);
        set_guest(&mut facts, "KVM");
        let finding = KVM_GUEST.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(!finding.remedies.iter().any(|it| matches!(it, Remedy::Boot { .. })));
        let path = facts.cpus.idle_driver.path.clone();
        facts.cpus.idle_driver = Reading::known(path, "haltpoll".into());
        fill_setting(&mut facts, &knobs::GUEST_HALT_POLL, "200000");
        assert_eq!(KVM_GUEST.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::GUEST_HALT_POLL, "0");
        assert_eq!(KVM_GUEST.judge(&facts, &intent()).status, Doubtful);
        set_cmdline(&mut facts, "idle=poll");
        assert_eq!(KVM_GUEST.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn unknown() {
        let mut facts = good();
        set_guest(&mut facts, "KVM");
        facts.cpus.idle_driver = Reading::denied("/sys/x", "EACCES");
        assert_eq!(KVM_GUEST.judge(&facts, &intent()).status, Unknown);
        facts.virt.hypervisor = Reading::absent("/sys/hypervisor");
        assert_eq!(KVM_GUEST.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod kvm_host_tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::facts::settings::{Setting, SettingValue};

    #[test]
    fn only_a_host_of_real_time_guests_is_asked() {
        for (check, bad, otherwise) in [
            (&CLOCK_SYNC, "Y", Status::Bad),
            (&PLE, "128", Status::Bad),
            (&NX_HUGE_PAGES, "Y", Status::Doubtful),
            (&HALT_POLL, "0", Status::Doubtful),
        ] {
            let host = Intent { profile: Profile::of(WorkloadKind::RtVmHost), ..intent() };
            let mut facts = good();
            assert_eq!(check.judge(&facts, &host).status, Good);
            fill_setting(&mut facts, check.knobs[0], bad);
            assert_eq!(check.judge(&facts, &intent()).status, NotApplicable);
            let finding = check.judge(&facts, &host);
            assert_eq!(finding.status, otherwise);
            assert_eq!(finding.remedies.len(), 1);
            set_setting(&mut facts, check.knobs[0], Reading::denied("x", "EACCES"));
            assert_eq!(check.judge(&facts, &host).status, Unknown);
            let values =
                vec![SettingValue { of: String::new(), reading: Reading::absent("/sys/x") }];
            let lacking = Some(Reading::known("/sys/module", "holds no kvm".to_owned()));
            facts.settings.insert(check.id.into(), Setting { values, missing_from: lacking });
            assert_eq!(check.judge(&facts, &host).status, NotApplicable);
        }
    }
}
