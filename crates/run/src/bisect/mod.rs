//! `rtproof kernel bisect`: the first commit, or the smallest set of options, with which a kernel
//! begins to show something. Each kernel is built, booted and tested: under counted instructions in
//! a guest, or once on this machine. What was done is kept, so that the work goes on where it was
//! cut off.

mod boots;
mod commits;
mod trial;

pub use boots::state_file;
pub use trial::Criterion;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use boots::{BisectBoots, HeldState, Pending, RunningBoot};
use commits::{NextCommit, Pair, Repository};
use trial::{BisectLimits, Rig};

use rtproof_host::Root;
use rtproof_kernel::{
    KernelError,
    boot::{BootRequest, image},
    source,
    tool::{Log, OnProgress, WorkProgress},
};
use rtproof_results::kernel::{
    BISECT_SCHEMA, BisectStep, BisectedIn, BisectedOver, KernelBisected, StepOutcome,
};

use crate::tune::kernel::InitrdChoice;

/// Characters of a subject in a line of progress.
const TITLE_MAX: usize = 30;

/// Takes the folder of a bisection: a new one, or one that goes on.
///
/// # Errors
/// No such ends or source, a program is missing, the folder holds another bisection or another
/// process works there.
pub fn open<'a>(
    request: &'a BisectRequest,
    observer: OnProgress<'a>,
) -> Result<Bisection<'a>, KernelError> {
    let ends = match &request.range {
        BisectRange::Commits { good, bad, .. } => {
            [commits::commit(&request.source, good)?, commits::commit(&request.source, bad)?]
        }
        BisectRange::Options { good, bad } => [digest_of(good)?, digest_of(bad)?],
    };
    let held = HeldState::open(&request.place, arguments(request, &ends)?)?;
    let watch = BisectWatch::new(observer);
    let tree = match &request.range {
        BisectRange::Commits { .. } => request.place.join("tree"),
        BisectRange::Options { .. } => {
            watch.label("source".into());
            let mut observer = |progress: &WorkProgress| watch.observe(progress);
            source::open(&request.source, &request.place, None, &mut observer)?.path
        }
    };
    let rig = Rc::new(Rig { request, make: trial::make(request, tree), watch });
    rig.make.check_tools()?;
    let boots = request.trial.as_ref().map(|trial| BisectBoots::of(trial, &request.place));
    Ok(Bisection { ends, held, rig, boots, limits: BisectLimits::default() })
}

/// Subject of a bisection: with another subject it is another bisection.
fn arguments(
    request: &BisectRequest,
    ends: &[String; 2],
) -> Result<BTreeMap<String, String>, KernelError> {
    let boot = &request.boot;
    #[expect(clippy::disallowed_methods, reason = "the source that the user names")]
    let source = request.source.canonicalize().unwrap_or_else(|_| request.source.clone());
    let binary = match &boot.binary {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(KernelError::io("/proc/self/exe"))?,
    };
    let mut all = vec![
        ("source", source.display().to_string()),
        ("good end", ends[0].clone()),
        ("bad end", ends[1].clone()),
        ("test", request.criterion.text()),
        ("--set", request.variables.join(" ")),
        ("--append", boot.append.clone()),
        ("--memory", boot.memory_mib.to_string()),
        ("rtproof that tests, SHA-256", digest_of(&binary)?),
    ];
    if let Some(trial) = &request.trial {
        let id = trial.root.trimmed("/etc/machine-id");
        let id = id.value().map_or("unknown", String::as_str);
        all.push(("--trial-boots, machine", id.to_owned()));
    }
    match &request.criterion {
        // What is in the guest decides the answer.
        Criterion::Command(_) => {
            let files = boot.programs.iter().chain(&boot.files);
            for path in files {
                all.push(("taken along", format!("{} {}", path.display(), digest_of(path)?)));
            }
        }
        _ => all.push(("--prove", request.prove.clone())),
    }
    if let BisectRange::Commits { config, .. } = &request.range {
        all.push(("--config, SHA-256", digest_of(config)?));
    }
    let mut map: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in all {
        let text = map.entry(name.to_owned()).or_default();
        *text = if text.is_empty() { value } else { format!("{text}, {value}") };
    }
    Ok(map)
}

fn digest_of(path: &Path) -> Result<String, KernelError> {
    let bytes = rtproof_host::door::read_bytes(path, FILE_MAX).map_err(KernelError::io(path))?;
    Ok(commits::digest(&bytes))
}

/// Bytes of a file that is compared by its digest.
const FILE_MAX: u64 = 1 << 30;

