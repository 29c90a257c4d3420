//! An experiment whose unit is the boot: the machine is booted with and without parameters of the
//! kernel, in an order that cancels drift; one slice of time is measured in each boot. Slices of
//! one boot are no replicates: what a boot lays out in memory stays until the next.

#[cfg(test)]
mod staged_tests;

use std::{
    collections::VecDeque,
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{
    Root,
    boot::{Word, cmdline},
    door::usage,
    tune::{Machine, Switching},
};
use rtproof_judge::units;
use rtproof_record::{
    Effects,
    effects::{
        KnobResult as Reported, Slice, SlicePart, SliceStatistic, TrialDesign, TrialSummary,
    },
};
use rtproof_results::percent;
use rtproof_stats::{
    paired::{self, Margin, Spread},
    screening,
};

use super::analyse::{LEVEL, MARGIN, Terms, Untried, ppm};
use super::factors::Candidate;
use super::screening::Screening;
use super::{ExperimentSetup, PlannedSlice, TrialSchedule, analyse, settle_ns};
use crate::tune::{self, Once, boot as words};

/// Title of the journals of the boot entry.
pub const TITLE: &str = "experiment boots";

/// Default spread of p99.9 from boot to boot.
pub const SPREAD: f64 = 0.1;

/// Whether each boot is one with the parameters: blocks of four, with-without-without-with or the
/// other way round by a coin, so that what drifts evenly is in both arms alike.
pub fn order(seed: u64, per_arm: usize) -> Vec<bool> {
    let blocks = paired::order(seed, per_arm.div_ceil(2));
    let block = |first: bool| [first, !first, !first, first];
    let mut all: Vec<bool> = blocks.into_iter().flat_map(block).collect();
    // An odd number of pairs: the last block is half of one.
    all.truncate(2 * per_arm);
    all
}

/// What is going to happen, and what can be seen.
pub fn sentence(state: &BootsState, spread: f64) -> String {
    let (boots, pairs) = (state.order.len(), state.order.len() / 2);
    let margin = Margin::of_share(MARGIN).mirrored();
    let assumed = Spread::assumed(spread.ln_1p());
    let least = paired::detectable(assumed, pairs, 1, LEVEL, margin);
    let seen = least.map_or_else(
        || {
            format!(
                "{pairs} pairs decide nothing at 5 %: only their estimates are reported; --boots \
                 {} decides",
                paired::PAIRS_MIN
            )
        },
        |least| {
            format!(
                "assumed, not measured: p99.9 moves by {} from boot to boot; then a change by −{} \
                 is found four times in five, a larger one more often",
                percent(spread),
                percent(-f64::exp_m1(-least))
            )
        },
    );
    format!(
        "{boots} boots, {} with and {} without {}, one slice of {} in each: {} and the time that \
         {boots} boots take. {seen}.",
        boots / 2,
        boots / 2,
        state.words.join(" "),
        units::duration(state.slice_ns),
        units::duration(boots as u64 * (state.slice_ns + state.settle_ns)),
    )
}

/// Whether the running kernel has the parameters.
pub fn has_words(root: &Root, asked: &[String]) -> bool {
    let line = root.trimmed("/proc/cmdline");
    let running = line.value().map(|line| cmdline::split(line)).unwrap_or_default();
    asked.iter().all(|word| running.iter().any(|token| token.text == *word))
}

/// Chooses the next boot: the entry with the parameters once, or the one that boots anyhow. What
/// was chosen before is undone first. Returns the argument of reboot(2).
///
/// # Errors
/// A boot loader that cannot be set; a change that could not be made or undone.
pub fn choose(
    machine: &Machine<'_>,
    asked: &[String],
    with: bool,
) -> anyhow::Result<Option<String>> {
    take_back(machine)?;
    if !with {
        return Ok(None);
    }
    let words: Vec<Word> = asked.iter().map(Word::set).collect();
    let title = format!("{TITLE} {}", asked.join(" "));
    Once { title: &title, kernel: None, words: &words }.arm(machine)
}

/// Undoes the boot entry of the experiment.
///
/// # Errors
/// Something could not be put back: it stays in the journal.
pub fn take_back(machine: &Machine<'_>) -> anyhow::Result<()> {
    tune::undo(machine, TITLE)
}

/// Words as the boot loader's entry takes them.
///
/// # Errors
/// Usage: an invalid word.
pub fn parse_words(texts: &[String]) -> anyhow::Result<Vec<String>> {
    texts.iter().map(|text| Ok(words::word(text)?.parameter)).collect()
}

/// What the boots say.
pub fn effects(state: &BootsState) -> Effects {
    let slices = state.boots.iter().enumerate().map(|(number, boot)| boot.slice(number));
    let slices: Vec<_> = slices.collect();
    let pairs = state.order.len() / 2;
    let knob = Candidate {
        name: state.words.join(" "),
        impact: rtproof_judge::Impact::default(),
        kind: Switching::Toggled,
        now: Vec::new(),
        later: Vec::new(),
        settings: Vec::new(),
    };
    let boots_ns = state.order.len() as u64 * (state.slice_ns + state.settle_ns);
    let terms = Terms { margin: MARGIN, total_ns: boots_ns, mirrored: false, knobs: 1 };
    let knobs = analyse::analyse(&[knob], &slices, &Untried::new(), terms);
    let trial = TrialSummary {
        seed: state.seed,
        design: TrialDesign::Boots,
        pairs: u32::try_from(pairs).unwrap_or(u32::MAX),
        slice_ns: state.slice_ns,
        margin_ppm: ppm(MARGIN),
        level_ppb: (LEVEL * 1e9) as u64,
        detectable_ppm: None,
    };
    Effects { trial, knobs, slices }
}

impl Boot {
    /// As a slice of a pair of boots.
    fn slice(&self, number: usize) -> Slice {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Slice {
            number,
            part: SlicePart::Pair,
            pair: number / 2,
            on: if self.with { vec![0] } else { Vec::new() },
            from_ns: 0,
            to_ns: self.to_ns,
            scheduled: self.scheduled,
            p999_ns: self.p999_ns,
            max_ns: self.max_ns,
            missed: self.missed,
        }
    }
}

// What an experiment over boots remembers from boot to boot: a file of its own under /var/lib,
// replaced as a whole, so that a power cut leaves the old one or the new one.

/// Version of the file.
const SCHEMA: &str = "rtproof/experiment-state/1";

/// Folder of experiments, below the root.
const FOLDER: &str = "var/lib/rtproof/experiment";

/// Largest file read: a thousand boots are below 1 MiB.
const BYTES_MAX: u64 = 4 << 20;

/// An experiment over boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootsState {
    schema: String,
    /// Seed of the order.
    pub seed: u64,
    /// Parameters that are tried, all together.
    pub words: Vec<String>,
    /// Whether each boot is one with them.
    pub order: Vec<bool>,
    /// Length of the slice of a boot.
    pub slice_ns: u64,
    /// Time at its start that is not measured.
    pub settle_ns: u64,
    /// Further arguments of `prove`.
    pub args: Vec<String>,
    /// The boot that was chosen last is to be another one than this.
    pub last_boot_id: String,
    /// Boots that were measured.
    pub boots: Vec<Boot>,
}

