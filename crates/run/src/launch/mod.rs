//! `rtproof run`: starts a program as a real-time application, accompanies it, and undoes
//! everything at its end.
//!
//! [`plan`] decides and changes nothing; [`start`] sets what was planned, starts the program
//! ([`threads`] sets itself up and becomes it), waits, and says what the program got. What is
//! changed of the machine is in a journal of `tune`, and a guard undoes it when this process is
//! killed.

mod place;
mod plan;
mod run_record;
mod run_record_thread;
mod service;
mod setup;
mod start;
pub mod threads;

pub use plan::{PlannedLaunch, plan};
pub use run_record::{Proved, WantedRecord};
pub use start::{LaunchObserver, LaunchResult, recover, start};

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use run_record::{PreparedRecord, RunRecord};
use rustix::{
    fs::{Access, access},
    io::Errno,
    thread::{
        CapabilitySet, CoreSchedulingScope, core_scheduling_cookie, create_core_scheduling_cookie,
        gettid,
    },
};
use serde::{Deserialize, Serialize};
use threads::Threads;

use rtproof_host::{
    CpuList, Facts, Root,
    door::{Invalid, UsageError, usage},
    tune::Scheduling,
};
use rtproof_measure::{
    recorder::{Recorder, RecorderSettings},
    thread::pin_all,
};
use rtproof_trace::scan::Subjects;

use crate::explain::live::{Closed, LiveWatch, settings};
use crate::intent::PRIORITY;

// Core scheduling: a cookie of the program's own, with which no other task runs on the other
// threads of its core at the same time (kernel/sched/core_sched.c). It ends with the program.

/// The cookie of this thread, 0 for none: it shows whether the kernel has core scheduling.
///
/// # Errors
/// It has none: why, and what to do.
fn cookie() -> Result<u64, String> {
    core_scheduling_cookie(gettid(), CoreSchedulingScope::Thread).map_err(refused)
}

/// Gives this thread a cookie, which all that it starts inherits, and reads it back.
fn make_cookie() -> anyhow::Result<()> {
    let before = cookie().map_err(anyhow::Error::msg)?;
    create_core_scheduling_cookie(gettid(), CoreSchedulingScope::Thread)
        .map_err(|error| anyhow::Error::msg(refused(error)))?;
    let now = cookie().map_err(anyhow::Error::msg)?;
    anyhow::ensure!(now != 0 && now != before, "PR_SCHED_CORE_CREATE: no new cookie came of it");
    Ok(())
}

fn refused(error: Errno) -> String {
    let why = match error {
        Errno::NODEV => {
            "no core has two threads that are online (SMT is off, or there is none): no other task \
             shares a core with the program anyway; leave --core-sched out"
        }
        Errno::INVAL => {
            "this kernel has no core scheduling: it came with Linux 5.14 and needs \
             CONFIG_SCHED_CORE; give the program whole cores (--cpus with both threads)"
        }
        _ => "the kernel refuses it: is this a container with a seccomp filter?",
    };
    format!("prctl(PR_SCHED_CORE): {error}; {why}")
}

/// What the cookie means for these CPUs, where their cores are known.
fn cookie_note(facts: &Facts, cpus: &CpuList) -> Option<String> {
    let mut others = CpuList::default();
    for number in cpus.iter() {
        let cpu = facts.cpus.cpus.iter().find(|cpu| cpu.id == number)?;
        others = others.union(&cpu.siblings.value()?.difference(cpus));
    }
    Some(match others.is_empty() {
        true => format!("No other CPU shares a core with {}: none idles.", cpus.phrase()),
        false => format!(
            "Core scheduling: while the program runs on {}, nothing runs on the other thread of \
             that core ({}); while a task of higher priority runs there, the program waits.",
            cpus.phrase(),
            others.phrase()
        ),
    })
}

/// Why a program was not started, or not undone: each has an exit code of its own, so that a script
/// can tell it from the program's.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command line is wrong.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// There is no such program.
    #[error("{0}")]
    NotFound(String),
    /// The program cannot be executed.
    #[error("{0}")]
    NotExecutable(String),
    /// A signal came before the program was started.
    #[error("{0}")]
    Interrupted(String, i32),
    /// It could not be set up; what was changed is undone.
    #[error("{0:#}")]
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for LaunchError {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<UsageError>() {
            Ok(usage) => Self::Usage(usage),
            Err(error) => Self::Failed(error),
        }
    }
}

