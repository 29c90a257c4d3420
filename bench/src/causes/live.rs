//! One run of `rtproof prove` beside a plant, and its spikes beside the plant's books.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use rtproof_lab::blame::{self, Expected, Kept, Stretches};
use serde_json::Value;

use super::plants::Plant;

/// From a plant's end to its books.
const PATIENCE: Duration = Duration::from_secs(10);

/// What all runs share.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    rtproof: PathBuf,
    /// lab-plant, and the same under the name of a well-known daemon.
    programs: PathBuf,
    folder: &'a Path,
    cpu: u32,
}

impl<'a> Bench<'a> {
    #[expect(clippy::disallowed_methods, reason = "a program of our own, into our own folder")]
    pub(super) fn new(
        rtproof: &Path,
        lab_plant: &Path,
        folder: &'a Path,
        cpu: u32,
    ) -> anyhow::Result<Self> {
        let programs = folder.join("programs");
        fs::create_dir_all(&programs)?;
        for name in ["lab-plant", "multipathd"] {
            fs::copy(lab_plant, programs.join(name)).with_context(|| {
                let path = lab_plant.display();
                format!("{path}: `cargo build --package rtproof-lab-plant` builds it")
            })?;
        }
        Ok(Self { rtproof: std::path::absolute(rtproof)?, programs, folder, cpu })
    }

    /// Runs rtproof beside a plant.
    pub(super) fn run(&self, plant: &Plant, seconds: u64) -> anyhow::Result<Kept> {
        let folder = self.folder.join(plant.name.replace([' ', ','], "-"));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let started: anyhow::Result<Vec<Started>> = (0..)
            .zip(plant.commands)
            .map(|(n, text)| self.start(plant, text, n, seconds, &folder))
            .collect();
        let started = started?;
        let report = match started.first().filter(|_| plant.is_application) {
            Some(application) => self.explain(application.child.id(), seconds, &folder)?,
            None => self.prove(seconds, &folder)?,
        };
        let mut books = Vec::new();
        for one in started {
            books.push(one.books()?);
        }
        let expected = Expected {
            plant: plant.name.into(),
            causes: plant.causes.iter().map(ToString::to_string).collect(),
            culprit: plant.culprit.iter().map(ToString::to_string).collect(),
            acted: Stretches::of_truth(&books[0], plant.told),
            least_ns: plant.least_ns,
        };
        let spikes = if plant.is_application {
            blame::shown(&report)
        } else {
            blame::spikes(&folder.join("run.rtproof"))?
        };
        Ok(Kept {
            plant: plant.name.into(),
            judged: expected.judge(&spikes),
            sums: blame::sums(&report, &expected),
        })
    }

    fn start(
        &self,
        plant: &Plant,
        text: &str,
        n: u32,
        seconds: u64,
        folder: &Path,
    ) -> anyhow::Result<Started> {
        let truth = folder.join(format!("truth{n}.jsonl"));
        let mut words = text.split(' ');
        let program = self.programs.join(words.next().unwrap_or_default());
        // An application goes on for longer than it is looked at; else the plant ends before the
        // measurement does.
        let (for_ms, wait) = if plant.is_application {
            (seconds * 1_000 + 3_000, None)
        } else {
            ((seconds * 1_000).saturating_sub(500), Some("--when-measuring"))
        };
        let child = Command::new(&program)
            .args(words)
            .args(wait)
            .args(["--limit", "60s", "--for", &format!("{for_ms}ms")])
            .args(["--cpu", &self.cpu.to_string(), "--truth"])
            .arg(&truth)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("{}: cannot run", program.display()))?;
        Ok(Started { child, truth })
    }

    /// The report of a run.
    fn prove(&self, seconds: u64, folder: &Path) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.rtproof);
        command
            .args(["prove", "--json", "--load", "idle", "--period", "1ms", "--budget", "100us"])
            .args(["--cpus", &self.cpu.to_string(), "--for", &format!("{seconds}s"), "-o"])
            .arg(folder.join("run"));
        report(&mut command, folder)
    }

    /// What is said about an application.
    fn explain(&self, pid: u32, seconds: u64, folder: &Path) -> anyhow::Result<Value> {
        // It prepares itself for a moment.
        std::thread::sleep(Duration::from_millis(300));
        let mut command = Command::new(&self.rtproof);
        command.args(["explain", "--json", "--pid", &pid.to_string()]);
        command.args(["--for", &format!("{seconds}s")]);
        report(&mut command, folder)
    }
}

/// What rtproof prints; a machine that it refuses is no failure here.
fn report(command: &mut Command, folder: &Path) -> anyhow::Result<Value> {
    let output = command.stdin(Stdio::null()).output().context("rtproof: cannot run")?;
    if !matches!(output.status.code(), Some(0 | 2 | 3)) {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {error}", output.status);
    }
    #[expect(clippy::disallowed_methods, reason = "our own file, for whoever keeps the folder")]
    fs::write(folder.join("report.json"), &output.stdout)?;
    serde_json::from_slice(&output.stdout).context("rtproof --json: no JSON")
}

/// A plant that runs. Ends with the benchmark, whatever comes.
#[derive(Debug)]
struct Started {
    child: Child,
    truth: PathBuf,
}

impl Started {
    /// Waits for its end; what it wrote down.
    fn books(mut self) -> anyhow::Result<Value> {
        let until = std::time::Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if std::time::Instant::now() > until {
                bail!("{}: the plant does not end", self.truth.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the plant failed: {status}");
        }
        #[expect(clippy::disallowed_methods, reason = "a file that the plant wrote for us")]
        let text = fs::read_to_string(&self.truth)
            .with_context(|| format!("{}: read", self.truth.display()))?;
        let line = text.lines().next().context("the plant wrote nothing down")?;
        Ok(serde_json::from_str(line)?)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that has ended already is no failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
