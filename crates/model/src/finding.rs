//! What a check answers: a finding, its evidence and its remedies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{
    CpuList, Knob, Reading,
    idle::PATH,
    knob::EffectTime,
    tune::{Change, Scheduling, TaskName},
};

/// The answer of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Check, e.g. `cpufreq-governor`.
    pub check: String,
    pub status: Status,
    /// One line: the result, with names and numbers.
    pub summary: String,
    /// Value wanted, as text.
    pub wanted: String,
    /// CPUs that the finding is about; `None`: the machine.
    pub cpus: Option<CpuList>,
    /// What was read and where.
    pub evidence: Vec<Evidence>,
    /// Why it adds latency.
    pub why: String,
    /// Where that is known from: document, kernel file, measurement.
    pub source: String,
    /// What would change it; empty when nothing needs to.
    pub remedies: Vec<Remedy>,
    #[serde(default)]
    pub when: When,
    /// How much latency a bad answer costs, as a rule.
    #[serde(default)]
    pub impact: Impact,
    /// What the wanted value costs, or where the sources disagree and why this is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trade_off: Option<String>,
    /// Why the user wants it left out of the count; the answer is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl Finding {
    /// Whether it is open: bad or doubtful, and not skipped by the user.
    pub fn is_open(&self) -> bool {
        self.skipped.is_none() && matches!(self.status, Status::Bad | Status::Doubtful)
    }
}

/// What has to be done for a change to take effect, in the order in which a user would.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Nothing more: at once, on the running machine.
    #[default]
    Now,
    /// The application or its login has to start again.
    Login,
    /// The machine has to boot.
    Boot,
    /// Another kernel is needed.
    Kernel,
    /// The firmware, the hardware or the hypervisor has to change.
    Firmware,
}

impl When {
    /// As the head of a group of findings.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Now => "Now",
            Self::Login => "At the next start of the application",
            Self::Boot => "At the next boot",
            Self::Kernel => "With another kernel",
            Self::Firmware => "In the firmware, the hardware or the hypervisor",
        }
    }
}

impl When {
    /// When a change of a knob with this effect takes effect.
    pub const fn of(effect: EffectTime) -> Self {
        match effect {
            EffectTime::Runtime => Self::Now,
            EffectTime::Login => Self::Login,
            EffectTime::Boot => Self::Boot,
            EffectTime::Build => Self::Kernel,
            EffectTime::Firmware => Self::Firmware,
        }
    }
}

/// How much latency a bad answer costs, as a rule: order of magnitude, from the sources.
/// The first is the worst.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Impact {
    /// Milliseconds, or real-time operation fails as a whole.
    Milliseconds,
    Hundreds,
    #[default]
    Tens,
    Microseconds,
    /// None by itself: good to know.
    Information,
}

impl Impact {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Milliseconds => "milliseconds",
            Self::Hundreds => "hundreds of µs",
            Self::Tens => "tens of µs",
            Self::Microseconds => "µs",
            Self::Information => "none by itself",
        }
    }
}

/// Status of a finding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Bad,
    /// May add latency; depends on what only the user knows.
    Doubtful,
    /// Unknown, and the finding says why.
    Unknown,
    Good,
    /// Does not concern this machine.
    NotApplicable,
}

/// A path that was read, and the value found there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    pub path: String,
    /// Value found, or why there is none.
    pub value: String,
}

impl Evidence {
    /// Evidence from a reading, with the value shown by `show`.
    pub fn of<T>(reading: &Reading<T>, show: impl FnOnce(&T) -> String) -> Self {
        let value = match reading.value() {
            Some(value) => show(value),
            None => reading.why_unknown().unwrap_or_default(),
        };
        Self { path: reading.path.clone(), value }
    }
}

/// What would change a finding, as data: shown as text here, applied by `tune`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Remedy {
    /// Write a value to files of /proc or /sys. Lost at reboot.
    #[serde(rename = "write")]
    Set {
        /// The knob. JSON leaves it out: a plan is always made from findings of this process.
        #[serde(skip)]
        knob: Option<&'static Knob>,
        /// Paths of the files to change.
        #[serde(rename = "paths")]
        at: Vec<String>,
        value: String,
    },
    /// Put a parameter on the kernel command line and reboot.
    Boot {
        /// Parameter with its value, e.g. `isolcpus=managed_irq,domain,2-3`.
        parameter: String,
    },
    /// Take a parameter off the kernel command line and reboot.
    Unboot {
        /// Its name, e.g. `nohz_full`: every word with this name goes.
        parameter: String,
    },
    /// Do something to a systemd unit.
    Unit {
        /// Unit, e.g. `irqbalance.service`.
        unit: String,
        /// `disable --now`, `stop`, `mask`.
        action: String,
    },
    /// A line in a configuration file.
    File { path: String, line: String },
    /// Set policy, priority or CPUs of a task.
    Task {
        /// Its thread id and name.
        task: TaskName,
        set: Scheduling,
    },
    /// A property of a systemd unit, until the next boot.
    Property {
        /// Unit, e.g. `system.slice`.
        unit: String,
        /// Property, e.g. `AllowedCPUs`.
        property: String,
        value: String,
    },
    /// Several changes that only together have an effect, in this order.
    Changes {
        /// What they do, in words.
        text: String,
        #[schemars(with = "Vec<Change>")]
        changes: Vec<RemedyPart>,
        /// What is left for the user to do with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        then: Option<String>,
    },
    /// A service of ours that holds /dev/cpu_dma_latency open.
    Hold {
        /// Longest exit from idle that it allows, in microseconds.
        limit_us: u32,
    },
    /// A command that rtproof does not run for anybody: it names what only the user knows, or what
    /// it sets has no place that could be put back to the byte.
    Command { command: String },
    /// A kernel that is built otherwise.
    Build {
        /// Options as `NAME=value` without `CONFIG_`; `n`: not set.
        options: Vec<String>,
    },
    /// What only a human can do: firmware, kernel package, hypervisor.
    Manual { text: String },
}

