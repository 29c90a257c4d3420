//! Did system management interrupts come? What counted says so, and a hypervisor shows a count of
//! its own. Gaps that a loop saw instead are no count: they are shown, and the answer stays
//! unknown.

use rtproof_host::{Facts, Reading};
use rtproof_model::trial::{GapLook, HwlatLook, SmiCounter, SmiObservation};

use crate::check::{Check, Wanted};
use crate::draft::FindingBuilder;
use crate::{Finding, Impact, Remedy, Status, When};

/// What to do about them.
const FIRMWARE: &str = "in the firmware: USB legacy support, ECC and thermal reporting, power \
                        management by the OS; ask the maker for a real-time setting";

pub(super) static CHECK: Check = Check {
    id: "proof-smi",
    wanted: Wanted::Text("no system management interrupt"),
    why: "in a system management interrupt firmware runs on all CPUs at once and the kernel cannot \
          hold it off",
    source: "counted here: MSR_SMI_COUNT (0x34) of arch/x86/include/asm/msr-index.h, Intel SDM \
             volume 4, through arch/x86/kernel/msr.c or arch/x86/events/msr.c; LsSmiRx (0x2b) of \
             tools/perf/pmu-events/arch/x86/amdzen1",
    impact: Impact::Hundreds,
    when: When::Firmware,
    ..Check::NEW
};

pub(super) fn judge(observed: &SmiObservation, facts: &Facts) -> Finding {
    let draft = CHECK.draft();
    if let Some(arch) = facts.kernel.arch.value().filter(|arch| !arch.contains("86")) {
        let draft = draft.read(&facts.kernel.arch, String::clone);
        return draft
            .status(Status::NotApplicable, format!("{arch} has no system management mode"));
    }
    let draft = draft.read(&observed.vendor, String::clone);
    if observed.vendor.value().is_none() {
        return no_counter(draft, observed, facts, "the maker of the CPU is not known");
    }
    let Some(counter) = observed.counter else {
        let vendor = observed.vendor.value().map_or("", String::as_str);
        let why = format!("{vendor}: nothing counts system management interrupts here");
        return no_counter(draft, observed, facts, &why);
    };
    let read = |draft: FindingBuilder, (cpu, count): &(u32, Reading<u64>)| {
        draft.read(count, |count| format!("{count} SMIs, CPU {cpu}"))
    };
    let draft = observed.counts.iter().fold(draft, read);
    let known: Vec<(u32, u64)> =
        observed.counts.iter().filter_map(|(cpu, count)| Some((*cpu, *count.value()?))).collect();
    let unreadable = observed.counts.iter().find(|(_, count)| count.value().is_none());
    let total: u64 = known.iter().map(|(_, count)| count).sum();
    let time = crate::ns(observed.duration_ns);
    if total > 0 {
        let summary = format!(
            "{} in {time}, by {}",
            counted(total, "system management interrupt"),
            counter.words()
        );
        let remedy = Remedy::Manual { text: FIRMWARE.into() };
        return draft.remedies([remedy]).status(Status::Bad, summary);
    }
    if let Some((_, count)) = unreadable {
        return blind_to(draft, observed, facts, counter, count);
    }
    let draft = draft.read(&facts.virt.hypervisor, |name| {
        name.clone().unwrap_or_else(|| "no hypervisor".into())
    });
    match facts.virt.hypervisor.value() {
        _ if observed.counts.is_empty() || observed.duration_ns == 0 => {
            draft.status(Status::Unknown, "no CPU could be asked")
        }
        _ if observed.duration_ns < super::SHORT_NS => {
            draft.status(Status::Unknown, format!("none in {time}, which is too short to tell"))
        }
        Some(None) => draft.status(
            Status::Good,
            format!(
                "no system management interrupt in {time}, by {}; rare ones take longer to see",
                counter.words()
            ),
        ),
        Some(Some(name)) => {
            let why = format!(
                "{} shows none in {time}, but {name} shows a count of its own: ask on the host",
                counter.words()
            );
            draft.status(Status::Unknown, with_gaps(&why, observed, facts))
        }
        None => draft.status(
            Status::Unknown,
            format!("none in {time}, but a hypervisor may show a count of its own"),
        ),
    }
}

