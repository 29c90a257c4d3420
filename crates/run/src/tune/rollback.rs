//! The dead man's switch of `tune apply --confirm`: someone else takes the changes back when nobody
//! confirms them in time, also when this process, its terminal or its session is gone by then.
//!
//! With systemd that is a transient timer, which outlives the session. Elsewhere it is this program
//! once more, in a session of its own. Either one is armed before the first write, and asks the
//! mark beside the journal, under the lock, whether it is still wanted.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use rtproof_host::{Root, program, tune::confirmation};

use super::place;

/// What the rollback process prints once it waits.
pub const ARMED: &str = "armed";

/// Whoever takes the changes back.
#[derive(Debug)]
pub enum RollbackTimer {
    /// A transient timer of systemd, by its name without ending.
    Timer(String),
    Process(Child),
}

impl RollbackTimer {
    pub fn text(&self) -> String {
        match self {
            Self::Timer(unit) => format!("{unit}.timer"),
            Self::Process(child) => format!("process {}", child.id()),
        }
    }
}

/// Arms the rollback of a journal.
///
/// # Errors
/// When none can be started: then nothing may be changed.
pub fn arm(
    root: &Root,
    folder: Option<&Path>,
    journal: u32,
    after: Duration,
) -> anyhow::Result<RollbackTimer> {
    // A timer of systemd is set whether its program is there or not.
    let program = place::running()?;
    // Root would start it later: until then nobody else may have replaced it.
    let is_ours = place::of_root(&program).is_ok();
    let mut args = vec!["tune".to_owned(), "guard".into(), "--journal".into()];
    args.push(journal.to_string());
    if is_ours && has_systemd(root) {
        let unit = timer(journal);
        if start_timer(&unit, &program, &args, after) {
            return Ok(RollbackTimer::Timer(unit));
        }
    }
    // The file that runs, whatever is at its path.
    let mut command = Command::new("/proc/self/exe");
    command.args(args).arg("--after-ms").arg(after.as_millis().to_string());
    if let Some(folder) = folder {
        command.arg("--root").arg(folder);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.context("the guardian of --confirm cannot be started")?;
    let child = armed(child).context("the guardian of --confirm")?;
    Ok(RollbackTimer::Process(child))
}

/// Starts the process that undoes a journal when this process and the program that it started are
/// gone. Its stdin says so: it is a pipe from this process, which first names the program.
///
/// # Errors
/// It cannot be started: then nothing may be changed.
pub fn arm_for_program(
    folder: Option<&Path>,
    journal: u32,
    latency_us: Option<u32>,
) -> anyhow::Result<Child> {
    // The file that runs, whatever is at its path.
    let mut command = Command::new("/proc/self/exe");
    command.args(["tune", "guard", "--program", "--journal"]).arg(journal.to_string());
    if let Some(us) = latency_us {
        command.arg("--dma-latency-us").arg(us.to_string());
    }
    if let Some(folder) = folder {
        command.arg("--root").arg(folder);
    }
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.context("the process that undoes everything cannot be started")?;
    armed(child).context("the process that undoes everything")
}

/// Waits until a process says that it is armed.
fn armed(mut child: Child) -> anyhow::Result<Child> {
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        // Ends when it is armed or when it has ended: it opens nothing before that takes time.
        BufReader::new(stdout).read_line(&mut said)?;
    }
    anyhow::ensure!(said.trim() == ARMED, "did not start");
    Ok(child)
}

/// Whether the rollback of a journal waits, or works now.
pub fn is_armed(root: &Root, journal: u32) -> bool {
    let unit = timer(journal);
    confirmation::is_guarded(root, journal)
        || has_systemd(root) && is_active(&format!("{unit}.timer"))
}

fn has_systemd(root: &Root) -> bool {
    root.is_live() && root.list_dir("/run/systemd/system").value().is_some()
}

fn is_active(unit: &str) -> bool {
    let Ok(mut ask) = program::command("systemctl") else { return false };
    ask.args(["is-active", "--quiet", unit]).stdin(Stdio::null()).stdout(Stdio::null());
    ask.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Name of the timer for a journal.
fn timer(journal: u32) -> String {
    format!("rtproof-guard-{journal:04}")
}

fn start_timer(unit: &str, program: &Path, args: &[String], after: Duration) -> bool {
    let Ok(mut run) = program::command("systemd-run") else { return false };
    run.args(["--quiet", "--collect", "--timer-property=AccuracySec=100ms"])
        .arg(format!("--unit={unit}"))
        .arg(format!("--on-active={}ms", after.as_millis()))
        .arg("--description=Takes back what rtproof tune apply --confirm changed")
        .arg(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    run.status().is_ok_and(|status| status.success()) && is_active(&format!("{unit}.timer"))
}

/// Stops the timer of a journal, where there is one. That it runs on does no harm: it finds no
/// mark.
pub fn dismiss(root: &Root, journal: u32) {
    if has_systemd(root) {
        let unit = format!("{}.timer", timer(journal));
        let quiet = || Stdio::null();
        let Ok(mut stop) = program::command("systemctl") else { return };
        stop.args(["stop", &unit]).stdin(quiet()).stdout(quiet()).stderr(quiet());
        // A timer that ran out is gone by itself.
        let _ = stop.status();
    }
}
