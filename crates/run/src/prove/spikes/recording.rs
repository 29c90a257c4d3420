//! The recorder of kernel events beside a run: started, its cost measured, asked; or left out, with
//! the reason. A run never fails for want of it.

use crate::usage::Invalid;
use rtproof_host::{Facts, Root};
use rtproof_judge::causes;
use rtproof_measure::{
    Plan,
    recorder::{Recorder, Settings, cost},
};
use rtproof_record::{Options, run::Note};
use rtproof_trace::{WakeUp, Window};

use super::super::notes;

/// A run must be as long for the cost to be measured before it.
const COST_FROM_NS: u64 = 5_000_000_000;
/// Pairs of slices and length of each: less than two seconds with starts and ends of the threads.
const COST_PAIRS: u32 = 6;
const COST_SLICE_NS: u64 = 100_000_000;
/// Longest period at which the cost is measured: a slice must hold some wake-ups.
const COST_PERIOD_NS: u64 = 1_000_000;
/// The PID namespace whose numbers kernel events have (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const FIRST_PIDS: &str = "pid:[4026531836]";

/// The recorder of a run, or why there is none.
#[derive(Debug)]
pub(super) struct Recording {
    recorder: Option<Recorder>,
    info: causes::Recorder,
    arming_failed: bool,
}

impl Recording {
    fn off(why: String) -> Self {
        let info = causes::Recorder { off: Some(why), ..causes::Recorder::default() };
        Self { recorder: None, info, arming_failed: false }
    }

    /// Starts it, if it is wanted and can be had, and measures what it costs.
    pub(super) fn start(
        root: &Root,
        facts: &Facts,
        options: &Options,
        plan: &Plan,
    ) -> (Self, Vec<Note>) {
        if !options.trace {
            return (Self::off("--no-trace".into()), vec![notes::trace_left_out()]);
        }
        let workloads = || (0..).zip(&plan.cpus).map(|(number, _)| plan.workload_of(number));
        if !workloads().any(|workload| workload.wakes()) {
            let mut names: Vec<&str> = workloads().map(|workload| workload.name()).collect();
            names.dedup();
            let is_application = workloads().any(|it| it.application_cpus().is_some());
            let why = format!(
                "{} measures no wake-ups by a timer, the only samples whose causes are looked \
                 for{}",
                names.join(", "),
                if is_application {
                    "; for those of the application: rtproof explain --pid"
                } else {
                    ""
                }
            );
            let note = notes::no_wake_ups(&why);
            return (Self::off(why), vec![note]);
        }
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let others = online.difference(&options.cpus);
        let settings = Settings::new(options.cpus.clone(), others, options.housekeeping.clone());
        let recorder = match Recorder::start(root, facts, settings) {
            Ok(recorder) => recorder,
            Err(error) => {
                let why = error.to_string();
                return (Self::off(why.clone()), vec![notes::no_trace(&why)]);
            }
        };
        let mut notes = Vec::new();
        if !recorder.removed().is_empty() {
            notes.push(notes::instances_removed(recorder.removed()));
        }
        if root.read_link("/proc/self/ns/pid").value().is_some_and(|ns| ns != FIRST_PIDS) {
            notes.push(notes::other_pids());
            return (Self::off(notes::OTHER_PIDS.into()), notes);
        }
        let info = causes::Recorder {
            missing: recorder.missing().to_vec(),
            ..causes::Recorder::default()
        };
        if !recorder.missing().is_empty() {
            notes.push(notes::events_missing(recorder.missing()));
        }
        let mut recording = Self { recorder: Some(recorder), info, arming_failed: false };
        notes.push(recording.measure_cost(options, plan));
        (recording, notes)
    }

    /// What it adds to the median, as a note.
    fn measure_cost(&mut self, options: &Options, plan: &Plan) -> Note {
        let Some(recorder) = self.recorder.as_ref().filter(|_| options.duration_ns >= COST_FROM_NS)
        else {
            return notes::trace_cost_unknown("the run is shorter than 5 s");
        };
        let plan = Plan { period_ns: plan.period_ns.min(COST_PERIOD_NS), ..plan.clone() };
        match cost::cost(recorder, &plan, COST_PAIRS, COST_SLICE_NS) {
            Ok(cost) => {
                self.info.cost_p50_ns = Some(cost.delta_ns);
                self.info.cost_pairs = cost.pairs;
                notes::trace_cost(cost.delta_ns, cost.pairs)
            }
            Err(error) => notes::trace_cost_unknown(&error.to_string()),
        }
    }

    /// Whether kernel events are recorded.
    pub(super) const fn is_on(&self) -> bool {
        self.recorder.is_some()
    }

    /// Asks for a window; whether there will be one.
    pub(super) fn ask(&self, wake: WakeUp) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.ask(wake))
    }

    /// The windows that are ready.
    pub(super) fn take(&self) -> Vec<(WakeUp, Window)> {
        self.recorder.as_ref().map_or_else(Vec::new, Recorder::take)
    }

    /// Takes stacks at the timer interrupt from now on, once; `at_ns`: after the start. Returns
    /// whether that is new.
    pub(super) fn arm_stacks(&mut self, at_ns: u64) -> Result<bool, Invalid> {
        if self.info.stacks_from_ns.is_some() || self.arming_failed {
            return Ok(false);
        }
        let Some(recorder) = &self.recorder else { return Ok(false) };
        match recorder.arm_stack(true) {
            Ok(()) => {
                self.info.stacks_from_ns = Some(at_ns);
                Ok(true)
            }
            Err(error) => {
                self.arming_failed = true;
                Err(error.to_string().into())
            }
        }
    }

    /// What is known of it so far.
    pub(super) fn info(&mut self) -> &causes::Recorder {
        if let Some(recorder) = &self.recorder {
            let stats = recorder.stats();
            self.info.lost_events = stats.lost_events;
            self.info.blind_ns = stats.blind_ns;
        }
        &self.info
    }

    /// Ends it; what was asked for is answered as far as its events are there. Returns what the
    /// user must know of that.
    pub(super) fn stop(&mut self, now_ns: u64) -> Option<Note> {
        let left = self.recorder.as_mut()?.stop()?;
        Some(notes::instance_left(now_ns, &rtproof_host::tracefs::shown(left)))
    }
}
