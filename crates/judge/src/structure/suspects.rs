//! Who is known to come round at which period.

use super::spikes::SECOND_NS;

const MS: u64 = 1_000_000;

/// A known period.
pub(super) struct Suspect {
    pub(super) period_ns: u64,
    /// Continues "as ...".
    pub(super) who: &'static str,
}

/// Known periods: kernel/time, kernel/watchdog.c, mm/vmstat.c, kernel/sched/{rt,fair}.c,
/// kernel/hung_task.c, arch/x86/kernel/cpu/mce, and machines that were measured.
pub(super) const SUSPECTS: &[Suspect] = &[
    Suspect { period_ns: MS, who: "the tick of a kernel with HZ=1000" },
    Suspect { period_ns: 4 * MS, who: "the tick of a kernel with HZ=250" },
    Suspect { period_ns: 10 * MS, who: "the tick of a kernel with HZ=100" },
    Suspect {
        period_ns: 100 * MS,
        who: "the CPU quota of a control group (cpu.max) or of a hypervisor",
    },
    Suspect { period_ns: 500 * MS, who: "the kernel's clocksource watchdog" },
    Suspect {
        period_ns: SECOND_NS,
        who: "vmstat's and many daemons' once-a-second work, and sched_rt_period_us",
    },
    Suspect { period_ns: 4 * SECOND_NS, who: "the kernel's lockup detector (kernel.watchdog)" },
    Suspect {
        period_ns: 5 * SECOND_NS,
        who: "the kernel's writeback (vm.dirty_writeback_centisecs)",
    },
    Suspect { period_ns: 10 * SECOND_NS, who: "daemons that look every 10 s" },
    Suspect { period_ns: 60 * SECOND_NS, who: "daemons and cron, which work once a minute" },
    Suspect { period_ns: 120 * SECOND_NS, who: "the kernel's search for hung tasks" },
    Suspect {
        period_ns: 300 * SECOND_NS,
        who: "the kernel's poll for machine checks (check_interval)",
    },
    Suspect { period_ns: 840 * SECOND_NS, who: "system management interrupts of some firmware" },
];
/// Clocks and timers go wrong by less.
const WITHIN: f64 = 5e-4;

/// The known source of this period, in words; otherwise possible sources.
pub(super) fn name(period_ns: f64, error_ns: f64, cause: &str, sampling_ns: u64) -> String {
    let slack = (3.0 * error_ns).max(WITHIN * period_ns);
    let is = |other_ns: f64| (other_ns - period_ns).abs() <= slack;
    if cause == "throttled" && is(1e9) {
        return ": as kernel.sched_rt_period_us".into();
    }
    if let Some(suspect) = SUSPECTS.iter().find(|suspect| is(suspect.period_ns as f64)) {
        return format!(": as {}", suspect.who);
    }
    let sampling = super::text::time(sampling_ns as f64);
    let beats = |suspect: &&Suspect| beat_ns(suspect.period_ns, sampling_ns).is_some_and(is);
    if let Some(suspect) = SUSPECTS.iter().find(beats) {
        return format!(": as {}, seen at every {sampling} only", suspect.who);
    }
    // Faster than the samples, it would show as something slower.
    match period_ns < 1000.0 * sampling_ns as f64 {
        true => format!(
            "; wake-ups every {sampling} may also show something faster so: another period \
             (--period) tells"
        ),
        false => String::new(),
    }
}

/// How something faster than half of the sampling frequency shows in the samples.
fn beat_ns(period_ns: u64, sampling_ns: u64) -> Option<f64> {
    if period_ns >= sampling_ns.saturating_mul(2) {
        return None;
    }
    let turns = sampling_ns as f64 / period_ns as f64;
    let off = (turns - turns.round()).abs();
    (off > 0.0).then(|| sampling_ns as f64 / off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_unknown_and_beats() {
        let named = |ns: f64, cause| name(ns, 1_000.0, cause, 1_000_000);
        assert!(named(1.000_2e9, "preempted").contains("vmstat"));
        assert_eq!(named(1.000_2e9, "throttled"), ": as kernel.sched_rt_period_us");
        assert!(named(100.01e6, "stall").contains("hypervisor"));
        assert!(named(123e6, "stall").contains("another period"));
        assert_eq!(named(3.7e9, "stall"), "");
        // A tick of 1 ms, looked at every 997 us: 1 / (1/997us - 1/1ms) = 332.333 ms.
        assert!(name(332.333e6, 1e3, "", 997_000).contains("HZ=1000, seen at every 997 µs"));
        assert_eq!(beat_ns(MS, MS), None, "in step: it never shows as a period");
        assert!(SUSPECTS.is_sorted_by_key(|suspect| suspect.period_ns));
    }
}
