//! `/etc/rtproof.toml`: the runtime part of a plan, which `rtproof.service` repeats at each boot.
//!
//! It is written from what was applied and may be edited by hand. What it names has to survive a
//! reboot: interrupts by their handler, hardware number and controller, tasks by their name and
//! unit. What lasts by itself (files, boot parameters) is not in it.

mod read;
mod resolve;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they read")]
mod tests;
mod write;

use rtproof_host::{
    CpuList,
    tune::{Change, Compare, Scheduling},
};
use rtproof_judge::plan::units;

pub use read::ConfigError;
pub use resolve::{Absent, Found, Resolved};
pub use write::{NotRepeated, comment};

pub const PATH: &str = units::CONFIG;
/// Version of the format.
pub const VERSION: u32 = 1;

/// What is repeated at each boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// What the machine is meant for.
    pub intent: Meant,
    /// Changes, in the order in which they are made.
    pub changes: Vec<Repeated>,
}

/// What the machine is meant for, as far as the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    pub cpus: Option<CpuList>,
    /// Profile: the name of a built-in one or a file.
    pub profile: Option<String>,
    /// Priority of the application, 1 to 99.
    pub priority: Option<u32>,
    /// Period of its loop, nanoseconds.
    pub period_ns: Option<u64>,
    /// Latency that it can bear, nanoseconds.
    pub budget_ns: Option<u64>,
}

/// One change that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    pub what: What,
    /// Checks whose findings asked for it.
    pub checks: Vec<String>,
    /// Why: the comment above it, a line each.
    pub reason: Vec<String>,
    /// Line of its kind in the file, from 1; 0: not from a file.
    pub line: usize,
}

/// A change by names that hold over boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A value, a folder, a unit ...; `*` in a path stands for any part of a name.
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
        /// Unit of a service. Without one, threads of the kernel are meant and no others: anybody
        /// can give a process their names, and would get their priority.
        unit: Option<String>,
        set: Scheduling,
    },
}

impl Config {
    /// Units whose tasks are set: `rtproof.service` has to start after them.
    pub fn units(&self) -> Vec<String> {
        let unit = |repeated: &Repeated| match &repeated.what {
            What::Task { unit, .. } => unit.clone(),
            _ => None,
        };
        let mut units: Vec<String> = self.changes.iter().filter_map(unit).collect();
        units.sort();
        units.dedup();
        units
    }
}

impl What {
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

/// Whether a name fits a pattern, in which `*` stands for any text.
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