/// A boot that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    pub boot_id: String,
    /// Whether the boot had the parameters.
    pub with: bool,
    pub record: String,
    /// End of the slice.
    pub to_ns: u64,
    /// Wake-ups that were due.
    // The name in files of earlier versions.
    #[serde(alias = "n")]
    pub scheduled: u64,
    /// p99.9 of those.
    pub p999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Wake-ups that were missed.
    pub missed: u64,
}

impl BootsState {
    /// An experiment that begins.
    pub fn new(
        seed: u64,
        words: Vec<String>,
        order: Vec<bool>,
        slice_ns: u64,
        args: Vec<String>,
    ) -> Self {
        Self {
            schema: SCHEMA.into(),
            seed,
            words,
            order,
            slice_ns,
            settle_ns: settle_ns(slice_ns),
            args,
            last_boot_id: String::new(),
            boots: Vec::new(),
        }
    }

    /// Whether the boot that comes next is one with the parameters; `None`: none comes.
    pub fn next(&self) -> Option<bool> {
        self.order.get(self.boots.len()).copied()
    }

    /// Reads the state of the machine in `root`; `None`: no experiment is under way.
    ///
    /// # Errors
    /// A file that cannot be read or is damaged.
    pub fn read(root: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let path = folder(root).join("state.json");
        let text = match open(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("{}: cannot be read", path.display()));
            }
        };
        let state: Self = serde_json::from_slice(&text).with_context(|| {
            format!("{}: damaged; rtproof experiment end gives it up", path.display())
        })?;
        anyhow::ensure!(
            state.schema == SCHEMA && state.boots.len() <= state.order.len(),
            "{}: not a state of this version, expected {SCHEMA}; rtproof experiment end gives it \
             up",
            path.display()
        );
        Ok(Some(state))
    }

    /// The state of an experiment that is under way.
    ///
    /// # Errors
    /// Usage: there is none.
    pub fn of(root: Option<&Path>) -> anyhow::Result<Self> {
        Self::read(root)?.ok_or_else(|| {
            usage("no experiment over boots is under way; begin one: rtproof experiment boots")
        })
    }

    pub fn write(&self, root: Option<&Path>) -> anyhow::Result<()> {
        let folder = folder(root);
        let path = folder.join("state.json");
        let text = serde_json::to_vec_pretty(self)?;
        let temporary = folder.join("state.json.new");
        let write = || -> io::Result<()> {
            fs::create_dir_all(&folder)?;
            let mut file = rtproof_host::door::create_anew(&temporary, 0o644)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            #[expect(clippy::disallowed_methods, reason = "rtproof's own folder")]
            fs::File::open(&folder)?.sync_all()
        };
        write().with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Forgets the experiment; its records stay.
    pub fn forget(root: Option<&Path>) -> anyhow::Result<()> {
        let path = folder(root).join("state.json");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{}: cannot be removed", path.display()))
            }
            _ => Ok(()),
        }
    }
}

