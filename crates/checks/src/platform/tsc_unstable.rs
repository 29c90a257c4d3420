//! Has the kernel lost trust in the CPU's time stamp counter?
//!
//! Then it falls back to a clock over a bus (hpet, acpi_pm). The log says when and why; where it is
//! gone, tsc as the clock in force shows that it is still trusted.

use rtproof_host::{Facts, knob::Arch};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "tsc-unstable",
    title: "time stamp counter found unstable",
    why: "without the time stamp counter each reading of the clock and each timer goes over a bus, \
          by system call",
    source: "arch/x86/kernel/tsc.c (mark_tsc_unstable); kernel/time/clocksource.c \
             (clocksource_watchdog); Documentation/timers/timekeeping.rst",
    impact: Impact::Microseconds,
    when: When::Firmware,
    wanted: Wanted::Text("trusted"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !Arch::X86.has(name)) {
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
        (None, _) => draft.blind(log),
        (_, None) => draft.blind(source),
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
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::platform::log::KernelLog};

    fn with(source: &str, lines: &[&str], is_whole: bool) -> Facts {
        let mut facts = good();
        facts.clock.source = Reading::known(facts.clock.source.path.clone(), source.into());
        let clock = lines.iter().map(|&line| line.to_owned()).collect();
        let log = KernelLog { is_whole, clock, ..KernelLog::default() };
        facts.platform.log = Reading::known("/dev/kmsg", log);
        facts
    }

    #[test]
    fn the_log_and_the_clock_in_force_tell() {
        let judge = |facts: &Facts| CHECK.judge(facts, &intent()).status;
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