fn counted(n: u64, noun: &str) -> String {
    crate::count(n, noun)
}

/// Nothing counted: what the loop saw, and where to go on.
fn no_counter(
    draft: FindingBuilder,
    observed: &SmiObservation,
    facts: &Facts,
    why: &str,
) -> Finding {
    let tracer = match &observed.hwlat {
        hwlat if hwlat.is_absent() => "the kernel's hwlat tracer (CONFIG_HWLAT_TRACER)",
        _ => "`rtproof trace hwlat --over 10us`, for longer than here",
    };
    let text = format!(
        "look for gaps with interrupts off: {tracer}, never on a machine in use; else `rtproof \
         measure --workload busy-loop`, whose gaps may be the kernel's too"
    );
    uncounted(draft, observed, facts, why, Remedy::Manual { text })
}

/// Nothing counted: unknown with the next step, unless hwlat saw on bare metal what is no work of
/// the kernel.
fn uncounted(
    draft: FindingBuilder,
    observed: &SmiObservation,
    facts: &Facts,
    why: &str,
    next: Remedy,
) -> Finding {
    let is_bare = matches!(facts.virt.hypervisor.value(), Some(None));
    let hardware = observed.hwlat.value().filter(|look| is_bare && look.gaps.count > 0);
    let (remedy, status) = match hardware {
        Some(_) => (Remedy::Manual { text: FIRMWARE.into() }, Status::Bad),
        None => (next, Status::Unknown),
    };
    // If something was counted on another CPU, the loop was not run.
    let looked = observed.gaps.is_some() || observed.duration_ns == 0;
    let summary = if looked { with_gaps(why, observed, facts) } else { why.to_owned() };
    draft.remedies([remedy]).status(status, summary)
}

/// A reason, and what the loop and hwlat can and cannot say of it.
fn with_gaps(why: &str, observed: &SmiObservation, facts: &Facts) -> String {
    let text = with_loop(why, observed.gaps.as_ref(), facts);
    let hwlat = by_hwlat(&observed.hwlat, facts);
    if hwlat.is_empty() { text } else { format!("{}. {hwlat}", text.trim_end_matches('.')) }
}

/// A sentence without its full stop, or nothing.
fn by_hwlat(look: &Reading<HwlatLook>, facts: &Facts) -> String {
    let Some(look) = look.value() else {
        // The remedy says if a kernel has no such tracer.
        let why = (!look.is_absent()).then(|| look.why_unknown()).flatten();
        return why.map_or_else(String::new, |why| format!("hwlat could not look: {why}"));
    };
    let (time, over) = (crate::ns(look.duration_ns), crate::ns(look.threshold_ns));
    let nmi = match look.with_nmi {
        0 => String::new(),
        n => format!(
            "; {} with non-maskable interrupts {} left out",
            counted(n, "window"),
            if n == 1 { "is" } else { "are" }
        ),
    };
    let gaps = &look.gaps;
    if gaps.count == 0 {
        return format!(
            "hwlat, which looks with interrupts off, saw none above {over} in {time} of looking \
             at most{nmi}"
        );
    }
    let whose = match facts.virt.hypervisor.value() {
        Some(None) => "the firmware's (SMIs, as a rule) or the hardware's",
        Some(Some(_)) => "the hypervisor's, the firmware's or the hardware's",
        None => "the firmware's, the hardware's or those of a hypervisor",
    };
    format!(
        "hwlat, which looks with interrupts off, saw {} above {over} in {time} of looking at \
         most, the longest {}: not the kernel's, but {whose}{nmi}",
        counted(gaps.count, "gap"),
        crate::ns(gaps.max_ns)
    )
}

