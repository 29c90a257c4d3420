//! Did system management interrupts come? Only Intel CPUs count them, and a hypervisor shows a
//! count of its own.

use rtproof_host::{Facts, Reading};
use rtproof_model::trial::SmiObservation;

use crate::check::{Check, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Remedy, Status, When, quantity};

pub(super) static CHECK: Check = Check {
    id: "proof-smi",
    wanted: Wanted::Text("no system management interrupt"),
    why: "in a system management interrupt firmware runs on all CPUs at once and the kernel cannot \
          hold it off",
    source: "counted here: MSR_SMI_COUNT (0x34) of arch/x86/include/asm/msr-index.h, Intel SDM \
             volume 4, through arch/x86/kernel/msr.c",
    impact: Impact::Hundreds,
    when: When::Firmware,
    ..Check::NEW
};

pub(super) fn judge(seen: &SmiObservation, facts: &Facts) -> Finding {
    let draft = CHECK.draft();
    if let Some(arch) = facts.kernel.arch.value().filter(|arch| !arch.contains("86")) {
        let draft = draft.read(&facts.kernel.arch, String::clone);
        return draft
            .status(Status::NotApplicable, format!("{arch} has no system management mode"));
    }
    let draft = draft.read(&seen.vendor, String::clone);
    match seen.vendor.value().map(String::as_str) {
        Some("GenuineIntel") => {}
        Some(vendor) => {
            let text = "look for gaps instead: `rtproof trace hwlat --over 10us` \
                        (CONFIG_HWLAT_TRACER, never on a machine in use), else `rtproof measure \
                        --workload busy-loop`, whose gaps may be the kernel's too";
            return draft.remedies([Remedy::Manual { text: text.into() }]).status(
                Status::Unknown,
                format!("{vendor} CPUs do not count system management interrupts in a register"),
            );
        }
        None => return draft.status(Status::Unknown, "the maker of the CPU is not known"),
    }
    let read = |draft: Draft, (cpu, count): &(u32, Reading<u64>)| {
        draft.read(count, |count| format!("{count} SMIs, CPU {cpu}"))
    };
    let draft = seen.counts.iter().fold(draft, read);
    let known: Vec<(u32, u64)> =
        seen.counts.iter().filter_map(|(cpu, count)| Some((*cpu, *count.value()?))).collect();
    let blind = seen.counts.iter().find(|(_, count)| count.value().is_none());
    let total: u64 = known.iter().map(|(_, count)| count).sum();
    let time = quantity::ns(seen.duration_ns);
    if total > 0 {
        let text = "in the firmware: USB legacy support, ECC and thermal reporting, power \
                    management by the OS; ask the maker for a real-time setting";
        let summary =
            format!("{} system management interrupts in {time}", quantity::grouped(total));
        let remedy = Remedy::Manual { text: text.into() };
        return draft.remedies([remedy]).status(Status::Bad, summary);
    }
    if let Some((_, count)) = blind {
        return blind_to(draft, count);
    }
    let draft = draft.read(&facts.virt.hypervisor, |name| {
        name.clone().unwrap_or_else(|| "no hypervisor".into())
    });
    match facts.virt.hypervisor.value() {
        _ if seen.counts.is_empty() || seen.duration_ns == 0 => {
            draft.status(Status::Unknown, "no CPU could be asked")
        }
        _ if seen.duration_ns < super::conditions::SHORT_NS => {
            draft.status(Status::Unknown, format!("none in {time}, which is too short to tell"))
        }
        Some(None) => draft.status(
            Status::Good,
            format!("no system management interrupt in {time}; rare ones take longer to see"),
        ),
        Some(Some(name)) => draft.status(
            Status::Unknown,
            format!("none in {time}, but {name} shows a count of its own: ask on the host"),
        ),
        None => draft.status(
            Status::Unknown,
            format!("none in {time}, but a hypervisor may show a count of its own"),
        ),
    }
}

fn blind_to(draft: Draft, count: &Reading<u64>) -> Finding {
    let why = count.why_unknown().unwrap_or_default();
    let (summary, remedy) = if count.is_absent() {
        let command = "modprobe msr".into();
        (
            format!("{}: not there: the msr module is not loaded", count.path),
            Remedy::Command { command },
        )
    } else {
        let text = "run as root, in the initial user namespace (CAP_SYS_RAWIO)".into();
        (format!("{}: {why}", count.path), Remedy::Manual { text })
    };
    draft.remedies([remedy]).status(Status::Unknown, summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{good, set_guest};

    fn seen(vendor: &str, counts: &[Reading<u64>]) -> SmiObservation {
        SmiObservation {
            vendor: Reading::known("/proc/cpuinfo", vendor.into()),
            duration_ns: 10_000_000_000,
            counts: (0..).zip(counts.iter().cloned()).collect(),
        }
    }

    fn count(n: u64) -> Reading<u64> {
        Reading::known("/dev/cpu/0/msr", n)
    }

    #[test]
    fn none_some_and_a_guest() {
        let finding = judge(&seen("GenuineIntel", &[count(0), count(0)]), &good());
        assert_eq!(finding.status, Status::Good, "{finding:#?}");
        let finding = judge(&seen("GenuineIntel", &[count(0), count(3)]), &good());
        assert_eq!(finding.status, Status::Bad);
        assert_eq!(finding.summary, "3 system management interrupts in 10 s");
        let mut short = seen("GenuineIntel", &[count(0)]);
        short.duration_ns = 500_000_000;
        assert_eq!(judge(&short, &good()).status, Status::Unknown);
        let mut guest = good();
        set_guest(&mut guest, "KVM");
        assert_eq!(judge(&seen("GenuineIntel", &[count(0)]), &guest).status, Status::Unknown);
    }

    #[test]
    fn what_cannot_be_read_is_unknown_with_the_next_step() {
        let absent = judge(&seen("GenuineIntel", &[Reading::absent("/dev/cpu/0/msr")]), &good());
        assert_eq!(absent.status, Status::Unknown);
        assert_eq!(absent.remedies[0].to_string(), "modprobe msr");
        let denied = Reading::denied("/dev/cpu/0/msr", "Operation not permitted");
        let denied = judge(&seen("GenuineIntel", &[count(0), denied]), &good());
        assert_eq!(denied.status, Status::Unknown);
        assert!(denied.remedies[0].to_string().contains("root"));
        let amd = judge(&seen("AuthenticAMD", &[]), &good());
        assert_eq!(amd.status, Status::Unknown);
        assert!(amd.summary.starts_with("AuthenticAMD CPUs do not count"), "{}", amd.summary);
        let remedy = amd.remedies[0].to_string();
        assert!(remedy.contains("rtproof trace hwlat") && remedy.contains("busy-loop"), "{remedy}");
        assert_eq!(judge(&seen("GenuineIntel", &[]), &good()).status, Status::Unknown);
        let mut arm = good();
        arm.kernel.arch = Reading::known("uname -m", "aarch64".into());
        assert_eq!(judge(&seen("", &[]), &arm).status, Status::NotApplicable);
    }
}
