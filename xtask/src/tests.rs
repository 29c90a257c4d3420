//! Runs the tests of the workspace. Unit tests run a program at a time; a test of a folder `tests`
//! runs in a process of its own, and its module says what may run beside it:
//!
//! - `live`: it measures on this machine. One of these runs at a time, beside others.
//! - `alone`: nothing may run beside it.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::Mutex,
    thread,
    time::Instant,
    vec,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::tree::root;

/// Tests that only CI runs, by the beginnings of their names: half of the time of all others.
const LONG: &[&str] = &[
    "measure it alone::recorder::loss_is_reported",
    "rtproof it alone::locks::tasks_that_ran_instead_of_the_holder",
    "rtproof it alone::spikes::a_killed_run",
    "rtproof it alone::syscalls::calls_that_",
    "rtproof it compare::live::live_records_alone_and_in_groups",
    "rtproof it experiment::live::options_are_knobs",
    "rtproof it experiment::live::what_matters",
    "rtproof it experiment_boots::live::twelve_boots",
    "rtproof it export::ansible::ansible_applies",
    "rtproof it kernel_bisect::a_",
    "rtproof it kernel_bisect::ends_",
    "rtproof it kernel_bisect::one_",
    "rtproof it kernel_bisect::two_",
    "rtproof it kernel_bisect_boots::a",
    "rtproof it kernel_boot::a_kernel_without_a_console",
    "rtproof it live::faults::a_disk_that_is_full",
    "rtproof it live::faults::a_full_disk_keeps",
    "rtproof it live::faults::signals_end",
    "rtproof it live::report_browser::the_report_is_complete",
    "rtproof it live::tune_prove_command::ended_by_a_signal",
    "rtproof it live::tune_prove_command::tried",
    "rtproof it measure::live::a_matrix_that_is_killed",
    "rtproof it measure::live::an_interrupted_matrix",
    "rtproof it measure::live::two_conditions",
    "rtproof it new::live::cpp_",
    "rtproof it new::live::rust_",
    "rtproof it run::killed_at_any_moment",
    "rtproof it tune_prove::live::a_knob",
    "rtproof it tune_undo::changes_are_undone_in_time",
];

/// Unit tests of many rounds, which CI runs whole with `FULL=1`.
const ROUNDS: &[&str] = &["bench bin"];

/// Seconds after which a process of tests is killed.
const LIMIT_S: &str = "900";

/// Which tests to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Those beside which others may run.
    Together,
    /// Those beside which nothing may run.
    Alone,
    /// Those that `make test` leaves to CI.
    Long,
}

/// What may run beside a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    All,
    AllButLive,
    Nothing,
}

impl Beside {
    fn of(test: &str) -> Self {
        let is_in = |module: &str| test.split("::").any(|part| part == module);
        match () {
            () if is_in("alone") => Self::Nothing,
            () if is_in("live") => Self::AllButLive,
            () => Self::All,
        }
    }
}

/// A line of `cargo test --message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A program of tests.
struct Program {
    /// `rtproof it`, `stats lib`.
    name: String,
    path: PathBuf,
    /// Folder of its package, in which cargo runs tests.
    folder: PathBuf,
    is_unit: bool,
}

/// A process.
struct Job<'a> {
    program: &'a Program,
    /// One test, or all of the program.
    test: Option<String>,
}

/// How a process ended.
struct Done {
    name: String,
    seconds: f64,
    passed: u64,
    failed: u64,
    ignored: u64,
    output: String,
}

/// Builds the tests and runs those of the part that have one of `only` in their name (none given:
/// all). The results are added to `target/tests.tsv`: seconds, name, passed, failed.
pub(crate) fn run(part: Option<Part>, only: &[String]) -> Result<ExitCode> {
    let programs = programs()?;
    let is_asked = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part));
    let (mut all, mut live, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    let mut unseen = [true; LONG.len()];
    for program in &programs {
        if program.is_unit {
            let is_of_part = match part {
                None => true,
                Some(Part::Long) => false,
                Some(_) => !ROUNDS.contains(&&*program.name),
            };
            if is_of_part && is_asked(&program.name) {
                all.push(Job { program, test: None });
            }
            continue;
        }
        for test in program.tests()? {
            let jobs = match Beside::of(&test) {
                Beside::All => &mut all,
                Beside::AllButLive => &mut live,
                Beside::Nothing => &mut alone,
            };
            let name = format!("{} {test}", program.name);
            let long = LONG.iter().position(|beginning| name.starts_with(beginning));
            long.iter().for_each(|&row| unseen[row] = false);
            let is_of_part = part.is_none_or(|part| (part == Part::Long) == long.is_some());
            if is_of_part && is_asked(&name) {
                jobs.push(Job { program, test: Some(test) });
            }
        }
    }
    let unseen: Vec<_> = LONG.iter().zip(unseen).filter(|it| it.1).map(|it| it.0).collect();
    ensure!(unseen.is_empty(), "LONG in xtask/src/tests.rs: no test begins so: {unseen:?}");
    let mut done = Vec::new();
    let began = Instant::now();
    if part != Some(Part::Alone) {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        done.extend(run_all(live, all, cores)?);
    }
    if part != Some(Part::Together) {
        done.extend(run_all(alone, Vec::new(), 1)?);
    }
    report(&done, began)
}

