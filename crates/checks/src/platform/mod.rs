//! Checks: firmware, virtualization, security.

mod boot;
pub(crate) mod firmware;
mod mitigations;
mod virt;

use rtproof_host::{Facts, Reading, knob::KnobArch, knobs::device as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::value::{Absent, Build, Built, Want};
use crate::{Finding, Impact, Intent, Remedy, Section, When, machine};

pub(crate) const SECTION: Section =
    Section { name: "platform", title: "firmware, virtualization, security", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &virt::HYPERVISOR,
    &STEAL_TIME,
    &virt::CONTAINER,
    &virt::KVM_GUEST,
    &virt::CLOCK_SYNC,
    &virt::PLE,
    &virt::NX_HUGE_PAGES,
    &virt::HALT_POLL,
    &SMI_COUNT,
    &HWLAT,
    &firmware::BIOS_PROFILE,
    &firmware::LAPTOP,
    &firmware::FWUPD,
    &MICROCODE_LATE,
    &TSC_UNSTABLE,
    &OP_TEE,
    &mitigations::MITIGATIONS,
    &boot::BOOT_PERSISTENCE,
    &boot::PERSISTENCE_DRIFT,
    &SELINUX_AVC,
    &IOMMU,
];

// Is microcode loaded while the system runs?
//
// Late loading stops all CPUs for it. Kernels from 5.19 on have it only where they are built with
// CONFIG_MICROCODE_LATE_LOADING, so that the build mostly settles it without the log.

/// First kernel with an option for it ("x86/microcode: Default-disable late loading").
const OPTION_SINCE: (u32, u32) = (5, 19);

static MICROCODE_LATE: Check = Check {
    id: "microcode-late",
    title: "microcode loaded after boot",
    why: "all CPUs are stopped while each of them loads it",
    source: "Documentation/arch/x86/microcode.rst; arch/x86/kernel/cpu/microcode/core.c \
             (load_late_stop_cpus)",
    impact: Impact::Milliseconds,
    when: When::Boot,
    wanted: Wanted::Text("loaded at boot only"),
    judge: Judge::Ask(judge_microcode_late),
    ..Check::NEW
};

fn judge_microcode_late(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !KnobArch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    if let Some(log) = facts.platform.log.value()
        && let Some(line) = log.microcode.last()
    {
        let text = "put the microcode into the initrd (intel-microcode, amd64-microcode, \
                    microcode_ctl, dracut --early-microcode), so that boot loads it";
        let draft = draft.read(&facts.platform.log, |log| log.microcode.join("; "));
        return draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("it was loaded while the system ran: {line}"));
    }
    let is_optional = machine::since(facts, OPTION_SINCE);
    if is_optional == Some(true)
        && machine::built_with(facts, "MICROCODE_LATE_LOADING") == Some(false)
    {
        return draft
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .evidence([machine::option(facts, "MICROCODE_LATE_LOADING")])
            .good("this kernel loads microcode at boot only");
    }
    let log = &facts.platform.log;
    let draft = draft.read(log, |_| "no line about loading".into());
    match log.value() {
        Some(found) if found.is_whole => draft.good("not since boot"),
        Some(_) => draft.unknown("the start of the kernel's log was overwritten"),
        None => draft.unreadable(log),
    }
}

// Is there a secure world that can be called?
//
// A call costs some microseconds; what a service does there with interrupts masked, only its
// maker knows.

static OP_TEE: Check = Check {
    id: "op-tee",
    title: "trusted execution environment (OP-TEE and others)",
    why: "the secure world can mask the interrupts of Linux: a long call there holds up the CPU \
          that makes it",
    source: "Documentation/core-api/real-time/hardware.rst (OP-TEE); \
             Documentation/driver-api/tee.rst",
    impact: Impact::Microseconds,
    when: When::Firmware,
    knobs: &[&knobs::TEE],
    wanted: Wanted::Text("none, or not called from real-time CPUs"),
    judge: Judge::Ask(judge_op_tee),
    ..Check::NEW
};