/// One that is under way, and the folder that it holds.
pub struct Bisection<'a> {
    ends: [String; 2],
    held: HeldState,
    rig: Rc<Rig<'a>>,
    boots: Option<BisectBoots<'a>>,
    limits: BisectLimits,
}

impl Bisection<'_> {
    /// Does all that this boot of the machine can do.
    ///
    /// # Errors
    /// The ends are not as stated, this machine lacks something, the user ended it. With trial
    /// boots [`KernelError::Reboots`], which is no failure: this machine has to boot, and the same
    /// request goes on after it.
    pub fn run(&mut self) -> Result<KernelBisected, KernelError> {
        let outcome = self.work();
        if let Err(KernelError::Reboots(_)) = outcome {
            return outcome;
        }
        let steps = self.held.state.steps.len() as u64;
        outcome.map_err(|error| match self.rig.watch.is_stopped("end", Duration::ZERO) {
            true => KernelError::path(
                &self.rig.request.place,
                format!(
                    "ended by a signal after {}; the same command goes on from there",
                    rtproof_judge::units::count(steps, "step")
                ),
            ),
            false => error,
        })
    }

    fn work(&mut self) -> Result<KernelBisected, KernelError> {
        if self.held.state.is_building {
            trial::sweep(&self.rig.make.objects)?;
        }
        self.booted()?;
        let ends = self.ends.clone();
        match &self.rig.request.range {
            BisectRange::Commits { config, .. } => self.commits(&ends, config),
            BisectRange::Options { good, bad } => self.options(good, bad),
        }
    }

    /// What the boot that runs is for. Returns in the machine's own kernel, with nothing waiting.
    fn booted(&mut self) -> Result<(), KernelError> {
        let Some(boots) = &self.boots else { return Ok(()) };
        let pending = self.held.state.pending.clone();
        let place = &self.rig.request.place;
        match (boots.running(pending.as_ref())?, pending) {
            (RunningBoot::Other, None) => {
                boots.undo()?;
                if self.held.state.steps.is_empty() { boots.check() } else { Ok(()) }
            }
            (_, None) => Err(boots::next(place, None, None, &self.held.state.steps)),
            (RunningBoot::Trial, Some(Pending { mut step, .. })) => {
                if step.number > 2 {
                    self.check_ends()?;
                }
                let title: String = step.title.chars().take(TITLE_MAX).collect();
                self.rig.watch.label(format!("step {}, {title}", step.number));
                self.rig.test(&mut step, self.boots.as_ref())?;
                conclude(&mut self.held, &self.rig, self.limits, step)?;
                Err(boots::next(&self.rig.request.place, None, None, &self.held.state.steps))
            }
            // Chosen again: a killed process may have stopped before it.
            (RunningBoot::Chosen, Some(pending)) => Err(self.chosen(pending)?),
            (_, Some(Pending { mut step, .. })) => {
                boots.undo()?;
                if step.number > 2 {
                    self.check_ends()?;
                }
                let is_begun = Path::new(&step.folder).join("boot").exists();
                step.why = match is_begun {
                    true => "not tested: the machine was started again after the test had begun",
                    false => {
                        "not tested: it was to boot, and another kernel runs: it did not come up, \
                         or was not booted"
                    }
                }
                .to_owned();
                conclude(&mut self.held, &self.rig, self.limits, step).map(drop)
            }
        }
    }

    /// Chooses a kernel for the next boot: the reboot comes next.
    fn chosen(&mut self, pending: Pending) -> Result<KernelError, KernelError> {
        let Some(boots) = &self.boots else {
            return Err(KernelError::path(&self.rig.request.place, "no trial boots"));
        };
        let request = self.rig.request;
        let number = pending.step.number;
        self.held.waits(Some(pending.clone()))?;
        let _ = self.rig.watch.is_stopped("boot entry", Duration::ZERO);
        let argument = boots.arm(&self.rig.make.objects, &pending)?;
        Ok(boots::next(&request.place, Some(number), argument, &self.held.state.steps))
    }

    /// Builds what is configured, and tests it or lets it boot.
    fn step(
        &mut self,
        id: String,
        title: String,
        repeats: Option<usize>,
    ) -> Result<StepOutcome, KernelError> {
        self.held.building(true)?;
        let (mut step, is_built) = self.rig.build(self.held.state.steps.len() + 1)?;
        (step.id, step.title, step.repeats) = (id, title, repeats);
        match &self.boots {
            Some(boots) if is_built => {
                let boot_id = boots.boot_id()?;
                return Err(self.chosen(Pending { step, boot_id })?);
            }
            None if is_built => self.rig.test(&mut step, None)?,
            _ => {}
        }
        conclude(&mut self.held, &self.rig, self.limits, step)
    }

    /// Steps that test their kernel for the first time.
    fn firsts(&self) -> Vec<&BisectStep> {
        self.held.state.steps.iter().filter(|step| step.repeats.is_none()).collect()
    }

    /// Boots both sides of an answer again: one boot of a machine is one draw. Whether they were
    /// as before.
    fn repeated(
        &mut self,
        evidence: [usize; 2],
        configure: &mut dyn FnMut(&mut Self, &BisectStep) -> Result<(), KernelError>,
    ) -> Result<Option<bool>, KernelError> {
        if self.boots.is_none() {
            return Ok(None);
        }
        let again = |of: &Self, number| {
            of.held.state.steps.iter().find(|step| step.repeats == Some(number)).cloned()
        };
        let mut is_same = true;
        for number in evidence {
            let first = self.held.state.steps[number - 1].clone();
            if again(self, number).is_none() {
                let next = self.held.state.steps.len() + 1;
                self.rig.watch.label(format!("step {next}, step {number} again"));
                configure(self, &first)?;
                let title = format!("step {number} again: {}", first.title);
                self.step(first.id.clone(), title, Some(number))?;
            }
            is_same &= again(self, number).is_some_and(|step| step.outcome == first.outcome);
        }
        Ok(Some(is_same))
    }

    /// Commits between both ends.
    fn commits(
        &mut self,
        ends: &[String; 2],
        config: &Path,
    ) -> Result<KernelBisected, KernelError> {
        let place = self.rig.request.place.clone();
        let repository = Repository::open(&self.rig.request.source, &place)?;
        let [good, bad] = ends.each_ref().map(String::as_str);
        repository.check_order(good, bad)?;
        let config = image::named_config(config)?.text;
        let mut clean = true;
        let mut test = |of: &mut Self, commit: &str, left: &str| {
            let title = repository.subject(commit)?;
            let number = of.held.state.steps.len() + 1;
            let short = commit.get(..12).unwrap_or(commit);
            let part: String = title.chars().take(TITLE_MAX).collect();
            of.rig.watch.label(format!("step {number}{left}, {short} {part}"));
            repository.checkout(commit, std::mem::take(&mut clean), &place, &of.rig.watch)?;
            of.rig.configure(&config)?;
            of.step(commit.to_owned(), title, None).map(drop)
        };
        for (at, (end, name)) in [(good, "good"), (bad, "bad")].into_iter().enumerate() {
            if self.held.state.steps.len() <= at {
                test(self, end, &format!(" (the {name} end)"))?;
            }
        }
        self.check_ends()?;
        let (is_found, suspects) = loop {
            // Git knows the ends from its start.
            match repository.next([good, bad], &self.firsts()[2..], &place)? {
                NextCommit::Found(commit) => break (true, vec![commit]),
                NextCommit::Among(commits) => break (false, commits),
                NextCommit::Test(commit, left) => test(self, &commit, &format!(" ({left} left)"))?,
            }
        };
        let firsts = self.firsts();
        let tested = |commit: &str| firsts.iter().find(|step| step.id == commit);
        let all: Result<Vec<_>, _> = suspects
            .iter()
            .map(|commit| repository.suspect(commit, tested(commit).map(|step| step.outcome)))
            .collect();
        // The bad side is the suspect that was tested; the good one a parent, or the last good.
        let bad = suspects.iter().find_map(|commit| {
            tested(commit).filter(|step| step.outcome == StepOutcome::Bad).map(|step| step.number)
        });
        let mut parents = Vec::new();
        for commit in &suspects {
            parents.extend(repository.parents(commit)?);
        }
        let is_good = |step: &&&BisectStep| step.outcome == StepOutcome::Good;
        let parent = firsts.iter().filter(is_good).find(|step| parents.contains(&step.id));
        let good = parent.or_else(|| firsts.iter().rfind(is_good)).map_or(1, |step| step.number);
        let evidence = [good, bad.unwrap_or(2)];
        let suspects = all?;
        let is_reproduced = match is_found {
            true => self.repeated(evidence, &mut |of, step| {
                repository.checkout(&step.id, true, &place, &of.rig.watch)?;
                of.rig.configure(&config)
            })?,
            false => None,
        };
        Ok(KernelBisected {
            is_found,
            suspects,
            evidence,
            is_reproduced,
            ..self.answer(BisectedOver::Commits)
        })
    }

    /// Options that differ between two configurations.
    fn options(&mut self, good: &Path, bad: &Path) -> Result<KernelBisected, KernelError> {
        let mut log = Log::begin(self.rig.request.place.join("kconfig.log"))?;
        self.rig.make.check_arch()?;
        let mut resolved = |path: &Path| {
            let text = image::named_config(path)?.text;
            self.rig.make.check_config(path, &text)?;
            self.rig.watch.label(format!("configuration {}", path.display()));
            commits::resolve(&self.rig, &text, &mut log)
        };
        let (good, bad) = (resolved(good)?, resolved(bad)?);
        let pair = Pair::new(&self.rig, good, bad)?;
        for (at, (end, name)) in [(&pair.good, "good"), (&pair.bad, "bad")].into_iter().enumerate()
        {
            if self.held.state.steps.len() <= at {
                self.rig.watch.label(format!("step {} (the {name} end)", at + 1));
                self.rig.configure(&end.text)?;
                self.step(end.id.clone(), format!("the {name} configuration"), None)?;
            }
        }
        self.check_ends()?;
        let rig = Rc::clone(&self.rig);
        let mut test = |of: &commits::ResolvedConfig, title: String| {
            if let Some(step) = self.firsts().iter().find(|step| step.id == of.id) {
                return Ok(step.outcome);
            }
            let number = self.held.state.steps.len() + 1;
            rig.watch.label(format!("step {number}, {title}"));
            rig.configure(&of.text)?;
            self.step(of.id.clone(), title, None)
        };
        let reduced = pair.reduce(&rig, &mut log, &mut test)?;
        let bad = self
            .firsts()
            .iter()
            .find(|step| step.id == reduced.result.id)
            .map_or(2, |step| step.number);
        let evidence = [1, bad];
        let is_reproduced = match reduced.is_minimal {
            true => self.repeated(evidence, &mut |of, step| {
                let text = if step.number == 1 { &pair.good.text } else { &reduced.result.text };
                of.rig.configure(text)
            })?,
            false => None,
        };
        let mut answer = self.answer(BisectedOver::Options);
        answer.notes.extend(reduced.notes);
        Ok(KernelBisected {
            is_found: reduced.is_minimal,
            is_reproduced,
            suspects: reduced.suspects,
            changed: reduced.changed,
            evidence,
            ..answer
        })
    }

    /// Both ends must be good and bad as stated, or nothing is bisected.
    fn check_ends(&mut self) -> Result<(), KernelError> {
        let criterion = &self.rig.request.criterion;
        let (ends, place) = (&mut self.held.state.steps[..2], &self.rig.request.place);
        let refused = |why: String| {
            let next = "steps/001 and steps/002 have the logs; other ends, or another test, need a \
                        new folder";
            KernelError::path(place, format!("{why}. {next}"))
        };
        self.limits = criterion.limits(&ends[0], &ends[1]).map_err(refused)?;
        let wanted = [(StepOutcome::Good, "good"), (StepOutcome::Bad, "bad")];
        let mut wrong = Vec::new();
        for (end, (outcome, name)) in ends.iter_mut().zip(wanted) {
            let (is, why) = criterion.judge(end, self.limits);
            if is != outcome {
                wrong.push(format!("the {name} end is {}: {why}", is.name()));
            }
            (end.outcome, end.why) = (is, why);
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let said: Vec<&str> = ends.iter().map(|end| end.why.as_str()).collect();
        Err(refused(format!(
            "{}; measured: good {}; bad {}; bad is: {}{}",
            wrong.join("; "),
            said[0],
            said[1],
            criterion.text(),
            self.limits.threshold.map_or_else(String::new, |limit| {
                format!(", the limit is {}", rtproof_judge::units::grouped(limit))
            })
        )))
    }

    /// What is the same for both kinds.
    fn answer(&self, over: BisectedOver) -> KernelBisected {
        let request = self.rig.request;
        let steps = self.held.state.steps.clone();
        let is_command = matches!(request.criterion, Criterion::Command(_));
        let mut notes = Vec::new();
        let thresholds = steps.iter().filter_map(|step| step.measured.as_ref()?.threshold);
        let (least, most) = (thresholds.clone().min(), thresholds.max());
        let is_of_causes =
            matches!(request.criterion, Criterion::Cause(..) | Criterion::Stretch(..));
        if is_of_causes && least != most {
            let unit = if self.boots.is_some() { "ns" } else { "instructions" };
            notes.push(format!(
                "wake-ups were looked into above different lengths, from {} to {} {unit}: set one \
                 with --prove='--threshold TIME'",
                least.unwrap_or(0),
                most.unwrap_or(0)
            ));
        }
        if is_command && steps.iter().any(|step| step.exit == Some(trial::PANICKED)) {
            notes.push(
                "a kernel that panicked while the command ran counts as bad; one that did not come \
                 so far was skipped"
                    .to_owned(),
            );
        }
        if self.boots.is_some() {
            notes.extend(trial::chance_note(&request.criterion, &steps));
        }
        KernelBisected {
            schema: BISECT_SCHEMA,
            folder: request.place.display().to_string(),
            booted_in: match self.boots {
                Some(_) => BisectedIn::Machine,
                None => BisectedIn::Guest,
            },
            is_reproduced: None,
            over,
            test: request.criterion.text(),
            threshold: self.limits.threshold,
            prove: (!is_command).then(|| request.prove.clone()),
            is_found: false,
            suspects: Vec::new(),
            changed: Vec::new(),
            evidence: [1, 2],
            steps,
            notes,
        }
    }
}

