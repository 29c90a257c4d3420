//! One kernel of a bisection: built, booted, tested. A failure of the kernel skips the step.
//! A failure of this machine (a full disk, a missing program) ends the bisection, so that it
//! never passes for a property of a commit.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use rtproof_guest::INSTRUCTION_NS;
use rtproof_host::door::{self, write_whole};
use rtproof_judge::units::{count, grouped};
use rtproof_kernel::{
    KernelError,
    boot::{self, BootRequest},
    compare::{self, BootedKernel},
    make::{self, Make, Product},
    source::SourceTree,
    tool::WorkProgress,
};
use rtproof_model::Status;
use rtproof_results::kernel::{BisectStep, GuestStep, KernelSide, StepOutcome, Stretches};
use rtproof_stats::binomial::{poisson_at_most, poisson_lower};

use super::boots::{BisectBoots, Test};
use super::{BisectRequest, BisectWatch};

/// What makes two builds of the same source differ.
const FIXED: [&str; 4] = [
    "KBUILD_BUILD_TIMESTAMP=2026-01-01",
    "KBUILD_BUILD_USER=rtproof",
    "KBUILD_BUILD_HOST=rtproof",
    "KBUILD_BUILD_VERSION=1",
];

/// What is the same for all steps.
pub(super) struct Rig<'a> {
    pub(super) request: &'a BisectRequest,
    pub(super) make: Make,
    pub(super) watch: BisectWatch<'a>,
}

/// How the source and the objects of all steps are used.
pub(super) fn make(request: &BisectRequest, tree: PathBuf) -> Make {
    let mut variables = request.variables.clone();
    let name = |it: &str| it.split_once('=').map_or_else(String::new, |(name, _)| name.to_owned());
    let given: Vec<String> = variables.iter().map(|it| name(it)).collect();
    let fixed = FIXED.iter().filter(|it| !given.contains(&name(it)));
    variables.extend(fixed.map(ToString::to_string));
    // Beside the machine's own kernels of the same version.
    if request.trial.is_some() && !given.iter().any(|name| name == "LOCALVERSION") {
        variables.push("LOCALVERSION=-bisect".to_owned());
    }
    Make { tree, objects: request.place.join("build"), variables }
}

