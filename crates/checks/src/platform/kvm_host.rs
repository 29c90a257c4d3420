//! Is KVM set for guests that are real-time? One check for each parameter of its modules.
//!
//! Only the profile rt-vm-host asks: elsewhere KVM is loaded because a distribution loads it, and
//! what its parameters are concerns nobody.

use rtproof_host::{Facts, Knob, Reading, knobs::platform as knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::profile::Kind;
use crate::{Finding, Impact, Intent, Remedy, Status, When};

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
    draft: Draft,
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
    let draft = draft.wants(wanted);
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !knob.arch.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let path = knob.patterns().next().unwrap_or_default();
    let none = Reading::absent(path);
    let setting = facts.settings.get(knob.id);
    let reading = setting.and_then(|s| s.values.first()).map_or(&none, |value| &value.reading);
    let Some(value) = reading.value() else {
        let lacking = setting.and_then(|setting| setting.lacking.as_ref());
        return match lacking.filter(|lacking| lacking.value().is_some()) {
            Some(lacking) if reading.is_absent() => {
                draft.read(lacking, String::clone).not_applicable("KVM is not loaded")
            }
            _ => draft.blind(reading),
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
    if intent.profile.kind != Kind::RtVmHost {
        return draft.not_applicable(format!("{value}; matters to the profile rt-vm-host alone"));
    }
    let remedy = match (module_option, good.first()) {
        (None, Some(value)) => Remedy::set(knob, vec![path.into()], *value),
        (option, _) => Remedy::File {
            // A file each: what one of them holds, facts do not tell.
            path: format!("/etc/modprobe.d/rtproof-{}.conf", knob.id),
            line: option.unwrap_or_default().into(),
        },
    };
    draft.remedies([remedy]).status(otherwise, value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::facts::settings::{Setting, Value};

    #[test]
    fn only_a_host_of_real_time_guests_is_asked() {
        for (check, bad, otherwise) in [
            (&CLOCK_SYNC, "Y", Status::Bad),
            (&PLE, "128", Status::Bad),
            (&NX_HUGE_PAGES, "Y", Status::Doubtful),
            (&HALT_POLL, "0", Status::Doubtful),
        ] {
            let host = Intent { profile: Profile::of(Kind::RtVmHost), ..intent() };
            let mut facts = good();
            assert_eq!(check.judge(&facts, &host).status, Good);
            fill_setting(&mut facts, check.knobs[0], bad);
            assert_eq!(check.judge(&facts, &intent()).status, NotApplicable);
            let finding = check.judge(&facts, &host);
            assert_eq!(finding.status, otherwise);
            assert_eq!(finding.remedies.len(), 1);
            set_setting(&mut facts, check.knobs[0], Reading::denied("x", "EACCES"));
            assert_eq!(check.judge(&facts, &host).status, Unknown);
            let values = vec![Value { of: String::new(), reading: Reading::absent("/sys/x") }];
            let lacking = Some(Reading::known("/sys/module", "holds no kvm".to_owned()));
            facts.settings.insert(check.id.into(), Setting { values, lacking });
            assert_eq!(check.judge(&facts, &host).status, NotApplicable);
        }
    }
}
