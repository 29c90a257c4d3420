//! From the remedies of a finding to requests: which remedies are chosen, which are alternatives.
//!
//! The order of a finding's remedies is the check's preference. The first one that a program can
//! make says how it is done: on the running machine, with the boot entry, or with a file. All
//! remedies of that kind are chosen, those of other kinds are alternatives. Two things are planned
//! beside a change of the running machine: boot parameters that must act before any service
//! ([`ValueRule::Early`]), and, on request, whatever makes the change last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{
    Facts, Knob,
    knob::{Undo, ValueRule},
    knobs::{self, power},
    tune::{self as host, Change, UnitState},
};
use rtproof_model::finding::RemedyPart;

use super::{LeftOut, merge, units};
use crate::{Finding, Remedy, Status, checks};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlanRequest {
    /// A change of its own, and the knob that it sets, if there is one.
    Change(Change, Option<&'static Knob>),
    /// A line of a file of ours.
    Line { path: String, line: String },
    /// A word of the kernel's command line; `removes`: without it.
    Word { parameter: String, removes: bool },
    /// Something for a human.
    Human { text: String, build_options: Vec<String> },
}

impl PlanRequest {
    /// What can go wrong, beyond what the finding shows; `None`: nothing.
    ///
    /// Risky is what can leave a machine unreachable, unprotected, damaged or silently wrong. Not
    /// risky, though with a price that the plan shows as trade-off: no RT throttling and no fair
    /// server (a real-time thread that never sleeps keeps its CPU, which was set apart; undo, a
    /// reboot or the watchdog end it), no lockup detectors, interrupts on other CPUs.
    pub(super) fn risk(&self) -> Option<&'static str> {
        match self {
            Self::Change(Change::Unit { unit, want }, _) => {
                knobs::risk_of_stopping(unit).filter(|_| want.stops())
            }
            Self::Change(Change::Package { .. }, _) => Some(
                "the boot menu is made anew, with one kernel more; undo needs another one to run",
            ),
            Self::Change(_, knob) => knob.and_then(|knob| knob.risk),
            Self::Word { parameter: word, removes: false } => parameter(word)?.risk,
            _ => None,
        }
    }

    /// Whether it sets CPUs apart, or moves work to those that are left.
    pub(super) fn places_work(&self) -> bool {
        let is_about_cpus = |knob: &Knob| knob.cpus.is_some();
        match self {
            Self::Word { parameter: word, removes } => {
                !removes && parameter(word).is_some_and(is_about_cpus)
            }
            Self::Line { line, .. } => merge::keys(line).any(|key| key.cpus.is_some()),
            Self::Change(Change::Irq { .. }, _) => true,
            Self::Change(Change::Property { property, .. }, _) => {
                knobs::key_of(property).is_some_and(is_about_cpus)
            }
            Self::Change(Change::Task { set, .. }, _) => set.cpus.is_some(),
            Self::Change(_, knob) => knob.is_some_and(is_about_cpus),
            Self::Human { .. } => false,
        }
    }
}

/// How a remedy is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Now,
    Boot,
    File,
    Human,
}

fn kind(remedy: &Remedy) -> Kind {
    match remedy {
        Remedy::Set { .. }
        | Remedy::Unit { .. }
        | Remedy::Property { .. }
        | Remedy::Task { .. }
        | Remedy::Hold { .. } => Kind::Now,
        // A group belongs with the lines that name it.
        Remedy::Changes { .. } if installs(remedy) => Kind::Human,
        Remedy::Changes { changes, .. } => {
            let is_of_users =
                |part: &RemedyPart| part.change.nature().part == host::MachinePart::Accounts;
            if changes.iter().all(is_of_users) { Kind::File } else { Kind::Now }
        }
        Remedy::Boot { .. } | Remedy::Unboot { .. } => Kind::Boot,
        Remedy::File { path, .. } if knobs::is_ours(path) => Kind::File,
        Remedy::File { .. }
        | Remedy::Command { .. }
        | Remedy::Build { .. }
        | Remedy::Manual { .. } => Kind::Human,
    }
}

