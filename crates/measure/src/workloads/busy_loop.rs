//! A loop that never sleeps and reads the clock: whatever takes its CPU away leaves a gap.

use std::sync::{Arc, atomic::AtomicBool};

use super::{
    error::WorkloadError,
    timing::sleep_until,
    workload::{Armed, Description, Ending, OwnCost, Setting, Workload},
};
use crate::{
    EndReason, calibrate,
    cycle::{Cycle, Gaps},
    quantity::Quantity,
    sys,
};

/// Thresholds that make sense, nanoseconds.
const THRESHOLD_NS: std::ops::RangeInclusive<u64> = 50..=1_000_000_000;

/// Back-to-back readings of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyLoop {
    threshold_ns: u64,
}

/// What every interrupt takes longer than.
pub(super) const WORKLOAD: BusyLoop = BusyLoop { threshold_ns: 1000 };

const DESCRIPTION: Description = Description {
    parameter: Some("the threshold in ns, us or ms, as in busy-loop:200ns; 1us without"),
    ..Description::new(
        "busy-loop",
        "Gaps between readings of the clock in a loop that never sleeps: time that interrupts, \
         the firmware (SMIs), the hypervisor, page faults or other tasks took from the CPU. Not \
         wake-ups, timers or the scheduler. Steps above the threshold are samples, each scheduled \
         when it is found, none missed; steps above and up to it add up to the whole run. The \
         period is not used. A real-time policy keeps everything else from that CPU, and the \
         kernel's limit (sched_rt_runtime_us, 95 %) then makes gaps of its own.",
        Quantity::Gap,
    )
};

impl Workload for BusyLoop {
    fn describe(&self) -> &Description {
        &DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let Some(text) = parameter else { return Ok(Arc::new(WORKLOAD)) };
        let threshold_ns = time_ns(text).filter(|ns| THRESHOLD_NS.contains(ns));
        let threshold_ns = threshold_ns.ok_or_else(|| {
            WorkloadError::parameter(self.name(), text, "a time from 50ns to 1s, as 500ns or 2us")
        })?;
        Ok(Arc::new(Self { threshold_ns }))
    }

    fn spec(&self) -> String {
        format!("{}:{}ns", self.name(), self.threshold_ns)
    }

    fn arm(&self, _: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let clock_ps = calibrate::clock_read_ps(crate::clock::Clock::Monotonic);
        if clock_ps / 1000 * 2 >= self.threshold_ns {
            let why = format!(
                "reading the clock takes {} ns here, so that a step of the loop would pass for a \
                 gap; take a threshold of {} ns or more",
                clock_ps / 1000,
                (clock_ps / 1000 * 4).max(*THRESHOLD_NS.start())
            );
            return Err(WorkloadError::unfit(self.name(), why));
        }
        let gaps = Gaps { threshold_ns: self.threshold_ns, ..Gaps::default() };
        Ok(Box::new(Ready { clock_ps, gaps }))
    }
}

struct Ready {
    clock_ps: u64,
    gaps: Gaps,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        let ns = self.clock_ps.div_ceil(1000);
        let sentence = format!(
            "A step of the loop is one reading of the clock, {ns} ns: each gap holds that much of \
             the loop's own time."
        );
        OwnCost { ns, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        let (reason, gaps) = run(cycle, stop, self.gaps.threshold_ns);
        self.gaps = gaps;
        reason
    }

    fn code(&self) -> Vec<usize> {
        vec![run as fn(&mut Cycle, &AtomicBool, u64) -> (EndReason, Gaps) as usize]
    }

    fn ending(&self) -> Ending {
        Ending { gaps: Some(self.gaps), ..Ending::default() }
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, threshold_ns: u64) -> (EndReason, Gaps) {
    sleep_until(cycle.schedule().first_ns);
    cycle.run_gaps(stop, threshold_ns, sys::now_ns)
}

/// Nanoseconds of a number with `ns`, `us`, `ms` or `s`.
fn time_ns(text: &str) -> Option<u64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (word, unit) = units.iter().find(|(word, _)| text.ends_with(word))?;
    let number: f64 = text.strip_suffix(word)?.trim().parse().ok()?;
    let ns = (number * unit).round();
    (number.is_finite() && (1.0..1e18).contains(&ns)).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_and_written() {
        let spec = |text| WORKLOAD.with(Some(text)).map(|busy| busy.spec());
        assert_eq!(spec("200ns").expect("a time"), "busy-loop:200ns");
        assert_eq!(spec("2us").expect("a time"), "busy-loop:2000ns");
        assert_eq!(spec("1.5us").expect("a time"), "busy-loop:1500ns");
        for text in ["", "10", "10ns", "2s", "us", "-1us", "NaNus", "1e99us", "0.0us"] {
            let error = spec(text).expect_err(text).to_string();
            assert!(error.contains("50ns to 1s"), "{error}");
        }
    }
}
