//! Is KVM set for guests that are real-time? One check for each parameter of its modules.
//!
//! Only the profile rt-vm-host asks: elsewhere KVM is loaded because a distribution loads it, and
//! what its parameters are concerns nobody.

use rtproof_host::{Facts, Knob, Reading, knobs::platform as knobs};

use crate::checks::Check;
use crate::checks::draft::Draft;
use crate::profile::Kind;
use crate::{Finding, Impact, Intent, Remedy, Status, When};

/// One parameter.
pub(super) struct KvmHost {
    knob: &'static Knob,
    title: &'static str,
    why: &'static str,
    source: &'static str,
    trade_off: Option<&'static str>,
    impact: Impact,
    /// Values that are as wanted; the first is what to set.
    good: &'static [&'static str],
    /// Of the profile rt-vm-host with another value.
    otherwise: Status,
    /// Line for modprobe.d, where the parameter cannot be written.
    module_option: Option<&'static str>,
}

pub(super) static CLOCK_SYNC: KvmHost = KvmHost {
    knob: &knobs::KVM_CLOCK_SYNC,
    title: "periodic setting of the guests' clocks (kvm.kvmclock_periodic_sync)",
    why: "every 300 s each virtual CPU of every guest is interrupted to set its clock again",
    source: "arch/x86/kvm/x86.c (KVMCLOCK_SYNC_PERIOD); tuned, profile realtime-virtual-host",
    trade_off: None,
    impact: Impact::Tens,
    good: &["N"],
    otherwise: Status::Bad,
    module_option: Some("options kvm kvmclock_periodic_sync=0"),
};

pub(super) static PLE: KvmHost = KvmHost {
    knob: &knobs::KVM_PLE,
    title: "exits of guests that spin (kvm_intel.ple_gap)",
    why: "a guest that spins on a lock is made to exit to the host, though its CPU is its own",
    source: "arch/x86/kvm/vmx/vmx.c (ple_gap); tuned, profile realtime-virtual-host",
    trade_off: Some("with more virtual CPUs than CPUs a spinning guest wastes its time"),
    impact: Impact::Microseconds,
    good: &["0"],
    otherwise: Status::Bad,
    module_option: Some("options kvm_intel ple_gap=0"),
};

pub(super) static NX_HUGE_PAGES: KvmHost = KvmHost {
    knob: &knobs::KVM_NX_HUGE_PAGES,
    title: "huge pages of guests split where they are executed (kvm.nx_huge_pages)",
    why: "the first instruction in a huge page exits to the host, which splits it, and a thread \
          joins split pages again",
    source: "Documentation/admin-guide/hw-vuln/multihit.rst; tuned, profile realtime-virtual-host",
    trade_off: Some("with it off a guest can stop a host whose CPU has the iTLB multihit erratum"),
    impact: Impact::Tens,
    good: &["N", "never"],
    otherwise: Status::Doubtful,
    module_option: None,
};

pub(super) static HALT_POLL: KvmHost = KvmHost {
    knob: &knobs::KVM_HALT_POLL,
    title: "polling of the host for guests that have halted (kvm.halt_poll_ns)",
    why: "without polling a guest that was idle wakes only after the host has scheduled its \
          virtual CPU again",
    source: "Documentation/virt/kvm/halt-polling.rst",
    trade_off: Some(
        "CPU time and power while guests are idle; a guest that polls by itself does \
                     not need it",
    ),
    impact: Impact::Tens,
    good: &["200000"],
    otherwise: Status::Doubtful,
    module_option: None,
};

impl KvmHost {
    /// Whether a value is as wanted. Polling: any, as long as there is some.
    fn is_good(&self, value: &str) -> bool {
        if self.knob.id == knobs::KVM_HALT_POLL.id {
            return value.parse::<u64>().is_ok_and(|ns| ns > 0);
        }
        self.good.contains(&value)
    }
}

impl Check for KvmHost {
    crate::checks::texts_are_fields!(
        title: &'static str,
        why: &'static str,
        source: &'static str,
        trade_off: Option<&'static str>,
        impact: Impact
    );

    fn id(&self) -> &'static str {
        self.knob.id
    }

    fn when(&self) -> When {
        if self.module_option.is_some() { When::Boot } else { When::Now }
    }

    fn knobs(&self) -> Vec<&'static Knob> {
        vec![self.knob]
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let wanted = match self.knob.id == knobs::KVM_HALT_POLL.id {
            true => "more than 0".to_owned(),
            false => self.good.join(" or "),
        };
        let draft = Draft::of(self, wanted);
        let arch = &facts.kernel.arch;
        if let Some(name) = arch.value().filter(|name| !self.knob.arch.has(name)) {
            return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
        }
        let path = self.knob.patterns().next().unwrap_or_default();
        let none = Reading::absent(path);
        let setting = facts.settings.get(self.knob.id);
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
        if self.is_good(value) {
            return draft.good(value.clone());
        }
        if intent.profile.kind != Kind::RtVmHost {
            return draft
                .not_applicable(format!("{value}; matters to the profile rt-vm-host alone"));
        }
        let remedy = match (self.module_option, self.good.first()) {
            (None, Some(value)) => {
                Remedy::Write { paths: vec![path.into()], value: (*value).into() }
            }
            (option, _) => Remedy::File {
                // A file each: what one of them holds, facts do not tell.
                path: format!("/etc/modprobe.d/rtproof-{}.conf", self.knob.id),
                line: option.unwrap_or_default().into(),
            },
        };
        draft.remedies([remedy]).status(self.otherwise, value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::checks::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::facts::settings::{Setting, Value};

    #[test]
    fn only_a_host_of_real_time_guests_is_asked() {
        for (check, bad) in
            [(&CLOCK_SYNC, "Y"), (&PLE, "128"), (&NX_HUGE_PAGES, "Y"), (&HALT_POLL, "0")]
        {
            let host = Intent { profile: Profile::of(Kind::RtVmHost), ..intent() };
            let mut facts = good();
            assert_eq!(check.judge(&facts, &host).status, Good);
            fill_setting(&mut facts, check.knob, bad);
            assert_eq!(check.judge(&facts, &intent()).status, NotApplicable);
            let finding = check.judge(&facts, &host);
            assert_eq!(finding.status, check.otherwise);
            assert_eq!(finding.remedies.len(), 1);
            set_setting(&mut facts, check.knob, Reading::denied("x", "EACCES"));
            assert_eq!(check.judge(&facts, &host).status, Unknown);
            let values = vec![Value { of: String::new(), reading: Reading::absent("/sys/x") }];
            let lacking = Some(Reading::known("/sys/module", "holds no kvm".to_owned()));
            facts.settings.insert(check.knob.id.into(), Setting { values, lacking });
            assert_eq!(check.judge(&facts, &host).status, NotApplicable);
        }
    }
}
