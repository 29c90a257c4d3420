//! Do the lockup detectors run on the real-time CPUs?
//!
//! Both are driven by one timer on each CPU that they watch; off, or set to watch other CPUs, is
//! the same for the real-time ones. The kernel itself leaves `nohz_full=` CPUs out. The mask also
//! names CPUs that are offline, so it is held against the real-time CPUs, not the others.

use rtproof_host::{CpuList, Facts, Knob, Reading, knobs::time as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, is_all_rt};
use crate::setting;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

const SOURCE: &str = "Documentation/admin-guide/lockup-watchdogs.rst; kernel/watchdog.c \
     (watchdog_enable, watchdog_timer_fn); tuned, profiles cpu-partitioning and realtime; \
     Codethink, \"Configuring Linux systems to stabilise latency\"";

/// By a performance counter's non-maskable interrupt.
pub(super) static NMI: Check = Check {
    id: knobs::NMI_WATCHDOG.id,
    title: "hard lockup detector (nmi_watchdog)",
    why: "a counter raises a non-maskable interrupt on each watched CPU every few seconds, and a \
          timer beside it every four",
    source: SOURCE,
    trade_off: Some("a CPU that hangs is no longer reported"),
    knobs: &[&knobs::NMI_WATCHDOG, &knobs::WATCHDOG, &knobs::WATCHDOG_CPUMASK],
    wanted: Wanted::Text("0, or the real-time CPUs not watched"),
    judge: Judge::Ask(|draft, facts, intent| {
        detector(draft, facts, intent, &knobs::NMI_WATCHDOG, "LOCKUP_DETECTOR", "nmi_watchdog=0")
    }),
    ..Check::NEW
};

/// By a thread of the highest class.
pub(super) static SOFT: Check = Check {
    id: knobs::SOFT_WATCHDOG.id,
    title: "soft lockup detector (soft_watchdog)",
    why: "every four seconds a timer wakes the stop thread of each watched CPU, which no priority \
          keeps out, and a real-time thread that does not sleep is reported with backtraces",
    source: SOURCE,
    trade_off: Some("a CPU that hangs is no longer reported"),
    knobs: &[&knobs::SOFT_WATCHDOG, &knobs::WATCHDOG, &knobs::WATCHDOG_CPUMASK],
    wanted: Wanted::Text("0, or the real-time CPUs not watched"),
    judge: Judge::Ask(|draft, facts, intent| {
        detector(draft, facts, intent, &knobs::SOFT_WATCHDOG, "SOFTLOCKUP_DETECTOR", "nosoftlockup")
    }),
    ..Check::NEW
};