fn judge_op_tee(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let none = || Reading::<String>::denied("/sys/class/tee", "not asked");
    let Some(setting) = facts.settings.get(knobs::TEE.id) else {
        return draft.unreadable(&none());
    };
    let known: Vec<&str> = setting
        .values
        .iter()
        .filter(|value| value.reading.value().is_some())
        .map(|value| value.of.as_str())
        .collect();
    if !known.is_empty() {
        let draft =
            draft.evidence(machine::by_path(setting.values.iter().map(|value| &value.reading)));
        let text = "keep the programs that call it (tee-supplicant, a TPM in firmware, key \
                    stores) off the real-time CPUs";
        return draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
            "{}: what its services do, and how long, is not known here",
            machine::first_few(&known, 4)
        ));
    }
    match setting.missing_from.as_ref().filter(|lacking| lacking.value().is_some()) {
        Some(lacking) => draft.read(lacking, String::clone).good("none"),
        None => match setting.values.first() {
            Some(value) => draft.unreadable(&value.reading),
            None => draft.unreadable(&Reading::<String>::absent("/sys/class/tee")),
        },
    }
}

// Options of the kernel's build.

static HWLAT: Check = Check {
    id: "hwlat",
    title: "detector of latency from hardware (CONFIG_HWLAT_TRACER)",
    why: "without it nobody can tell what the firmware takes from what the kernel takes",
    source: "Documentation/trace/hwlat_detector.rst; Documentation/core-api/real-time/hardware.rst \
             (Firmware)",
    impact: Impact::Information,
    when: When::Kernel,
    judge: Judge::Build(Build { options: &["HWLAT_TRACER"], want: |_| Built::With, ..Build::NEW }),
    ..Check::NEW
};

// Rows: firmware, virtualization, security.

static SELINUX_AVC: Check = Check {
    title: "cache of SELinux's decisions",
    why: "a decision that is no longer in the cache is worked out again from the policy, within a \
          system call",
    source: "security/selinux/avc.c (avc_cache_threshold, 512 by default); tuned, profile \
             openshift (8192)",
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| Want::at_least(8192).or_doubtful(),
        Absent::NoSuchThing("SELinux is not in force"),
    ),
    ..Check::of(&[&knobs::SELINUX_AVC])
};

static IOMMU: Check = Check {
    title: "devices behind an IOMMU",
    why: "each buffer that a driver gives back has its translation invalidated, at once or in \
          batches, and the driver waits for the IOMMU",
    source: "Documentation/ABI/testing/sysfs-kernel-iommu_groups; \
             Documentation/admin-guide/kernel-parameters.txt (iommu.passthrough, iommu.strict)",
    trade_off: Some(
        "a device without translation can write to any memory; devices passed to guests are \
         translated all the same",
    ),
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| Want::one_of(&["identity"]).set("1").text("identity (not translated)").or_doubtful(),
        Absent::NoSuchThing("no device is behind an IOMMU"),
    ),
    ..Check::of(&[&knobs::IOMMU])
};

// How often has the firmware stopped all CPUs?
//
// The counter runs from reset, so that the start of the firmware is in it: what is not 0 is an
// upper bound of the rate, and only the difference over a run is certain. A guest's counter does
// not count the host's. AMD has no such register.

static SMI_COUNT: Check = Check {
    id: "smi-count",
    title: "system management interrupts since reset",
    why: "a system management interrupt stops all CPUs for the firmware, unseen by the kernel, for \
          ten to hundreds of microseconds",
    source: "Intel SDM volume 4 (MSR_SMI_COUNT, 34H); turbostat(8); Wu, \"Real-time programming \
             with Linux, part 2\" (400 µs every 14 minutes)",
    impact: Impact::Hundreds,
    when: When::Firmware,
    wanted: Wanted::Text("0"),
    judge: Judge::Ask(judge_smi_count),
    ..Check::NEW
};

