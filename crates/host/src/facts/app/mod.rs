//! One application: its processes and threads, its control groups, its unit.
//!
//! Not a part of [`crate::Facts`]: a machine has many applications, and a record of a run is about
//! the machine. Everything is read from files, so that a capture that reads the same
//! application answers the same.

mod groups;
mod process;
mod unit_file;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use groups::{CpuGroup, CpusetGroup, Groups, MemoryGroup, Quota};
pub use process::{Process, ProcessLimits, Status, Thread, ThreadSched, ThreadStatus};
pub(crate) use unit_file::is_setting as is_unit_setting;
pub use unit_file::{Assignment, UnitFile};

use super::tasks::unit_of;
use crate::{Reading, Root, reading::State};

/// Most processes of a unit that are looked at: those that started first.
const PROCESSES_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The process with this id, or the one that this thread belongs to.
    Pid(u32),
    /// Every process of a systemd unit; `.service` may be left out.
    Unit(String),
}

/// One application: its processes and threads, its unit and control groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct App {
    /// Name of the main process.
    pub name: String,
    /// Id of the main process: the first one with a real-time thread, else the first that started.
    pub pid: u32,
    /// Service or scope that it runs in, by its control group; `None`: neither.
    pub unit: Reading<Option<String>>,
    /// Processes: one, or those of the unit, the first that started first.
    pub processes: Vec<Process>,
    /// Control groups of the main process.
    pub groups: Groups,
    /// Settings of the unit, from its files; `None`: no unit.
    pub unit_file: Reading<Option<UnitFile>>,
    /// Slice of SCHED_RR in milliseconds (/proc/sys/kernel/sched_rr_timeslice_ms).
    pub rr_timeslice_ms: Reading<u64>,
    /// Time since boot in clock ticks of 10 ms, which the kernel's ABI counts in (/proc/uptime).
    pub uptime_ticks: Reading<u64>,
}

/// Why an application cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("no process {0} can be seen: list processes with `ps -e` as root")]
    NoProcess(u32),
    /// The process cannot be looked at.
    #[error("process {pid}: {path}: {why}; {next}")]
    Unreadable {
        pid: u32,
        /// File that was read.
        path: String,
        why: String,
        next: &'static str,
    },
    /// A thread of the kernel.
    #[error(
        "process {0} is a thread of the kernel, no application: `rtproof check` without --pid \
         judges the machine's threads"
    )]
    KernelThread(u32),
    /// Processes cannot be listed.
    #[error("{path}: {why}; name the process with --pid")]
    NoList {
        /// Folder that was read.
        path: String,
        why: String,
    },
    #[error("no unit {0}: list services with `systemctl list-units --type=service`")]
    NoUnit(String),
    /// The unit has no process.
    #[error("{0} has no process: start it with `systemctl start {0}`")]
    NotRunning(String),
}

impl App {
    /// Reads an application: some files for each thread, more for each real-time thread. Changes
    /// nothing, and asks for nothing that takes a lock of the application's memory.
    ///
    /// # Errors
    /// No such process or unit, a unit that does not run, a thread of the kernel.
    pub fn read(root: &Root, target: &Target) -> Result<Self, AppError> {
        let processes = match target {
            Target::Pid(pid) => vec![of_pid(root, *pid)?],
            Target::Unit(name) => of_unit(root, &full_name(name))?,
        };
        let is_real_time = |process: &&Process| process.real_time().next().is_some();
        let main = processes.iter().find(is_real_time).or_else(|| processes.first());
        let Some(main) = main else {
            // `of_unit` gives at least one.
            return Err(AppError::NoProcess(0));
        };
        let cgroup = root.read_text(&format!("/proc/{}/cgroup", main.pid));
        let unit = cgroup.clone().map(|text| unit_of(&text).filter(|name| is_running_unit(name)));
        let unit_file = unit_file::read(root, &cgroup, &unit);
        Ok(Self {
            name: main.name.clone(),
            pid: main.pid,
            groups: Groups::read(root, &cgroup),
            unit,
            unit_file,
            rr_timeslice_ms: root.number("/proc/sys/kernel/sched_rr_timeslice_ms", "milliseconds"),
            uptime_ticks: root
                .read_text("/proc/uptime")
                .parsed("seconds since boot, with two decimals", uptime_ticks),
            processes,
        })
    }

