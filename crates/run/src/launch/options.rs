//! What the user asks for, checked as far as that needs no machine.

use std::{ffi::OsString, path::PathBuf};

use rtproof_host::tune::Scheduling;

use super::run_record::Wanted;
use crate::{
    intent::PRIORITY,
    usage::{Invalid, usage},
};

/// Shortest runtime of a deadline that the kernel takes (kernel/sched/deadline.c, `DL_SCALE`).
const RUNTIME_NS_MIN: u64 = 1 << 10;

/// Scheduling policy of a thread that `run` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Fifo,
    Rr,
    Deadline,
    Other,
}

impl Class {
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
pub enum Place {
    /// A partition where one can be made, else affinity.
    #[default]
    Auto,
    /// A partition of cgroup v2, or nothing is started.
    Partition,
    Affinity,
}

/// The limit on the exit latency of idle states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latency {
    /// 0 for a real-time policy, where the machine has the file; none otherwise.
    #[default]
    Auto,
    /// None.
    Off,
    /// So many microseconds, or nothing is started.
    Us(u32),
}

/// From which NUMA nodes a program takes memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Memory {
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
    pub place: Place,
    pub policy: Option<Class>,
    pub priority: Option<u32>,
    /// Runtime of a deadline.
    pub runtime_ns: Option<u64>,
    pub deadline_ns: Option<u64>,
    /// Period of a deadline.
    pub period_ns: Option<u64>,
    /// Give it a cookie of core scheduling.
    pub core_sched: bool,
    pub memory: Memory,
    /// Checks of the machine that are acted on; `None`: the usual ones.
    pub tune: Option<String>,
    /// Limit on the idle states.
    pub latency: Latency,
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
    pub record: Option<Wanted>,
    /// Check the rules of a real-time program; `None`: do not.
    pub rules: Option<crate::rules::Requested>,
    /// A folder whose values are changed instead of the machine's: for tests.
    pub root: Option<PathBuf>,
}

impl Options {
    /// Class, and its priority or times.
    ///
    /// # Errors
    /// Usage: what does not go together.
    pub(super) fn scheduling(&self) -> anyhow::Result<(Class, Scheduling)> {
        let times = [self.runtime_ns, self.deadline_ns, self.period_ns];
        let has_times = times.iter().any(Option::is_some);
        let policy = self.policy.unwrap_or(if has_times { Class::Deadline } else { Class::Fifo });
        let is_fixed = matches!(policy, Class::Fifo | Class::Rr);
        if has_times && policy != Class::Deadline {
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
            Class::Deadline => Some(self.times().map_err(|why| usage(why.0))?),
            _ => None,
        };
        Ok((
            policy,
            Scheduling {
                policy: Some(policy.name().into()),
                priority: is_fixed.then(|| self.priority.unwrap_or(PRIORITY)),
                deadline_ns,
                // A deadline task may not fork without it; the others hand their policy on.
                reset_on_fork: Some(policy == Class::Deadline),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(options: Options) -> String {
        options.scheduling().unwrap_err().to_string()
    }

    #[test]
    fn a_program_is_a_fifo_one_unless_something_else_is_said() {
        let (policy, scheduling) = Options::default().scheduling().unwrap();
        assert_eq!((policy, scheduling.priority), (Class::Fifo, Some(PRIORITY)));
        let other = Options { policy: Some(Class::Other), ..Options::default() };
        assert_eq!(other.scheduling().unwrap().1.priority, None);
        let times =
            Options { runtime_ns: Some(200_000), period_ns: Some(1_000_000), ..Options::default() };
        let (policy, scheduling) = times.scheduling().unwrap();
        assert_eq!(policy, Class::Deadline);
        assert_eq!(scheduling.deadline_ns, Some([200_000, 1_000_000, 1_000_000]));
        assert_eq!(scheduling.reset_on_fork, Some(true));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let deadline = || Options { policy: Some(Class::Deadline), ..Options::default() };
        assert!(said(deadline()).contains("needs --runtime and --period"));
        assert!(said(Options { priority: Some(3), ..deadline() }).contains("no --priority"));
        let fifo = Options { policy: Some(Class::Fifo), period_ns: Some(1), ..Options::default() };
        assert!(said(fifo).contains("not of fifo"));
        let times = |runtime, period| {
            said(Options { runtime_ns: Some(runtime), period_ns: Some(period), ..deadline() })
        };
        assert!(times(2_000, 1_500).contains("longer than the deadline"));
        assert!(times(10, 1_500).contains("1024 ns and more"));
    }
}
