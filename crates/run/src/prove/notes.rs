//! What a user must know of a run, each with the next step to take.

use rtproof_judge::{causes, units};
use rtproof_measure::{
    Policy, SessionPlan, StartedThread,
    workloads::{self, Gaps, ThreadPlace, WorkloadEnding},
};
use rtproof_record::{
    Options,
    run::{Cost, Mark, MarkKind, Note},
    spikes::SpikeSummary,
};

fn note(at_ns: u64, id: &str, weakens: bool, text: String) -> Note {
    Note { at_ns, id: id.into(), text, weakens }
}

/// Spikes that are not explained, by where they were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unexamined {
    /// No room on their way out of the measuring thread.
    pub(crate) dropped: u64,
    /// Too many at once: more than are asked for in a second, or than the recorder takes.
    pub(crate) too_many: u64,
    /// Asked for, and not answered before the run was over.
    pub(crate) unanswered: u64,
    /// Samples that are no wake-ups.
    pub(crate) no_wake_up: u64,
}

/// Before the start: what the costs say of the options.
pub(crate) fn of_cost(options: &Options, cost: &Cost) -> Vec<Note> {
    let mut notes = Vec::new();
    if options.period_ns < cost.floor_ns {
        let text = format!(
            "The period of {} is shorter than the shortest period this machine can sustain ({}): \
             wake-ups are missed because of the measuring itself. Choose a longer --period.",
            units::ns(options.period_ns),
            units::ns(cost.floor_ns)
        );
        notes.push(note(0, "period-below-floor", true, text));
    }
    if cost.clock_getres_ns > 1000 {
        let text = format!(
            "Timers have a resolution of {}: high-resolution timers are off, and every wake-up \
             waits for \
             the tick.",
            units::ns(cost.clock_getres_ns)
        );
        notes.push(note(0, "low-resolution-timers", false, text));
    }
    notes
}

/// After the threads have started: what they asked for and did not get.
pub(crate) fn of_start(options: &Options, started: &[StartedThread]) -> Vec<Note> {
    let mut notes = Vec::new();
    let cpus = |those: Vec<&StartedThread>| {
        units::cpus(&rtproof_host::CpuList::new(those.iter().map(|started| started.cpu)))
    };
    let unpolicied: Vec<_> = started.iter().filter(|s| s.policy_error.is_some()).collect();
    if let Some(first) = unpolicied.first() {
        let mut asked = rtproof_results::policy_name(options.policy).to_owned();
        // A deadline has none.
        if options.priority > 0 {
            asked += &format!(" {}", options.priority);
        }
        let used_policy = match first.policy {
            Policy::Fifo => format!("SCHED_FIFO {}", first.priority),
            Policy::Rr => format!("SCHED_RR {}", first.priority),
            Policy::Deadline => "SCHED_DEADLINE".into(),
            _ => "SCHED_OTHER, without any real-time priority".into(),
        };
        // Rights are not all that it takes: a control group may have no real-time runtime.
        let next = match options.priority {
            0 => String::new(),
            priority => format!(
                " `rtproof check --prove priority --priority {priority}` names what refused it."
            ),
        };
        let text = format!(
            "{asked} was refused ({}): {} measured with {used_policy}.{next}",
            first.policy_error.clone().unwrap_or_default(),
            match unpolicied.len() {
                1 => format!("{} was", cpus(unpolicied.clone())),
                _ => format!("{} were", cpus(unpolicied.clone())),
            },
        );
        notes.push(note(0, "no-rt-right", true, text));
    }
    let unlocked: Vec<_> = started.iter().filter(|s| s.lock_error.is_some()).collect();
    if let Some(first) = unlocked.first() {
        let text = format!(
            "Memory is not locked ({}): page faults may delay the threads of {}. `rtproof check \
             --prove memlock` shows what grants it.",
            first.lock_error.clone().unwrap_or_default(),
            cpus(unlocked.clone()),
        );
        notes.push(note(0, "memory-not-locked", false, text));
    }
    if !options.clock.is_monotonic() {
        let text = format!(
            "Measured by {}, as asked. Times in the record and its kernel events stay on \
             CLOCK_MONOTONIC.",
            options.clock.name()
        );
        notes.push(note(0, "clock", false, text));
    }
    if options.policy == Policy::Other {
        let text =
            "Measured with SCHED_OTHER, as asked: timer slack (50 µs by default) is part of \
                    every latency."
                .into();
        notes.push(note(0, "sched-other", false, text));
    }
    notes
}

