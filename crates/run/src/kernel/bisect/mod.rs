//! `rtproof kernel bisect`: the first commit, or the smallest set of options, with which a kernel
//! begins to show something. Each kernel is built, booted under counted instructions and tested;
//! what was done is kept, so that the work goes on where it was cut off.

mod commits;
mod criterion;
mod ddmin;
mod options;
mod request;
mod state;
mod trial;

use std::{collections::BTreeMap, path::Path};

use rtproof_results::kernel::bisect::{
    BisectStep, BisectedOver, KernelBisected, SCHEMA, StepOutcome,
};

use self::{
    commits::{Next, Repository},
    criterion::Limits,
    options::Pair,
    state::Held,
    trial::{Rig, Watch},
};
pub use self::{
    criterion::Criterion,
    request::{BisectRequest, Range},
};
use super::{
    KernelError,
    boot::locate,
    source,
    tool::{Log, OnProgress},
};

/// Characters of a subject in a line of progress.
const TITLE_MAX: usize = 30;

/// Bisects, or goes on.
///
/// # Errors
/// The ends are not as stated, the folder holds another bisection, this machine lacks something,
/// the user ended it.
pub fn bisect(
    request: &BisectRequest,
    observer: OnProgress<'_>,
) -> Result<KernelBisected, KernelError> {
    let watch = Watch::new(observer);
    let ends = match &request.range {
        Range::Commits { good, bad, .. } => {
            [commits::commit(&request.source, good)?, commits::commit(&request.source, bad)?]
        }
        Range::Options { good, bad } => [digest_of(good)?, digest_of(bad)?],
    };
    let held = Held::open(&request.place, arguments(request, &ends)?)?;
    let tree = match &request.range {
        Range::Commits { .. } => None,
        Range::Options { .. } => {
            watch.label("source".into());
            let mut observer = |progress: &super::tool::Progress| watch.observe(progress);
            Some(source::open(&request.source, &request.place, None, &mut observer)?.path)
        }
    };
    let path = tree.clone().unwrap_or_else(|| request.place.join("tree"));
    let rig = Rig { request, make: trial::make(request, path), watch };
    rig.make.check_tools()?;
    let mut bisection = Bisection { held, rig, limits: Limits::default() };
    if bisection.held.state.is_building {
        trial::sweep(&bisection.rig.make.objects)?;
    }
    let outcome = match &request.range {
        Range::Commits { config, .. } => bisection.commits(&ends, config),
        Range::Options { good, bad } => bisection.options(good, bad),
    };
    let steps = bisection.held.state.steps.len();
    outcome.map_err(|error| {
        match bisection.rig.watch.is_stopped("end", std::time::Duration::ZERO) {
            true => KernelError::path(
                &request.place,
                format!(
                    "ended by a signal after {}; the same command goes on from there",
                    rtproof_judge::units::count(steps as u64, "step")
                ),
            ),
            false => error,
        }
    })
}

/// What a bisection is of: another of it is another bisection.
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
        ("rtproof of the guest, SHA-256", digest_of(&binary)?),
    ];
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
    if let Range::Commits { config, .. } = &request.range {
        all.push(("--config, SHA-256", digest_of(config)?));
    }
    let mut map: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in all {
        let text = map.entry(name.to_owned()).or_default();
        *text = if text.is_empty() { value } else { format!("{text}, {value}") };
    }
    Ok(map)
}

#[expect(clippy::disallowed_methods, reason = "files that the user names")]
fn digest_of(path: &Path) -> Result<String, KernelError> {
    let bytes = std::fs::read(path).map_err(KernelError::io(path))?;
    Ok(options::digest(&bytes))
}

/// One that is under way.
struct Bisection<'a> {
    held: Held,
    rig: Rig<'a>,
    limits: Limits,
}

