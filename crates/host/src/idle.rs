//! Idle states of CPUs: what there is, and how long each CPU was in them (cpuidle).
//!
//! Reading the counters interrupts no CPU: the kernel shows numbers that each CPU keeps for itself
//! (drivers/cpuidle/sysfs.c, `struct cpuidle_state_usage`). The files are opened anew at each
//! reading, because a large machine has more of them than a process may hold open.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuList, Root};

/// States of one CPU that are read, at most: the kernel has ten (`CPUIDLE_STATE_MAX`).
const STATES_MAX: usize = 64;

/// An idle state of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    pub cpu: u32,
    /// Number: 0 is the lightest.
    pub state: u32,
    /// Name, e.g. `C6`.
    pub name: String,
    /// Time to leave it as the driver says, microseconds; null: unknown.
    pub exit_us: Option<u64>,
}

/// Time of a CPU in an idle state since the reading before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleTime {
    pub cpu: u32,
    pub state: u32,
    /// How often it was entered.
    pub entered: u64,
    /// Time in it, microseconds.
    pub residency_us: u64,
}

/// Reads the idle states of some CPUs again and again.
#[derive(Clone, Debug)]
pub struct IdleSampler {
    root: Root,
    states: Vec<IdleState>,
    /// Entries and microseconds since boot, by CPU and state.
    last: BTreeMap<(u32, u32), (u64, u64)>,
}

impl IdleSampler {
    /// Finds the states of `cpus` and takes the first counts.
    pub fn new(root: &Root, cpus: &CpuList) -> Self {
        let states = cpus.iter().flat_map(|cpu| states(root, cpu)).collect();
        let mut sampler = Self { root: root.clone(), states, last: BTreeMap::new() };
        sampler.last = sampler.counts();
        sampler
    }

    /// The states there are, by CPU and number; none without cpuidle.
    pub fn states(&self) -> &[IdleState] {
        &self.states
    }

    /// What was entered since the reading before, by CPU and state; the rest is left out.
    pub fn sample(&mut self) -> Vec<IdleTime> {
        let now = self.counts();
        let since = |(&(cpu, state), &(entered, us)): (&(u32, u32), &(u64, u64))| {
            let &(entered_before, us_before) = self.last.get(&(cpu, state))?;
            Some(IdleTime {
                cpu,
                state,
                // Counters begin anew where a CPU came back.
                entered: entered.saturating_sub(entered_before),
                residency_us: us.saturating_sub(us_before),
            })
        };
        let times = now.iter().filter_map(since);
        let times = times.filter(|time| time.entered > 0 || time.residency_us > 0).collect();
        self.last = now;
        times
    }

    fn counts(&self) -> BTreeMap<(u32, u32), (u64, u64)> {
        let read = |state: &IdleState| {
            let number = |file: &str| {
                let path = format!("{}/{file}", folder(state.cpu, state.state));
                self.root.number::<u64>(&path, "a count").value().copied()
            };
            Some(((state.cpu, state.state), (number("usage")?, number("time")?)))
        };
        self.states.iter().filter_map(read).collect()
    }
}

fn folder(cpu: u32, state: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}")
}

fn states(root: &Root, cpu: u32) -> Vec<IdleState> {
    let all = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let numbers = root.list_numbered(&all, "state");
    let state = |&state: &u32| {
        let folder = folder(cpu, state);
        let name = root.trimmed(&format!("{folder}/name"));
        IdleState {
            cpu,
            state,
            name: name.value().cloned().unwrap_or_else(|| format!("state {state}")),
            exit_us: root.number(&format!("{folder}/latency"), "microseconds").value().copied(),
        }
    };
    numbers.value().into_iter().flatten().take(STATES_MAX).map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree() -> Tree {
        let at = |file: &str| format!("{}/{file}", &folder(1, 1)[1..]);
        let poll = |file: &str| format!("{}/{file}", &folder(1, 0)[1..]);
        Tree::new(&[
            (&at("name"), "C6\n"),
            (&at("latency"), "133\n"),
            (&at("usage"), "10\n"),
            (&at("time"), "5000\n"),
            (&poll("usage"), "7\n"),
            (&poll("time"), "70\n"),
        ])
    }

    #[test]
    fn what_was_entered_since_is_told() {
        let tree = tree();
        let mut sampler = IdleSampler::new(&tree.root(), &CpuList::new([0, 1]));
        let state =
            |state, name: &str, exit_us| IdleState { cpu: 1, state, name: name.into(), exit_us };
        assert_eq!(sampler.states(), [state(0, "state 0", None), state(1, "C6", Some(133))]);
        assert_eq!(sampler.sample(), []);
        tree.write(&format!("{}/usage", &folder(1, 1)[1..]), "13\n");
        tree.write(&format!("{}/time", &folder(1, 1)[1..]), "995000\n");
        let time = IdleTime { cpu: 1, state: 1, entered: 3, residency_us: 990_000 };
        assert_eq!(sampler.sample(), [time]);
        assert_eq!(sampler.sample(), []);
    }

    #[test]
    fn counters_that_begin_anew_or_cannot_be_read_count_nothing() {
        let tree = tree();
        let mut sampler = IdleSampler::new(&tree.root(), &CpuList::new([1]));
        tree.write(&format!("{}/usage", &folder(1, 1)[1..]), "2\n");
        tree.write(&format!("{}/time", &folder(1, 1)[1..]), "20\n");
        tree.write(&format!("{}/time", &folder(1, 0)[1..]), "<unsupported>\n");
        assert_eq!(sampler.sample(), []);
        assert_eq!(IdleSampler::new(&Tree::new(&[]).root(), &CpuList::new([0])).states(), []);
    }
}