/// What workloads say of themselves: what measuring takes of each sample, and where a thread runs.
pub(crate) fn of_workloads(plan: &SessionPlan, started: &[StartedThread]) -> Vec<Note> {
    let mut notes = Vec::new();
    for started in started {
        let workload = plan.workload_of(started.number);
        let sentence = &started.own_cost.sentence;
        if workload.spec() != workloads::timer_wakeup().spec() && !sentence.is_empty() {
            let text = format!("CPU {}, {}: {sentence}", started.cpu, workload.spec());
            notes.push(note(0, "own-cost", false, text));
        }
        if !started.is_pinned && workload.place() == ThreadPlace::OnCpu {
            let text = format!(
                "The thread of CPU {} may run on other CPUs: the kernel pins a deadline task only \
                 to a whole root domain (an exclusive cpuset).",
                started.cpu
            );
            notes.push(note(0, "not-pinned", true, text));
        }
    }
    notes
}

/// A workload could not go on, or lost cycles.
pub(crate) fn of_ending(at_ns: u64, cpu: u32, ending: &WorkloadEnding) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(failure) = &ending.failure {
        let text = format!("The workload of CPU {cpu} ended early: {failure}.");
        notes.push(note(at_ns, "workload-failed", true, text));
    }
    if ending.lost > 0 {
        let text = format!(
            "{} cycles of CPU {cpu} ran but could not be read; they are not counted.",
            units::grouped(ending.lost)
        );
        notes.push(note(at_ns, "cycles-lost", true, text));
    }
    if ending.unanswered > 0 {
        let text = format!(
            "{} of CPU {cpu} had no answer; they count as missed.",
            units::count(ending.unanswered, "packet")
        );
        notes.push(note(at_ns, "packets-lost", true, text));
    }
    for setting in &ending.settings {
        notes.push(note(at_ns, "trace-setting", true, format!("{setting}.")));
    }
    if let Some(gaps) = &ending.gaps {
        notes.push(note(at_ns, "gap-account", false, gap_account(cpu, gaps)));
    }
    notes
}

/// Where the time of a loop that never sleeps went.
fn gap_account(cpu: u32, gaps: &Gaps) -> String {
    let shortest = match gaps.steps {
        0 => "none".into(),
        _ => units::ns(gaps.step_min_ns),
    };
    let share = gaps.gap_ns as f64 / gaps.run_ns.max(1) as f64 * 100.0;
    format!(
        "CPU {cpu} looked at its clock {} in {}, the shortest step {shortest}: {} above {} \
         took {} of it, {share:.3} %.",
        units::times(gaps.steps),
        units::duration(gaps.run_ns),
        units::count(gaps.gaps, "step"),
        units::ns(gaps.threshold_ns),
        units::ns(gaps.gap_ns),
    )
}

/// rtproof was started with a real-time policy.
pub(crate) fn was_real_time() -> Note {
    let text = "rtproof was started with a real-time policy and gave it up: only the measuring \
                threads have one."
        .into();
    note(0, "was-real-time", false, text)
}

/// The tool's own work shares a CPU with what it measures.
pub(crate) fn no_housekeeping() -> Note {
    let text =
        "Every usable CPU is measured: rtproof's own work, once a second and more often where it \
                records kernel events, shares a CPU with a measured thread. Leave one out with \
                --cpus to avoid that."
            .into();
    note(0, "no-housekeeping-cpu", false, text)
}

/// What the file of single samples holds.
pub(crate) fn samples(at_ns: u64, text: String) -> Note {
    note(at_ns, "samples", false, text)
}

/// Host counters that are left out because reading them would disturb the measured CPUs.
pub(crate) fn not_sampled(what: &str) -> Note {
    note(0, "not-sampled", false, what.into())
}

/// /dev/cpu_dma_latency could not be held.
pub(crate) fn no_dma_latency(error: &str) -> Note {
    let text =
        format!("--dma-latency was not applied: {error}. The run measures the machine as it is.");
    note(0, "no-dma-latency", true, text)
}

