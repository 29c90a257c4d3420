//! `/etc/rtproof.toml`: the runtime part of a plan, which `rtproof.service` repeats at each boot.
//!
//! It is written from what was applied and may be edited by hand. What it names has to survive a
//! reboot: interrupts by their handler, hardware number and controller, tasks by their name and
//! unit. What lasts by itself (files, boot parameters) is not in it.

mod read;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they read")]
mod tests;
mod write;

pub use read::ConfigError;
pub use write::{NotRepeated, comment};

use std::cell::OnceCell;

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    CpuList, Root,
    door::Invalid,
    task,
    tune::{Change, Compare, IrqName, Scheduling, TaskName},
};
use rtproof_judge::plan::units;
use rtproof_trace::Task;

pub const PATH: &str = units::CONFIG;

/// Version of the format.
pub const VERSION: u32 = 1;

/// What is repeated at each boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Intent of the machine.
    pub intent: ConfigIntent,
    /// Changes, in the order in which they are made.
    pub changes: Vec<RepeatedChange>,
}

/// Intent of the machine, as far as the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigIntent {
    pub cpus: Option<CpuList>,
    /// Profile: the name of a built-in one or a file.
    pub profile: Option<String>,
    /// Priority of the application, 1 to 99.
    pub priority: Option<u32>,
    /// Period of its loop, nanoseconds.
    pub period_ns: Option<u64>,
    pub budget_ns: Option<u64>,
}

/// One change that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedChange {
    pub what: NamedChange,
    /// Checks whose findings asked for it.
    pub checks: Vec<String>,
    /// Why: the comment above it, a line each.
    pub reason: Vec<String>,
    /// Line of its kind in the file, from 1; 0: not from a file.
    pub line: usize,
}

/// A change by names that hold over boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedChange {
    /// A value, a folder, a unit ...; `*` in a path matches any part of a name.
    Plain(Change),
    /// Interrupts: all that is given has to fit.
    Irq {
        /// Names of the handlers; `*` stands for anything.
        actions: Option<String>,
        /// Number in the controller.
        hwirq: Option<String>,
        chip: Option<String>,
        cpus: CpuList,
    },
    /// Tasks: every one that fits.
    Task {
        /// Name; `*` stands for anything.
        comm: String,
        /// Unit of a service. Without one, only kernel threads match: anybody
        /// can give a process their names, and would get their priority.
        unit: Option<String>,
        set: Scheduling,
    },
}

impl Config {
    /// Units whose tasks are set: `rtproof.service` has to start after them.
    pub fn units(&self) -> Vec<String> {
        let unit = |repeated: &RepeatedChange| match &repeated.what {
            NamedChange::Task { unit, .. } => unit.clone(),
            _ => None,
        };
        let mut units: Vec<String> = self.changes.iter().filter_map(unit).collect();
        units.sort();
        units.dedup();
        units
    }
}

impl NamedChange {
    /// What it is about, in a few words.
    pub fn target(&self) -> String {
        match self {
            Self::Plain(change) => change.target(),
            Self::Irq { actions, hwirq, chip, .. } => {
                let named = [("actions", actions), ("hwirq", hwirq), ("chip", chip)];
                let named = named.iter().filter_map(|(name, value)| {
                    value.as_ref().map(|value| format!("{name} {value}"))
                });
                format!("interrupt with {}", named.collect::<Vec<_>>().join(", "))
            }
            Self::Task { comm, unit: Some(unit), .. } => format!("task {comm} of {unit}"),
            Self::Task { comm, unit: None, .. } => format!("kernel thread {comm}"),
        }
    }
}

/// How a value is compared where the file does not say: what the kernel shows otherwise than it
/// was written.
fn usual_compare(path: &str) -> Compare {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        "features" if path.contains("/sched") => Compare::Word,
        "cgroup.subtree_control" => Compare::Controller,
        _ if path.contains("/transparent_hugepage/") && !path.contains("khugepaged") => {
            Compare::Choice
        }
        "smp_affinity" | "default_smp_affinity" | "cpumask" | "rps_cpus" | "xps_cpus" => {
            Compare::CpuMask
        }
        "smp_affinity_list" | "cpuset.cpus" | "cpuset.cpus.exclusive" | "cpuset.mems" => {
            Compare::CpuList
        }
        _ => Compare::Text,
    }
}

