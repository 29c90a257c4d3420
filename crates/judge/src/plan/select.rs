//! Which findings a plan is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::step::LeftOut;
use crate::{Finding, Status, checks};

/// How much of what was found a plan takes up. A check that is named is always included.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    #[default]
    Safe,
    /// And, where only some of the CPUs are to be real-time, what keeps the rest of the machine
    /// away from them: see [`STANDARD`].
    Standard,
    /// And all that is doubtful: whether it helps depends on what the machine does.
    Max,
}

/// Checks of which a doubtful finding belongs to [`Level::Standard`]: what every real-time user
/// means by CPUs of one's own (Documentation/timers/no_hz.rst, Documentation/admin-guide/
/// kernel-per-CPU-kthreads.rst; Red Hat's and SUSE's guides; the real-time profiles of tuned).
pub const STANDARD: &[&str] = &[
    // Nobody else runs there.
    "isolation",
    "isolcpus",
    "cpuset-partition",
    "systemd-cpuaffinity",
    "user-tasks-on-iso",
    // No tick, no callbacks, no interrupts, no work of the kernel.
    "nohz-full",
    "rcu-nocbs",
    "rcuo-affinity",
    "irq-affinity",
    "irqaffinity-boot",
    "irqbalance",
    "kthread-affinity",
    "workqueue-cpumask",
    "writeback-cpumask",
    "watchdog-cpumask",
    // Nobody stops the application.
    "rt-throttling",
    "fair-server",
    // The CPU stays awake and fast.
    "cpufreq-governor",
    "cpufreq-minmax",
    "epp",
    "cpuidle-states",
    "cpu-dma-latency",
    "pm-qos-resume",
];

/// What the user asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Checks, or sections of checks (`power`); empty: all.
    pub ids: Vec<String>,
    /// How much of what was found.
    pub level: Level,
    /// Whether only some of the online CPUs are to be real-time.
    pub has_own_cpus: bool,
    /// Include what is risky. A check that is named is always included.
    pub risky: bool,
    /// Boot parameters and files that do what a change of the running kernel does, beside it:
    /// without, `rtproof.service` makes that change again at each boot.
    pub durable: bool,
    /// Where rtproof is installed: what a service of ours starts.
    pub exe: String,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            ids: Vec::new(),
            level: Level::Safe,
            has_own_cpus: false,
            risky: false,
            durable: false,
            exe: "/usr/bin/rtproof".into(),
        }
    }
}

impl Selection {
    /// Whether a check is named: its section is not enough.
    pub fn names(&self, check: &str) -> bool {
        self.ids.iter().any(|id| id == check)
    }

    /// Whether a check belongs to it.
    pub fn takes(&self, check: &str) -> bool {
        let section = section_of(check);
        self.ids.is_empty() || self.names(check) || self.ids.iter().any(|id| section == Some(id))
    }

    /// Ids that are neither a check nor a section.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let is_known = |id: &str| {
            id == APPLICATION
                || checks::sections().iter().any(|section| section.name == id)
                || section_of(id).is_some()
        };
        self.ids.iter().map(String::as_str).filter(move |id| !is_known(id))
    }

    /// Why nothing is done about a finding of the selection; `None`: something is.
    pub(super) fn leaves_out(&self, finding: &Finding) -> Option<LeftOut> {
        let is_named = self.names(&finding.check);
        let summary = &finding.summary;
        let why = match (&finding.skipped, finding.status) {
            (Some(reason), Status::Bad | Status::Doubtful) => format!("left out: {reason}"),
            (Some(_), _) => return None,
            (None, Status::Bad) => return None,
            (None, Status::Doubtful) if is_named || self.level >= self.level_of(finding) => {
                return None;
            }
            (None, Status::Doubtful) if self.level_of(finding) == Level::Standard => {
                format!("doubtful: {summary}; name it, or leave --level at standard, to include it")
            }
            (None, Status::Doubtful) => {
                format!("doubtful: {summary}; name it, or give --level max, to include it")
            }
            (None, Status::Unknown) => format!("unknown: {summary}"),
            (None, Status::Good | Status::NotApplicable) => format!("nothing to do: {summary}"),
        };
        let is_unknown = finding.status == Status::Unknown;
        Some(LeftOut { check: finding.check.clone(), why, is_unknown })
    }

    /// From which level on a doubtful finding is taken up.
    fn level_of(&self, finding: &Finding) -> Level {
        match self.has_own_cpus && STANDARD.contains(&&*finding.check) {
            true => Level::Standard,
            false => Level::Max,
        }
    }

    /// Whether a finding without changes is worth a line: a good or unknown one is reported only if
    /// its check is named.
    pub(super) fn reports(&self, finding: &Finding) -> bool {
        matches!(finding.status, Status::Bad | Status::Doubtful) || self.names(&finding.check)
    }
}

/// The section of the checks of an application.
const APPLICATION: &str = "application";

/// The section that has a check.
fn section_of(check: &str) -> Option<&'static str> {
    let has =
        |section: &&'static checks::Section| section.checks.iter().any(|found| found.id == check);
    let own = || checks::application::all().any(|found| found.id == check);
    let section = checks::sections().iter().find(has).map(|section| section.name);
    section.or_else(|| own().then_some(APPLICATION))
}
