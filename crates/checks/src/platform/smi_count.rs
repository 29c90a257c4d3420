//! How often has the firmware stopped all CPUs?
//!
//! The counter runs from reset, so that the start of the firmware is in it: what is not 0 is an
//! upper bound of the rate, and only the difference over a run is certain. A guest's counter does
//! not count the host's. AMD has no such register.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When, quantity};

pub(super) static CHECK: Check = Check {
    id: "smi-count",
    title: "system management interrupts since reset",
    why: "a system management interrupt stops all CPUs for the firmware, unseen by the kernel, for \
          ten to hundreds of microseconds",
    source: "Intel SDM volume 4 (MSR_SMI_COUNT, 34H); turbostat(8); Wu, \"Real-time programming \
             with Linux, part 2\" (400 µs every 14 minutes)",
    impact: Impact::Hundreds,
    when: When::Firmware,
    wanted: Wanted::Text("0"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let (arch, vendor) = (&facts.kernel.arch, &facts.platform.vendor);
    let is_x86 = |name: &String| rtproof_host::knob::Arch::X86.has(name);
    if let Some(name) = arch.value().filter(|name| !is_x86(name)) {
        let why = format!("{name} has no system management mode");
        return draft.read(arch, String::clone).not_applicable(why);
    }
    let draft = draft.read(vendor, String::clone);
    match vendor.value().map(String::as_str) {
        Some("GenuineIntel") => {}
        Some(other) => {
            return draft.unknown(format!("{other} has no register that counts them since reset"));
        }
        None => return draft.blind(vendor),
    }
    let hypervisor = &facts.virt.hypervisor;
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "bare metal".into()));
    if hypervisor.value().is_none() {
        return draft.blind(hypervisor);
    }
    if machine::guest(facts).is_some() {
        return draft.unknown("a guest does not see those of the host");
    }
    let count = &facts.platform.smi_count;
    let draft = draft.read(count, |count| format!("MSR 0x34: {count}"));
    let Some(&count) = count.value() else {
        let text = "run as root with the module msr loaded (modprobe msr)".into();
        return draft.remedies([Remedy::Manual { text }]).blind(&facts.platform.smi_count);
    };
    if count == 0 {
        return draft.good("none since reset");
    }
    let uptime = &facts.platform.uptime_s;
    let draft = draft.read(uptime, |&s| quantity::duration(s.saturating_mul(1_000_000_000)));
    let rate = uptime.value().filter(|&&s| s > 0).map_or(String::new(), |&s| {
        let per_hour = count.saturating_mul(3_600) / s;
        format!(", at most {per_hour} an hour on average")
    });
    draft.remedies([firmware()]).doubtful(format!(
        "{count} since reset{rate}; those of the firmware's start are among them: count again \
         after some time"
    ))
}

fn firmware() -> Remedy {
    Remedy::Manual {
        text: "in the firmware's set-up turn off legacy USB, memory scrubbing by firmware, power \
               capping and error reports by SMI; ask the maker for a real-time profile; turn off \
               fwupd-refresh.timer"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn none_is_good_and_some_are_told_with_their_rate() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.platform.smi_count = Reading::known("/dev/cpu/0/msr", 48);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("48 since reset, at most 2 an hour"));
        facts.platform.uptime_s = Reading::absent("/proc/uptime");
        assert!(CHECK.judge(&facts, &intent()).summary.starts_with("48 since reset;"));
    }

    #[test]
    fn where_it_is_not_counted() {
        let mut facts = good();
        facts.platform.smi_count = Reading::denied("/dev/cpu/0/msr", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_guest(&mut facts, "KVM");
        facts.platform.smi_count = Reading::known("/dev/cpu/0/msr", 0);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.platform.vendor = Reading::known("/proc/cpuinfo", "AuthenticAMD".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
