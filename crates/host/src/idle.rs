//! Idle states, the limit on them, and the MSRs that count.
//!
//! Reading the counters of idle states (cpuidle) interrupts no CPU: the kernel shows numbers that
//! each CPU keeps for itself (drivers/cpuidle/sysfs.c, `struct cpuidle_state_usage`). The files are
//! opened anew at each reading, because a large machine has more of them than a process may hold
//! open.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    os::unix::fs::FileExt,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuList, Reading, Root};

/// States of one CPU that are read, at most: the kernel has ten (`CPUIDLE_STATE_MAX`).
const STATES_MAX: usize = 64;

/// An idle state of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuIdleState {
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
    states: Vec<CpuIdleState>,
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
    pub fn states(&self) -> &[CpuIdleState] {
        &self.states
    }

    /// States entered since the previous reading, by CPU and state; others are left out.
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
        let read = |state: &CpuIdleState| {
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

fn states(root: &Root, cpu: u32) -> Vec<CpuIdleState> {
    let all = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let numbers = root.list_numbered(&all, "state");
    let state = |&state: &u32| {
        let folder = folder(cpu, state);
        let name = root.trimmed(&format!("{folder}/name"));
        CpuIdleState {
            cpu,
            state,
            name: name.value().cloned().unwrap_or_else(|| format!("state {state}")),
            exit_us: root.number(&format!("{folder}/latency"), "microseconds").value().copied(),
        }
    };
    numbers.value().into_iter().flatten().take(STATES_MAX).map(state).collect()
}

// Model-specific registers of x86 CPUs, read through the `msr` driver, which needs CAP_SYS_RAWIO
// (arch/x86/kernel/msr.c; lockdown refuses writing, not reading). The CPU is interrupted to read
// them: never within a measurement of that CPU.

/// SMIs since reset, of Intel CPUs (arch/x86/include/asm/msr-index.h, `MSR_SMI_COUNT`; Intel SDM
/// volume 4).
pub const SMI_COUNT: u64 = 0x34;

/// A register of a CPU of the live machine. Absent without the driver (`modprobe msr`); denied
/// without the right, where the CPU does not have the register, and for a captured machine.
pub fn read_msr(root: &Root, cpu: u32, register: u64) -> Reading<u64> {
    let path = format!("/dev/cpu/{cpu}/msr");
    if !root.is_live() {
        return Reading::denied(path, "only a live machine has registers");
    }
    #[expect(clippy::disallowed_methods, reason = "a device of the live machine only")]
    let file = File::open(&path);
    let mut bytes = [0; 8];
    // The offset is the register's number.
    let read = file.and_then(|file| file.read_exact_at(&mut bytes, register));
    match read {
        Ok(()) => Reading::known(path, u64::from_ne_bytes(bytes)),
        Err(error) => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            // ENXIO: the device file is there and the driver is not, or the CPU is offline.
            Some(rustix::io::Errno::NOENT | rustix::io::Errno::NXIO | rustix::io::Errno::NODEV) => {
                Reading::absent(path)
            }
            _ => Reading::denied(path, error.to_string()),
        },
    }
}

// The global CPU latency limit: held for as long as the file stays open
// (Documentation/power/pm_qos_interface.rst).

/// The file of the limit.
pub const PATH: &str = "/dev/cpu_dma_latency";

/// What the kernel answers where no process holds a limit (include/linux/pm_qos.h,
/// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
const NO_LIMIT_US: i32 = 2_000_000_000;

/// The lowest limit that is held now, in microseconds; `None`: no process holds one. Opened for
/// reading alone: that enters a request without a limit, which moves nothing (kernel/power/qos.c).
#[expect(clippy::disallowed_methods, reason = "a device, which is no file of a Root")]
pub fn limit_us(root: &Root) -> Reading<Option<u32>> {
    let ask = || {
        let mut bytes = [0; 4];
        File::open(PATH)?.read_exact(&mut bytes)?;
        Ok(i32::from_ne_bytes(bytes).to_string())
    };
    let Some(answer) = root.call("cpu_dma_latency", ask) else {
        return Reading::denied(PATH, "only a live machine has a latency limit");
    };
    answer.with_path(PATH).parsed("microseconds", |text| match text.parse().ok()? {
        NO_LIMIT_US => Some(None),
        us => u32::try_from(us).ok().map(Some),
    })
}

/// A limit that is in force until this is dropped.
#[derive(Debug)]
pub struct HeldLatency {
    _file: File,
}

/// Why a limit cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// A captured machine has no idle states to forbid.
    #[error("{PATH}: only a live machine can hold a latency limit")]
    NotLive,
    /// The limit is too large for the kernel.
    #[error("{PATH}: {0} µs is more than the kernel takes (2147483647)")]
    TooLarge(u32),
    /// The file cannot be opened or written.
    #[error("{PATH}: {0}; it needs root and a kernel with CONFIG_CPU_IDLE")]
    Io(#[from] std::io::Error),
}

/// Forbids idle states whose exit takes longer than so many microseconds.
///
/// # Errors
/// When the machine is not live, or the file cannot be opened or written.
#[expect(
    clippy::disallowed_methods,
    reason = "a device that is held open, of the live machine only"
)]
pub fn hold(root: &Root, limit_us: u32) -> Result<HeldLatency, HoldError> {
    if !root.is_live() {
        return Err(HoldError::NotLive);
    }
    let value = i32::try_from(limit_us).map_err(|_| HoldError::TooLarge(limit_us))?;
    let mut file = File::options().write(true).open(PATH)?;
    file.write_all(&value.to_ne_bytes())?;
    Ok(HeldLatency { _file: file })
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
    fn states_entered_since_are_reported() {
        let tree = tree();
        let mut sampler = IdleSampler::new(&tree.root(), &CpuList::new([0, 1]));
        let state =
            |state, name: &str, exit_us| CpuIdleState { cpu: 1, state, name: name.into(), exit_us };
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

#[cfg(test)]
mod msr_tests {
    use super::*;

    #[test]
    fn a_captured_machine_has_no_registers() {
        let tree = crate::testing::Tree::new(&[("dev/cpu/0/msr", "12345678")]);
        let read = read_msr(&tree.root(), 0, SMI_COUNT);
        assert!(read.why_unknown().is_some_and(|why| why.contains("live machine")));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_absent() {
        assert!(read_msr(&Root::live(), 4000, SMI_COUNT).value().is_none());
    }
}

#[cfg(test)]
mod pm_qos_tests {
    use super::*;

    #[test]
    fn a_captured_machine_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Root::dir(dir.path()).expect("a root");
        assert!(matches!(hold(&root, 0), Err(HoldError::NotLive)));
        assert!(matches!(hold(&Root::live(), u32::MAX), Err(HoldError::TooLarge(_))));
    }

    #[test]
    fn the_limit_is_unknown_in_a_folder_and_read_or_denied_live() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Root::dir(dir.path()).expect("a root");
        assert!(limit_us(&root).why_unknown().is_some_and(|why| why.contains("live machine")));
        let live = limit_us(&Root::live());
        assert_eq!(live.path, PATH);
        assert!(live.value().is_some() || live.why_unknown().is_some_and(|why| !why.is_empty()));
    }
}