    /// Threads that are known, of all processes.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.processes.iter().flat_map(|process| process.threads.value().into_iter().flatten())
    }

    /// Number of known threads.
    pub fn thread_count(&self) -> usize {
        self.threads().count()
    }
}

/// The process that a process or thread id belongs to.
fn of_pid(root: &Root, pid: u32) -> Result<Process, AppError> {
    let path = format!("/proc/{pid}/status");
    let status = root.read_text(&path);
    let Some(text) = status.value() else {
        let why = status.why_unknown().unwrap_or_default();
        return Err(match &status.state {
            State::Absent => AppError::NoProcess(pid),
            _ if root.is_live() => AppError::Unreadable { pid, path, why, next: "run as root" },
            _ => {
                let next = "capture the machine again, with this process";
                AppError::Unreadable { pid, path, why, next }
            }
        });
    };
    let group = text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = Process::read(root, group.unwrap_or(pid)).ok_or(AppError::NoProcess(pid))?;
    if process.is_kernel_thread { Err(AppError::KernelThread(pid)) } else { Ok(process) }
}

/// Processes whose control group lies in the unit's.
fn of_unit(root: &Root, name: &str) -> Result<Vec<Process>, AppError> {
    let pids = root.list_numbered("/proc", "");
    let Some(pids) = pids.value() else {
        let why = pids.why_unknown().unwrap_or_default();
        return Err(AppError::NoList { path: pids.path.clone(), why });
    };
    let is_of_unit = |pid: &&u32| {
        let cgroup = root.read_text(&format!("/proc/{pid}/cgroup"));
        let is_in = |line: &str| {
            let path = line.splitn(3, ':').nth(2).unwrap_or_default();
            path.split('/').any(|part| part == name)
        };
        cgroup.value().is_some_and(|text| text.lines().any(is_in))
    };
    // Ids rise with the time of the start until they wrap round: the order is settled below.
    let found = pids.iter().filter(is_of_unit).filter_map(|&pid| Process::read(root, pid));
    let mut processes: Vec<Process> = found.take(PROCESSES_MAX).collect();
    processes.sort_by_key(|process| (process.start_ticks, process.pid));
    if !processes.is_empty() {
        return Ok(processes);
    }
    match unit_file::find(root, name) {
        Some((file, _)) => match alias(root, &file, name) {
            Some(target) => of_unit(root, &target),
            None => Err(AppError::NotRunning(name.into())),
        },
        None => Err(AppError::NoUnit(name.into())),
    }
}

/// The unit that a file is an alias of: a link to a file of another name. Groups bear its name.
fn alias(root: &Root, file: &str, name: &str) -> Option<String> {
    let target = root.read_link(file);
    let target = target.value()?.rsplit('/').next()?;
    let is_unit = is_running_unit(target) && target != name && !target.contains("@.");
    // An alias of an alias is none for systemd: this ends.
    let is_alias =
        root.read_link(&format!("{}/{target}", file.rsplit_once('/')?.0)).value().is_none();
    (is_unit && is_alias).then(|| target.to_owned())
}

/// A unit's name with its kind, as systemctl completes it.
fn full_name(name: &str) -> String {
    let kinds = [".service", ".scope", ".slice"];
    let is_full = kinds.iter().any(|kind| name.ends_with(kind));
    if is_full { name.into() } else { format!("{name}.service") }
}

fn is_running_unit(name: &str) -> bool {
    name.ends_with(".service") || name.ends_with(".scope")
}

/// Seconds with two decimals, as /proc/uptime begins: a hundred ticks a second.
pub(super) fn uptime_ticks(text: &str) -> Option<u64> {
    let (whole, part) = text.split_whitespace().next()?.split_once('.')?;
    whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests;