/// Whether a name matches a pattern, in which `*` matches any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(head) else {
        return false;
    };
    let parts: Vec<&str> = rest.split('*').collect();
    let (last, middle) = parts.split_last().unwrap_or((&"", &[]));
    for part in middle {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.len() >= last.len() && name.ends_with(last)
}

// From the names of the file to what this boot has of them.

/// Most paths that one pattern may match.
const PATHS_MAX: usize = 65_536;

/// What this boot has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedChanges {
    /// Changes to be made, in the order of the file.
    pub found: Vec<ResolvedChange>,
    /// What is not there: a device that has not come yet, another kernel. No failure, but it is
    /// said, and sets the exit code.
    pub absent: Vec<AbsentTarget>,
}

/// A change of this boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedChange {
    pub change: Change,
    /// Checks whose findings asked for it.
    pub checks: Vec<String>,
    /// Line in the file.
    pub line: usize,
    /// What is not quite as the file says.
    pub note: Option<String>,
}

/// Something that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AbsentTarget {
    /// Line in the file.
    pub line: usize,
    /// What, in a few words.
    pub target: String,
    /// Why it is taken for absent.
    pub why: String,
}

impl Config {
    /// Looks up what the file names. Changes nothing.
    pub fn resolve(&self, root: &Root) -> ResolvedChanges {
        let machine = Now { root, irqs: OnceCell::new(), tasks: OnceCell::new() };
        let mut resolved = ResolvedChanges::default();
        for repeated in &self.changes {
            let line = repeated.line;
            let looked = machine.changes(&repeated.what).or_else(
                |why: Invalid| -> Result<Changes, Invalid> {
                    // A group's file comes with the group, which a change before it makes.
                    let change = comes_with(&resolved.found, &repeated.what).ok_or(why)?;
                    Ok((vec![change], None))
                },
            );
            match looked {
                Ok((changes, note)) => resolved.found.extend(changes.into_iter().map(|change| {
                    let checks = repeated.checks.clone();
                    ResolvedChange { change, checks, line, note: note.clone() }
                })),
                Err(why) => {
                    let target = repeated.what.target();
                    resolved.absent.push(AbsentTarget { line, target, why: why.0 });
                }
            }
        }
        resolved
    }
}

/// The change, where one before it makes its file.
fn comes_with(before: &[ResolvedChange], what: &NamedChange) -> Option<Change> {
    let NamedChange::Plain(change @ Change::Value { path, .. }) = what else { return None };
    before.iter().any(|found| found.change.brings(path)).then(|| change.clone())
}

/// The machine as it is now; its lists are read once, when they are asked for.
struct Now<'a> {
    root: &'a Root,
    irqs: OnceCell<Vec<IrqName>>,
    tasks: OnceCell<Vec<(u32, Task)>>,
}

/// Changes, and what is not quite as asked.
type Changes = (Vec<Change>, Option<String>);