/// A load failed or did nothing.
pub(super) fn load(at_ns: u64, name: &str, error: &str) -> Note {
    // The error names the load, where it comes from starting it.
    let rest = error.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(error);
    note(at_ns, "load-failed", true, format!("Load {name}: {rest}"))
}

/// A moment that the user marked.
pub(crate) fn marked(at_ns: u64, text: &str) -> Note {
    note(at_ns, "marked", false, format!("Marked: {text}"))
}

/// The user switched the loads: the phases of the options are not what ran.
pub(crate) fn manual_load_note(at_ns: u64, specs: &[String]) -> Note {
    let what = if specs.is_empty() { "off".into() } else { specs.join("+") };
    let text = format!(
        "Load switched by hand: {what}. From here on the phases do not say which load ran; the \
         table of loads does."
    );
    note(at_ns, "load-by-hand", true, text)
}

/// A thread is not where it was put.
pub(crate) fn cpu_lost(at_ns: u64, cpu: u32, now_on: u32, online: bool) -> Note {
    let what = match (online, now_on == cpu) {
        (true, true) => "ran on another CPU for a moment (its count of migrations rose)".into(),
        (true, false) => format!("was moved away from it, and ran on CPU {now_on}"),
        (false, _) => format!("lost it: the CPU went offline, and it ran on CPU {now_on}"),
    };
    let noticed = units::duration(at_ns);
    let text = format!(
        "The thread of CPU {cpu} {what}; noticed {noticed} after the start, and the thread was \
         ended."
    );
    note(at_ns, "cpu-lost", true, text)
}

/// A thread was given another policy or other CPUs from outside.
pub(super) fn changed(mark: &Mark, cpu: u32) -> Note {
    let (id, what) = match mark.kind {
        MarkKind::Policy => ("policy-changed", ""),
        MarkKind::Affinity => ("affinity-changed", "may run on "),
    };
    let text = format!(
        "Something else changed the measured thread of CPU {cpu} between {} and {} after the \
         start: {what}{}, before {}.",
        units::duration(mark.since_ns),
        units::duration(mark.at_ns),
        mark.after,
        mark.before,
    );
    note(mark.at_ns, id, true, text)
}

/// Kernel events cannot be recorded.
pub(crate) fn no_trace(why: &str) -> Note {
    let text = format!(
        "Spikes are not explained, because kernel events cannot be recorded: {why}. --no-trace \
         leaves this out."
    );
    note(0, "no-trace", false, text)
}

/// The user does not want them.
pub(crate) fn trace_left_out() -> Note {
    let text = "Spikes are counted, not explained: --no-trace.".into();
    note(0, "no-trace", false, text)
}

/// Kernel events would explain nothing.
pub(crate) fn no_wake_ups(why: &str) -> Note {
    note(0, "no-trace", false, format!("Spikes are counted, not explained: {why}."))
}

/// Events that this kernel lacks or refuses.
pub(crate) fn events_missing(missing: &[String]) -> Note {
    note(0, "trace-events-missing", false, missing.join(" "))
}

/// Why events are of no use: shares made from them would all be wrong.
pub(crate) const OTHER_PIDS: &str =
    "in a PID namespace (a container) threads have other numbers than in kernel events";

/// Threads have other numbers here than in kernel events.
pub(crate) fn other_pids() -> Note {
    let text = format!(
        "Spikes are not explained: {OTHER_PIDS}. Run it in the namespace of the host (docker run \
         --pid host)."
    );
    note(0, "pid-namespace", false, text)
}

/// Leftovers of killed runs.
pub(crate) fn instances_removed(removed: &[String]) -> Note {
    let text = format!(
        "A run that was killed had left the recording of kernel events on ({}); it is off now.",
        removed.join(", ")
    );
    note(0, "trace-instances-removed", false, text)
}

/// What could not be taken away at the end.
pub(crate) fn instance_left(at_ns: u64, path: &str) -> Note {
    let text = format!(
        "{path} could not be removed: its ring buffers stay in memory, and the kernel may go on \
         recording into them. rmdir it, or run rtproof again as root."
    );
    note(at_ns, "trace-instance-left", true, text)
}