/// Judges a step and keeps it. The first two are the ends, which have to be testable.
fn conclude(
    held: &mut HeldState,
    rig: &Rig<'_>,
    limits: BisectLimits,
    mut step: BisectStep,
) -> Result<StepOutcome, KernelError> {
    if step.number <= 2 {
        if !trial::is_tested(&step) {
            let name = if step.number == 1 { "good" } else { "bad" };
            let why = format!("the {name} end ({}): {}", step.title, step.why);
            held.waits(None)?;
            return Err(KernelError::path(step.folder, why));
        }
    } else if trial::is_tested(&step) {
        (step.outcome, step.why) = rig.request.criterion.judge(&step, limits);
    }
    let outcome = step.outcome;
    held.append(step)?;
    Ok(outcome)
}

// What is asked of a bisection.

/// The range between good and bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BisectRange {
    /// Commits of a git tree, all with one configuration.
    Commits {
        /// A commit that is good.
        good: String,
        /// One that is bad.
        bad: String,
        config: PathBuf,
    },
    /// Options of one source.
    Options {
        /// Configuration that is good.
        good: PathBuf,
        /// One that is bad.
        bad: PathBuf,
    },
}

/// What is to be found, and how.
#[derive(Clone, Debug)]
pub struct BisectRequest {
    /// The source: for commits a git tree, else as for a build.
    pub source: PathBuf,
    /// Folder of everything, as [`rtproof_kernel::build_folder`] makes it.
    pub place: PathBuf,
    pub range: BisectRange,
    /// What makes a kernel bad.
    pub criterion: Criterion,
    pub prove: String,
    /// The guest; kernel, configuration and folder are set for each step.
    pub boot: BootRequest,
    /// How this machine boots each kernel once; `None`: the guest does.
    pub trial: Option<TrialBoots>,
    pub variables: Vec<String>,
    /// Commands that make runs at once.
    pub jobs: usize,
}

