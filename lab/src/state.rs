//! The state of a booted guest: written to a file where its init waits, and resumed from there.

use std::{
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use rtproof_guest::{
    inside::ConsoleMark,
    process::{GuestOutcome, NotReady, Spec, StartedGuest, tail_of},
};
use serde_json::json;

use crate::qmp::Monitor;

/// Time to save or load a state.
const LIMIT: Duration = Duration::from_secs(60);

/// Resumes a guest and follows it to its end.
///
/// # Errors
/// QEMU cannot be started, the state cannot be resumed ([`NotReady`]), or a cue fails.
pub fn resume(spec: &Spec<'_>, state: &Path) -> Result<GuestOutcome> {
    let sockets = tempfile::tempdir().context("folder for the monitor's socket")?;
    let socket = sockets.path().join("qmp");
    let incoming = format!("exec:cat {}", quoted_path(state)?);
    let more = ["-incoming".to_owned(), incoming, "-qmp".to_owned(), monitor_argument(&socket)];
    let mut started = StartedGuest::new(spec, &more)?;
    go_on(&socket, &mut started)
        .with_context(|| tail_of(&spec.dir.join("qemu.err")))
        .context(NotReady)?;
    // Not needed any more, and a lab that is killed leaves none behind.
    drop(sockets);
    started.follow(spec, true)
}

fn go_on(socket: &Path, started: &mut StartedGuest) -> Result<()> {
    let mut monitor = Monitor::connect(socket, started.child(), LIMIT)?;
    let status = monitor.wait("query-status", &["inmigrate"], LIMIT)?;
    if status != "paused" && status != "postmigrate" && status != "prelaunch" {
        bail!("a resumed state is {status}");
    }
    monitor.call("cont", &json!({}))?;
    started.input().write_all(b"go\n")?;
    started.input().flush()?;
    Ok(())
}

/// Boots a guest up to where its init waits, and writes its state to a file.
///
/// # Errors
/// The guest never gets there ([`NotReady`]), or QEMU refuses.
pub fn save(spec: &Spec<'_>, state: &Path) -> Result<()> {
    let sockets = tempfile::tempdir().context("folder for the monitor's socket")?;
    let socket = sockets.path().join("qmp");
    let mut started = StartedGuest::new(spec, &["-qmp".to_owned(), monitor_argument(&socket)])?;
    let mut monitor = Monitor::connect(&socket, started.child(), LIMIT)
        .with_context(|| tail_of(&spec.dir.join("qemu.err")))?;
    // A lab that is killed from here on leaves none behind.
    drop(sockets);
    loop {
        match started.next(spec.speak_limit) {
            Some(ConsoleMark::Ready) => break,
            Some(ConsoleMark::Broken(why)) => bail!("init: {why}"),
            Some(_) => {}
            None => {
                started.end()?;
                let console = tail_of(&spec.dir.join("console.log"));
                return Err(anyhow!("it was to be saved; its console ends with:\n{console}"))
                    .context(NotReady);
            }
        }
    }
    // The shell is about to block in read(2).
    std::thread::sleep(Duration::from_millis(200));
    monitor.call("stop", &json!({}))?;
    monitor.call("migrate-set-parameters", &json!({ "max-bandwidth": 10_000_000_000_u64 }))?;
    // QEMU is done before the last bytes are on the disk, and does not tell when the disk is full.
    let whole = spec.dir.join("whole");
    let uri = format!("exec:cat >{} && : >{}", quoted_path(state)?, quoted_path(&whole)?);
    monitor.call("migrate", &json!({ "uri": uri }))?;
    let underway = ["none", "setup", "active", "device", "pre-switchover"];
    let status = monitor.wait("query-migrate", &underway, LIMIT)?;
    if status != "completed" {
        bail!("saving the guest's state: {status}");
    }
    let until = Instant::now() + LIMIT;
    while !whole.exists() {
        if Instant::now() > until {
            bail!("{}: QEMU's state was not written; is the disk full?", state.display());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    started.end()
}

fn monitor_argument(socket: &Path) -> String {
    format!("unix:{},server=on,wait=off", socket.display())
}

/// QEMU hands the command to a shell; a path of ours has no reason to need more quoting.
fn quoted_path(path: &Path) -> Result<String> {
    let text = path.display().to_string();
    if text.contains('\'') {
        bail!("{text}: choose a folder without an apostrophe");
    }
    Ok(format!("'{text}'"))
}

#[cfg(test)]
mod tests {
    use rtproof_guest::{Emulator, process::NEVER};

    use super::*;

    #[test]
    fn a_state_that_cannot_be_resumed_is_told_at_once() {
        let began = Instant::now();
        let dir = tempfile::tempdir().unwrap();
        let script = "echo no such state >&2; exit 1";
        let spec = Spec {
            emulator: &Emulator {
                program: "/bin/sh".into(),
                arguments: vec!["-c".into(), script.into()],
                version: (7, 2, 0),
            },
            arguments: Vec::new(),
            dir: dir.path(),
            speak_limit: LIMIT,
            limit: LIMIT,
            cues: &[],
            ends_at_panic: false,
            interrupted: NEVER,
        };
        let error = resume(&spec, Path::new("/nowhere/state")).unwrap_err();
        assert!(error.is::<NotReady>(), "{error:#}");
        assert!(format!("{error:#}").contains("no such state"), "{error:#}");
        assert!(began.elapsed() < LIMIT / 2, "it waits for a monitor that never comes");
    }
}