impl Bisection<'_> {
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
        let config = locate::given(config)?.text;
        let mut clean = true;
        let mut test = |of: &mut Self, commit: &str, left: &str| {
            let title = repository.subject(commit)?;
            let number = of.held.state.steps.len() + 1;
            let short = commit.get(..12).unwrap_or(commit);
            let part: String = title.chars().take(TITLE_MAX).collect();
            of.rig.watch.label(format!("step {number}{left}, {short} {part}"));
            repository.checkout(commit, std::mem::take(&mut clean), &place, &of.rig.watch)?;
            of.rig.configure(&config)?;
            of.step(commit.to_owned(), title)
        };
        for (at, (end, name)) in [(good, "good"), (bad, "bad")].into_iter().enumerate() {
            if self.held.state.steps.len() <= at {
                test(self, end, &format!(" (the {name} end)"))?;
            }
        }
        self.check_ends()?;
        let (is_found, suspects) = loop {
            // Git knows the ends from its start.
            let steps = &self.held.state.steps[2..];
            match repository.next([good, bad], steps, &place)? {
                Next::Found(commit) => break (true, vec![commit]),
                Next::Among(commits) => break (false, commits),
                Next::Test(commit, left) => test(self, &commit, &format!(" ({left} left)"))?,
            }
        };
        let tested = |commit: &str| self.held.state.steps.iter().find(|step| step.id == commit);
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
        let is_good = |step: &&BisectStep| step.outcome == StepOutcome::Good;
        let steps = &self.held.state.steps;
        let beside = steps.iter().filter(is_good).find(|step| parents.contains(&step.id));
        let good = beside.or_else(|| steps.iter().rfind(is_good)).map_or(1, |step| step.number);
        let evidence = [good, bad.unwrap_or(2)];
        Ok(KernelBisected {
            is_found,
            suspects: all?,
            evidence,
            ..self.answer(BisectedOver::Commits)
        })
    }

    /// Options that differ between two configurations.
    fn options(&mut self, good: &Path, bad: &Path) -> Result<KernelBisected, KernelError> {
        let mut log = Log::begin(self.rig.request.place.join("kconfig.log"))?;
        self.rig.make.check_arch()?;
        let mut resolved = |path: &Path| {
            let text = locate::given(path)?.text;
            self.rig.make.check_config(path, &text)?;
            self.rig.watch.label(format!("configuration {}", path.display()));
            options::resolve(&self.rig, &text, &mut log)
        };
        let (good, bad) = (resolved(good)?, resolved(bad)?);
        let pair = Pair::new(&self.rig, good, bad)?;
        for (at, (end, name)) in [(&pair.good, "good"), (&pair.bad, "bad")].into_iter().enumerate()
        {
            if self.held.state.steps.len() <= at {
                self.rig.watch.label(format!("step {} (the {name} end)", at + 1));
                self.rig.configure(&end.text)?;
                self.step(end.id.clone(), format!("the {name} configuration"))?;
            }
        }
        self.check_ends()?;
        let Self { held, rig, limits } = self;
        let mut test = |of: &options::Resolved, title: String| {
            if let Some(step) = held.state.steps.iter().find(|step| step.id == of.id) {
                return Ok(step.outcome);
            }
            let number = held.state.steps.len() + 1;
            rig.watch.label(format!("step {number}, {title}"));
            rig.configure(&of.text)?;
            step(held, rig, *limits, of.id.clone(), title)
        };
        let reduced = pair.reduce(rig, &mut log, &mut test)?;
        let steps = &self.held.state.steps;
        let bad = steps.iter().find(|step| step.id == reduced.id).map_or(2, |step| step.number);
        let mut answer = self.answer(BisectedOver::Options);
        answer.notes.extend(reduced.notes);
        Ok(KernelBisected {
            is_found: reduced.is_minimal,
            suspects: reduced.suspects,
            changed: reduced.changed,
            evidence: [1, bad],
            ..answer
        })
    }

    fn step(&mut self, id: String, title: String) -> Result<(), KernelError> {
        step(&mut self.held, &self.rig, self.limits, id, title).map(drop)
    }

    /// Both ends are what they are said to be, or nothing is bisected.
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
            notes.push(format!(
                "wake-ups were looked into above different lengths, from {} to {} instructions: \
                 set one with --prove='--threshold TIME'",
                least.unwrap_or(0),
                most.unwrap_or(0)
            ));
        }
        if is_command && steps.iter().any(|step| step.exit == Some(criterion::PANICKED)) {
            notes.push(
                "a kernel that panicked while the command ran counts as bad; one that did not come \
                 so far was skipped"
                    .to_owned(),
            );
        }
        KernelBisected {
            schema: SCHEMA,
            folder: request.place.display().to_string(),
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

/// Does one step and keeps it. The first two are the ends, which have to be testable.
fn step(
    held: &mut Held,
    rig: &Rig<'_>,
    limits: Limits,
    id: String,
    title: String,
) -> Result<StepOutcome, KernelError> {
    let number = held.state.steps.len() + 1;
    held.building(true)?;
    let mut step = rig.trial(number)?;
    (step.id, step.title) = (id, title);
    held.state.is_building = false;
    if number <= 2 {
        if !trial::is_tested(&step) {
            let name = if number == 1 { "good" } else { "bad" };
            let why = format!("the {name} end ({}): {}", step.title, step.why);
            held.building(false)?;
            return Err(KernelError::path(step.folder, why));
        }
    } else if trial::is_tested(&step) {
        (step.outcome, step.why) = rig.request.criterion.judge(&step, limits);
    }
    let outcome = step.outcome;
    held.append(step)?;
    Ok(outcome)
}