/// Whether it installs packages, which is done only where its check is named.
fn installs(remedy: &Remedy) -> bool {
    let Remedy::Changes { changes, .. } = remedy else { return false };
    changes.iter().any(|part| matches!(part.change, Change::Package { .. }))
}

/// The remedies of a finding that are done.
fn chosen(remedies: &[Remedy], durable: bool) -> Vec<&Remedy> {
    let Some(first) = remedies.iter().find(|remedy| kind(remedy) != Kind::Human) else {
        return remedies.iter().collect();
    };
    let how = kind(first);
    let ahead = remedies.iter().take_while(|remedy| kind(remedy) == Kind::Human);
    let mut chosen: Vec<&Remedy> = ahead.collect();
    chosen.extend(remedies.iter().filter(|remedy| kind(remedy) == how));
    if how != Kind::Now {
        return chosen;
    }
    let is_lasting = |remedy: &&Remedy| matches!(kind(remedy), Kind::Boot | Kind::File);
    let lasting = remedies.iter().find(is_lasting).map(kind);
    let is_early = |remedy: &Remedy| {
        let Remedy::Boot { parameter: word } = remedy else { return false };
        parameter(word).is_some_and(|knob| knob.rule == ValueRule::Early)
    };
    let is_lasting = |remedy: &Remedy| durable && Some(kind(remedy)) == lasting;
    chosen.extend(remedies.iter().filter(|remedy| is_early(remedy) || is_lasting(remedy)));
    chosen
}

/// Properties of a boot parameter, with or without a value.
pub(super) fn parameter(word: &str) -> Option<&'static Knob> {
    knobs::parameter_of(word.split('=').next().unwrap_or_default())
}

/// The purpose of what a finding would set, if other knobs serve it, too. `keeps` says whether a
/// boot parameter only stays as it is.
pub(super) fn purpose(
    remedies: &[Remedy],
    keeps: impl Fn(&str) -> bool,
) -> Option<(&'static str, u8)> {
    let knob = match remedies.iter().find(|remedy| kind(remedy) != Kind::Human)? {
        Remedy::Set { knob, .. } => *knob,
        Remedy::Hold { .. } => Some(&power::CPU_DMA_LATENCY),
        Remedy::Boot { parameter: word } if !keeps(word) => parameter(word),
        _ => None,
    };
    knob?.purpose
}

/// What a finding requests, in the order of its remedies.
pub(super) fn of(facts: &Facts, finding: &Finding, wanted: &Selection) -> Vec<PlanRequest> {
    let install = finding.remedies.iter().find(|remedy| installs(remedy));
    let is_named = wanted.names(&finding.check);
    let chosen = match install.filter(|_| is_named) {
        Some(install) => vec![install],
        None => chosen(&finding.remedies, wanted.durable),
    };
    let mut requests: Vec<PlanRequest> = Vec::new();
    if let Some(install) = install.filter(|_| !is_named) {
        let text = format!(
            "as root: {install}; or, to have it undone again: rtproof tune apply {}",
            finding.check
        );
        requests.push(PlanRequest::Human { text, build_options: Vec::new() });
    }
    let chosen = chosen.into_iter().filter(|remedy| is_named || !installs(remedy));
    for request in chosen.flat_map(|remedy| requests_of(facts, remedy, &wanted.exe)) {
        if !requests.contains(&request) {
            requests.push(request);
        }
    }
    if requests.is_empty() {
        let text = format!("no change is known that makes it so: {}", finding.summary);
        requests.push(PlanRequest::Human { text, build_options: Vec::new() });
    }
    requests
}

