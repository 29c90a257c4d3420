//! Where and with which priority the plant runs.

use rustix::thread::{CpuSet, sched_setaffinity};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Other,
    /// SCHED_FIFO with its priority.
    Fifo(i32),
    /// SCHED_RR with its priority.
    Rr(i32),
}

impl Policy {
    /// `other`, `fifo:N`, `rr:N`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let priority = |text: &str| text.parse().ok().filter(|n| (1..=99).contains(n));
        let policy = match text.split_once(':') {
            None if text == "other" => Some(Self::Other),
            Some(("fifo", text)) => priority(text).map(Self::Fifo),
            Some(("rr", text)) => priority(text).map(Self::Rr),
            _ => None,
        };
        policy.ok_or_else(|| format!("--policy {text}: expected other, fifo:N or rr:N, N 1 to 99"))
    }

    /// Puts it in force for the calling thread and those it starts.
    pub(crate) fn apply(self) -> Result<(), String> {
        let (policy, priority) = match self {
            Self::Other => return Ok(()),
            Self::Fifo(priority) => (scheduler::Policy::Fifo, priority),
            Self::Rr(priority) => (scheduler::Policy::RoundRobin, priority),
        };
        scheduler::set_self_policy(policy, priority).map_err(|()| {
            let error = std::io::Error::last_os_error();
            format!("--policy {self}: {error}; it takes root")
        })
    }
}

/// Makes the calling thread an ordinary one again: what comes behind the plant must not disturb.
pub(crate) fn lower() {
    // This is always allowed; if it fails, the truth is still reported.
    let _ = scheduler::set_self_policy(scheduler::Policy::Other, 0);
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Other => write!(f, "other"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::Rr(priority) => write!(f, "rr:{priority}"),
        }
    }
}

/// Keeps the calling thread, and those it starts, on one CPU.
pub(crate) fn pin(cpu: u64) -> Result<(), String> {
    let number = usize::try_from(cpu).ok().filter(|&cpu| cpu < CpuSet::MAX_CPU);
    let number = number.ok_or_else(|| format!("--cpu {cpu}: too large"))?;
    let mut set = CpuSet::new();
    set.set(number);
    sched_setaffinity(None, &set).map_err(|error| format!("--cpu {cpu}: {error}; is it online?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_printed() {
        for policy in [Policy::Other, Policy::Fifo(1), Policy::Rr(99)] {
            assert_eq!(Policy::parse(&policy.to_string()), Ok(policy));
        }
        for text in ["fifo", "fifo:0", "rr:100", "other:1", "batch", "fifo:x"] {
            assert!(Policy::parse(text).is_err(), "{text}");
        }
    }
}
