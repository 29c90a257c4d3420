//! The kind of work a machine is for, and the choices that follow.
//!
//! Where good sources disagree there is no right value, only one that fits the work: tuned sets
//! `timer_migration` to 0, OpenShift's profile to 1, both with a reason. A profile decides each of
//! these questions by name, and the finding says what the choice costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of work, with the choices that follow from it or that a file of the user's makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Profile {
    /// Name: of a built-in profile, or the file's.
    pub name: String,
    pub kind: WorkloadKind,
    pub choices: Choices,
}

/// Kind of real-time work that a machine is configured for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// A loop that sleeps until its next period: PLC, robot, motion control.
    #[default]
    Periodic,
    /// A thread that never sleeps and owns its CPU: packet processing, trading.
    BusyPoll,
    /// Sound with buffers of milliseconds on a desktop.
    Audio,
    /// The host of virtual machines that are real-time.
    RtVmHost,
    /// Such a virtual machine.
    RtVmGuest,
    /// A host of containers that are real-time.
    ContainerHost,
}

impl WorkloadKind {
    pub const ALL: [Self; 6] = [
        Self::Periodic,
        Self::BusyPoll,
        Self::Audio,
        Self::RtVmHost,
        Self::RtVmGuest,
        Self::ContainerHost,
    ];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::BusyPoll => "busy-poll",
            Self::Audio => "audio",
            Self::RtVmHost => "rt-vm-host",
            Self::RtVmGuest => "rt-vm-guest",
            Self::ContainerHost => "container-host",
        }
    }

    /// What it is for, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Periodic => "a loop that sleeps until its next period: PLC, robot, motion",
            Self::BusyPoll => "a thread that never sleeps and owns its CPU: packets, trading",
            Self::Audio => "sound with buffers of milliseconds, on a desktop",
            Self::RtVmHost => "the host of real-time virtual machines",
            Self::RtVmGuest => "a real-time virtual machine",
            Self::ContainerHost => "a host of real-time containers",
        }
    }
}

/// A question on which the sources disagree, answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    On,
    Off,
    /// Either is accepted: the finding reports the value and what it means.
    Either,
}

/// How CPUs are kept free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationMethod {
    /// `isolcpus=` at boot.
    Boot,
    /// cgroup v2 partitions, at run time.
    Cpuset,
    Either,
}

/// Choices where the sources disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Choices {
    /// `kernel.timer_migration`: off keeps timers where they were set (tuned), on lets idle and
    /// tickless CPUs hand them over (OpenShift).
    pub timer_migration: Choice,
    /// `nohz_full=`: on stops the tick of a CPU with one task (tuned, OpenShift); each system call
    /// gets slower, so periodic loops do without (kernel documentation on real-time).
    pub nohz_full: Choice,
    /// Turbo frequencies: faster, and less even.
    pub turbo: Choice,
    /// Frequency fixed at one value (minimum equal to maximum).
    pub fixed_frequency: Choice,
    /// Two threads a core.
    pub smt: Choice,
    /// How CPUs are kept free.
    pub isolation: IsolationMethod,
    /// RT throttling: on keeps the machine reachable when a real-time task runs away.
    pub rt_throttling: Choice,
    /// Threads of the kernel that poll instead of sleeping (`idle=poll`).
    pub idle_poll: Choice,
    /// Corrected machine checks polled and interrupting: on shows failing memory early.
    pub corrected_errors: Choice,
    /// Mitigations of CPU vulnerabilities. Never asked to be off unless the user's file says so.
    pub mitigations: Choice,
}

impl Default for Profile {
    fn default() -> Self {
        Self::of(WorkloadKind::default())
    }
}

impl Profile {
    /// The built-in profile of a kind of work.
    pub fn of(kind: WorkloadKind) -> Self {
        use Choice::{Either, Off, On};
        let periodic = Choices {
            timer_migration: Off,
            nohz_full: Either,
            turbo: Off,
            fixed_frequency: On,
            smt: Off,
            isolation: IsolationMethod::Either,
            rt_throttling: Off,
            idle_poll: Either,
            corrected_errors: Off,
            mitigations: Either,
        };
        let choices = match kind {
            WorkloadKind::Periodic => periodic,
            WorkloadKind::BusyPoll => Choices {
                timer_migration: On,
                nohz_full: On,
                turbo: Either,
                isolation: IsolationMethod::Boot,
                ..periodic
            },
            WorkloadKind::Audio => Choices {
                timer_migration: Either,
                nohz_full: Off,
                turbo: Either,
                fixed_frequency: Either,
                smt: Either,
                rt_throttling: On,
                corrected_errors: Either,
                idle_poll: Off,
                ..periodic
            },
            WorkloadKind::RtVmHost => Choices { timer_migration: On, nohz_full: On, ..periodic },
            WorkloadKind::RtVmGuest => Choices {
                timer_migration: On,
                nohz_full: On,
                turbo: Either,
                fixed_frequency: Either,
                smt: Either,
                idle_poll: Off,
                ..periodic
            },
            WorkloadKind::ContainerHost => Choices {
                timer_migration: On,
                turbo: Either,
                smt: Either,
                isolation: IsolationMethod::Either,
                ..periodic
            },
        };
        Self { name: kind.name().into(), kind, choices }
    }

    /// As it is kept in the options of a run.
    pub fn to_json(&self) -> String {
        // A struct of names: serialising it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The profile of a run; the default where the run has none, or one of a later rtproof.
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The built-in profile with a name.
    pub fn named(name: &str) -> Option<Self> {
        WorkloadKind::ALL.into_iter().find(|kind| kind.name() == name).map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for kind in WorkloadKind::ALL {
            let profile = Profile::of(kind);
            assert_eq!(Profile::named(kind.name()), Some(profile.clone()));
            assert_eq!(Profile::from_json(&profile.to_json()), profile);
        }
        assert_eq!(Profile::named("fast"), None);
        assert_eq!(Profile::from_json(""), Profile::default());
    }
}