// Which file a program is: found before anything is set, so that a slip of the keys changes
// nothing.

/// Looks the program up as execvp(3) does.
///
/// # Errors
/// It does not exist, or cannot be executed.
fn find_program(program: &OsStr) -> Result<PathBuf, LaunchError> {
    let name = Path::new(program);
    if program.is_empty() {
        return Err(LaunchError::NotFound("the name of the program is empty".into()));
    }
    if program.as_bytes().contains(&b'/') {
        return match why_not(name) {
            None => Ok(name.to_owned()),
            Some(error) => Err(error),
        };
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut refused = None;
    for folder in env::split_paths(&path) {
        let file = folder.join(name);
        match why_not(&file) {
            None => return Ok(file),
            Some(LaunchError::NotFound(_)) => {}
            Some(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        LaunchError::NotFound(format!(
            "{}: no such program in PATH; nothing was changed; name it by its path, e.g. ./{}",
            name.display(),
            name.display()
        ))
    }))
}

fn why_not(file: &Path) -> Option<LaunchError> {
    let shown = file.display();
    let cannot = |why: &str| {
        Some(LaunchError::NotExecutable(format!("{shown}: {why}; nothing was changed")))
    };
    match file.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            cannot("a folder on the way to it may not be searched")
        }
        Err(_) => {
            Some(LaunchError::NotFound(format!("{shown}: no such program; nothing was changed")))
        }
        Ok(found) if found.is_dir() => cannot("a folder, not a program"),
        Ok(_) if access(file, Access::EXEC_OK).is_err() => {
            cannot("not executable; chmod +x makes it so")
        }
        Ok(_) => None,
    }
}

// What the user asks for, checked as far as that needs no machine.

/// Shortest runtime of a deadline that the kernel takes (kernel/sched/deadline.c, `DL_SCALE`).
const RUNTIME_NS_MIN: u64 = 1 << 10;

/// Scheduling policy of a thread that `run` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchPolicy {
    Fifo,
    Rr,
    Deadline,
    Other,
}

impl LaunchPolicy {
    /// As the kernel's structures name it here.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Deadline => "deadline",
            Self::Other => "other",
        }
    }
}

/// How a program is kept on its CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// A partition where one can be made, else affinity.
    #[default]
    Auto,
    /// A partition of cgroup v2, or nothing is started.
    Partition,
    Affinity,
}

/// The limit on the exit latency of idle states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyLimit {
    /// 0 for a real-time policy, where the machine has the file; none otherwise.
    #[default]
    Auto,
    Off,
    /// So many microseconds, or nothing is started.
    Us(u32),
}

/// From which NUMA nodes a program takes memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// As the kernel chooses.
    #[default]
    Kernel,
    /// From those of its CPUs alone.
    Local,
    /// From those of a list alone.
    Nodes(String),
}

/// What the user asks for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub command: Vec<OsString>,
    /// A service of systemd to be started instead.
    pub unit: Option<String>,
    /// The command line, for the title of the journal.
    pub title: String,
    pub cpus: Option<String>,
    /// How it is kept there.
    pub place: Confinement,
    pub policy: Option<LaunchPolicy>,
    pub priority: Option<u32>,
    /// Runtime of a deadline.
    pub runtime_ns: Option<u64>,
    pub deadline_ns: Option<u64>,
    /// Period of a deadline.
    pub period_ns: Option<u64>,
    /// Give it a cookie of core scheduling.
    pub core_sched: bool,
    pub memory: MemoryPolicy,
    /// Checks of the machine that are acted on; `None`: the usual ones.
    pub tune: Option<String>,
    /// Limit on the idle states.
    pub latency: LatencyLimit,
    /// User that the program runs as.
    pub user: Option<String>,
    /// Capabilities that it keeps.
    pub capabilities: Option<String>,
    /// Start with what can be set.
    pub best_effort: bool,
    /// Do not record kernel events.
    pub no_trace: bool,
    pub budget_ns: Option<u64>,
    /// Wake-ups later than this are explained.
    pub over_ns: u64,
    /// The record that is made; `None`: there is no budget, or none is wanted.
    pub record: Option<WantedRecord>,
    /// Check the rules of a real-time program; `None`: do not.
    pub rules: Option<crate::rules::RequestedRules>,
    /// A folder whose values are changed instead of the machine's: for tests.
    pub root: Option<PathBuf>,
}

