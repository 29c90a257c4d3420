//! Is the timer tick fine enough for the period of the loop?
//!
//! With high-resolution timers a wake-up does not wait for a tick. What does: turns of SCHED_RR,
//! time slices of ordinary tasks, CPU-time limits, timeouts of sockets and drivers. Without them
//! every wake-up does.

use rtproof_host::{Facts, Reading};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When, quantity};

/// Frequencies that kernel/Kconfig.hz offers on every architecture of ours.
const OFFERED: [u64; 3] = [100, 250, 1000];

pub(super) static CHECK: Check = Check {
    id: "config-hz",
    title: "frequency of the timer tick (CONFIG_HZ), for the period of the loop",
    why: "turns of SCHED_RR, CPU-time limits and timeouts of sockets and drivers are as coarse as \
          the tick; without high-resolution timers every wake-up is",
    source: "kernel/Kconfig.hz; Documentation/timers/hrtimers.rst; kernel/sched/rt.c \
             (task_tick_rt); net/core/sock.c (SO_RCVTIMEO); Flatscher, \"Real-time Optimizations\"",
    trade_off: Some("each tick interrupts a busy CPU: a higher frequency makes more of them"),
    impact: Impact::Information,
    when: When::Kernel,
    wanted: Wanted::Of(|intent| {
        format!("{} Hz for a period of {}", least(intent), quantity::ns(intent.period_ns))
    }),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

/// The lowest frequency whose tick is no longer than the period; the highest there is where none
/// is that fine.
fn least(intent: &Intent) -> u64 {
    let is_fine = |hz: &&u64| 1_000_000_000 / **hz <= intent.period_ns;
    OFFERED.iter().find(is_fine).copied().unwrap_or(OFFERED[OFFERED.len() - 1])
}

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let config = &facts.kernel.config;
    let Some(found) = config.value() else {
        return draft.blind(config);
    };
    let draft = draft.saw([machine::option(facts, "HZ")]);
    let hz = found.get("HZ").and_then(|hz| hz.parse::<u64>().ok()).filter(|hz| *hz > 0);
    let Some(hz) = hz else {
        let text = found.get("HZ").map_or("not set", String::as_str);
        return draft.blind(&Reading::<u64>::malformed("CONFIG_HZ", text, "a number"));
    };
    let (least, tick_ns) = (least(intent), 1_000_000_000 / hz);
    let (tick, period) = (quantity::ns(tick_ns), quantity::ns(intent.period_ns));
    let resolution = &facts.platform.timer_resolution_ns;
    let draft = draft.read(resolution, |&ns| quantity::ns(ns));
    let draft = match hz < least {
        true => draft.remedies([Remedy::Build {
            options: vec![format!("HZ_{least}=y"), format!("HZ={least}")],
        }]),
        false => draft,
    };
    let coarse = format!("{hz} Hz: SCHED_RR turns and timeouts in ticks go by steps of {tick}");
    match resolution.value() {
        Some(1) if hz >= least => {
            draft.good(format!("{coarse}; wake-ups of a {period} loop do not wait for a tick"))
        }
        Some(1) => draft.doubtful(format!(
            "{coarse}, longer than the period of {period}; its wake-ups do not wait for a tick"
        )),
        Some(_) => {
            let late = format!(
                "{hz} Hz, no high-resolution timers: each wake-up of a {period} loop is up to \
                 {tick} late"
            );
            match hz >= least {
                true => draft.doubtful(format!("{late}; see high-res-timers")),
                false => draft.bad(late),
            }
        }
        None if hz < least => {
            draft.doubtful(format!("{coarse}, longer than the period of {period}"))
        }
        None => draft.blind(resolution),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_config};

    fn judge(hz: Option<&str>, period_ns: u64, resolution_ns: u64) -> Finding {
        let mut facts = good();
        set_config(&mut facts, "HZ", hz);
        facts.platform.timer_resolution_ns = Reading::known("clock_getres", resolution_ns);
        CHECK.judge(&facts, &Intent { period_ns, ..intent() })
    }

    #[test]
    fn the_period_decides() {
        for (hz, period_ns, status) in [
            ("1000", 1_000_000, Good),
            ("250", 1_000_000, Doubtful),
            ("250", 4_000_000, Good),
            ("100", 4_000_000, Doubtful),
            ("100", 10_000_000, Good),
            ("1000", 100_000, Good),
            ("300", 100_000, Doubtful),
            ("300", 4_000_000, Good),
        ] {
            assert_eq!(judge(Some(hz), period_ns, 1).status, status, "{hz} {period_ns}");
        }
        let finding = judge(Some("250"), 1_000_000, 1);
        let options = vec!["HZ_1000=y".into(), "HZ=1000".into()];
        assert_eq!(finding.remedies, [Remedy::Build { options }]);
        assert_eq!(
            finding.summary,
            "250 Hz: SCHED_RR turns and timeouts in ticks go by steps of 4 ms, longer than the \
             period of 1 ms; its wake-ups do not wait for a tick"
        );
    }

    #[test]
    fn without_high_resolution_timers_each_wake_up_waits() {
        assert_eq!(judge(Some("250"), 1_000_000, 4_000_000).status, Bad);
        let finding = judge(Some("1000"), 1_000_000, 1_000_000);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("is up to 1 ms late"), "{}", finding.summary);
        assert!(finding.remedies.is_empty());
    }

    #[test]
    fn what_is_not_known_is_unknown() {
        assert_eq!(judge(None, 1_000_000, 1).status, Unknown);
        assert_eq!(judge(Some("0"), 1_000_000, 1).status, Unknown);
        let mut facts = good();
        facts.platform.timer_resolution_ns = Reading::absent("clock_getres");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "HZ", Some("250"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful, "with or without");
        facts.kernel.config = Reading::denied("/proc/config.gz", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