fn with_loop(why: &str, gaps: Option<&GapLook>, facts: &Facts) -> String {
    let Some(gaps) = gaps.filter(|gaps| gaps.duration_ns > 0) else {
        return format!("{why}; no loop could look for gaps");
    };
    let (cpu, time) = (gaps.cpu, crate::ns(gaps.duration_ns));
    let over = crate::ns(gaps.threshold_ns);
    let beneath = &gaps.beneath;
    let hidden = match gaps.switched.count {
        0 => String::new(),
        n => format!(
            " Other tasks ran for {} of it ({}), and hid what came then.",
            crate::ns(gaps.switched.sum_ns),
            counted(n, "gap")
        ),
    };
    if beneath.count == 0 {
        return format!(
            "{why}; a loop on CPU {cpu} saw no gap above {over} in {time}, so that none of that \
             length came then.{hidden} Shorter and rarer ones were not looked for"
        );
    }
    let whose = match facts.virt.hypervisor.value() {
        Some(Some(name)) => {
            let steal = gaps.steal_ms.value().map_or_else(
                || "steal is not known".into(),
                |ms| format!("steal meanwhile {ms} ms, in steps of 10"),
            );
            format!("the hypervisor's ({name}; {steal}), the kernel's interrupts or the firmware's")
        }
        _ => "the kernel's interrupts or the firmware's".into(),
    };
    format!(
        "{why}; a loop on CPU {cpu} saw {} above {over} in {time}, the longest {}: {whose}, \
         which a loop cannot tell apart.{hidden}",
        counted(beneath.count, "gap"),
        crate::ns(beneath.max_ns)
    )
}