pub(crate) fn trace_cost(delta_ns: i64, pairs: u32) -> Note {
    let sign = if delta_ns < 0 { "-" } else { "+" };
    let text = format!(
        "Recording kernel events is part of what is measured: {sign}{} at the median, from {pairs} \
         pairs with and without. --no-trace leaves it out.",
        units::ns(delta_ns.unsigned_abs())
    );
    note(0, "trace-cost", false, text)
}

/// What recording costs is not known.
pub(crate) fn trace_cost_unknown(why: &str) -> Note {
    let text = format!(
        "Recording kernel events is part of what is measured; what it costs is not known: {why}. \
         --no-trace leaves it out."
    );
    note(0, "trace-cost", false, text)
}

/// Stacks are taken from now on.
pub(crate) fn stacks(at_ns: u64) -> Note {
    let text = format!(
        "From {} after the start the kernel's stack is recorded at each timer interrupt, to tell \
         interrupts being off from the machine standing still. It adds to the cost.",
        units::duration(at_ns)
    );
    note(at_ns, "trace-stacks", false, text)
}

/// Stacks are not available.
pub(crate) fn no_stacks(at_ns: u64, why: &str) -> Note {
    let text = format!(
        "The kernel's stack cannot be recorded ({why}): interrupts being off and the machine \
         standing still are not told apart."
    );
    note(at_ns, "trace-stacks", false, text)
}

/// After the run: what is missing in the explanations.
pub(crate) fn of_spikes(
    at_ns: u64,
    spikes: &SpikeSummary,
    lost: Unexamined,
    recorder: &causes::RecorderSummary,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let n = units::grouped;
    if spikes.incomplete > 0 {
        let text = format!(
            "{} of {} explained spikes {} incomplete: events were lost or were not recorded, and \
             causes may be wrong. Counts and latencies do not rest on them.",
            n(spikes.incomplete),
            n(spikes.explained),
            if spikes.incomplete == 1 { "is" } else { "are" },
        );
        notes.push(note(at_ns, "spikes-incomplete", false, text));
    }
    if spikes.unexamined > 0 {
        let text = format!(
            "{} of {} spikes are not explained: {} were too many at once, {} were not answered \
             before the end. The worst come first; raise --spike for fewer.",
            n(spikes.unexamined),
            n(spikes.seen),
            n(lost.too_many + lost.dropped),
            n(lost.unanswered)
        );
        let text = match lost.no_wake_up {
            0 => text,
            other => format!(
                "{text} {} of them are no wake-ups by a timer, the only samples whose causes are \
                 looked for.",
                n(other)
            ),
        };
        notes.push(note(at_ns, "spikes-unexamined", false, text));
    }
    if recorder.lost_events > 0 {
        let text =
            format!("The kernel dropped {} events before they were read.", n(recorder.lost_events));
        notes.push(note(at_ns, "trace-events-lost", false, text));
    }
    if recorder.blind_ns > 0 {
        let text = format!(
            "Kernel events were not recorded for {}, while they were read: spikes of that time are \
             incomplete.",
            units::duration(recorder.blind_ns)
        );
        notes.push(note(at_ns, "trace-blind", false, text));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_never_sleeps_accounts_for_its_time() {
        let gaps = Gaps {
            run_ns: 10_000_000_000,
            busy_ns: 9_990_000_000,
            gap_ns: 10_000_000,
            gaps: 40,
            steps: 250_000_000,
            step_min_ns: 38,
            threshold_ns: 1000,
        };
        let settings = vec!["/x could not be set back".into()];
        let ending =
            WorkloadEnding { gaps: Some(gaps), lost: 3, settings, ..WorkloadEnding::default() };
        let notes = of_ending(0, 1, &ending);
        assert_eq!(
            notes.iter().map(|n| n.id.as_str()).collect::<Vec<_>>(),
            ["cycles-lost", "trace-setting", "gap-account"]
        );
        assert_eq!(notes[1].text, "/x could not be set back.");
        let text = notes[2].text.replace('\u{202f}', " ");
        assert!(text.contains("250 000 000 times in 10 s, the shortest step 38 ns"), "{text}");
        assert!(text.ends_with("40 steps above 1 µs took 10 ms of it, 0.100 %."), "{text}");
        let none = Gaps { step_min_ns: u64::MAX, ..Gaps::default() };
        assert!(gap_account(1, &none).contains("the shortest step none: 0 steps"));
    }
}
