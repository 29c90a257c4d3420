//! Is the clock read from the CPU, or over a bus?
//!
//! The good ones are registers that the vDSO reads in user space. A board's own timer may be fine
//! or not; what is not known here is doubtful, never good.

use rtproof_host::Facts;
use rtproof_host::knobs::time::CLOCKSOURCE;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::guest;
use crate::{Finding, Impact, Intent, Remedy};

/// Read from a register of the CPU or a shared page, without a system call.
const FAST: &[&str] = &[
    "tsc",
    "arch_sys_counter",
    "riscv_clocksource",
    "timebase",
    "tod",
    "hyperv_clocksource_tsc_page",
];
/// As fast, but only in a guest of their hypervisor.
const FAST_IN_GUEST: &[&str] = &["kvm-clock"];
/// Read over a bus, by an exit to the hypervisor, or counted in ticks.
const SLOW: &[&str] =
    &["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "hyperv_clocksource_msr"];

pub(super) static CHECK: Check = Check {
    id: "clocksource",
    title: "clock behind CLOCK_MONOTONIC",
    why: "hpet and acpi_pm are read over a bus, about 1 µs each time and by system call; every \
          timer and time stamp pays",
    source: "Documentation/timers/timekeeping.rst; Codethink, \"Configuring Linux systems to \
             stabilise latency\"",
    impact: Impact::Microseconds,
    wanted: Wanted::Text("a register of the CPU: tsc, arch_sys_counter"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let source = &facts.clock.source;
    let draft = draft.read(source, String::clone);
    let Some(name) = source.value().map(String::as_str) else {
        return draft.blind(source);
    };
    if FAST.contains(&name) {
        return draft.good(name);
    }
    let draft =
        draft.read(&facts.clock.available, |names| names.join(" ")).remedies(remedies(facts));
    if FAST_IN_GUEST.contains(&name) {
        let draft = draft.read(&facts.virt.hypervisor, |name| match name {
            Some(name) => name.clone(),
            None => "none".into(),
        });
        return match guest(facts) {
            Some(hypervisor) => draft.good(format!("{name} in a {hypervisor} guest")),
            None => draft.doubtful(format!("{name}, but no hypervisor is known")),
        };
    }
    if SLOW.contains(&name) {
        return draft.bad(name);
    }
    draft.doubtful(format!("{name}: not known to be read without a bus access"))
}

fn remedies(facts: &Facts) -> Vec<Remedy> {
    let Some(available) = facts.clock.available.value() else {
        return Vec::new();
    };
    match FAST.iter().find(|fast| available.iter().any(|name| name == *fast)) {
        Some(fast) => {
            let paths = vec![facts.clock.source.path.clone()];
            vec![
                Remedy::set(&CLOCKSOURCE, paths, *fast),
                Remedy::Boot { parameter: format!("clocksource={fast}") },
            ]
        }
        None => vec![Remedy::Manual {
            text:
                "look in dmesg for why the kernel gave its fast clock up: \"Marking TSC unstable\""
                    .into(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    fn with(source: &str) -> Facts {
        let mut facts = good();
        facts.clock.source = Reading::known(facts.clock.source.path.clone(), source.into());
        facts
    }

    fn status(source: &str) -> Status {
        CHECK.judge(&with(source), &intent()).status
    }

    #[test]
    fn by_name() {
        assert_eq!(status("tsc"), Good);
        assert_eq!(status("arch_sys_counter"), Good);
        assert_eq!(status("hpet"), Bad);
        assert_eq!(status("jiffies"), Bad);
        assert_eq!(status("imx_gpt"), Doubtful);
        assert_eq!(status("tsc-early"), Doubtful);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut facts = good();
        facts.clock.source = Reading::denied(facts.clock.source.path.clone(), "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn kvm_clock_belongs_to_a_guest() {
        let mut facts = with("kvm-clock");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_guest(&mut facts, "kvm");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.virt.hypervisor = Reading::denied("cpuid", "seccomp");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn the_remedy_is_what_the_machine_offers() {
        let mut facts = with("hpet");
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.remedies[1], Remedy::Boot { parameter: "clocksource=tsc".into() });
        facts.clock.available = Reading::known("/sys/x", vec!["hpet".into()]);
        let finding = CHECK.judge(&facts, &intent());
        assert!(matches!(finding.remedies[..], [Remedy::Manual { .. }]));
    }
}
