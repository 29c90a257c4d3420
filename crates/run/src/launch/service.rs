//! A service of systemd as the program: set by a drop-in file that lasts as long as the run,
//! started and stopped by systemd, observed in its control group (systemd.exec(5), systemctl(1)).

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use rtproof_host::{
    CpuList, Root,
    door::usage,
    task,
    tune::{Change, ServiceManager as _, Systemctl, UnitState},
};
use rtproof_judge::{
    Impact,
    plan::{Reason, Step},
};
use rtproof_results::launch::ProgramEnding;

use super::LaunchError;
use super::setup::ProgramSetup;

/// Folder of units that the next boot does not have.
const RUNTIME: &str = "/run/systemd/system";

/// Read after the drop-in files of others, which are sorted by name whatever their folder.
const FILE: &str = "zz-rtproof-run.conf";

/// What is asked of systemd.
const PROPERTIES: &str = "LoadState,ActiveState,SubState,MainPID,ExecMainPID,ExecMainCode,\
    ExecMainStatus,Result,Job,InvocationID,ControlGroup,CPUSchedulingPolicy,\
    CPUSchedulingPriority,CPUAffinity,LimitRTPRIO,LimitMEMLOCK";

/// Time between two questions.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long a service may be without a process before it counts as not started.
const START_MAX: Duration = Duration::from_secs(90);

/// Exit statuses by which systemd says that it could not set the process up (systemd.exec(5)).
const SETUP_FAILED: std::ops::RangeInclusive<u8> = 200..=245;

#[derive(Clone, Debug)]
pub(super) struct LaunchedService {
    pub(super) name: String,
    /// The invocation before this one.
    before: String,
    /// Whether it gets CPUs of its own; else those of its unit stay.
    pub(super) has_cpus: bool,
}

/// What systemd says of a unit.
struct Shown(BTreeMap<String, String>);