impl Now<'_> {
    fn changes(&self, what: &NamedChange) -> Result<Changes, Invalid> {
        match what {
            NamedChange::Irq { actions, hwirq, chip, cpus } => {
                self.irqs(actions.as_deref(), hwirq.as_deref(), chip.as_deref(), cpus)
            }
            NamedChange::Task { comm, unit, set } => {
                let set_all =
                    self.tasks().iter().filter(|(_, task)| matches_task(task, comm, unit));
                let changes: Vec<Change> = set_all
                    .map(|(tid, task)| Change::Task {
                        task: TaskName { tid: *tid, start_ticks: None, comm: task.comm.clone() },
                        set: set.clone(),
                    })
                    .collect();
                match changes.is_empty() {
                    true => Err("no such task runs".into()),
                    false => Ok((changes, None)),
                }
            }
            NamedChange::Plain(change) => Ok((self.plain(change)?, None)),
        }
    }

    fn plain(&self, change: &Change) -> Result<Vec<Change>, Invalid> {
        let with = |change: &Change, new: String| match change.clone() {
            Change::Value { value, compare, couples, .. } => {
                Change::Value { path: new, value, compare, couples }
            }
            Change::Hotplug { value, .. } => Change::Hotplug { path: new, value },
            other => other,
        };
        match change {
            Change::Value { path, .. } | Change::Hotplug { path, .. } => {
                let paths = self.paths(path);
                match paths.is_empty() {
                    true => Err("not there".into()),
                    false => Ok(paths.into_iter().map(|path| with(change, path)).collect()),
                }
            }
            _ => Ok(vec![change.clone()]),
        }
    }

    /// Paths that are there.
    fn paths(&self, pattern: &str) -> Vec<String> {
        let mut paths = vec![String::new()];
        for part in pattern.split('/').skip(1) {
            if !part.contains('*') {
                paths.iter_mut().for_each(|path| *path = format!("{path}/{part}"));
                continue;
            }
            let below = |path: &String| {
                let names = self.root.list_dir(path).value().cloned().unwrap_or_default();
                let path = path.clone();
                names
                    .into_iter()
                    .filter(|name| fits(part, name))
                    .map(move |n| format!("{path}/{n}"))
            };
            paths = paths.iter().flat_map(below).take(PATHS_MAX).collect();
        }
        paths.retain(|path| self.root.exists(path));
        paths
    }

    fn irqs(
        &self,
        actions: Option<&str>,
        hwirq: Option<&str>,
        chip: Option<&str>,
        cpus: &CpuList,
    ) -> Result<Changes, Invalid> {
        let all = self.irqs.get_or_init(|| irqs(self.root));
        let is = |asked: Option<&str>, has: &str| asked.is_none_or(|asked| asked == has);
        let acts = |irq: &&IrqName| actions.is_none_or(|asked| fits(asked, &irq.actions));
        let change = |irq: &IrqName| Change::Irq { irq: irq.clone(), cpus: cpus.clone() };
        let exact: Vec<Change> = all
            .iter()
            .filter(acts)
            .filter(|irq| is(hwirq, &irq.hwirq) && is(chip, &irq.chip))
            .map(change)
            .collect();
        if !exact.is_empty() {
            return Ok((exact, None));
        }
        // Another kernel numbers its interrupts otherwise; a handler that is there once is enough.
        let by_handler: Vec<&IrqName> = all.iter().filter(acts).collect();
        match by_handler.as_slice() {
            _ if all.is_empty() => Err("/sys/kernel/irq lists no interrupts".into()),
            [irq] if actions.is_some_and(|actions| !actions.contains('*')) => {
                let note = format!(
                    "found by its handler alone: hwirq is {}, chip {}",
                    irq.hwirq, irq.chip
                );
                Ok((vec![change(irq)], Some(note)))
            }
            [] => Err("no interrupt has this handler now".into()),
            _ => Err("no interrupt has this hwirq and chip now".into()),
        }
    }

    fn tasks(&self) -> &[(u32, Task)] {
        self.tasks.get_or_init(|| {
            let numbers = |path: &str| self.root.list_numbered(path, "").value().cloned();
            let pids = numbers("/proc").unwrap_or_default();
            let threads = |pid: u32| numbers(&format!("/proc/{pid}/task")).unwrap_or(vec![pid]);
            let named = |tid: u32| Some((tid, task::task(self.root, i32::try_from(tid).ok()?)?));
            pids.into_iter().flat_map(threads).filter_map(named).collect()
        })
    }
}

/// Whether the file means a task.
fn matches_task(task: &Task, comm: &str, unit: &Option<String>) -> bool {
    fits(comm, &task.comm)
        && match unit {
            None => task.kernel,
            Some(_) => service(task) == *unit,
        }
}

/// The service of the system that a task belongs to. A user's own services may have any name.
fn service(task: &Task) -> Option<String> {
    let is_user = task.cgroup.as_deref().is_none_or(|group| group.starts_with("/user.slice"));
    task.unit.clone().filter(|unit| unit.ends_with(".service") && !task.kernel && !is_user)
}

/// Interrupts of this boot.
fn irqs(root: &Root) -> Vec<IrqName> {
    const TOP: &str = "/sys/kernel/irq";
    let numbers = root.list_numbered(TOP, "").value().cloned().unwrap_or_default();
    let named = |number: u32| {
        let read = |name: &str| {
            root.trimmed(&format!("{TOP}/{number}/{name}")).value().cloned().unwrap_or_default()
        };
        IrqName { number, actions: read("actions"), hwirq: read("hwirq"), chip: read("chip_name") }
    };
    numbers
        .into_iter()
        .map(named)
        .filter(|irq| !irq.actions.is_empty() || !irq.hwirq.is_empty())
        .collect()
}