impl Options {
    /// Class, and its priority or times.
    ///
    /// # Errors
    /// Usage: what does not go together.
    fn scheduling(&self) -> anyhow::Result<(LaunchPolicy, Scheduling)> {
        let times = [self.runtime_ns, self.deadline_ns, self.period_ns];
        let has_times = times.iter().any(Option::is_some);
        let policy = self.policy.unwrap_or(if has_times {
            LaunchPolicy::Deadline
        } else {
            LaunchPolicy::Fifo
        });
        let is_fixed = matches!(policy, LaunchPolicy::Fifo | LaunchPolicy::Rr);
        if has_times && policy != LaunchPolicy::Deadline {
            let name = policy.name();
            return Err(usage(format!(
                "--runtime, --deadline and --period are of --policy deadline, not of {name}"
            )));
        }
        if self.priority.is_some() && !is_fixed {
            let name = policy.name();
            return Err(usage(format!("--policy {name} has no --priority; fifo and rr have")));
        }
        let deadline_ns = match policy {
            LaunchPolicy::Deadline => Some(self.times().map_err(|why| usage(why.0))?),
            _ => None,
        };
        Ok((
            policy,
            Scheduling {
                policy: Some(policy.name().into()),
                priority: is_fixed.then(|| self.priority.unwrap_or(PRIORITY)),
                deadline_ns,
                // A deadline task may not fork without it; the others hand their policy on.
                reset_on_fork: Some(policy == LaunchPolicy::Deadline),
                ..Scheduling::default()
            },
        ))
    }

    fn times(&self) -> Result<[u64; 3], Invalid> {
        let (Some(runtime), Some(period)) = (self.runtime_ns, self.period_ns) else {
            return Err("--policy deadline needs --runtime and --period, e.g. --runtime 200us \
                        --period 1ms"
                .into());
        };
        let deadline = self.deadline_ns.unwrap_or(period);
        if runtime < RUNTIME_NS_MIN {
            return Err(format!("--runtime: the kernel takes {RUNTIME_NS_MIN} ns and more").into());
        }
        if runtime > deadline || deadline > period {
            return Err(
                "the runtime may not be longer than the deadline, nor that than the period".into(),
            );
        }
        Ok([runtime, deadline, period])
    }
}

// The wake-ups of the program's threads while it runs, by the engine of `explain --pid`.

/// Longest wait for the addresses of the kernel's timers.
const WATCHING_MAX: Duration = Duration::from_secs(15);

/// Records while a program runs.
struct Recording {
    watch: LiveWatch,
    begin_ns: u64,
    run_record: Option<RunRecord>,
}

impl Recording {
    /// Begins, before the program does.
    ///
    /// # Errors
    /// Why the kernel's events are not available, as a sentence.
    fn begin(facts: &Facts, own: Option<&CpuList>) -> Result<Self, String> {
        let cannot = |why: &str| format!("Wake-ups were not recorded: {why}.");
        let root = Root::live();
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let RecorderSettings { housekeeping, .. } = settings(facts, &online);
        let rest = own.map_or_else(|| housekeeping.clone(), |own| housekeeping.difference(own));
        let settings = RecorderSettings { housekeeping: rest.clone(), ..settings(facts, &online) };
        let recorder = Recorder::start(&root, facts, settings);
        let recorder = recorder.map_err(|error| cannot(&error.to_string()))?;
        // The threads of this process stay away from the program.
        let _ = pin_all(rest.as_slice());
        Ok(Self { watch: LiveWatch::new(recorder), begin_ns: 0, run_record: None })
    }