fn programs() -> Result<Vec<Program>> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--no-run", "--workspace", "--locked"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo test --no-run failed");
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line)?;
        let (Some(path), Some(target)) = (message.executable, message.target) else { continue };
        if message.reason != "compiler-artifact" || message.profile.is_none_or(|it| !it.test) {
            continue;
        }
        let manifest = message.manifest_path.context("an artifact without a manifest")?;
        let folder = manifest.parent().context("a manifest without a folder")?.to_owned();
        let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_unit = !target.kind.iter().any(|kind| kind == "test");
        let what = if is_unit { target.kind.join(" ") } else { target.name };
        programs.push(Program { name: format!("{package} {what}"), path, folder, is_unit });
    }
    programs.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
    Ok(programs)
}

impl Program {
    fn command(&self) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=10", LIMIT_S]).arg(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("CARGO", env!("CARGO")).stdin(Stdio::null());
        command
    }

    fn list(&self, more: &[&str]) -> Result<Vec<String>> {
        let output = self.command().args(["--list", "--format", "terse"]).args(more).output()?;
        ensure!(output.status.success(), "{} --list failed", self.path.display());
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Names of its tests, without the ignored ones.
    fn tests(&self) -> Result<Vec<String>> {
        let ignored = self.list(&["--ignored"])?;
        Ok(self.list(&[])?.into_iter().filter(|test| !ignored.contains(test)).collect())
    }
}

/// Runs all of these, so many at once; of `single`, one at a time.
fn run_all(single: Vec<Job<'_>>, all: Vec<Job<'_>>, at_once: usize) -> Result<Vec<Done>> {
    let (single, all) = (Mutex::new(single.into_iter()), Mutex::new(all.into_iter()));
    let done = Mutex::new(Vec::new());
    let next = |queue: &Mutex<vec::IntoIter<_>>| queue.lock().ok().and_then(|mut it| it.next());
    // The first worker alone takes single ones.
    let work = &|number: usize| -> Result<()> {
        loop {
            let one = if number == 0 { next(&single) } else { None };
            let Some(job) = one.or_else(|| next(&all)) else { return Ok(()) };
            let ended = job.run()?;
            let mut out = std::io::stdout().lock();
            let word = if ended.failed == 0 { "ok    " } else { "FAILED" };
            writeln!(out, "{word} {:7.2} s  {}", ended.seconds, ended.name)?;
            if ended.failed > 0 {
                writeln!(out, "{}", ended.output)?;
            }
            drop(out);
            if let Ok(mut done) = done.lock() {
                done.push(ended);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..at_once).map(|number| scope.spawn(move || work(number))).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a worker panicked"),
        })
    })?;
    Ok(done.into_inner().unwrap_or_default())
}

impl Job<'_> {
    fn run(&self) -> Result<Done> {
        let mut command = self.program.command();
        let mut name = self.program.name.clone();
        match &self.test {
            Some(test) => {
                command.args(["--exact", test]);
                name = format!("{name} {test}");
            }
            None => {
                command.arg("--test-threads=1");
            }
        }
        let began = Instant::now();
        let output = command.output().with_context(|| name.clone())?;
        let seconds = began.elapsed().as_secs_f64();
        let text =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        let [passed, mut failed, ignored] = counts(&text[0]);
        // Killed, or ended by itself: libtest had no time to count it.
        if !output.status.success() && failed == 0 {
            failed = 1;
        }
        if self.test.is_some() && passed + failed == 0 {
            bail!("{name}: no such test");
        }
        let output = format!("{}{}{}", text[0], text[1], output.status);
        Ok(Done { name, seconds, passed, failed, ignored, output })
    }
}

/// Passed, failed and ignored tests by the last lines of a program.
fn counts(text: &str) -> [u64; 3] {
    let line = text.lines().rev().find(|line| line.contains(" passed") && line.contains(" failed"));
    let words: Vec<&str> = line.unwrap_or_default().split([' ', ';', ',']).collect();
    ["passed", "failed", "ignored"].map(|what| {
        let at = words.iter().position(|word| *word == what).filter(|at| *at > 0);
        at.and_then(|at| words[at - 1].parse().ok()).unwrap_or(0)
    })
}

fn report(done: &[Done], began: Instant) -> Result<ExitCode> {
    let sum = |of: fn(&Done) -> u64| done.iter().map(of).sum::<u64>();
    let (passed, failed) = (sum(|it| it.passed), sum(|it| it.failed));
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut file = fs::File::options().create(true).append(true).open(target.join("tests.tsv"))?;
    for Done { name, seconds, passed, failed, .. } in done {
        writeln!(file, "{seconds:.2}\t{name}\t{passed}\t{failed}")?;
    }
    let mut out = std::io::stdout().lock();
    for Done { name, .. } in done.iter().filter(|it| it.failed > 0) {
        writeln!(out, "FAILED {name}")?;
    }
    let (ignored, seconds) = (sum(|it| it.ignored), began.elapsed().as_secs_f64());
    writeln!(out, "{passed} passed, {failed} failed, {ignored} ignored, {seconds:.0} s")?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