/// Whether a detector is off, or leaves the real-time CPUs out.
fn detector(
    draft: Draft,
    facts: &Facts,
    intent: &Intent,
    knob: &'static Knob,
    build: &str,
    parameter: &str,
) -> Finding {
    let value = setting::number(facts, knob);
    let draft = draft.read(&value, show);
    if value.is_absent() && built_with(facts, build) == Some(false) {
        return draft.without(facts, build);
    }
    let Some(&value_known) = value.value() else {
        return draft.blind(&value);
    };
    if value_known == 0 {
        return draft.good("off");
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let mask = mask(facts);
    let draft = draft.read(&mask, CpuList::to_string);
    let Some(watched) = mask.value() else {
        return draft.blind(&mask);
    };
    let watched_rt = watched.intersection(&intent.rt_cpus);
    if watched_rt.is_empty() {
        return draft.good(format!("on, and watches {} alone", text::cpus(watched)));
    }
    let paths = vec![value.path.clone()];
    draft
        .remedies([Remedy::set(knob, paths, "0"), Remedy::Boot { parameter: parameter.into() }])
        .bad(format!("on, and watches {}", text::cpus(&watched_rt)))
}

/// Whether the detectors, where they run, leave the real-time CPUs out.
pub(super) static MASK: Check = Check {
    id: "watchdog-cpumask",
    title: "CPUs that the lockup detectors watch",
    why: "each watched CPU has the detectors' timer; the others still report a hang when real-time \
          CPUs are left out",
    source: "Documentation/admin-guide/lockup-watchdogs.rst, \
             Documentation/admin-guide/sysctl/kernel.rst (watchdog_cpumask); kernel/watchdog.c \
             (lockup_detector_init)",
    impact: Impact::Tens,
    knobs: &[&knobs::WATCHDOG_CPUMASK, &knobs::WATCHDOG],
    wanted: Wanted::Text("no real-time CPU"),
    judge: Judge::Ask(judge_mask),
    ..Check::NEW
};

fn judge_mask(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let running = setting::number(facts, &knobs::WATCHDOG);
    let mut draft = draft.read(&running, show);
    if running.is_absent() && built_with(facts, "LOCKUP_DETECTOR") == Some(false) {
        return draft.without(facts, "LOCKUP_DETECTOR");
    }
    match running.value() {
        None => return draft.blind(&running),
        Some(0) => return draft.not_applicable("no lockup detector runs"),
        Some(_) => {}
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    if is_all_rt(facts, intent) {
        return draft
            .read(&facts.cpus.online, CpuList::to_string)
            .not_applicable("every CPU is a real-time CPU: none is left to watch");
    }
    let mask = mask(facts);
    draft = draft.read(&mask, CpuList::to_string);
    let Some(watched) = mask.value() else {
        return draft.blind(&mask);
    };
    let watched_rt = watched.intersection(&intent.rt_cpus);
    if watched_rt.is_empty() {
        return draft.good(format!("watches {} alone", text::cpus(watched)));
    }
    let (paths, value) = (vec![mask.path.clone()], intent.housekeeping.to_string());
    draft
        .remedies([Remedy::set(&knobs::WATCHDOG_CPUMASK, paths, value)])
        // Bad is what runs: `soft-watchdog` and `nmi-watchdog` say so. This is one way out.
        .doubtful(format!("the detectors watch {}", text::cpus(&watched_rt)))
}

fn show(value: &i64) -> String {
    value.to_string()
}

fn mask(facts: &Facts) -> Reading<CpuList> {
    setting::text(facts, &knobs::WATCHDOG_CPUMASK).and_then(|path, list| {
        match CpuList::parse(&list, None) {
            Ok(cpus) => Reading::known(path, cpus),
            Err(_) => Reading::malformed(path, &list, "a list of CPUs"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, fill_setting, good, intent, set_config, set_setting};

    fn machine(nmi: &str, soft: &str, mask: &str) -> Facts {
        let mut facts = good();
        let any = if nmi == "1" || soft == "1" { "1" } else { "0" };
        fill_setting(&mut facts, &knobs::WATCHDOG, any);
        fill_setting(&mut facts, &knobs::NMI_WATCHDOG, nmi);
        fill_setting(&mut facts, &knobs::SOFT_WATCHDOG, soft);
        fill_setting(&mut facts, &knobs::WATCHDOG_CPUMASK, mask);
        facts
    }

    #[test]
    fn off_or_elsewhere_is_good() {
        let facts = machine("0", "1", "0-1,8-79");
        assert_eq!(NMI.judge(&facts, &intent()).status, Good);
        let finding = SOFT.judge(&facts, &intent());
        assert_eq!(finding.status, Good, "{finding:?}");
        assert_eq!(MASK.judge(&facts, &intent()).status, Good);
        let facts = machine("0", "0", "0-3");
        assert_eq!(SOFT.judge(&facts, &intent()).status, Good);
        assert_eq!(MASK.judge(&facts, &intent()).status, NotApplicable);
    }

    #[test]
    fn on_real_time_cpus_is_bad_and_the_mask_keeps_the_net_for_the_others() {
        let facts = machine("1", "1", "0-3");
        let finding = NMI.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Bad, "on, and watches CPUs 2-3"));
        assert_eq!(SOFT.judge(&facts, &intent()).status, Bad);
        let finding = MASK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        let paths = vec!["/proc/sys/kernel/watchdog_cpumask".into()];
        assert_eq!(finding.remedies, [Remedy::set(&knobs::WATCHDOG_CPUMASK, paths, "0-1")]);
    }

    #[test]
    fn nothing_can_be_moved_where_every_cpu_is_real_time() {
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        let facts = machine("0", "1", "0-3");
        assert_eq!(MASK.judge(&facts, &all).status, NotApplicable);
        assert_eq!(SOFT.judge(&facts, &all).status, Bad);
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = machine("0", "0", "0-3");
        set_setting(&mut facts, &knobs::SOFT_WATCHDOG, Reading::absent("x"));
        set_config(&mut facts, "SOFTLOCKUP_DETECTOR", Some("y"));
        assert_eq!(SOFT.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "SOFTLOCKUP_DETECTOR", None);
        assert_eq!(SOFT.judge(&facts, &intent()).status, NotApplicable);
        let mut facts = machine("1", "1", "0-3");
        set_setting(&mut facts, &knobs::WATCHDOG_CPUMASK, Reading::denied("x", "EACCES"));
        assert_eq!(NMI.judge(&facts, &intent()).status, Unknown);
        assert_eq!(MASK.judge(&facts, &intent()).status, Unknown);
    }
}