impl Rig<'_> {
    /// Puts a configuration where the build takes it from.
    pub(super) fn configure(&self, text: &str) -> Result<(), KernelError> {
        let objects = &self.make.objects;
        fs::create_dir_all(objects).map_err(KernelError::io(objects))?;
        let path = objects.join(".config");
        write_whole(&path, |to| Ok(to.write_all(text.as_bytes())?))
            .map_err(|error| KernelError::path(path, format!("{error:#}")))
    }

    /// Folder of a step's logs.
    fn folder(&self, number: usize) -> PathBuf {
        self.request.place.join("steps").join(format!("{number:03}"))
    }

    /// Builds what is configured; `false`: it does not build, and the step has the reason.
    pub(super) fn build(&self, number: usize) -> Result<(BisectStep, bool), KernelError> {
        let folder = self.folder(number);
        let guest = folder.join("boot");
        // Left by a bisection that was killed.
        match fs::remove_dir_all(&guest) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(KernelError::io(guest)(error));
            }
            _ => fs::create_dir_all(&folder).map_err(KernelError::io(&folder))?,
        }
        let folder_shown = folder.display().to_string();
        let mut step = BisectStep { number, folder: folder_shown, ..BisectStep::default() };
        let tree = SourceTree { path: self.make.tree.clone(), patches: Vec::new() };
        let mut observer = |progress: &WorkProgress| self.watch.observe(progress);
        let began = Instant::now();
        let make = self.make.clone();
        let jobs = self.request.jobs;
        // A guest has no disk for modules; a machine may not boot without.
        let product = self.request.trial.as_ref().map_or(Product::Kernel, |_| Product::Image);
        let built = make::build(&tree, make, &folder, product, jobs, &mut observer);
        step.build_s = began.elapsed().as_secs();
        match built {
            Ok(built) => step.objects = built.objects,
            Err(error) => {
                step.why = format!("does not build: {}", self.of_kernel(error, "build", began)?);
                return Ok((step, false));
            }
        }
        Ok((step, true))
    }

    /// Tests what was built: in a guest, or in the kernel that runs. The outcome of what could be
    /// tested is the caller's.
    pub(super) fn test(
        &self,
        step: &mut BisectStep,
        on: Option<&BisectBoots<'_>>,
    ) -> Result<(), KernelError> {
        let folder = self.folder(step.number).join("boot");
        let began = Instant::now();
        let tested = match on {
            None => self.guest(step, folder),
            Some(boots) => self.test_on_machine(step, boots, &folder),
        };
        step.boot_s = began.elapsed().as_secs_f64();
        if let Err(error) = tested {
            let text = self.of_kernel(error, "guest", began)?;
            let is_command = matches!(self.request.criterion, Criterion::Command(_));
            if is_command && text.starts_with("kernel panic, while command ran") {
                step.exit = Some(PANICKED);
            }
            step.why = format!("not tested: {text}");
        }
        Ok(())
    }

    fn test_on_machine(
        &self,
        step: &mut BisectStep,
        boots: &BisectBoots<'_>,
        folder: &Path,
    ) -> Result<(), KernelError> {
        match fs::create_dir(folder) {
            // A test that was killed.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                fs::remove_dir_all(folder).map_err(KernelError::io(folder))?;
                fs::create_dir(folder).map_err(KernelError::io(folder))?;
            }
            made => made.map_err(KernelError::io(folder))?,
        }
        let test = Test {
            step: self.request.boot.steps.first(),
            limit: self.request.boot.limit,
            objects: &self.make.objects,
            folder,
            watch: &self.watch,
        };
        let (kernel, ran) = boots.test(&test)?;
        self.answered(step, kernel, &[ran], 1)
    }

    fn guest(&self, step: &mut BisectStep, folder: PathBuf) -> Result<(), KernelError> {
        let began = Instant::now();
        let request = BootRequest {
            kernel: self.make.objects.clone(),
            config: Some(self.make.objects.join(".config")),
            folder: Some(folder),
            ..self.request.boot.clone()
        };
        let stopped = || self.watch.is_stopped("guest", began.elapsed());
        let booted = boot::boot(&request, &stopped)?;
        self.answered(step, BootedKernel::of(&booted), &booted.steps, INSTRUCTION_NS)
    }

    /// What the test has said. Lengths are kept in units of so many nanoseconds.
    fn answered(
        &self,
        step: &mut BisectStep,
        kernel: BootedKernel,
        steps: &[GuestStep],
        unit_ns: u64,
    ) -> Result<(), KernelError> {
        if let Criterion::Command(_) = self.request.criterion {
            let ran = steps.first();
            step.exit = ran.and_then(|ran| ran.exit);
            if let Some(code) = step.exit.filter(|code| !(0..128).contains(code)) {
                let why = format!(
                    "the command ended with {code}: 0 is good, 125 skips, 1 to 127 are bad, others \
                     stop a bisection as `git bisect run` does"
                );
                return Err(KernelError::Guest(anyhow::anyhow!(why)));
            }
            if step.exit.is_none() {
                let why = ran.and_then(|ran| ran.why.clone()).unwrap_or_default();
                return Err(KernelError::path("command", format!("no exit code: {why}")));
            }
            return Ok(());
        }
        let side = compare::measured(kernel, steps)?;
        if let Criterion::Check(id) = &self.request.criterion {
            let finding = side.findings.iter().find(|of| of.check == *id);
            step.check = finding.map(|of| (of.status, of.summary.clone()));
        }
        step.measured = Some(side.side(unit_ns));
        Ok(())
    }

    /// Errors of the tested kernel; all others, and the user's end of
    /// the work, remain errors.
    fn of_kernel(
        &self,
        error: KernelError,
        during: &str,
        began: Instant,
    ) -> Result<String, KernelError> {
        if self.watch.is_stopped(during, began.elapsed()) {
            return Err(error);
        }
        match error {
            // A hint of a build is what this machine lacks.
            KernelError::Failed { ref hint, .. } if during == "build" && !hint.is_empty() => {
                Err(error)
            }
            KernelError::Failed { status, hint, lines, step, .. } => {
                let line = lines.first().map(|line| line.trim().to_owned()).unwrap_or_default();
                Ok(match during {
                    "build" => format!("{step}: {line}"),
                    _ => format!("{status}{hint}"),
                })
            }
            KernelError::Path { path, why } if during != "build" => {
                Ok(format!("{}: {why}", path.display()))
            }
            other => Err(other),
        }
    }
}

