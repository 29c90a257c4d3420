//! What changes of the machine do to latency, found out by trying them: shared by `tune apply
//! --prove` and `experiment`.
//!
//! A trial is a measured run during which knobs are switched on and off in slices of time. Knobs
//! ([`factors`]) and options of measuring ([`MeasureSetting`]) are switched by a [`Switch`], under
//! the journal of `tune`; [`conduct`] leads through the slices of a [`TrialSchedule`].

pub mod analyse;
pub mod boots;
pub mod conduct;
pub mod factors;
pub mod plan;
pub mod screening;

pub use factors::{Journaled, Switch};

use std::{collections::BTreeMap, fmt, io, path::Path};

use analyse::{LEVEL, MARGIN, Terms, Untried};
use anyhow::Context;
use boots::{Pilot, StagedExperiment, median};
use conduct::{Conduct, LEAD_NS, SLOT_NS};
use factors::Candidate;
use schemars::JsonSchema;
use screening::ShownScreening;
use serde::Serialize;

use rtproof_host::{
    Facts, Root,
    door::usage,
    idle,
    tune::{Machine, Scheduling, Tasks},
};
use rtproof_judge::{
    Intent, Report, early_end,
    plan::{Plan, Step},
    units,
};
use rtproof_measure::{
    LiveTasks,
    loads::{LoadSet, LoadSettings, Runner, RunningLoad},
};
use rtproof_record::{
    Effects, Options, Run,
    effects::{Decision, KnobResult as Reported, Slice, SlicePart, TrialSummary},
    run::RunEnd,
};
use rtproof_results::{Ended, percent};
use rtproof_stats::{
    paired::{self, Margin, PAIRS_MAX, Spread},
    screening::{DesignKind, FACTORS_MAX},
};

use crate::prove::engine::Sealed;
use crate::prove::{self, Observer, Output, Request};
use crate::tune::boot;

/// What the caller shows while knobs are tried.
pub trait ExperimentEvents {
    /// What will be tried, and how long it takes.
    fn setup(&mut self, sentence: &str) -> io::Result<()>;

    /// A line while it is tried.
    fn line(&mut self, line: &str) -> io::Result<()>;

    /// Observes the run that begins now.
    fn observer(&self, duration_ns: u64) -> Box<dyn Observer>;
}

// What an experiment found worth having, as a plan that `rtproof tune apply --plan` takes.

/// The plan of some knobs: their steps as the plan has them, in its order.
pub fn plan_of(plan: &Plan, knobs: &[Candidate], those: &[usize]) -> Plan {
    let of = |&at: &usize| knobs[at].now.iter().chain(&knobs[at].later);
    let mut places: Vec<usize> = those.iter().flat_map(of).map(|(place, _)| *place).collect();
    places.sort_unstable();
    places.dedup();
    let steps: Vec<Step> = places.iter().filter_map(|&at| plan.steps.get(at).cloned()).collect();
    Plan { steps, ..Plan::default() }
}

/// Options of measuring among knobs: no plan holds them.
pub fn settings<'a>(knobs: &'a [Candidate], those: &[usize]) -> Vec<&'a MeasureSetting> {
    those.iter().flat_map(|&at| &knobs[at].settings).collect()
}

/// Writes the plan; what is there already is never overwritten.
///
/// # Errors
/// A file that is there or cannot be made.
pub fn write_profile(
    path: &Path,
    machine: &Machine<'_>,
    facts: &Facts,
    intent: &Intent,
    plan: Plan,
) -> anyhow::Result<()> {
    let document = boot::document(machine, facts, intent, plan);
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    let written = rtproof_host::door::create_new(path, 0o644)
        .and_then(|mut file| io::Write::write_all(&mut file, &text));
    written.with_context(|| format!("{}: the profile cannot be written", path.display()))
}

// Results of a run of interleaved slices, for `experiment` and `tune apply --prove`: measured,
// undone, sealed.

/// Load of the whole time where none is asked for: that of `prove` after its idle part.
pub const LOAD: &str = "cpu+memory+net+disk";

/// A trial that was measured. The machine is as it was, but for what is kept.
#[derive(Debug)]
pub struct Results {
    pub sealed: Sealed,
    /// How it is judged.
    pub report: Report,
}