    /// Follows a process that is to become the program; `None`: what [`Self::follow`] names later.
    /// With what was `prepared`, its wake-ups go into a record.
    fn watch(
        &mut self,
        pid: Option<u32>,
        over_ns: u64,
        prepared: Option<PreparedRecord>,
    ) -> Result<(), String> {
        let subjects = Subjects {
            tids: pid.map(u32::cast_signed).into_iter().collect(),
            keeps: prepared.is_some(),
            ..Subjects::default()
        };
        let recorder = &self.watch.recorder;
        recorder.watch(Some((subjects, over_ns))).map_err(|error| error.to_string())?;
        let end = Instant::now() + WATCHING_MAX;
        while !recorder.is_watching() {
            if Instant::now() > end {
                return Err("the kernel's symbols could not be read in time".into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.begin_ns = crate::now_ns();
        self.run_record = prepared.map(|of| RunRecord::begin(of, over_ns));
        Ok(())
    }

    fn follow(&self, tids: Vec<u32>) {
        if !tids.is_empty() {
            // A recorder that has stopped counts no more: `close` says what it lost.
            let _ = self.watch.recorder.follow(tids.into_iter().map(u32::cast_signed).collect());
        }
    }

    /// Explains what has come since.
    fn take(&mut self) {
        // Each of these is among the wake-ups that are kept by then.
        let late = self.watch.recorder.take();
        if let Some(run_record) = &mut self.run_record {
            run_record.woke(self.watch.recorder.take_kept());
        }
        for (wake, window) in late {
            let found = self.run_record.as_mut().and_then(|of| of.explained(&wake, &window));
            self.watch.explained(&wake, window, found, self.begin_ns);
        }
    }

    /// What there is to do once a second.
    fn second(&mut self, threads: &Threads) {
        let info = self.watch.info();
        if let Some(run_record) = &mut self.run_record {
            run_record.tick(threads, info);
        }
    }

    /// Ends; with what goes into a record, where one is made.
    fn close(mut self) -> (Closed, Option<RunRecord>, u64) {
        self.watch.recorder.stop();
        self.take();
        let lost = self.watch.recorder.stats().kept_lost;
        let run_record = self.run_record.take();
        (self.watch.close(self.begin_ns), run_record, lost)
    }
}

// Another user for the program, and the capabilities that it keeps.

/// A user as the kernel knows one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct User {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    name: String,
    home: String,
}

/// A user by name, or by number (`UID` or `UID:GID`). Only /etc/passwd and /etc/group are asked: a
/// static program cannot ask a directory service.
fn user(root: &Root, asked: &str) -> Result<User, Invalid> {
    let text = |path: &str| root.read_text(path).value().cloned().unwrap_or_default();
    find_user(&text("/etc/passwd"), &text("/etc/group"), asked)
}

fn find_user(passwd: &str, group: &str, asked: &str) -> Result<User, Invalid> {
    let (uid, gid) = match asked.split_once(':') {
        Some((uid, gid)) => (uid, Some(number(gid)?)),
        None => (asked, None),
    };
    let entry = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| {
        fields.len() >= 6 && (fields[0] == uid || gid.is_none() && fields[2] == uid)
    });
    match (entry, gid) {
        (Some(fields), None) => {
            let gid = number(fields[3])?;
            let is_member = |line: &&str| {
                line.rsplit_once(':')
                    .is_some_and(|(_, all)| all.split(',').any(|of| of == fields[0]))
            };
            let of = |line: &str| line.split(':').nth(2)?.parse().ok();
            let mut groups: Vec<u32> = group.lines().filter(is_member).filter_map(of).collect();
            groups.push(gid);
            groups.sort_unstable();
            groups.dedup();
            let (name, home) = (fields[0].into(), fields[5].into());
            Ok(User { uid: number(fields[2])?, gid, groups, name, home })
        }
        (None, None) => Err(format!(
            "no such user in /etc/passwd; one of a directory service is named by its numbers, as \
             {asked}: UID:GID"
        )
        .into()),
        (_, Some(gid)) => {
            let uid = number(uid)?;
            Ok(User { uid, gid, groups: vec![gid], name: uid.to_string(), home: "/".into() })
        }
    }
}

fn number(text: &str) -> Result<u32, Invalid> {
    // The largest means "as it is" to the kernel.
    text.parse().ok().filter(|id| *id != u32::MAX).ok_or_else(|| {
        format!("{text}: expected the number of a user or a group, e.g. --user 1000:1000").into()
    })
}

/// Capabilities by name, with or without `cap_`; `none`.
fn capabilities(asked: &str) -> Result<CapabilitySet, Invalid> {
    if asked == "none" {
        return Ok(CapabilitySet::empty());
    }
    let mut all = CapabilitySet::empty();
    for word in asked.split(',').map(str::trim) {
        let name = word.to_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name);
        all |= CapabilitySet::from_name(name).ok_or_else(|| {
            format!("{word}: no such capability; write e.g. sys_nice,ipc_lock, or none")
        })?;
    }
    Ok(all)
}