fn judge_smi_count(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let (arch, vendor) = (&facts.kernel.arch, &facts.platform.vendor);
    let is_x86 = |name: &String| KnobArch::X86.has(name);
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
        None => return draft.unreadable(vendor),
    }
    let hypervisor = &facts.virt.hypervisor;
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "bare metal".into()));
    if hypervisor.value().is_none() {
        return draft.unreadable(hypervisor);
    }
    if machine::guest(facts).is_some() {
        return draft.unknown("a guest does not see those of the host");
    }
    let count = &facts.platform.smi_count;
    let draft = draft.read(count, |count| format!("MSR 0x34: {count}"));
    let Some(&count) = count.value() else {
        let text = "run as root with the module msr loaded (modprobe msr)".into();
        return draft.remedies([Remedy::Manual { text }]).unreadable(&facts.platform.smi_count);
    };
    if count == 0 {
        return draft.good("none since reset");
    }
    let uptime = &facts.platform.uptime_s;
    let draft = draft.read(uptime, |&s| crate::duration(s.saturating_mul(1_000_000_000)));
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

// Has a host run something else on these CPUs?
//
// Steal time is what the host admits to. Where it has no steal clock the column stays 0 on every
// CPU of a guest, so that 0 is good only beside another CPU with some.

static STEAL_TIME: Check = Check {
    id: "steal-time",
    title: "time stolen by a host since boot",
    why: "while the host runs something else, the virtual CPU stands still and its task with it",
    source: "proc_stat(5) (steal); Documentation/virt/kvm/x86/msr.rst (MSR_KVM_STEAL_TIME)",
    impact: Impact::Milliseconds,
    when: When::Firmware,
    wanted: Wanted::Text("0"),
    judge: Judge::Ask(judge_steal_time),
    ..Check::NEW
};

fn judge_steal_time(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let ticks = &facts.virt.steal_ticks;
    let of_all = intent.rt_cpus.is_empty();
    let Some(known) = ticks.value() else {
        return draft.unreadable(ticks);
    };
    let concerned = |cpu: u32| of_all || intent.rt_cpus.contains(cpu);
    let counted: Vec<_> = known.iter().filter(|(cpu, _)| concerned(*cpu)).collect();
    let all = counted.iter().fold(0_u64, |sum, (_, ticks)| sum.saturating_add(*ticks));
    let draft =
        draft.read(ticks, |_| format!("{all} ticks on {}", machine::count(counted.len(), "CPU")));
    let draft = if of_all { draft } else { draft.cpus(&intent.rt_cpus) };
    let is_missing =
        !of_all && intent.rt_cpus.iter().any(|cpu| known.iter().all(|(id, _)| *id != cpu));
    if is_missing {
        let (_, missing) = machine::rt_cpus(facts, intent);
        return draft.missing_cpus(facts, &missing);
    }
    let hypervisor = &facts.virt.hypervisor;
    if all > 0 {
        let text = "on the host: pin the virtual CPUs to isolated CPUs, at a real-time priority";
        return draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("{all} ticks stolen since boot: look at what a run adds"));
    }
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "bare metal".into()));
    if hypervisor.value().is_none() {
        return draft.unreadable(hypervisor);
    }
    match machine::guest(facts) {
        None => draft.good("bare metal, none"),
        Some(name) if known.iter().all(|(_, ticks)| *ticks == 0) => {
            draft.unknown(format!("0 on every CPU: {name} may not tell (no steal clock)"))
        }
        Some(name) => draft.good(format!("none that {name} admits to")),
    }
}

// Has the kernel lost trust in the CPU's time stamp counter?
//
// Then it falls back to a clock over a bus (hpet, acpi_pm). The log says when and why; where it is
// gone, tsc as the clock in force shows that it is still trusted.