impl Shown {
    fn ask(name: &str) -> anyhow::Result<Self> {
        let text = systemctl(&["show", name, "-p", PROPERTIES])?;
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(Self(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }

    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn number<T: std::str::FromStr + Default>(&self, key: &str) -> T {
        self.get(key).parse().unwrap_or_default()
    }
}

/// Finds a service that can be started.
///
/// # Errors
/// No systemd, no such service, one that is masked or runs already.
pub(super) fn find(root: &Root, name: &str) -> Result<LaunchedService, LaunchError> {
    let name = match name.contains('.') {
        true => name.to_owned(),
        false => format!("{name}.service"),
    };
    if !name.ends_with(".service") {
        let text = format!("--unit {name}: a service runs programs, other units do not");
        return Err(usage(text).into());
    }
    let wanted = Change::Unit { unit: name.clone(), want: UnitState::Started };
    wanted.may_be_made().map_err(|why| usage(format!("--unit {why}")))?;
    if !root.exists("/run/systemd/system") {
        let text = "--unit: systemd does not run here; start the program itself: rtproof run \
                    [options] -- PROGRAM";
        return Err(LaunchError::Failed(anyhow::anyhow!(text)));
    }
    let file = path(&name);
    if root.exists(&file) {
        return Err(LaunchError::Failed(anyhow::anyhow!(
            "{file}: another rtproof run has {name}: wait for its end (rtproof tune status). \
             Nothing was changed"
        )));
    }
    let shown = Shown::ask(&name)?;
    match (shown.get("LoadState"), shown.get("ActiveState")) {
        ("not-found", _) => {
            let text = format!("{name}: no such unit; nothing was changed; systemctl list-units");
            Err(LaunchError::NotFound(text))
        }
        ("loaded", "inactive" | "failed") => {
            let before = shown.get("InvocationID").to_owned();
            Ok(LaunchedService { name, before, has_cpus: false })
        }
        ("loaded", state) => Err(LaunchError::Failed(anyhow::anyhow!(
            "{name} is {state}: how its threads run is decided when they start. Stop it first: \
             systemctl stop {name}; to look at it as it is: rtproof explain --pid {}. Nothing was \
             changed",
            shown.get("MainPID")
        ))),
        (state, _) => Err(LaunchError::NotExecutable(format!(
            "{name} is {state}; nothing was changed; systemctl status {name}"
        ))),
    }
}

/// Folder of its drop-in files.
fn folder(name: &str) -> String {
    format!("{RUNTIME}/{name}.d")
}

fn path(name: &str) -> String {
    format!("{}/{FILE}", folder(name))
}

impl LaunchedService {
    /// What makes it a real-time application until the file is removed again.
    pub(super) fn steps(&self, setup: &ProgramSetup) -> Vec<Step> {
        let (folder, path) = (folder(&self.name), path(&self.name));
        let content = Some(self.drop_in(setup).as_str().into());
        let reason = Reason {
            checks: vec!["app-unit".into()],
            why: "systemd starts the service with these settings; its own file stays as it is"
                .into(),
            impact: Impact::Milliseconds,
            trade_off: None,
            risk: None,
        };
        let changes = [Change::Folder { path: folder }, Change::File { path, content, mode: None }];
        let step = |change| Step { change, reason: reason.clone() };
        changes.into_iter().map(step).collect()
    }

    fn drop_in(&self, setup: &ProgramSetup) -> String {
        let mut text =
            "# rtproof run --unit: removed at the end of the run\n[Service]\n".to_owned();
        let mut add = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        if self.has_cpus {
            // An empty line resets what the unit itself lists.
            add("CPUAffinity=".into());
            add(format!("CPUAffinity={}", setup.cpus));
        }
        let policy = setup.scheduling.policy.as_deref().unwrap_or("other");
        add(format!("CPUSchedulingPolicy={policy}"));
        if let Some(priority) = setup.scheduling.priority {
            add(format!("CPUSchedulingPriority={priority}"));
        }
        if let Some(limit) = setup.rtprio {
            add(format!("LimitRTPRIO={limit}"));
        }
        if setup.locks_memory {
            add("LimitMEMLOCK=infinity".into());
        }
        if let Some(nodes) = &setup.nodes {
            add("NUMAPolicy=bind".into());
            add(format!("NUMAMask={nodes}"));
        }
        text
    }

    /// How systemd shows what the file sets.
    fn properties(&self, setup: &ProgramSetup) -> Vec<(&'static str, String)> {
        let policy = match setup.scheduling.policy.as_deref() {
            Some("fifo") => "1",
            Some("rr") => "2",
            _ => "0",
        };
        let mut all = vec![("CPUSchedulingPolicy", policy.to_owned())];
        all.extend(self.has_cpus.then(|| (CPUS, setup.cpus.to_string())));
        all.extend(setup.scheduling.priority.map(|of| ("CPUSchedulingPriority", of.to_string())));
        all.extend(setup.rtprio.map(|of| ("LimitRTPRIO", of.to_string())));
        all.extend(setup.locks_memory.then(|| ("LimitMEMLOCK", "infinity".to_owned())));
        all
    }

    /// Starts the service, if systemd has the settings of the file.
    ///
    /// # Errors
    /// systemd has other settings than those of the file, or does not start it.
    pub(super) fn start(&self, setup: &ProgramSetup) -> anyhow::Result<StartedService> {
        let shown = Shown::ask(&self.name)?;
        let differs = |(key, wanted): &(&str, String)| {
            let has = shown.get(key);
            has != wanted && (*key != CPUS || cpus(has).as_ref() != Some(&setup.cpus))
        };
        if let Some((key, wanted)) = self.properties(setup).into_iter().find(differs) {
            let (name, has) = (&self.name, shown.get(key));
            anyhow::bail!(
                "{name}: systemd has {key}={has} where {wanted} was set: another drop-in file \
                 comes after {FILE}; systemctl cat {name}"
            );
        }
        systemctl(&["start", "--no-block", &self.name])?;
        let began = Instant::now();
        let mut started = StartedService {
            service: self.clone(),
            group: None,
            main: 0,
            asked_at: Instant::now(),
            ending: ProgramEnding::Exited(0),
            is_forgotten: false,
        };
        loop {
            let shown = Shown::ask(&self.name)?;
            let is_new = shown.get("InvocationID") != self.before;
            if is_new && shown.number::<u32>("ExecMainPID") != 0 {
                started.take(&shown);
                return Ok(started);
            }
            let has_no_job = matches!(shown.get("Job"), "" | "0");
            let is_off = matches!(shown.get("ActiveState"), "inactive" | "failed");
            let name = &self.name;
            anyhow::ensure!(
                !(is_off && has_no_job && began.elapsed() > POLL_INTERVAL),
                "{name} has no process: it was not started, or has ended at once ({}); systemctl \
                 status {name}",
                shown.get("Result")
            );
            if began.elapsed() > START_MAX {
                let _ = systemctl(&["stop", "--no-block", name]);
                let seconds = START_MAX.as_secs();
                anyhow::bail!("{name} has no process after {seconds} s: systemctl status {name}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A service that systemd has started.
#[derive(Debug)]
pub(super) struct StartedService {
    service: LaunchedService,
    /// Its control group, as a folder.
    group: Option<String>,
    /// Its main process, the last one where it was started again.
    main: u32,
    asked_at: Instant,
    ending: ProgramEnding,
    /// Whether systemd has dropped what it knew of the run, as it does after a success.
    is_forgotten: bool,
}

impl StartedService {
    pub(super) const fn main(&self) -> u32 {
        self.main
    }

    pub(super) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    fn take(&mut self, shown: &Shown) {
        if let main @ 1.. = shown.number::<u32>("ExecMainPID") {
            self.main = main;
        }
        let group = shown.get("ControlGroup");
        if self.group.is_none() && !group.is_empty() {
            let tops = ["", "/systemd", "/unified"];
            let at = tops.map(|top| format!("/sys/fs/cgroup{top}{group}"));
            self.group = at.into_iter().find(|path| Path::new(path).is_dir());
        }
    }

    pub(super) fn pids(&self, root: &Root) -> Vec<u32> {
        match &self.group {
            Some(group) => task::in_group(root, group),
            // One that ended before it could be looked at has none.
            None if task::start_ticks(root, self.main).is_some() => vec![self.main],
            None => Vec::new(),
        }
    }

    /// Looks whether it has ended, and is not about to be started again.
    ///
    /// # Errors
    /// systemd does not answer.
    pub(super) fn has_ended(&mut self, root: &Root) -> anyhow::Result<bool> {
        // One that was started again has other processes, and with them another first one.
        if self.asked_at.elapsed() < POLL_INTERVAL || task::start_ticks(root, self.main).is_some() {
            return Ok(false);
        }
        self.asked_at = Instant::now();
        let shown = Shown::ask(&self.service.name)?;
        self.take(&shown);
        let is_off = matches!(shown.get("ActiveState"), "inactive" | "failed");
        // A service that stays active after its last process has ended (RemainAfterExit).
        let is_over = is_off && matches!(shown.get("Job"), "" | "0");
        self.ending = ending(&shown);
        self.is_forgotten = shown.get("ExecMainPID") == "0";
        Ok((is_over || shown.get("SubState") == "exited") && self.pids(root).is_empty())
    }

    pub(super) const fn ending(&self) -> ProgramEnding {
        self.ending
    }

    /// Lets systemd stop it, as its unit says.
    pub(super) fn stop(&self) {
        // One that does not answer now is asked again with the next signal.
        let _ = systemctl(&["stop", "--no-block", &self.service.name]);
    }

    /// What an exit status says that is not the program's.
    pub(super) fn note(&self, ending: ProgramEnding) -> Option<String> {
        let name = &self.service.name;
        match ending {
            ProgramEnding::Exited(status) if SETUP_FAILED.contains(&status) => Some(format!(
                "Exit status {status} may be systemd's own, which ends so where it cannot set the \
                 process up: systemctl status {name}."
            )),
            ProgramEnding::Exited(0) if self.is_forgotten => Some(
                "systemd counts the end as a success, and keeps no more of it: exit status 0, or a \
                 signal by which services end, as SIGTERM."
                    .into(),
            ),
            ProgramEnding::Exited(_) | ProgramEnding::Killed(_) => None,
        }
    }
}

/// CLD_EXITED of waitid(2); else a signal ended it.
fn ending(shown: &Shown) -> ProgramEnding {
    match (shown.get("ExecMainCode"), shown.number("ExecMainStatus")) {
        ("1" | "", status) => ProgramEnding::Exited(u8::try_from(status).unwrap_or(u8::MAX)),
        // No process was started.
        ("0", _) => ProgramEnding::Exited(u8::from(shown.get("Result") != "success")),
        (_, signal) => ProgramEnding::Killed(signal),
    }
}

/// The property whose value is a list of CPUs.
const CPUS: &str = "CPUAffinity";

/// `1-3 5`; before systemd 246 `1 2 3 5`.
fn cpus(shown: &str) -> Option<CpuList> {
    CpuList::parse(&shown.replace(' ', ","), None).ok()
}

fn systemctl(arguments: &[&str]) -> anyhow::Result<String> {
    let shown = || format!("systemctl {}", arguments.join(" "));
    let answer = Systemctl.systemctl(arguments).with_context(shown)?;
    anyhow::ensure!(answer.success, "{}: {}", shown(), answer.complaint);
    Ok(answer.text)
}