#[cfg(test)]
mod core_tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_next_step() {
        assert!(refused(Errno::NODEV).contains("leave --core-sched out"));
        assert!(refused(Errno::INVAL).contains("CONFIG_SCHED_CORE"));
        assert!(refused(Errno::PERM).contains("seccomp"));
    }

    #[test]
    fn what_the_kernel_has_can_be_set_and_what_it_lacks_is_refused() {
        // A thread of its own, which ends with its cookie.
        let made = thread::spawn(make_cookie).join().unwrap();
        assert_eq!(made.is_ok(), cookie().is_ok(), "{made:?}");
    }
}

#[cfg(test)]
mod file_tests {
    use super::*;

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        assert!(find_program(OsStr::new("true")).is_ok());
        assert!(find_program(OsStr::new("/bin/true")).is_ok());
        for missing in ["no-such-program-here", "/no/such", "./no-such", ""] {
            let error = find_program(OsStr::new(missing)).unwrap_err();
            assert!(matches!(error, LaunchError::NotFound(_)), "{missing}: {error}");
        }
        for wrong in ["/etc/passwd", "/etc"] {
            let error = find_program(OsStr::new(wrong)).unwrap_err();
            assert!(matches!(error, LaunchError::NotExecutable(_)), "{wrong}: {error}");
        }
    }
}

#[cfg(test)]
mod options_tests {
    use super::*;

    fn said(options: Options) -> String {
        options.scheduling().unwrap_err().to_string()
    }

    #[test]
    fn a_program_is_fifo_by_default() {
        let (policy, scheduling) = Options::default().scheduling().unwrap();
        assert_eq!((policy, scheduling.priority), (LaunchPolicy::Fifo, Some(PRIORITY)));
        let other = Options { policy: Some(LaunchPolicy::Other), ..Options::default() };
        assert_eq!(other.scheduling().unwrap().1.priority, None);
        let times =
            Options { runtime_ns: Some(200_000), period_ns: Some(1_000_000), ..Options::default() };
        let (policy, scheduling) = times.scheduling().unwrap();
        assert_eq!(policy, LaunchPolicy::Deadline);
        assert_eq!(scheduling.deadline_ns, Some([200_000, 1_000_000, 1_000_000]));
        assert_eq!(scheduling.reset_on_fork, Some(true));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let deadline = || Options { policy: Some(LaunchPolicy::Deadline), ..Options::default() };
        assert!(said(deadline()).contains("needs --runtime and --period"));
        assert!(said(Options { priority: Some(3), ..deadline() }).contains("no --priority"));
        let fifo =
            Options { policy: Some(LaunchPolicy::Fifo), period_ns: Some(1), ..Options::default() };
        assert!(said(fifo).contains("not of fifo"));
        let times = |runtime, period| {
            said(Options { runtime_ns: Some(runtime), period_ns: Some(period), ..deadline() })
        };
        assert!(times(2_000, 1_500).contains("longer than the deadline"));
        assert!(times(10, 1_500).contains("1024 ns and more"));
    }
}

#[cfg(test)]
mod user_tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nrt:x:1000:1000::/home/rt:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nrealtime:x:95:rt,other\nrt:x:1000:\naudio:x:29:other\n";

    #[test]
    fn a_user_has_the_groups_of_the_system() {
        let rt = find_user(PASSWD, GROUP, "rt").unwrap();
        assert_eq!((rt.uid, rt.gid, rt.groups.as_slice()), (1000, 1000, &[95, 1000][..]));
        assert_eq!(rt.home, "/home/rt");
        assert_eq!(find_user(PASSWD, GROUP, "1000").unwrap(), rt);
        let bare = find_user(PASSWD, GROUP, "4711:4712").unwrap();
        assert_eq!((bare.uid, bare.groups.as_slice()), (4711, &[4712][..]));
        for wrong in ["nobody-here", "5", "x:1", "1:x", "1:4294967295", ""] {
            assert!(find_user(PASSWD, GROUP, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn capabilities_have_the_kernels_names() {
        let two = CapabilitySet::SYS_NICE | CapabilitySet::IPC_LOCK;
        assert_eq!(capabilities("sys_nice,CAP_IPC_LOCK"), Ok(two));
        assert_eq!(capabilities("none"), Ok(CapabilitySet::empty()));
        assert!(capabilities("sys_fast").is_err());
        assert!(capabilities("").is_err());
    }
}