/// Measures while `conduct` switches, then seals the record.
///
/// # Errors
/// Threads that cannot run, a machine that could not be put back, a record that cannot be read.
pub fn measure(
    root: &Root,
    facts: Facts,
    options: &Options,
    load_dir: Option<&Path>,
    output: &Output,
    mut conduct: Conduct<'_>,
    observer: &mut dyn Observer,
) -> anyhow::Result<Results> {
    let measured = prove::measure(root, facts, options, load_dir, output, &mut conduct, observer);
    let trouble = conduct.end().trouble;
    let finished = match (measured, trouble) {
        (Ok(finished), None) => finished,
        (Ok(finished), Some(trouble)) => {
            let report = Report::new(&finished.run, &finished.integrity());
            // What is wrong with the machine is worse than what may be wrong with the record.
            let _ = finished.seal(&report);
            return Err(trouble.context("run `rtproof tune undo`"));
        }
        (Err(error), None) => return Err(error),
        (Err(error), Some(trouble)) => {
            return Err(error.context(format!("run `rtproof tune undo`: {trouble:#}")));
        }
    };
    let report = Report::new(&finished.run, &finished.integrity());
    let sealed = finished.seal(&report)?;
    Ok(Results { sealed, report })
}

impl Results {
    /// The effects that the record of the experiment holds.
    ///
    /// # Errors
    /// A record without it.
    pub fn effects(&self) -> anyhow::Result<&Effects> {
        self.sealed.run.effects.as_ref().context("the record holds no effects")
    }

    /// Whether it ran to its end.
    pub fn is_whole(&self) -> bool {
        cut_short(&self.sealed.run).is_none()
    }

    /// Why it was cut short, if it was.
    pub fn cut_short(&self) -> Option<String> {
        cut_short(&self.sealed.run)
    }

    /// How it ended: it cannot be decided if it was cut short or a knob is open.
    ///
    /// # Errors
    /// A record without effects.
    pub fn ended(&self) -> anyhow::Result<Ended> {
        let effects = self.effects()?;
        Ok(if is_open(effects) || !self.is_whole() { Ended::CannotTell } else { Ended::Done })
    }
}

/// Whether a knob is not decided.
pub fn is_open(effects: &Effects) -> bool {
    let open = [Decision::CannotDecide, Decision::NotTried];
    effects.knobs.iter().any(|knob| open.contains(&knob.decision))
}

/// Why a run ended before its time.
pub fn cut_short(run: &Run) -> Option<String> {
    match &run.meta.ended {
        // If all threads ended by themselves the run was not interrupted.
        Some(RunEnd::Complete) => {
            run.threads.iter().find_map(early_end).map(|how| format!("the {how}"))
        }
        Some(RunEnd::Interrupted { signal }) => Some(format!("{signal} came")),
        Some(RunEnd::Aborted { why }) => Some(why.clone()),
        None => Some("the record is torn".into()),
    }
}

/// 63 random bits.
///
/// # Errors
/// The kernel has none.
pub fn seed() -> anyhow::Result<u64> {
    let mut bytes = [0_u8; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .context("no random bits for the order of slices")?;
    anyhow::ensure!(filled == bytes.len(), "too few random bits for the order of slices");
    Ok(u64::from_le_bytes(bytes) >> 1)
}

// An experiment from its knobs to its report.

/// What an experiment can see, before it starts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Detectable {
    /// `pilot` or `assumption`.
    pub rests_on: &'static str,
    /// Spread of p99.9 from slice to slice, as a share.
    pub spread: f64,
    /// Smallest change of p99.9 downwards, as a share, where one knob stands out; null: none.
    pub one: Option<f64>,
    /// The same where all do.
    pub all: Option<f64>,
}

/// What an experiment found: results, screening and the useful knobs.
#[derive(Debug)]
pub struct ExperimentOutcome {
    pub results: Results,
    /// The screening; `None`: there was none.
    pub screening: Option<ShownScreening>,
    /// Knobs that are worth having.
    pub profile: Vec<usize>,
}

