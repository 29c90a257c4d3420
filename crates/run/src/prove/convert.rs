//! From what measuring threads hand over to what a record holds. Times become relative to the
//! origin of the run.

use rtproof_host::facts::tasks::Policy;
use rtproof_measure::{EndReason, Report, Slot, Started, calibrate};
use rtproof_record::{
    ThreadTick,
    run::{self, Cost, Sample, Second, ThreadEnd, ThreadInfo},
};

/// A slot as a second of the record.
pub(crate) fn second(number: u32, slot: &Slot, origin_ns: u64) -> ThreadTick {
    let relative = |ns: u64| ns.saturating_sub(origin_ns);
    let second = Second {
        from_ns: relative(slot.from_ns),
        to_ns: relative(slot.to_ns),
        totals: slot.totals.clone(),
        max_at_ns: relative(slot.max_at_ns),
        wake: Vec::new(),
        missed: Vec::new(),
        intervals: slot.intervals.clone(),
    };
    let top = slot
        .top
        .as_slice()
        .iter()
        .map(|sample| Sample { due_ns: relative(sample.due_ns), latency_ns: sample.latency_ns });
    let (wake, missed) = (slot.wake.histogram(), slot.missed.histogram());
    ThreadTick::new(number, second, &wake, &missed, top.collect())
}

/// What a thread got, as the record holds it.
pub(crate) fn info(
    started: &Started,
    period_ns: u64,
    first_due_ns: u64,
    workload: &str,
) -> ThreadInfo {
    ThreadInfo {
        number: started.number,
        cpu: started.cpu,
        tid: started.tid,
        workload: workload.into(),
        policy: match started.policy {
            rtproof_measure::Policy::Fifo => Policy::Fifo,
            rtproof_measure::Policy::Rr => Policy::Rr,
            rtproof_measure::Policy::Deadline => Policy::Deadline,
            rtproof_measure::Policy::Other => Policy::Other,
        },
        priority: started.priority,
        locked: started.lock_error.is_none(),
        period_ns,
        first_due_ns,
    }
}

/// The policy of a measuring thread for one that was asked for.
pub(crate) fn policy(asked: Policy) -> rtproof_measure::Policy {
    match asked {
        Policy::Fifo => rtproof_measure::Policy::Fifo,
        Policy::Rr => rtproof_measure::Policy::Rr,
        Policy::Deadline => rtproof_measure::Policy::Deadline,
        _ => rtproof_measure::Policy::Other,
    }
}

/// How a thread ended. `lost`: it was stopped because it was no longer on its CPU.
pub(crate) fn end(report: &Report, lost: bool) -> ThreadEnd {
    let reason = match report.reason {
        EndReason::Stopped if lost => run::EndReason::CpuLost,
        EndReason::Stopped => run::EndReason::Stopped,
        EndReason::Complete => run::EndReason::Complete,
        EndReason::Starved => run::EndReason::Starved,
        EndReason::Panicked => run::EndReason::Panicked,
        EndReason::Failed => run::EndReason::Failed,
    };
    ThreadEnd {
        reason,
        scheduled: report.scheduled,
        faults_minor: report.faults_minor,
        faults_major: report.faults_major,
        cpu_time_ns: report.cpu_time_ns,
        preemptions: report.preemptions,
    }
}

/// Costs, as the record holds them.
pub(crate) fn cost(cost: &calibrate::Cost) -> Cost {
    Cost {
        clock_read_ps: cost.clock_read_ps,
        clock_step_ns: cost.clock_step_ns,
        clock_getres_ns: cost.clock_getres_ns,
        record_ps: cost.record_ps,
        floor_ns: cost.floor_ns,
    }
}