impl Remedy {
    pub fn set(knob: &'static Knob, at: Vec<String>, value: impl Into<String>) -> Self {
        Self::Set { knob: Some(knob), at, value: value.into() }
    }
}

/// One of several changes that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RemedyPart {
    pub change: Change,
    /// The knob that it sets, if there is one.
    #[serde(skip)]
    pub knob: Option<&'static Knob>,
}

impl From<Change> for RemedyPart {
    fn from(change: Change) -> Self {
        Self { change, knob: None }
    }
}

/// The commands of util-linux that set it.
fn task_command(task: &TaskName, set: &Scheduling) -> String {
    let mut commands = Vec::new();
    if let Some(cpus) = &set.cpus {
        commands.push(format!("taskset -cp {cpus} {}", task.tid));
    }
    if let Some(policy) = &set.policy {
        let priority = set.priority.unwrap_or(0);
        commands.push(format!("chrt --{policy} --pid {priority} {}", task.tid));
    }
    commands.join(" && ")
}

/// `use a kernel built with CONFIG_A, CONFIG_B=1000 and without CONFIG_C`.
fn built(options: &[String]) -> String {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for option in options {
        match option.split_once('=') {
            Some((name, "n")) => without.push(format!("CONFIG_{name}")),
            Some((name, "y")) => with.push(format!("CONFIG_{name}")),
            _ => with.push(format!("CONFIG_{option}")),
        }
    }
    let part = |word: &str, names: &[String]| match names {
        [] => None,
        names => Some(format!("{word} {}", names.join(", "))),
    };
    let parts: Vec<String> =
        [part("with", &with), part("without", &without)].into_iter().flatten().collect();
    format!("use a kernel built {}", parts.join(" and "))
}

/// Most paths that are written out.
const PATHS_MAX: usize = 8;

/// Paths as the shell takes them: what differs in braces. Of many the first few are shown, and how
/// many there are; all of them are in the data.
fn spread(paths: &[String]) -> String {
    let Some(first) = paths.first() else { return String::new() };
    let parts: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let length = parts[0].len();
    let differ = |at: usize| parts.iter().any(|path| path[at] != parts[0][at]);
    let is_even = parts.iter().all(|path| path.len() == length);
    let places: Vec<usize> =
        if is_even { (0..length).filter(|&at| differ(at)).collect() } else { Vec::new() };
    let [place] = places[..] else {
        let shown = paths.iter().take(PATHS_MAX).cloned().collect::<Vec<_>>().join(" ");
        return match paths.len().checked_sub(PATHS_MAX) {
            Some(more) if more > 0 => format!("{shown} … ({more} more)"),
            _ => shown,
        };
    };
    let names: Vec<&str> = parts.iter().map(|path| path[place]).collect();
    let shown = names.iter().take(PATHS_MAX).copied().collect::<Vec<_>>().join(",");
    let inner = match names.len().checked_sub(PATHS_MAX) {
        Some(more) if more > 0 => format!("{{{shown},… {more} more}}"),
        _ => format!("{{{shown}}}"),
    };
    let mut parts: Vec<&str> = first.split('/').collect();
    parts[place] = &inner;
    parts.join("/")
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set { at: paths, value, .. } => match paths.as_slice() {
                [path] => write!(f, "echo {value} > {path}"),
                paths => write!(f, "echo {value} | tee {}", spread(paths)),
            },
            Self::Boot { parameter } => write!(f, "boot with {parameter}"),
            Self::Unboot { parameter } => write!(f, "boot without {parameter}"),
            Self::Unit { unit, action } => write!(f, "systemctl {action} {unit}"),
            Self::Property { unit, property, value } => {
                write!(f, "systemctl set-property --runtime {unit} {property}={value}")
            }
            Self::File { path, line } => write!(f, "put \"{line}\" into {path}"),
            Self::Task { task, set } => write!(f, "{}", task_command(task, set)),
            Self::Command { command } => write!(f, "{command}"),
            Self::Build { options } => write!(f, "{}", built(options)),
            Self::Hold { limit_us } => write!(
                f,
                "in the application, write the int32 {limit_us} to {PATH} and keep it open; else \
                 a service that does: rtproof tune hold --latency {limit_us}us"
            ),
            Self::Changes { text, .. } | Self::Manual { text } => write!(f, "{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tee(paths: &[&str]) -> String {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        Remedy::set(&rtproof_host::knobs::cpu::KSM, paths, "0").to_string()
    }

    #[test]
    fn many_paths_are_one_line() {
        assert_eq!(tee(&["/sys/a"]), "echo 0 > /sys/a");
        assert_eq!(tee(&["/sys/a1/x", "/sys/a2/x"]), "echo 0 | tee /sys/{a1,a2}/x");
        assert_eq!(tee(&["/sys/a/x", "/sys/b/y"]), "echo 0 | tee /sys/a/x /sys/b/y");
        let many: Vec<String> = (0..39).map(|n| format!("/sys/k{n}/x")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let shown = tee(&many);
        assert!(shown.ends_with("k7,… 31 more}/x"), "{shown}");
    }
}