/// How a machine boots the kernels.
#[derive(Clone, Debug)]
pub struct TrialBoots {
    /// The machine whose boot loader boots them.
    pub root: Root,
    pub initrd: InitrdChoice,
    /// Parameters for the kernel's command line.
    pub words: Vec<String>,
    /// Time from the start of the machine to the test: what starts with it has settled.
    pub settle: Duration,
}

// The user while a bisection works: sees the progress, and may end it.

/// Receives the progress, and may stop the work.
struct BisectWatch<'a> {
    observer: RefCell<OnProgress<'a>>,
    stopped: Cell<bool>,
    label: RefCell<String>,
}

impl<'a> BisectWatch<'a> {
    fn new(observer: OnProgress<'a>) -> Self {
        Self {
            observer: RefCell::new(observer),
            stopped: Cell::new(false),
            label: RefCell::default(),
        }
    }

    /// What is shown before each step's own name.
    fn label(&self, label: String) {
        *self.label.borrow_mut() = label;
    }

    fn observe(&self, of: &WorkProgress) -> std::ops::ControlFlow<()> {
        let step = format!("{}: {}", self.label.borrow(), of.step);
        let go_on = (self.observer.borrow_mut())(&WorkProgress { step, ..of.clone() });
        self.stopped.set(self.stopped.get() || go_on.is_break());
        go_on
    }

    /// Whether the user ended it.
    fn is_stopped(&self, step: &str, elapsed: Duration) -> bool {
        let _ = self.observe(&WorkProgress { step: step.into(), objects: 0, elapsed });
        self.stopped.get()
    }
}