/// Everything an experiment needs besides its switch.
pub struct ExperimentInput<'a> {
    pub root: &'a Root,
    pub facts: &'a Facts,
    pub knobs: &'a [Candidate],
    pub setup: ExperimentSetup,
    /// Arguments of `prove` that say the rest.
    pub args: &'a Request,
    /// Where record and report go.
    pub output: &'a Output,
    /// Assumed spread; `None`: a pilot measures it.
    pub spread: Option<f64>,
}

/// Says what will be and what can be seen. With a pilot: measures it.
///
/// # Errors
/// Threads that cannot run, a pilot that was interrupted.
pub fn before(
    wanted: &ExperimentInput<'_>,
    switch: &mut dyn Switch,
    events: &mut dyn ExperimentEvents,
) -> anyhow::Result<Detectable> {
    let setup = &wanted.setup;
    let mut sentence = setup.sentence(0);
    if wanted.spread.is_none() {
        let pilot = units::duration(setup.pilot_ns());
        sentence += &format!(" Before that a pilot of {PILOT} slices, {pilot}.");
    }
    events.setup(&sentence)?;
    let (spread, rests_on, level) = match wanted.spread {
        Some(spread) => (Spread::assumed(spread.ln_1p()), "assumption", None),
        None => {
            let (sd, level) = pilot(wanted, switch, events)?;
            (Spread::of_successive(sd, PILOT as usize), "pilot", level)
        }
    };
    let detectable = Detectable {
        rests_on,
        spread: spread.sd.exp_m1(),
        one: setup.detectable(spread, 1),
        all: setup.detectable(spread, setup.knobs),
    };
    events.line(&sentence_of(&detectable, setup, level))?;
    Ok(detectable)
}

/// What can be seen, as a sentence.
fn sentence_of(detectable: &Detectable, setup: &ExperimentSetup, level: Option<u64>) -> String {
    let basis = match (detectable.rests_on, level) {
        ("pilot", Some(ns)) => {
            format!("pilot: p99.9 {} (median of {PILOT} slices), moves", units::ns(ns))
        }
        ("pilot", None) => "pilot: p99.9 moves".into(),
        _ => "--spread: p99.9 is taken to move, not measured,".into(),
    };
    let away = |share: Option<f64>| {
        share.map_or_else(|| "no change at all".into(), |share| format!("−{}", percent(share)))
    };
    let (one, all) = (away(detectable.one), away(detectable.all));
    let what = match setup.knobs {
        1 => format!("a change of p99.9 by {one} is found"),
        n if setup.design(0).is_none() => {
            format!("with {n} knobs a change of p99.9 by {all} is found")
        }
        n => format!(
            "a change of p99.9 by {one} is found if one knob stands out, by {all} if all {n} do"
        ),
    };
    format!(
        "{basis} by {} from slice to slice: {what} four times in \
         five, a larger one more often.",
        percent(detectable.spread)
    )
}

/// Measures slices without any change; returns the spread and the level of p99.9.
fn pilot(
    wanted: &ExperimentInput<'_>,
    switch: &mut dyn Switch,
    events: &mut dyn ExperimentEvents,
) -> anyhow::Result<(f64, Option<u64>)> {
    let mut name = wanted.output.record.with_extension("").into_os_string();
    name.push("-pilot");
    let output = Output::choose(Path::new(&name), wanted.facts)?;
    let mut args = wanted.args.clone();
    args.duration_ns =
        Some((2 * wanted.setup.pilot_ns() + 10_000_000_000).next_multiple_of(1_000_000_000));
    let options = prove::resolve_options(&args, wanted.facts)?;
    let (schedule, trial) = Pilot::new(wanted.setup.slice_ns, PILOT);
    let mut on_line = |_| {};
    let mut conduct = Conduct::new(
        switch,
        &mut on_line,
        Vec::new(),
        Box::new(schedule),
        trial,
        Untried::new(),
        options.cpus.len(),
    );
    let facts = wanted.facts.clone();
    let load_dir = args.load_dir.as_deref();
    let mut observer = events.observer(options.duration_ns);
    let measured = prove::measure(
        wanted.root,
        facts,
        &options,
        load_dir,
        &output,
        &mut conduct,
        &mut *observer,
    );
    let slices = conduct.slices().to_vec();
    drop(conduct);
    // Its record is of no use to anybody.
    let removed = std::fs::remove_file(&output.record);
    let finishing = measured?;
    removed.with_context(|| format!("{}: cannot be removed", output.record.display()))?;
    if let Some(why) = cut_short(&finishing.run) {
        anyhow::bail!("{why}: the pilot was cut short; nothing was changed");
    }
    let spread = analyse::spread(slices.iter()).context(
        "the pilot: too few slices were measured to the end; the machine is too busy, or give \
         --spread PERCENT",
    )?;
    Ok((spread, median(&slices)))
}