static TSC_UNSTABLE: Check = Check {
    id: "tsc-unstable",
    title: "time stamp counter found unstable",
    why: "without the time stamp counter each reading of the clock and each timer goes over a bus, \
          by system call",
    source: "arch/x86/kernel/tsc.c (mark_tsc_unstable); kernel/time/clocksource.c \
             (clocksource_watchdog); Documentation/timers/timekeeping.rst",
    impact: Impact::Microseconds,
    when: When::Firmware,
    wanted: Wanted::Text("trusted"),
    judge: Judge::Ask(judge_tsc_unstable),
    ..Check::NEW
};

fn judge_tsc_unstable(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !KnobArch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let (log, source) = (&facts.platform.log, &facts.clock.source);
    let lines = log.value().map(|log| log.clock.as_slice()).unwrap_or_default();
    let about_tsc = |line: &&String| line.contains("TSC") || line.contains("'tsc'");
    let line = lines.iter().find(about_tsc);
    let draft = draft.read(source, String::clone);
    let is_in_force = source.value().map(String::as_str) == Some("tsc");
    if let Some(line) = line {
        let text = "look for a newer firmware; several sockets or a CPU without a constant \
                    counter cannot be helped: prove latency with the clock that is left";
        let draft = draft
            .read(log, |log| log.clock.join("; "))
            .remedies([Remedy::Manual { text: text.into() }]);
        return if is_in_force { draft.doubtful(line.clone()) } else { draft.bad(line.clone()) };
    }
    if is_in_force {
        return draft.good("tsc is the clock in force");
    }
    let draft = draft.read(log, |_| "no line about it".into());
    let flags = &facts.platform.tsc_flags;
    match (log.value(), source.value()) {
        (None, _) => draft.unreadable(log),
        (_, None) => draft.unreadable(source),
        (Some(found), _) if !found.is_whole => {
            draft.unknown("the start of the kernel's log was overwritten")
        }
        (Some(_), Some(name)) => {
            let has = |flag: &str| flags.value().is_some_and(|f| f.iter().any(|one| one == flag));
            let draft = draft.read(flags, |flags| flags.join(" "));
            match has("constant_tsc") && has("nonstop_tsc") {
                true => draft.good(format!("not found unstable; {name} was chosen instead")),
                false => draft.doubtful(format!(
                    "{name} in force; the CPU does not promise a counter that is constant and \
                     never stops"
                )),
            }
        }
    }
}