/// Whether a step has an answer.
pub(super) fn is_tested(step: &BisectStep) -> bool {
    step.measured.is_some() || step.exit.is_some()
}

/// Removes objects that a build which was cut off may have left torn: kbuild takes what is newer
/// than its sources as whole, and writes `.NAME.cmd` only after NAME.
pub(super) fn sweep(objects: &Path) -> Result<u64, KernelError> {
    let mut swept = 0;
    let mut folders = vec![objects.to_path_buf()];
    while let Some(folder) = folders.pop() {
        #[expect(clippy::disallowed_methods, reason = "the objects of our own build")]
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(KernelError::io(&folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(KernelError::io(&folder))?;
            let kind = entry.file_type().map_err(KernelError::io(entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let made = name.strip_prefix('.').and_then(|name| name.strip_suffix(".cmd"));
            let Some(made) = made.map(|made| folder.join(made)) else { continue };
            let time = |path: &Path| path.metadata().and_then(|of| of.modified()).ok();
            let is_older = time(&made).is_some_and(|time_of| Some(time_of) > time(&entry.path()));
            if is_older || is_torn(&entry.path()) {
                fs::remove_file(entry.path()).map_err(KernelError::io(entry.path()))?;
                // It may not have been made.
                let _ = fs::remove_file(&made);
                swept += 1;
            }
        }
    }
    Ok(swept)
}

/// Bytes of the list of what an object was made from.
const OBJECT_MAX: u64 = 16 << 20;

/// Whether the list of what an object was made from is cut off: later changes of the rest would be
/// missed. fixdep ends it with a rule of its own.
fn is_torn(path: &Path) -> bool {
    let Ok(bytes) = door::read_bytes(path, OBJECT_MAX) else { return true };
    let text = String::from_utf8_lossy(&bytes);
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    !text.ends_with('\n') || text.contains("\ndeps_") && !last.starts_with("$(deps_")
}

// What chance may do to a bisection over trial boots: a kernel that is bad may have shown nothing
// in the time in which it was tested. A guest's time counts instructions, and knows no chance.

/// Confidence of the bound on the rate at the bad end.
const LEVEL: f64 = 0.95;

/// How far the good steps can be trusted.
pub(super) fn chance_note(criterion: &Criterion, steps: &[BisectStep]) -> Option<String> {
    let booted_again: Vec<usize> = steps.iter().filter_map(|step| step.repeats).collect();
    let is_good = |step: &&BisectStep| {
        let is_once = step.repeats.is_none() && !booted_again.contains(&step.number);
        step.number > 2 && step.outcome == StepOutcome::Good && is_once
    };
    let good = steps.iter().filter(is_good).count() as u64;
    if good == 0 {
        return None;
    }
    let decided = format!("found good by one boot each: {}", count(good, "kernel"));
    let Criterion::Cause(name, limit) = criterion else {
        return Some(format!(
            "{decided}; a bad one that shows it only now and then is not told from them"
        ));
    };
    // The second step is the bad end.
    let side = steps.get(1)?.measured.as_ref()?;
    let seen = side.causes.iter().find(|of| of.cause == *name).map_or(0, |of| of.count);
    let missed = poisson_at_most(*limit, poisson_lower(seen, LEVEL));
    Some(format!(
        "{decided}. The bad end showed {} in the same time. So a bad kernel passes as good with a \
         probability of up to {} each, at 95 %, where they come independently of each other. Where \
         they come in bursts it is more{}",
        count(seen, "stretch"),
        share(missed),
        if missed * good as f64 > 0.05 { ": a longer --for tells more" } else { "" }
    ))
}

fn share(of: f64) -> String {
    match of {
        // Rounded up: it is an upper bound.
        of if of < 0.01 => format!("{:.2} %", (10_000.0 * of).ceil().max(1.0) / 100.0),
        of => format!("{:.0} %", (100.0 * of).ceil()),
    }
}

// What makes a kernel bad, and what a step's measurement says of it. A number that is not known
// decides nothing: the step is skipped.

/// Exit code that represents a panic while a command ran.
pub(super) const PANICKED: i32 = 255;

/// Exit codes of `prove`.
const ACCEPTED: i32 = 0;

const REFUSED: i32 = 2;

/// `git bisect run`: this one cannot be tested.
const SKIP: i32 = 125;

/// The fault that is bisected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// More stretches of a cause than this.
    Cause(String, u64),
    /// A longer way from due to run, instructions; `None`: between both ends.
    Longest(Option<u64>),
    /// A longer stretch of a cause, instructions; `None`: between both ends.
    Stretch(String, Option<u64>),
    /// A check whose status is not that of the good end.
    Check(String),
    /// A refusal by `prove`.
    Verdict,
    /// A command whose exit code is not 0.
    Command(Vec<String>),
}

/// Outcome and its reason.
pub(super) type Judged = (StepOutcome, String);

/// What both ends decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BisectLimits {
    /// Above it a number is bad.
    pub(super) threshold: Option<u64>,
    /// The good end's status of the check.
    pub(super) status: Option<Status>,
}

impl Criterion {
    /// In words, for arguments and answers.
    pub fn text(&self) -> String {
        let above = |of: &Option<u64>| of.map_or_else(|| "the middle of both ends".into(), grouped);
        match self {
            Self::Cause(name, limit) => format!("more than {} of {name}", count(*limit, "stretch")),
            Self::Longest(limit) => format!("wake-up path longer than {}", above(limit)),
            Self::Stretch(name, limit) => {
                format!("stretch of {name} longer than {}", above(limit))
            }
            Self::Check(id) => format!("another status of check {id}"),
            Self::Verdict => "prove refuses".into(),
            Self::Command(words) => format!("exit code of: {}", words.join(" ")),
        }
    }

    /// What the ends decide, or why they cannot.
    pub(super) fn limits(
        &self,
        good: &BisectStep,
        bad: &BisectStep,
    ) -> Result<BisectLimits, String> {
        let given = match self {
            Self::Cause(_, limit) => Some(*limit),
            Self::Longest(limit) | Self::Stretch(_, limit) => *limit,
            Self::Verdict | Self::Command(_) => return Ok(BisectLimits::default()),
            Self::Check(_) => {
                let status = good.check.as_ref().map(|(status, _)| *status);
                return Ok(BisectLimits { threshold: None, status });
            }
        };
        if given.is_some() {
            return Ok(BisectLimits { threshold: given, status: None });
        }
        let number = |of: &BisectStep| of.measured.as_ref().map(|side| self.number(side));
        let [good, bad] = match [number(good), number(bad)] {
            [Some(Ok(good)), Some(Ok(bad))] => [good, bad],
            [Some(Err(why)), _] => return Err(format!("the good end: {why}")),
            [_, Some(Err(why))] => return Err(format!("the bad end: {why}")),
            _ => return Err("an end was not measured".into()),
        };
        // A quarter: what any change of code moves is far less.
        if bad <= good.saturating_add(good / 4) {
            return Err(format!(
                "good has {}, bad has {} instructions, which is too near for a limit between them: \
                 give one",
                grouped(good),
                grouped(bad)
            ));
        }
        Ok(BisectLimits { threshold: Some(good + (bad - good) / 2), status: None })
    }

    /// What a step says.
    pub(super) fn judge(&self, step: &BisectStep, limits: BisectLimits) -> Judged {
        let skipped = |why: String| (StepOutcome::Skipped, why);
        match self {
            Self::Command(_) => match step.exit {
                Some(0) => (StepOutcome::Good, "exit code 0".into()),
                Some(SKIP) => skipped("exit code 125".into()),
                Some(PANICKED) => (StepOutcome::Bad, "the kernel panicked while it ran".into()),
                Some(code) => (StepOutcome::Bad, format!("exit code {code}")),
                None => skipped("no exit code".into()),
            },
            Self::Verdict => match step.measured.as_ref().and_then(|side| side.exit) {
                Some(ACCEPTED) => (StepOutcome::Good, "prove accepts".into()),
                Some(REFUSED) => (StepOutcome::Bad, "prove refuses".into()),
                Some(code) => skipped(format!("prove decides nothing: exit code {code}")),
                None => skipped("prove has no exit code".into()),
            },
            Self::Check(id) => match (&step.check, limits.status) {
                (None, _) => skipped(format!("check {id} was not asked there")),
                (Some((Status::Unknown, summary)), _) => skipped(format!("unknown: {summary}")),
                (Some((status, summary)), wanted) => {
                    let is_bad = Some(*status) != wanted;
                    let outcome = if is_bad { StepOutcome::Bad } else { StepOutcome::Good };
                    (outcome, format!("{}: {summary}", status_word(*status)))
                }
            },
            Self::Cause(..) | Self::Longest(_) | Self::Stretch(..) => {
                let Some(side) = &step.measured else { return skipped("not measured".into()) };
                match (self.number(side), limits.threshold) {
                    (Ok(number), Some(limit)) => {
                        let is_bad = number > limit;
                        let outcome = if is_bad { StepOutcome::Bad } else { StepOutcome::Good };
                        (outcome, self.describe(number))
                    }
                    (Err(why), _) => skipped(why),
                    (_, None) => skipped("no limit".into()),
                }
            }
        }
    }

    fn describe(&self, number: u64) -> String {
        match self {
            Self::Cause(name, _) => format!("{} of {name}", count(number, "stretch")),
            Self::Stretch(name, _) => {
                format!("longest stretch of {name} {} instructions", grouped(number))
            }
            _ => format!("longest wake-up path {} instructions", grouped(number)),
        }
    }

    /// The number that is compared, or why it is not known.
    fn number(&self, side: &KernelSide) -> Result<u64, String> {
        match self {
            Self::Longest(_) => {
                side.latency.max.ok_or_else(|| "no wake-up was measured".to_owned())
            }
            Self::Cause(name, _) => Ok(cause_row(side, name)?.map_or(0, |of| of.count)),
            Self::Stretch(name, _) => Ok(cause_row(side, name)?.map_or(0, |of| of.longest)),
            Self::Check(_) | Self::Verdict | Self::Command(_) => Err("not a number".into()),
        }
    }
}

/// The row of a cause; `None`: none, of wake-ups that were all explained.
fn cause_row<'a>(side: &'a KernelSide, name: &str) -> Result<Option<&'a Stretches>, String> {
    let [seen, explained, incomplete] = side.spikes;
    if side.threshold.is_none() {
        return Err("causes are unknown: no wake-up was looked into (kernel events cannot be \
                    recorded there, or --no-trace)"
            .into());
    }
    if explained < seen || incomplete > 0 {
        return Err(format!(
            "causes are unknown: of {} above the threshold {} were explained, {} with events \
             missing",
            count(seen, "wake-up"),
            grouped(explained),
            grouped(incomplete)
        ));
    }
    let row = side.causes.iter().find(|of| of.cause == name);
    match row {
        Some(of) if of.sum > 0 && of.uncertain >= of.sum => {
            Err(format!("{name} may be another cause in all of its {}", count(of.count, "stretch")))
        }
        row => Ok(row),
    }
}