/// Runs the experiment from its first slice to the analysed record.
///
/// # Errors
/// Threads that cannot run, a machine that could not be put back, a record that cannot be written.
pub fn run_experiment(
    wanted: &ExperimentInput<'_>,
    detectable: &Detectable,
    switch: &mut dyn Switch,
    events: &mut dyn ExperimentEvents,
) -> anyhow::Result<ExperimentOutcome> {
    let (setup, knobs) = (&wanted.setup, wanted.knobs);
    let mut args = wanted.args.clone();
    args.duration_ns = Some(setup.most_ns());
    let options = prove::resolve_options(&args, wanted.facts)?;
    let seed = seed()?;
    let (schedule, trial) = StagedExperiment::new(knobs, setup.clone(), seed, detectable.one);
    let mut observer = events.observer(setup.needs_ns(setup.knobs));
    let mut on_line = |line: String| {
        // Nowhere left to report that it cannot be reported.
        let _ = events.line(&line);
    };
    let threads = options.cpus.len();
    let conduct = Conduct::new(
        switch,
        &mut on_line,
        knobs.to_vec(),
        Box::new(schedule),
        trial,
        Untried::new(),
        threads,
    );
    let (facts, output) = (wanted.facts.clone(), wanted.output);
    let load_dir = args.load_dir.as_deref();
    let results = measure(wanted.root, facts, &options, load_dir, output, conduct, &mut *observer)?;
    let effects = results.effects()?;
    let screening = setup.design(seed).map(|design| screening::screened(&design, &effects.slices));
    let standing_out = screening.as_ref().map_or(0, |found| found.selected.len());
    let terms =
        Terms { margin: MARGIN, total_ns: 0, mirrored: false, knobs: setup.decided(standing_out) };
    let profile = match results.is_whole() {
        true => screening::profile(&effects.knobs, &effects.slices, knobs, terms),
        false => Vec::new(),
    };
    let screening = screening.as_ref().map(screening::Screening::shown);
    Ok(ExperimentOutcome { results, screening, profile })
}

// What differs between the ways of trying changes: which slice comes next, and what is said in the
// end. The conduct of a trial (switching, measuring, undoing) is the same for all.

/// A slice to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedSlice {
    /// What it is for.
    pub part: SlicePart,
    pub pair: u32,
    /// Knobs that are on.
    pub on: Vec<usize>,
}

/// The schedule of a trial.
pub trait TrialSchedule {
    /// Length of a slice, whole slots.
    fn slice_ns(&self) -> u64;

    /// Time after a change before it is measured.
    fn settle_ns(&self) -> u64;

    /// The next slice, or nothing more. Knobs without time go to `untried`.
    fn task(
        &mut self,
        slices: &[Slice],
        untried: &mut Untried,
        now_ns: u64,
    ) -> Option<PlannedSlice>;

    /// Looks at the measurements before the next slice; returns a line to print.
    fn evaluate(&mut self, slices: &[Slice], trial: &mut TrialSummary) -> Option<String>;

    /// Reports of all knobs.
    fn analysis(&self, knobs: &[Candidate], slices: &[Slice], untried: &Untried) -> Vec<Reported>;

    /// Whether what helps stays in force.
    fn keeps(&self) -> bool;

    /// What is kept is in force: slices with it may follow.
    fn kept(&mut self, kept: &[usize]);
}

// Options of measuring as knobs: they are switched like changes of the machine, and are none.
// Nothing of them outlives the process, so that no journal is needed.

/// An option of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasureSetting {
    /// `/dev/cpu_dma_latency` held at so many microseconds.
    DmaLatency(u32),
    /// Policy of the measured threads.
    Policy(String),
    /// Priority of the measured threads, SCHED_FIFO or SCHED_RR.
    Priority(u32),
    /// A load in addition to the permanent one.
    Load(LoadSet),
}