#[cfg(test)]
mod microcode_late_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::{Reading, facts::platform::KernelLog};

    #[test]
    fn the_build_or_the_log_decides() {
        let mut facts = good();
        assert_eq!(MICROCODE_LATE.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "MICROCODE_LATE_LOADING", Some("y"));
        assert_eq!(MICROCODE_LATE.judge(&facts, &intent()).status, Good);
        let line = "microcode: load: updated on 4 primary CPUs with 4 siblings".to_owned();
        let log = |is_whole, microcode| KernelLog { is_whole, microcode, ..KernelLog::default() };
        facts.platform.log = Reading::known("/dev/kmsg", log(false, vec![line]));
        assert_eq!(MICROCODE_LATE.judge(&facts, &intent()).status, Doubtful);
        facts.platform.log = Reading::known("/dev/kmsg", log(false, vec![]));
        assert_eq!(MICROCODE_LATE.judge(&facts, &intent()).status, Unknown);
        facts.platform.log = Reading::denied("/dev/kmsg", "EPERM");
        assert_eq!(MICROCODE_LATE.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(MICROCODE_LATE.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod op_tee_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn none_one_and_unknown() {
        let mut facts = good();
        assert_eq!(OP_TEE.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::TEE, "245:0");
        assert_eq!(OP_TEE.judge(&facts, &intent()).status, Doubtful);
        set_setting(&mut facts, &knobs::TEE, Reading::denied("x", "EACCES"));
        assert_eq!(OP_TEE.judge(&facts, &intent()).status, Unknown);
        facts.settings.remove("op-tee");
        assert_eq!(OP_TEE.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod smi_count_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn none_is_good_and_some_are_reported_with_their_rate() {
        let mut facts = good();
        assert_eq!(SMI_COUNT.judge(&facts, &intent()).status, Good);
        facts.platform.smi_count = Reading::known("/dev/cpu/0/msr", 48);
        let finding = SMI_COUNT.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("48 since reset, at most 2 an hour"));
        facts.platform.uptime_s = Reading::absent("/proc/uptime");
        assert!(SMI_COUNT.judge(&facts, &intent()).summary.starts_with("48 since reset;"));
    }

    #[test]
    fn where_it_is_not_counted() {
        let mut facts = good();
        facts.platform.smi_count = Reading::denied("/dev/cpu/0/msr", "EACCES");
        assert_eq!(SMI_COUNT.judge(&facts, &intent()).status, Unknown);
        set_guest(&mut facts, "KVM");
        facts.platform.smi_count = Reading::known("/dev/cpu/0/msr", 0);
        assert_eq!(SMI_COUNT.judge(&facts, &intent()).status, Unknown);
        facts.platform.vendor = Reading::known("/proc/cpuinfo", "AuthenticAMD".into());
        assert_eq!(SMI_COUNT.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(SMI_COUNT.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod steal_time_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn ticks_of_the_real_time_cpus_count() {
        let mut facts = good();
        assert_eq!(STEAL_TIME.judge(&facts, &intent()).status, Good);
        set_guest(&mut facts, "KVM");
        let ticks = |of_3| vec![(0, 99), (1, 5), (2, 0), (3, of_3)];
        facts.virt.steal_ticks = Reading::known("/proc/stat", ticks(0));
        assert_eq!(STEAL_TIME.judge(&facts, &intent()).status, Good);
        facts.virt.steal_ticks = Reading::known("/proc/stat", ticks(7));
        let finding = STEAL_TIME.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("7 ticks"), "{}", finding.summary);
    }

    #[test]
    fn what_is_not_counted_is_unknown() {
        let mut facts = good();
        set_guest(&mut facts, "KVM");
        facts.virt.steal_ticks = Reading::known("/proc/stat", (0..4).map(|cpu| (cpu, 0)).collect());
        assert_eq!(STEAL_TIME.judge(&facts, &intent()).status, Unknown);
        facts.virt.steal_ticks = Reading::denied("/proc/stat", "EACCES");
        assert_eq!(STEAL_TIME.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod tsc_unstable_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::platform::KernelLog};

    fn with(source: &str, lines: &[&str], is_whole: bool) -> Facts {
        let mut facts = good();
        facts.clock.source = Reading::known(facts.clock.source.path.clone(), source.into());
        let clock = lines.iter().map(|&line| line.to_owned()).collect();
        let log = KernelLog { is_whole, clock, ..KernelLog::default() };
        facts.platform.log = Reading::known("/dev/kmsg", log);
        facts
    }

    #[test]
    fn the_log_and_the_current_clock_decide() {
        let judge = |facts: &Facts| TSC_UNSTABLE.judge(facts, &intent()).status;
        let line = "tsc: Marking TSC unstable due to clocksource watchdog";
        assert_eq!(judge(&with("hpet", &[line], false)), Bad);
        assert_eq!(judge(&with("tsc", &[line], false)), Doubtful);
        assert_eq!(judge(&with("tsc", &[], false)), Good);
        assert_eq!(judge(&with("kvm-clock", &[], true)), Good);
        assert_eq!(judge(&with("kvm-clock", &[], false)), Unknown);
        let mut facts = with("hpet", &[], true);
        facts.platform.tsc_flags = Reading::known("/proc/cpuinfo", vec!["tsc".into()]);
        assert_eq!(judge(&facts), Doubtful);
        facts.platform.log = Reading::denied("/dev/kmsg", "EPERM");
        assert_eq!(judge(&facts), Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(judge(&facts), NotApplicable);
    }
}