fn blind_to(
    draft: FindingBuilder,
    observed: &SmiObservation,
    facts: &Facts,
    counter: SmiCounter,
    count: &Reading<u64>,
) -> Finding {
    let why = count.why_unknown().unwrap_or_default();
    let is_register = counter == SmiCounter::Register;
    if count.is_absent() && !is_register {
        let why =
            format!("{}: this kernel, CPU or hypervisor has no such counter", counter.words());
        return no_counter(draft, observed, facts, &why);
    }
    let (summary, remedy) = match count.is_absent() {
        true if is_register => {
            let command = "modprobe msr".into();
            (
                format!("{}: not there: the msr module is not loaded", count.path),
                Remedy::Command { command },
            )
        }
        _ => {
            let right = if is_register { "CAP_SYS_RAWIO" } else { "CAP_PERFMON" };
            let text = format!("run as root, in the initial user namespace ({right})");
            let what = if is_register { String::new() } else { format!(", {}", counter.words()) };
            (format!("{}{what}: {why}", count.path), Remedy::Manual { text })
        }
    };
    uncounted(draft, observed, facts, &summary, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{good, set_guest};

    fn seen(vendor: &str, counts: &[Reading<u64>]) -> SmiObservation {
        SmiObservation {
            vendor: Reading::known("/proc/cpuinfo", vendor.into()),
            counter: (!counts.is_empty()).then_some(match vendor {
                "AuthenticAMD" => SmiCounter::PerfAmd,
                _ => SmiCounter::Register,
            }),
            duration_ns: if counts.is_empty() { 0 } else { 10_000_000_000 },
            gaps: None,
            hwlat: Reading::absent("/sys/kernel/tracing/available_tracers"),
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
        assert_eq!(
            finding.summary,
            "3 system management interrupts in 10 s, by MSR_SMI_COUNT (0x34)"
        );
        let finding = judge(&seen("AuthenticAMD", &[count(1)]), &good());
        assert!(finding.summary.contains("1 system management interrupt in 10 s, by the core"));
        let finding = judge(&seen("AuthenticAMD", &[count(0)]), &good());
        assert_eq!(finding.status, Status::Good, "{finding:#?}");
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
        assert!(amd.summary.starts_with("AuthenticAMD: nothing counts"), "{}", amd.summary);
        let denied = Reading::denied("perf_event_open", "Permission denied");
        let denied = judge(&seen("AuthenticAMD", &[denied]), &good());
        assert!(denied.remedies[0].to_string().contains("CAP_PERFMON"), "{denied:#?}");
        let none = judge(&seen("AuthenticAMD", &[Reading::absent("perf_event_open")]), &good());
        assert!(none.remedies[0].to_string().contains("hwlat tracer (CONFIG_"), "{none:#?}");
        assert_eq!(denied.status, Status::Unknown);
        let remedy = amd.remedies[0].to_string();
        assert!(remedy.contains("CONFIG_HWLAT_TRACER") && remedy.contains("busy-loop"), "{remedy}");
        assert_eq!(judge(&seen("GenuineIntel", &[]), &good()).status, Status::Unknown);
        let mut arm = good();
        arm.kernel.arch = Reading::known("uname -m", "aarch64".into());
        assert_eq!(judge(&seen("", &[]), &arm).status, Status::NotApplicable);
    }

    #[test]
    fn gaps_are_no_count() {
        use rtproof_model::trial::GapCounts;
        let mut quiet = seen("CentaurHauls", &[]);
        quiet.gaps = Some(GapLook {
            cpu: 3,
            duration_ns: 10_000_000_000,
            threshold_ns: 10_000,
            switched: GapCounts::default(),
            beneath: GapCounts::default(),
            steal_ms: Reading::known("/proc/stat", 20),
        });
        let finding = judge(&quiet, &good());
        assert_eq!(finding.status, Status::Unknown, "looked for, and not counted");
        assert!(finding.summary.contains("saw no gap above 10 µs in 10 s"), "{}", finding.summary);
        if let Some(gaps) = &mut quiet.gaps {
            gaps.beneath.add(250_000);
            gaps.switched.add(4_000_000);
        }
        let finding = judge(&quiet, &good());
        for part in ["1 gap above 10 µs", "longest 250 µs", "cannot tell apart", "for 4 ms of it"]
        {
            assert!(finding.summary.contains(part), "{part}: {}", finding.summary);
        }
        assert!(!finding.summary.contains("hypervisor"), "{}", finding.summary);
        let mut guest = good();
        set_guest(&mut guest, "KVM");
        let finding = judge(&quiet, &guest);
        assert_eq!(finding.status, Status::Unknown);
        assert!(finding.summary.contains("the hypervisor's (KVM; steal meanwhile 20 ms"));
    }

    #[test]
    fn what_hwlat_saw_is_not_the_kernels() {
        let look = |gaps: &[u64], with_nmi| HwlatLook {
            cpu: 1,
            duration_ns: 2_000_000_000,
            threshold_ns: 10_000,
            gaps: gaps.iter().fold(rtproof_model::trial::GapCounts::default(), |mut all, ns| {
                all.add(*ns);
                all
            }),
            with_nmi,
        };
        let of = |look| SmiObservation {
            hwlat: Reading::known("current_tracer", look),
            ..seen("CentaurHauls", &[])
        };
        let none = judge(&of(look(&[], 0)), &good());
        assert_eq!(none.status, Status::Unknown, "a fifth of the time is not all of it");
        assert!(none.summary.ends_with("saw none above 10 µs in 2 s of looking at most"));
        let some = judge(&of(look(&[400_000, 30_000], 0)), &good());
        assert_eq!(some.status, Status::Bad);
        assert!(some.summary.contains("2 gaps above 10 µs in 2 s"), "{}", some.summary);
        assert!(some.remedies[0].to_string().contains("in the firmware"));
        let no_module = SmiObservation {
            hwlat: Reading::known("current_tracer", look(&[400_000], 0)),
            duration_ns: 0,
            ..seen("GenuineIntel", &[Reading::absent("/dev/cpu/0/msr")])
        };
        assert_eq!(judge(&no_module, &good()).status, Status::Bad, "whatever could not count");
        let mut guest = good();
        set_guest(&mut guest, "KVM");
        let inside = judge(&of(look(&[400_000], 0)), &guest);
        assert_eq!(inside.status, Status::Unknown, "the hypervisor's, maybe");
        let nmi = judge(&of(look(&[], 3)), &good());
        assert_eq!(nmi.status, Status::Unknown);
        assert!(nmi.summary.ends_with("3 windows with non-maskable interrupts are left out"));
        let mut refused = of(look(&[], 0));
        refused.hwlat = Reading::denied("current_tracer", "another user runs `hwlat`");
        let refused = judge(&refused, &good());
        let why = refused.summary.split_once("hwlat could not look: ").map(|(_, why)| why);
        assert!(why.is_some_and(|why| why.contains("another user runs `hwlat`")), "{refused:#?}");
    }
}
