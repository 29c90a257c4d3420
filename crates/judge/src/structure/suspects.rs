//! Who is known to come round at which period.

use rtproof_stats::period::Period;

use super::spikes::SECOND_NS;

const MS: u64 = 1_000_000;

pub(super) struct Suspect {
    pub(super) period_ns: u64,
    pub(super) who: &'static str,
    /// Whether it works in every cycle: then most of them have a spike, if it is the cause of one.
    every: bool,
}

/// Share of the cycles that have a spike, below which it is not something of every cycle.
const MOST_CYCLES: f64 = 0.5;

const fn every(period_ns: u64, who: &'static str) -> Suspect {
    Suspect { period_ns, who, every: true }
}

const fn some(period_ns: u64, who: &'static str) -> Suspect {
    Suspect { period_ns, who, every: false }
}

/// Known periods: kernel/time, kernel/watchdog.c, mm/vmstat.c, kernel/sched/{rt,fair}.c,
/// kernel/hung_task.c, arch/x86/kernel/cpu/mce, and machines that were measured.
pub(super) const SUSPECTS: &[Suspect] = &[
    some(MS, "the tick of a kernel with HZ=1000"),
    some(4 * MS, "the tick of a kernel with HZ=250"),
    some(10 * MS, "the tick of a kernel with HZ=100"),
    some(100 * MS, "the CPU quota of a control group (cpu.max) or of a hypervisor"),
    every(500 * MS, "the kernel's clocksource watchdog"),
    every(SECOND_NS, "vmstat's and many daemons' once-a-second work, and sched_rt_period_us"),
    every(4 * SECOND_NS, "the kernel's lockup detector (kernel.watchdog)"),
    every(5 * SECOND_NS, "the kernel's writeback (vm.dirty_writeback_centisecs)"),
    every(10 * SECOND_NS, "daemons that look every 10 s"),
    every(60 * SECOND_NS, "daemons and cron, which work once a minute"),
    every(120 * SECOND_NS, "the kernel's search for hung tasks"),
    every(300 * SECOND_NS, "the kernel's poll for machine checks (check_interval)"),
    every(840 * SECOND_NS, "system management interrupts of some firmware"),
];
/// Clocks and timers go wrong by less.
const WITHIN: f64 = 5e-4;

/// Known sources of this period, in words: candidates, by the period alone; otherwise what else it
/// may be.
pub(super) fn name(found: &Period, cause: &str, sampling_ns: u64) -> String {
    let &Period { period_ns, error_ns, .. } = found;
    let slack = (3.0 * error_ns).max(WITHIN * period_ns);
    let is = |other_ns: f64| (other_ns - period_ns).abs() <= slack;
    if cause == "throttled" && is(1e9) {
        return ": as kernel.sched_rt_period_us".into();
    }
    let fits = |suspect: &&Suspect| !suspect.every || found.occupancy() >= MOST_CYCLES;
    let known = SUSPECTS.iter().filter(fits);
    if let Some(suspect) = known.clone().find(|suspect| is(suspect.period_ns as f64)) {
        return format!(": the period of {}", suspect.who);
    }
    let sampling = super::text::time(sampling_ns as f64);
    let beats = |suspect: &&Suspect| beat_ns(suspect.period_ns, sampling_ns).is_some_and(is);
    if let Some(suspect) = known.clone().find(beats) {
        return format!(": the period of {}, seen at every {sampling} only", suspect.who);
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
    use rtproof_stats::period::Fold;

    use super::*;

    fn found(period_ns: f64, error_ns: f64, occupied: u64) -> Period {
        let fold = Fold { phase_ns: 0.0, width_ns: 1e6, follow: occupied, of: 100 };
        let (h, trials, p) = (100.0, 1000, 1e-12);
        let (from_ns, to_ns, cycles) = (0, 100 * period_ns as u64, 100);
        Period { period_ns, error_ns, h, trials, p, fold, from_ns, to_ns, cycles, occupied }
    }

    #[test]
    fn known_unknown_and_beats() {
        let named = |ns, cause| name(&found(ns, 1_000.0, 60), cause, 1_000_000);
        assert!(named(1.000_2e9, "preempted").contains("vmstat"));
        assert_eq!(named(1.000_2e9, "throttled"), ": as kernel.sched_rt_period_us");
        assert!(named(100.01e6, "stall").contains("hypervisor"));
        assert!(named(123e6, "stall").contains("another period"));
        assert_eq!(named(3.7e9, "stall"), "");
        // A tick of 1 ms, looked at every 997 us: 1 / (1/997us - 1/1ms) = 332.333 ms.
        let beat = name(&found(332.333e6, 1e3, 60), "", 997_000);
        assert!(beat.contains("HZ=1000, seen at every 997 µs"));
        assert_eq!(beat_ns(MS, MS), None, "in step: it never shows as a period");
        assert!(SUSPECTS.is_sorted_by_key(|suspect| suspect.period_ns));
    }

    #[test]
    fn few_of_the_cycles_is_nobody_who_works_in_each() {
        assert_eq!(name(&found(1e9, 1e3, 20), "stall", 100_000), "");
        let quota = name(&found(100e6, 1e3, 20), "stall", 10_000);
        assert!(quota.contains("quota"), "{quota}");
    }
}