impl fmt::Display for MeasureSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DmaLatency(us) => write!(f, "--dma-latency {us}"),
            Self::Policy(policy) => write!(f, "--policy {policy}"),
            Self::Priority(priority) => write!(f, "--priority {priority}"),
            Self::Load(load) => write!(f, "--load {load}"),
        }
    }
}

/// What is set, and what has to be put back.
pub struct HeldSettings<'a> {
    root: &'a Root,
    loads_at: Option<LoadSettings>,
    tids: Vec<u32>,
    latency: Option<idle::HeldLatency>,
    loads: Vec<RunningLoad>,
    /// How threads were scheduled before.
    before: BTreeMap<u32, Scheduling>,
}

impl<'a> HeldSettings<'a> {
    /// Nothing is set yet.
    #[must_use]
    pub fn new(root: &'a Root, loads_at: Option<LoadSettings>) -> Self {
        let (tids, before) = (Vec::new(), BTreeMap::new());
        Self { root, loads_at, tids, latency: None, loads: Vec::new(), before }
    }

    /// The measured threads, once they run.
    pub fn threads(&mut self, tids: &[u32]) {
        self.tids = tids.to_vec();
    }

    /// Makes these be set, and nothing else.
    ///
    /// # Errors
    /// One that cannot be set; those before it stay until the next call.
    pub fn set(&mut self, settings: &[MeasureSetting]) -> anyhow::Result<()> {
        self.clear()?;
        for setting in settings {
            match setting {
                MeasureSetting::DmaLatency(us) => self.latency = Some(idle::hold(self.root, *us)?),
                MeasureSetting::Policy(policy) => {
                    let is_real_time = policy == "fifo" || policy == "rr";
                    let policy = Some(policy.clone());
                    self.schedule(|now| Scheduling {
                        policy: policy.clone(),
                        // An ordinary thread has none, and a real-time one needs one.
                        priority: is_real_time
                            .then(|| now.priority.filter(|p| *p > 0).unwrap_or(1)),
                        ..Scheduling::default()
                    })?;
                }
                MeasureSetting::Priority(priority) => self.schedule(|now| Scheduling {
                    policy: now.policy.clone(),
                    priority: Some(*priority),
                    ..Scheduling::default()
                })?,
                MeasureSetting::Load(load) => {
                    let Some(at) = &self.loads_at else {
                        anyhow::bail!("load {load}: there is no place for loads here")
                    };
                    for spec in load.as_slice() {
                        self.loads.push(Runner::start(spec, at)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn schedule(&mut self, to: impl Fn(&Scheduling) -> Scheduling) -> anyhow::Result<()> {
        anyhow::ensure!(!self.tids.is_empty(), "no measured thread runs yet");
        for &tid in &self.tids {
            let now = LiveTasks.scheduling(tid)?;
            LiveTasks.set(tid, &to(&now))?;
            self.before.entry(tid).or_insert(now);
        }
        Ok(())
    }

    fn clear(&mut self) -> anyhow::Result<()> {
        self.latency = None;
        drop(Runner::stop_all(std::mem::take(&mut self.loads)));
        while let Some((tid, before)) = self.before.pop_first() {
            let put = Scheduling { cpus: None, ..before };
            // A thread that has ended needs nothing.
            match LiveTasks.set(tid, &put) {
                Err(error) if error.raw_os_error() != Some(3) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for HeldSettings<'_> {
    fn drop(&mut self) {
        // The process ends: what could not be put back goes with its threads.
        let _ = self.clear();
    }
}

// How an experiment is laid out: slices, pairs, what it takes, and which difference it can see.

/// Slices of a pilot.
pub const PILOT: u32 = 8;

/// Longest time after a change that is not measured.
const SETTLE_MAX_NS: u64 = 5_000_000_000;

/// Fewest wake-ups of a slice: p99.9 of fewer is their maximum.
const WAKE_UPS_MIN: u64 = 1000;

/// Time after a change that is not measured before slices of some length.
pub fn settle_ns(slice_ns: u64) -> u64 {
    (slice_ns / 12).clamp(SLOT_NS, SETTLE_MAX_NS).next_multiple_of(SLOT_NS)
}

/// Layout of an experiment: knobs, pairs and the length of its slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentSetup {
    pub knobs: usize,
    /// Pairs of slices for each knob.
    pub pairs: usize,
    /// Length of a slice, whole slots.
    pub slice_ns: u64,
    /// Time after a change that is not measured.
    pub settle_ns: u64,
    /// One knob after the other, without a screening.
    pub one_by_one: bool,
}

impl ExperimentSetup {
    /// Checks a request and makes the set-up of the experiment.
    ///
    /// # Errors
    /// Usage: too many knobs, pairs that decide nothing, slices too short for p99.9.
    pub fn new(
        knobs: usize,
        pairs: usize,
        slice_ns: u64,
        one_by_one: bool,
        wake_ups_per_s: f64,
    ) -> anyhow::Result<Self> {
        if knobs > FACTORS_MAX && !one_by_one {
            return Err(usage(format!(
                "{knobs} knobs: {FACTORS_MAX} at most are tried at once; name those that you \
                 suspect, or give --one-by-one"
            )));
        }
        // The result of a screening is not known yet: at least one knob.
        let least = paired::pairs_least(if one_by_one { knobs } else { 1 }, LEVEL);
        if !(least..=PAIRS_MAX).contains(&pairs) {
            return Err(usage(format!(
                "--pairs {pairs}: from {least}, below which nothing can be decided, to {PAIRS_MAX}"
            )));
        }
        let slice_ns = slice_ns.next_multiple_of(SLOT_NS);
        if slice_ns as f64 / 1e9 * wake_ups_per_s < WAKE_UPS_MIN as f64 {
            let least_s = WAKE_UPS_MIN as f64 / wake_ups_per_s;
            return Err(usage(format!(
                "--slice {}: p99.9 takes {WAKE_UPS_MIN} wake-ups, that is {} here",
                units::duration(slice_ns),
                units::duration((least_s * 1e9).ceil() as u64)
            )));
        }
        Ok(Self { knobs, pairs, slice_ns, settle_ns: settle_ns(slice_ns), one_by_one })
    }

    /// The design of the screening; `None`: there is none.
    pub fn design(&self, seed: u64) -> Option<rtproof_stats::screening::Design> {
        rtproof_stats::screening::design(seed, self.knobs)
            .filter(|design| design.kind != DesignKind::Single && !self.one_by_one)
    }

    /// Pairs of the screening.
    fn screened(&self) -> usize {
        self.design(0).map_or(0, |design| design.rows.len())
    }

    /// Pairs that follow if so many knobs are selected.
    fn confirmed(&self, standing_out: usize) -> usize {
        match self.screened() {
            0 => self.pairs * self.knobs,
            _ => self.pairs * (standing_out + usize::from(standing_out > 1)),
        }
    }

    /// Time of the slices if so many knobs are selected.
    pub fn needs_ns(&self, standing_out: usize) -> u64 {
        let slices = 2 * (self.screened() + self.confirmed(standing_out)) as u64;
        // A change, and waiting for the next slot and for the last slots of a slice.
        let each_ns = self.slice_ns + self.settle_ns + SLOT_NS + SLOT_NS / 2;
        LEAD_NS + slices * each_ns
    }

    /// What the pilot takes.
    pub fn pilot_ns(&self) -> u64 {
        LEAD_NS + u64::from(PILOT) * (self.slice_ns + SLOT_NS)
    }

    /// Time after which a run that does not come to its end is ended.
    pub fn most_ns(&self) -> u64 {
        let needs_ns = self.needs_ns(self.knobs);
        (needs_ns + needs_ns / 2 + 30_000_000_000).next_multiple_of(1_000_000_000)
    }

    /// Knobs that are decided in the end where so many stand out, and all of them together.
    pub fn decided(&self, standing_out: usize) -> usize {
        let arms = match self.screened() {
            0 => self.knobs,
            _ => standing_out + usize::from(standing_out > 1),
        };
        arms.max(1)
    }

    /// Smallest change of p99.9 that is shown to be larger than the margin four times in five, as a
    /// share downwards. `None`: none.
    pub fn detectable(&self, spread: Spread, standing_out: usize) -> Option<f64> {
        let margin = Margin::of_share(MARGIN).mirrored();
        paired::detectable(spread, self.pairs, self.decided(standing_out), LEVEL, margin)
            .map(|least| -f64::exp_m1(-least))
    }

    /// What is going to happen.
    pub fn sentence(&self, seed: u64) -> String {
        let (slice, pairs) = (units::duration(self.slice_ns), self.pairs);
        let knobs = units::count(self.knobs, "knob");
        let needs = |n| units::duration(self.needs_ns(n));
        match self.design(seed) {
            None => format!(
                "{knobs}: {pairs} pairs of slices of {slice} each, on and off in random order. It \
                 takes {}.",
                needs(self.knobs)
            ),
            Some(design) => format!(
                "{knobs} at once in {} pairs of slices of {slice} ({}, in random order), then \
                 {pairs} pairs for each that stands out. It takes {} where none does, {} where two \
                 do, {} at most.",
                design.rows.len(),
                match design.kind {
                    DesignKind::Factorial => "every combination and its mirror image",
                    _ => "Plackett and Burman's design folded over",
                },
                needs(0),
                needs(2.min(self.knobs)),
                needs(self.knobs)
            ),
        }
    }
}

#[cfg(test)]
mod results_tests {
    use rtproof_record::run::EndReason;

    use super::*;

    #[test]
    fn a_thread_that_ended_early_is_why() {
        let mut run = rtproof_judge::testing::run(rtproof_record::BudgetClass::Hundred, 2, 2, &[]);
        run.meta.ended = Some(RunEnd::Complete);
        assert_eq!(cut_short(&run), None);
        let cpu = run.threads[0].info.cpu;
        run.threads[0].end.as_mut().expect("an end").reason = EndReason::Starved;
        let why = cut_short(&run).expect("a reason");
        assert!(why.starts_with(&format!("the thread of CPU {cpu} ended itself")), "{why}");
    }
}

#[cfg(test)]
mod setup_tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn setup(knobs: usize, pairs: usize, slice_ns: u64) -> anyhow::Result<ExperimentSetup> {
        ExperimentSetup::new(knobs, pairs, slice_ns, false, 2000.0)
    }

    #[test]
    fn the_needed_time_is_reported() {
        let one = setup(1, 12, 60 * S).expect("a set-up");
        assert_eq!((one.settle_ns, one.design(1)), (5 * S, None));
        // 24 slices of a minute with five seconds each.
        assert!((26 * 60 * S..27 * 60 * S).contains(&one.needs_ns(1)), "{}", one.needs_ns(1));
        assert!(one.sentence(1).contains("12 pairs of slices of 1 min"), "{}", one.sentence(1));
        let many = setup(11, 12, 2 * S).expect("a set-up");
        assert_eq!((many.decided(0), many.decided(1), many.decided(3)), (1, 1, 4));
        assert!(many.needs_ns(0) < many.needs_ns(1) && many.most_ns() > many.needs_ns(11));
        let text = many.sentence(1);
        assert!(
            text.contains("11 knobs at once in 12 pairs") && text.contains("Plackett"),
            "{text}"
        );
        let apart = ExperimentSetup::new(3, 10, 2 * S, true, 2000.0).expect("a set-up");
        assert_eq!((apart.design(1), apart.decided(3)), (None, 3));
    }

    #[test]
    fn more_pairs_and_fewer_questions_see_more() {
        let of = |pairs, standing_out| {
            setup(11, pairs, 2 * S)
                .expect("a set-up")
                .detectable(Spread::assumed(0.1), standing_out)
        };
        assert!(of(20, 1) < of(12, 1) && of(12, 1) < of(12, 4));
        assert_eq!(of(6, 3), None, "six pairs decide on one knob, not on four");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |knobs, pairs, slice_ns| {
            setup(knobs, pairs, slice_ns).expect_err("refused").to_string()
        };
        assert!(refused(20, 12, S).contains("19 at most"));
        assert!(refused(1, 5, S).contains("--pairs 5: from 6"));
        assert!(refused(1, 12, S / 5).contains("1000 wake-ups, that is 0.5 s"));
    }
}