fn requests_of(facts: &Facts, remedy: &Remedy, exe: &str) -> Vec<PlanRequest> {
    let human = |text: String| vec![PlanRequest::Human { text, build_options: Vec::new() }];
    let change = |change| vec![PlanRequest::Change(change, None)];
    match remedy {
        // What cannot be restored by writing it back is the user's to write.
        Remedy::Set { knob: Some(knob), at, value } if knob.undo == Undo::WriteBack => {
            let change = |path: &String| super::change(facts, knob, path, value);
            at.iter().map(|path| PlanRequest::Change(change(path), Some(knob))).collect()
        }
        Remedy::Set { .. } => human(format!("as root: {remedy}")),
        Remedy::Boot { parameter } => {
            let words = parameter.split_whitespace();
            words.map(|word| PlanRequest::Word { parameter: word.into(), removes: false }).collect()
        }
        Remedy::Unboot { parameter } => {
            vec![PlanRequest::Word { parameter: parameter.clone(), removes: true }]
        }
        Remedy::Unit { unit, action } => match wanted_state(action) {
            Some(want) => change(Change::Unit { unit: unit.clone(), want }),
            None => human(format!("as root: {remedy}")),
        },
        Remedy::Property { unit, property, value } => change(Change::Property {
            unit: unit.clone(),
            property: property.clone(),
            value: value.clone(),
        }),
        Remedy::Task { task, set } => change(Change::Task { task: task.clone(), set: set.clone() }),
        Remedy::Changes { changes, then, .. } => {
            let changes =
                changes.iter().map(|part| PlanRequest::Change(part.change.clone(), part.knob));
            changes.chain(then.iter().flat_map(|text| human(text.clone()))).collect()
        }
        Remedy::Hold { limit_us } => {
            let changes = units::latency_changes(exe, *limit_us).into_iter();
            changes.map(|change| PlanRequest::Change(change, None)).collect()
        }
        Remedy::File { path, line } if knobs::is_ours(path) => {
            vec![PlanRequest::Line { path: path.clone(), line: line.clone() }]
        }
        Remedy::File { .. } | Remedy::Manual { .. } => human(remedy.to_string()),
        Remedy::Command { command } => human(format!("as root: {command}")),
        Remedy::Build { options } => {
            vec![PlanRequest::Human { text: remedy.to_string(), build_options: options.clone() }]
        }
    }
}

/// What `systemctl ACTION` wants of a unit.
fn wanted_state(action: &str) -> Option<UnitState> {
    Some(match action {
        "stop" => UnitState::Stopped,
        "disable" | "disable --now" => UnitState::Disabled,
        "mask" | "mask --now" => UnitState::Masked,
        "start" => UnitState::Started,
        "enable" | "enable --now" => UnitState::Enabled,
        _ => return None,
    })
}

// Which findings a plan is about.

/// How much of what was found a plan takes up. A check that is named is always included.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PlanLevel {
    #[default]
    Safe,
    /// And, where only some of the CPUs are to be real-time, what keeps the rest of the machine
    /// away from them: see [`STANDARD`].
    Standard,
    /// And all that is doubtful: whether it helps depends on what the machine does.
    Max,
}

/// Checks of which a doubtful finding belongs to [`PlanLevel::Standard`]: what every real-time user
/// means by CPUs of one's own (Documentation/timers/no_hz.rst, Documentation/admin-guide/
/// kernel-per-CPU-kthreads.rst; Red Hat's and SUSE's guides; the real-time profiles of tuned).
pub const STANDARD: &[&str] = &[
    // No other task runs there.
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
    // Nothing stops the application.
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
    pub level: PlanLevel,
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
            level: PlanLevel::Safe,
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
    pub fn includes(&self, check: &str) -> bool {
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
            (None, Status::Doubtful) if self.level_of(finding) == PlanLevel::Standard => {
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
    fn level_of(&self, finding: &Finding) -> PlanLevel {
        match self.has_own_cpus && STANDARD.contains(&&*finding.check) {
            true => PlanLevel::Standard,
            false => PlanLevel::Max,
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