/// A status as it is written elsewhere.
pub(super) const fn status_word(status: Status) -> &'static str {
    match status {
        Status::Bad => "bad",
        Status::Doubtful => "doubtful",
        Status::Unknown => "unknown",
        Status::Good => "good",
        Status::NotApplicable => "not applicable",
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test's own files")]
mod tests {
    use super::*;

    #[test]
    fn an_object_newer_than_its_command_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("kernel")).unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        let names = ["kernel/whole.o", "kernel/.torn.o.cmd", "kernel/plain", "kernel/torn.o"];
        for name in names {
            fs::write(at(name), "savedcmd_x := x\n").unwrap();
        }
        let whole = "savedcmd_x := x\n\nsource_x := x.c\n\ndeps_x := \\\n  a.h \\\n\nx: $(deps_x)\n\n$(deps_x):\n";
        fs::write(at("kernel/.whole.o.cmd"), whole).unwrap();
        for name in &names[..2] {
            let file = fs::File::options().write(true).open(at(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        assert_eq!(sweep(folder.path()).unwrap(), 1);
        assert!(at("kernel/whole.o").exists() && !at("kernel/torn.o").exists());
        assert!(at("kernel/plain").exists());
        assert_eq!(sweep(&at("nothing")).unwrap(), 0);
        for cut in [whole.find("a.h").unwrap(), whole.len() - 1, 3] {
            fs::write(at("kernel/.whole.o.cmd"), &whole[..cut]).unwrap();
            fs::write(at("kernel/whole.o"), "x").unwrap();
            fs::write(at("kernel/.whole.o.cmd"), &whole[..cut]).unwrap();
            assert_eq!(sweep(folder.path()).unwrap(), 1, "{cut}");
            assert!(!at("kernel/whole.o").exists());
        }
    }
}

#[cfg(test)]
mod chance_tests {
    use rtproof_results::kernel::{KernelSide, Stretches};

    use super::*;

    fn side(count: u64) -> KernelSide {
        let cause = Stretches { cause: "irqs-off".into(), count, ..Stretches::default() };
        KernelSide { causes: vec![cause], ..KernelSide::default() }
    }

    fn steps(at_bad_end: u64, good: usize) -> Vec<BisectStep> {
        let outcome = |number: usize| match number {
            2 => StepOutcome::Bad,
            _ => StepOutcome::Good,
        };
        let step = |number: usize| BisectStep {
            number,
            outcome: outcome(number),
            measured: Some(side(if number == 2 { at_bad_end } else { 0 })),
            ..BisectStep::default()
        };
        (1..=good + 2).map(step).collect()
    }

    #[test]
    fn few_stretches_at_the_bad_end_leave_much_to_chance() {
        let of = Criterion::Cause("irqs-off".into(), 0);
        let note_of = |seen, good| chance_note(&of, &steps(seen, good));
        assert_eq!(note_of(5, 0), None, "only the good end is good");
        // exp(-0.0513): one stretch does not bound the rate.
        let one = note_of(1, 3).unwrap();
        assert!(one.contains("up to 95 % each") && one.contains("a longer --for"), "{one}");
        // exp(-5.425) = 0.44 %: three steps are 1.3 %.
        let ten = note_of(10, 3).unwrap();
        assert!(ten.contains("up to 0.45 % each") && !ten.contains("a longer --for"), "{ten}");
        // A kernel that booted twice was not judged by one boot.
        let mut twice = steps(10, 3);
        twice.push(BisectStep { number: 6, repeats: Some(5), ..twice[4].clone() });
        let twice = chance_note(&of, &twice).unwrap();
        assert!(twice.contains("each: 2 kernels."), "{twice}");
        let other = Criterion::Verdict;
        assert!(chance_note(&other, &steps(0, 2)).unwrap().contains("2 kernels; a bad one"));
    }
}

#[cfg(test)]
mod criterion_tests {
    use rtproof_results::kernel::WakeUpPath;

    use super::*;

    fn step(max: Option<u64>, spikes: [u64; 3], rows: &[(&str, u64, u64, u64)]) -> BisectStep {
        let causes = rows.iter().map(|(cause, count, longest, uncertain)| Stretches {
            cause: (*cause).into(),
            title: (*cause).into(),
            count: *count,
            longest: *longest,
            sum: count * longest,
            uncertain: *uncertain,
        });
        let side = KernelSide {
            latency: WakeUpPath { max, ..WakeUpPath::default() },
            threshold: Some(100),
            spikes,
            causes: causes.collect(),
            ..KernelSide::default()
        };
        BisectStep { measured: Some(side), ..BisectStep::default() }
    }

    fn judged(of: &Criterion, step: &BisectStep, limit: u64) -> StepOutcome {
        of.judge(step, BisectLimits { threshold: Some(limit), status: None }).0
    }

    #[test]
    fn a_limit_lies_between_both_ends_or_is_asked_for() {
        let of = Criterion::Longest(None);
        let (good, bad) = (step(Some(1000), [0; 3], &[]), step(Some(9000), [0; 3], &[]));
        let limits = of.limits(&good, &bad).unwrap();
        assert_eq!(limits.threshold, Some(5000));
        assert_eq!(of.judge(&good, limits).0, StepOutcome::Good);
        assert_eq!(of.judge(&bad, limits).0, StepOutcome::Bad);
        let near = step(Some(1200), [0; 3], &[]);
        assert!(of.limits(&good, &near).unwrap_err().contains(&grouped(1200)));
        assert!(of.limits(&bad, &good).is_err());
        assert!(of.limits(&step(None, [0; 3], &[]), &bad).unwrap_err().contains("good end"));
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        let of = Criterion::Cause("irqs-off".into(), 0);
        let rows: &[_] = &[("irqs-off", 3, 500, 0)];
        assert_eq!(judged(&of, &step(None, [3, 3, 0], rows), 0), StepOutcome::Bad);
        assert_eq!(judged(&of, &step(None, [3, 3, 0], rows), 3), StepOutcome::Good);
        assert_eq!(judged(&of, &step(None, [0, 0, 0], &[]), 0), StepOutcome::Good);
        // Not all explained, events missing, all of it uncertain, nothing recorded at all.
        assert_eq!(judged(&of, &step(None, [4, 3, 0], rows), 0), StepOutcome::Skipped);
        assert_eq!(judged(&of, &step(None, [3, 3, 1], &[]), 0), StepOutcome::Skipped);
        let unsure: &[_] = &[("irqs-off", 3, 500, 1500)];
        assert_eq!(judged(&of, &step(None, [3, 3, 0], unsure), 0), StepOutcome::Skipped);
        let mut unmeasured = step(None, [0; 3], &[]);
        unmeasured.measured.as_mut().unwrap().threshold = None;
        assert_eq!(judged(&of, &unmeasured, 0), StepOutcome::Skipped);
        let longest = Criterion::Stretch("irqs-off".into(), Some(400));
        assert_eq!(judged(&longest, &step(None, [3, 3, 0], rows), 400), StepOutcome::Bad);
    }

    #[test]
    fn exit_codes_are_those_of_git_bisect_run() {
        let of = Criterion::Command(vec!["true".into()]);
        let outcome = |exit| {
            of.judge(&BisectStep { exit, ..BisectStep::default() }, BisectLimits::default()).0
        };
        assert_eq!(outcome(Some(0)), StepOutcome::Good);
        assert_eq!([1, 124, 126, 127].map(|code| outcome(Some(code))), [StepOutcome::Bad; 4]);
        assert_eq!(outcome(Some(125)), StepOutcome::Skipped);
        assert_eq!(outcome(None), StepOutcome::Skipped);
        assert_eq!(outcome(Some(PANICKED)), StepOutcome::Bad);
    }

    #[test]
    fn a_verdict_is_good_bad_or_none() {
        let outcome = |exit| {
            let mut step = step(None, [0; 3], &[]);
            step.measured.as_mut().unwrap().exit = exit;
            Criterion::Verdict.judge(&step, BisectLimits::default()).0
        };
        assert_eq!(outcome(Some(0)), StepOutcome::Good);
        assert_eq!(outcome(Some(2)), StepOutcome::Bad);
        assert_eq!([Some(1), Some(3), None].map(outcome), [StepOutcome::Skipped; 3]);
    }

    #[test]
    fn a_check_that_is_unknown_is_skipped() {
        let of = Criterion::Check("preempt-rt".into());
        let step =
            |status| BisectStep { check: Some((status, "x".into())), ..BisectStep::default() };
        let limits = of.limits(&step(Status::Good), &step(Status::Bad)).unwrap();
        let outcome = |status| of.judge(&step(status), limits).0;
        assert_eq!(outcome(Status::Good), StepOutcome::Good);
        assert_eq!(outcome(Status::Doubtful), StepOutcome::Bad);
        assert_eq!(outcome(Status::Unknown), StepOutcome::Skipped);
        assert_eq!(of.judge(&BisectStep::default(), limits).0, StepOutcome::Skipped);
    }
}
