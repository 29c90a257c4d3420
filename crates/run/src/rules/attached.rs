//! The rules of a program that already runs: it is not changed, and goes on when the observation
//! ends.

use std::time::Duration;

use anyhow::Context as _;
use rtproof_host::{CpuList, Facts, Root, facts::app::App};
use rtproof_measure::program::{Purpose, attach};
use rtproof_results::rules::Rules;

use super::{
    Monitored, Ready, Requested, Watching, heard, not_observed,
    threads::{Thread, list, program, runs},
};
use crate::{clock::now_ns, prove::signals::Signals};

/// How often its end is looked for.
const POLL: Duration = Duration::from_millis(50);

/// What was found of a running program.
#[derive(Debug)]
pub struct Attached {
    pub pid: u32,
    pub name: String,
    pub rules: Rules,
}

/// Checks the rules of a program that already runs, for a time, or until it ends or a signal comes.
/// Its processes and threads are not changed.
///
/// # Errors
/// No such process, or one that cannot be an application (usage).
pub fn observe(pid: u32, for_ns: u64) -> anyhow::Result<Attached> {
    let root = Root::live();
    let app = program(&root, pid)?;
    let signals = Signals::catch(&root).context("cannot catch signals")?;
    let requested = Requested { ready: Ready::Attached, for_ns: Some(for_ns) };
    let (pid, name) = (app.pid, app.name.clone());
    let online = Facts::read(&root).cpus.online.value().cloned().unwrap_or_default();
    let rules = match join(requested, pid, &online, None) {
        Ok(watching) => follow(&root, &app, &signals, watching),
        Err(why) => not_observed(requested, why),
    };
    Ok(Attached { pid, name, rules })
}

/// Begins to observe a process that runs. `own`: the CPUs that it is to stay on.
pub(crate) fn join(
    requested: Requested,
    pid: u32,
    online: &CpuList,
    own: Option<&CpuList>,
) -> Result<Watching, String> {
    let root = Root::live();
    let list = || list(&root, pid);
    let tid = |of: &Thread| of.tid;
    let purpose = (Purpose::Rules, heard());
    let monitors = Monitored::begin(&root);
    let (watch, found) = attach(&root, &purpose, online.as_slice(), tid, list)?;
    if found.is_empty() {
        return Err(format!("process {pid} has ended"));
    }
    Watching::spawn(requested, pid, (watch, monitors), found, online, own)
}

fn follow(root: &Root, app: &App, signals: &Signals, mut watching: Watching) -> Rules {
    while !watching.is_stopped() && signals.came().is_none() && runs(root, app) {
        watching.look(false);
        std::thread::sleep(POLL);
    }
    watching.stop();
    watching.finish(now_ns())
}