pub fn folder(root: Option<&Path>) -> PathBuf {
    root.unwrap_or_else(|| Path::new("/")).join(FOLDER)
}

fn open(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    rtproof_host::trusted::open(path)?.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

// The schedule of an experiment: all knobs at once, then pairs of what stood out, beside the
// others that help. Those pairs alone decide; the screening has not seen them.

/// Stirred into the seed: the pairs are in another order than the screening.
const PAIRS_SEED: u64 = 0x5eed_0fa1_1bac_0001;

/// An experiment under way.
pub struct StagedExperiment {
    setup: ExperimentSetup,
    seed: u64,
    names: Vec<String>,
    /// What is screened, and the design; `None`: nothing is screened.
    design: Option<screening::Design>,
    /// What the screening found, once it is over.
    found: Option<Screening>,
    tasks: VecDeque<PlannedSlice>,
}

impl StagedExperiment {
    /// An experiment with `knobs`, as its record has it. `seed`: below 2^63; `detectable`: the
    /// share that was said to be seen.
    pub fn new(
        knobs: &[Candidate],
        setup: ExperimentSetup,
        seed: u64,
        detectable: Option<f64>,
    ) -> (Self, TrialSummary) {
        let design = setup.design(seed);
        let trial = TrialSummary {
            seed,
            design: if design.is_some() { TrialDesign::Screened } else { TrialDesign::Single },
            pairs: u32::try_from(setup.pairs).unwrap_or(u32::MAX),
            slice_ns: setup.slice_ns,
            margin_ppm: ppm(MARGIN),
            level_ppb: (LEVEL * 1e9) as u64,
            detectable_ppm: detectable.map(|share| ppm(share).max(1)),
        };
        let names = knobs.iter().map(|knob| knob.name.clone()).collect();
        let mut staged = Self { setup, seed, names, design, found: None, tasks: VecDeque::new() };
        match staged.design.clone() {
            Some(design) => staged.screen(&design),
            None => {
                let all: Vec<Arm> = (0..knobs.len()).map(|at| Arm::with_others(at, &[])).collect();
                staged.confirm(&all, 0);
            }
        }
        (staged, trial)
    }

    fn screen(&mut self, design: &screening::Design) {
        for (number, pair) in (0..).zip(0..design.rows.len()) {
            let slices = design.slices(pair).unwrap_or_default();
            self.tasks.extend(slices.map(|on| PlannedSlice {
                part: SlicePart::Screen,
                pair: number,
                on,
            }));
        }
    }

    /// Pairs of each arm in turns, so that what drifts is spread over them.
    fn confirm(&mut self, arms: &[Arm], first: usize) {
        let firsts = paired::order(self.seed ^ PAIRS_SEED, self.setup.pairs * arms.len());
        for (turn, (arm, on_first)) in arms.iter().cycle().zip(firsts).enumerate() {
            let pair = u32::try_from(first + turn).unwrap_or(u32::MAX);
            let of = |on: &Vec<usize>| PlannedSlice { part: arm.part, pair, on: on.clone() };
            let (with, without) = (of(&arm.with), of(&arm.without));
            self.tasks.extend(if on_first { [with, without] } else { [without, with] });
        }
    }
}

/// Two conditions that are compared.
struct Arm {
    part: SlicePart,
    with: Vec<usize>,
    without: Vec<usize>,
}

impl Arm {
    /// A knob beside others.
    fn with_others(knob: usize, others: &[usize]) -> Self {
        let without: Vec<usize> = others.iter().copied().filter(|&at| at != knob).collect();
        let mut with: Vec<usize> = without.iter().copied().chain([knob]).collect();
        with.sort_unstable();
        Self { part: SlicePart::Pair, with, without }
    }
}

impl TrialSchedule for StagedExperiment {
    fn slice_ns(&self) -> u64 {
        self.setup.slice_ns
    }

    fn settle_ns(&self) -> u64 {
        self.setup.settle_ns
    }

    fn task(&mut self, _: &[Slice], _: &mut Untried, _: u64) -> Option<PlannedSlice> {
        self.tasks.pop_front()
    }

    /// After the screening: what stands out gets pairs of its own.
    fn evaluate(&mut self, slices: &[Slice], _: &mut TrialSummary) -> Option<String> {
        let design = self.design.as_ref().filter(|_| self.found.is_none())?;
        if !self.tasks.is_empty() {
            return None;
        }
        let found = super::screening::screened(design, slices);
        let mut arms: Vec<Arm> =
            found.selected.iter().map(|&at| Arm::with_others(at, &found.lowering)).collect();
        if found.lowering.len() > 1 {
            let with = found.lowering.clone();
            arms.push(Arm { part: SlicePart::Together, with, without: Vec::new() });
        }
        let first = design.rows.len();
        let names: Vec<&str> = found.selected.iter().map(|&at| self.names[at].as_str()).collect();
        let text = match names.len() {
            0 => "of all at once none stands out".into(),
            n => format!(
                "of all at once {n} {} out: {}; now {} pairs of each",
                if n == 1 { "stands" } else { "stand" },
                names.join(", "),
                self.setup.pairs
            ),
        };
        self.found = Some(found);
        self.confirm(&arms, first);
        Some(text)
    }

    fn analysis(&self, knobs: &[Candidate], slices: &[Slice], untried: &Untried) -> Vec<Reported> {
        let screening =
            self.design.as_ref().map(|design| super::screening::screened(design, slices));
        let standing_out = screening.as_ref().map_or(0, |found| found.selected.len());
        let terms = Terms {
            margin: MARGIN,
            total_ns: self.setup.needs_ns(standing_out),
            mirrored: false,
            knobs: self.setup.decided(standing_out),
        };
        super::screening::report_knobs(knobs, slices, untried, terms, screening.as_ref())
    }

    fn keeps(&self) -> bool {
        false
    }

    fn kept(&mut self, _: &[usize]) {}
}

/// The schedule of a pilot: slices in which nothing is changed.
pub struct Pilot {
    slice_ns: u64,
    /// Time from the start that is not measured.
    settle_ns: u64,
    left: u32,
}

impl Pilot {
    /// So many slices, and a trial of nothing.
    pub fn new(slice_ns: u64, slices: u32) -> (Self, TrialSummary) {
        let trial = TrialSummary {
            seed: 0,
            design: TrialDesign::Single,
            pairs: 0,
            slice_ns,
            margin_ppm: ppm(MARGIN),
            level_ppb: (LEVEL * 1e9) as u64,
            detectable_ppm: None,
        };
        (Self { slice_ns, settle_ns: 0, left: slices }, trial)
    }

    /// One slice after so long.
    pub fn settled(slice_ns: u64, settle_ns: u64) -> (Self, TrialSummary) {
        let (pilot, trial) = Self::new(slice_ns, 1);
        (Self { settle_ns, ..pilot }, trial)
    }
}

impl TrialSchedule for Pilot {
    fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    fn settle_ns(&self) -> u64 {
        self.settle_ns
    }

    fn task(&mut self, _: &[Slice], _: &mut Untried, _: u64) -> Option<PlannedSlice> {
        self.left = self.left.checked_sub(1)?;
        // Beside nothing that is on: a pair whose other slice is another boot's.
        let part = if self.settle_ns > 0 { SlicePart::Pair } else { SlicePart::Before };
        Some(PlannedSlice { part, pair: 0, on: Vec::new() })
    }

    fn evaluate(&mut self, _: &[Slice], _: &mut TrialSummary) -> Option<String> {
        None
    }

    fn analysis(&self, _: &[Candidate], _: &[Slice], _: &Untried) -> Vec<Reported> {
        Vec::new()
    }

    fn keeps(&self) -> bool {
        false
    }

    fn kept(&mut self, _: &[usize]) {}
}

/// Median of p99.9 of slices, for people.
pub fn median(slices: &[Slice]) -> Option<u64> {
    analyse::median_of(SliceStatistic::P999, slices.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(per_arm: usize, with_ns: u64) -> BootsState {
        let order = order(7, per_arm);
        let boots = order.iter().enumerate().map(|(at, &with)| Boot {
            boot_id: at.to_string(),
            with,
            record: String::new(),
            to_ns: 1,
            scheduled: 100_000,
            // Drifts upwards from boot to boot.
            p999_ns: Some(if with { with_ns } else { 100_000 } + 500 * at as u64),
            max_ns: Some(200_000 + 997 * (at as u64 * 7 % 5)),
            missed: 0,
        });
        let boots = boots.collect();
        let words = vec!["nohz_full=2-3".into()];
        let mut state = BootsState::new(7, words, order, 60_000_000_000, Vec::new());
        state.boots = boots;
        state
    }

    #[test]
    fn both_arms_alike_and_drift_in_both() {
        for per_arm in [6, 7, 8, 12] {
            let order = order(3, per_arm);
            assert_eq!(order.len(), 2 * per_arm);
            assert_eq!(order.iter().filter(|&&with| with).count(), per_arm);
            for pair in order.chunks(2) {
                assert_ne!(pair[0], pair[1], "a pair has one of each");
            }
            for block in order.chunks_exact(4) {
                assert!(block[0] == block[3] && block[1] == block[2], "ABBA or BAAB: {block:?}");
            }
        }
        assert!((0..20).map(|seed| order(seed, 6)).collect::<Vec<_>>().iter().any(|o| o[0]));
    }

    #[test]
    fn effects_of_boots() {
        use rtproof_record::effects::Decision;
        let helps = effects(&state(8, 60_000));
        assert_eq!(helps.knobs[0].decision, Decision::Helps, "{:?}", helps.knobs[0]);
        assert_eq!((helps.trial.design, helps.knobs[0].effects[0].pairs), (TrialDesign::Boots, 8));
        let same = effects(&state(8, 100_000));
        assert_ne!(same.knobs[0].decision, Decision::Helps);
        let text = sentence(&state(6, 1), SPREAD);
        assert!(text.contains("12 boots, 6 with and 6 without nohz_full=2-3"), "{text}");
        let text_of = |per_arm| sentence(&state(per_arm, 1), SPREAD);
        assert!(text.contains("four times in five"), "six decide: {text}");
        assert!(text_of(5).contains("5 pairs decide nothing at 5 %"), "{}", text_of(5));
        let text = sentence(&state(8, 1), SPREAD);
        assert!(text.contains("assumed, not measured: p99.9 moves by 10 %"), "{text}");
    }
}

#[cfg(test)]
mod state_tests {
    use super::*;

    #[test]
    fn written_read_and_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Some(folder.path());
        assert_eq!(BootsState::read(root).expect("nothing"), None);
        assert!(BootsState::of(root).expect_err("none").is::<rtproof_host::door::UsageError>());
        let words = vec!["nohz_full=2-3".to_owned()];
        let state = BootsState::new(7, words, vec![true, false], 60_000_000_000, Vec::new());
        assert_eq!((state.next(), state.settle_ns), (Some(true), 5_000_000_000));
        state.write(root).expect("written");
        assert_eq!(BootsState::of(root).expect("a state"), state);
        let path = super::folder(root).join("state.json");
        #[expect(clippy::disallowed_methods, reason = "the test's own file")]
        for damaged in ["", "[]", "{\"schema\": \"other\"}", "\0"] {
            fs::write(&path, damaged).expect("written");
            let error = BootsState::of(root).expect_err(damaged).to_string();
            assert!(error.contains("state.json") && error.contains("experiment end"), "{error}");
        }
        BootsState::forget(root).expect("forgotten");
        BootsState::forget(root).expect("nothing to forget");
        assert_eq!(BootsState::read(root).expect("nothing"), None);
    }

    #[test]
    fn a_boot_of_an_earlier_version_is_read() {
        let text = r#"{"boot_id": "a", "with": true, "record": "a.rtproof", "to_ns": 9, "n": 5,
            "p999_ns": 1, "max_ns": 2, "missed": 3}"#;
        let boot: Boot = serde_json::from_str(text).expect("a boot");
        assert_eq!((boot.scheduled, boot.missed), (5, 3));
        let again = serde_json::to_value(&boot).expect("JSON");
        assert_eq!((again["scheduled"].as_u64(), again.get("n")), (Some(5), None));
    }
}
