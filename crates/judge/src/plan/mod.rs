//! From findings to a plan: the ordered list of changes, each with its reason, and what no program
//! can do.
//!
//! Pure: what the machine holds now, and what becomes of a change, is `rtproof_host::tune`'s.

mod build;
mod merge;
mod request;
#[cfg(test)]
mod tests;
pub mod units;
mod words;

pub use build::{BuildOption, build_options};
pub use request::{PlanLevel, STANDARD, Selection};

use std::collections::BTreeMap;

use merge::WantedChange;
use request::PlanRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{
    CpuList, Facts, Knob,
    knob::{KnobKind, Place, Rank, ValueRule},
    knobs::{
        self,
        cpu::{FAIR_SERVER, RT_RUNTIME},
        power,
    },
    tune::{Change, Compare, IrqName},
};

use crate::checks::value::mask;
use crate::{Finding, Impact, Intent};

pub use rtproof_host::knobs::{LIMITS_FILE, SYSCTL_FILE};

/// What would be done to a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Changes that can be made now, in the order in which they have to be made.
    pub steps: Vec<Step>,
    /// Words for the kernel's command line, one entry of the boot menu for all of them.
    pub boot: Vec<BootWord>,
    /// What only a human can do.
    pub instructions: Vec<Instruction>,
    /// Findings of which nothing is done, and why.
    pub left_out: Vec<LeftOut>,
    /// Findings that want different things of one target. Nothing is applied while there are any.
    pub conflicts: Vec<Conflict>,
}

/// The plan for the open findings. Pure, and the same for the same arguments.
pub fn make(facts: &Facts, findings: &[Finding], intent: &Intent, wanted: &Selection) -> Plan {
    let mut making = PlanBuilder::new(facts, intent, wanted);
    let taken: Vec<&Finding> =
        findings.iter().filter(|finding| wanted.includes(&finding.check)).collect();
    making.choose(&taken);
    for finding in taken {
        making.add(finding);
    }
    making.finish()
}

/// Builder of a plan.
struct PlanBuilder<'a> {
    facts: &'a Facts,
    intent: &'a Intent,
    wanted: &'a Selection,
    changes: merge::WantedChanges,
    files: merge::PlanFiles,
    words: words::PlanWords,
    /// For each purpose that several knobs serve: the preferred one that a finding would set, and
    /// the check of the finding. Others wait, unless they are named.
    chosen: BTreeMap<&'static str, (u8, &'a str)>,
    plan: Plan,
}

impl<'a> PlanBuilder<'a> {
    fn new(facts: &'a Facts, intent: &'a Intent, wanted: &'a Selection) -> Self {
        Self {
            facts,
            intent,
            wanted,
            chosen: BTreeMap::new(),
            changes: merge::WantedChanges::default(),
            files: merge::PlanFiles::default(),
            words: words::PlanWords::default(),
            plan: Plan::default(),
        }
    }

    fn add(&mut self, finding: &Finding) {
        if let Some(left_out) = self.wanted.leaves_out(finding) {
            if self.wanted.reports(finding) {
                self.plan.left_out.push(left_out);
            }
            return;
        }
        if let Some(other) = self.is_done_by(finding) {
            let why = format!("{other} does it; name this one to have both");
            self.leave_out(&finding.check, why);
            return;
        }
        for request in request::of(self.facts, finding, self.wanted) {
            self.add_request(finding, request);
        }
    }

    fn purpose(&self, finding: &Finding) -> Option<(&'static str, u8)> {
        request::purpose(&finding.remedies, |word| words::is_in_force(self.facts, word))
    }

    /// The check whose changes serve the purpose of this one.
    fn is_done_by(&self, finding: &Finding) -> Option<&'a str> {
        let (_, check) = self.chosen.get(self.purpose(finding)?.0)?;
        (*check != finding.check && !self.wanted.names(&finding.check)).then_some(check)
    }

    /// For each purpose the preferred knob.
    fn choose(&mut self, findings: &[&'a Finding]) {
        for finding in findings {
            if self.wanted.leaves_out(finding).is_some() {
                continue;
            }
            let Some((purpose, preference)) = self.purpose(finding) else { continue };
            let chosen = self.chosen.entry(purpose).or_insert((u8::MAX, ""));
            if preference < chosen.0 {
                *chosen = (preference, &finding.check);
            }
        }
    }

    fn add_request(&mut self, finding: &Finding, request: PlanRequest) {
        let check = &finding.check;
        if let Some(why) = words::refuses(self.facts, self.intent, &request) {
            self.leave_out(check, why);
            return;
        }
        let risk = request.risk();
        if let Some(risk) = risk.filter(|_| !self.wanted.risky && !self.wanted.names(check)) {
            self.leave_out(
                check,
                format!("risky: {risk}; name it, or give --risky, to include it"),
            );
            return;
        }
        let reason = Reason {
            checks: vec![check.clone()],
            why: finding.why.clone(),
            impact: finding.impact,
            trade_off: finding.trade_off.clone(),
            risk: risk.map(str::to_owned),
        };
        match request {
            PlanRequest::Change(change, knob) => self.changes.add(change, knob, reason),
            PlanRequest::Line { path, line } => self.files.add(path, &line, reason),
            PlanRequest::Word { parameter, removes } => self.words.add(parameter, removes, reason),
            PlanRequest::Human { text, build_options } => {
                self.plan.instructions.push(Instruction { text, build_options, reason });
            }
        }
    }

    fn leave_out(&mut self, check: &str, why: String) {
        let left_out = LeftOut { check: check.to_owned(), why, is_unknown: false };
        if !self.plan.left_out.contains(&left_out) {
            self.plan.left_out.push(left_out);
        }
    }

    /// As long as there is a limit of real-time tasks below the period, the kernel refuses (EBUSY)
    /// to take a deadline server's runtime away: `__dl_overflow` in `kernel/sched/deadline.c`,
    /// seen on 6.12. The limit goes before (see [`Rank`]).
    fn lift_the_limit(&mut self) {
        let sched = &self.facts.sched;
        let Some(limit) = sched.rt_runtime_us.value() else { return };
        let Some(period) = sched.rt_period_us.value() else { return };
        let is_written = self.changes.values(&RT_RUNTIME).next().is_some();
        if !(0..*period).contains(limit) || is_written {
            return;
        }
        let found = self.changes.values(&FAIR_SERVER).find(|(value, _)| *value == "0");
        let Some(mut reason) = found.map(|(_, reason)| reason.clone()) else { return };
        reason.why.push_str("; the kernel lets go of the server only without this limit");
        let path = &sched.rt_runtime_us.path;
        let change = change(self.facts, &RT_RUNTIME, path, "-1");
        self.changes.add(change, Some(&RT_RUNTIME), reason);
    }

    fn finish(mut self) -> Plan {
        self.lift_the_limit();
        let gone = offline_cpus(self.facts, self.changes.iter());
        if !gone.is_empty() {
            for check in self.changes.map(|one, knob| without(one, knob, &gone)) {
                let why = format!("{} go offline with this plan", crate::units::cpus(&gone));
                self.leave_out(&check, why);
            }
        }
        let (files, in_files) = self.files.finish(self.facts, &self.changes);
        for (change, reason) in files {
            self.changes.add(change, None, reason);
        }
        let (steps, mut conflicts) = self.changes.finish(self.facts);
        let (boot, in_words) = self.words.finish(self.facts);
        conflicts.extend(in_files.into_iter().chain(in_words));
        let mut instructions: Vec<Instruction> = Vec::new();
        for instruction in self.plan.instructions {
            let is_same = |known: &&mut Instruction| {
                known.text == instruction.text && known.build_options == instruction.build_options
            };
            match instructions.iter_mut().find(is_same) {
                Some(known) => known.reason.merge(instruction.reason),
                None => instructions.push(instruction),
            }
        }
        Plan { steps, boot, instructions, left_out: self.plan.left_out, conflicts }
    }
}

// CPUs that a plan takes offline: what is set for them afterwards would be refused, and lists that
// name them would be read back without them.

/// The CPUs that these changes take offline.
fn offline_cpus<'a>(facts: &Facts, changes: impl Iterator<Item = &'a WantedChange>) -> CpuList {
    let mut gone = CpuList::default();
    for wanted in changes {
        let Change::Hotplug { path, value } = &wanted.change else { continue };
        match value.as_str() {
            "off" => gone = gone.union(&second_threads(facts)),
            "0" => {
                let number = wanted.knob.and_then(|knob| knob.cpu_of(path));
                gone = gone.union(&CpuList::new(number));
            }
            _ => {}
        }
    }
    gone
}

/// All threads of a core but the first.
fn second_threads(facts: &Facts) -> CpuList {
    let is_second = |cpu: &&rtproof_host::facts::cpu::Cpu| {
        let first = cpu.siblings.value().and_then(|siblings| siblings.iter().next());
        first.is_some_and(|first| first != cpu.id)
    };
    CpuList::new(facts.cpus.cpus.iter().filter(is_second).map(|cpu| cpu.id))
}

/// The change without these CPUs; `None`: nothing is left of it.
fn without(change: Change, knob: Option<&Knob>, gone: &CpuList) -> Option<Change> {
    let rest = |cpus: &CpuList| Some(cpus.difference(gone)).filter(|rest| !rest.is_empty());
    Some(match change {
        Change::Value { path, .. } if concerns_offline_only(knob, &path, gone) => {
            return None;
        }
        Change::Value { path, value, compare, couples } => {
            let value = match compare {
                Compare::CpuList => match CpuList::parse(&value, None) {
                    Ok(cpus) => rest(&cpus)?.to_string(),
                    Err(_) => value,
                },
                Compare::CpuMask => match CpuList::parse_mask(&value) {
                    Ok(cpus) => mask(&rest(&cpus)?),
                    Err(_) => value,
                },
                _ => value,
            };
            Change::Value { path, value, compare, couples }
        }
        Change::Irq { irq, cpus } => Change::Irq { irq, cpus: rest(&cpus)? },
        Change::Task { task, mut set } => {
            if let Some(cpus) = &set.cpus {
                set.cpus = Some(rest(cpus)?);
            }
            Change::Task { task, set }
        }
        Change::Property { unit, property, value } if knobs::key_of(&property).is_some() => {
            let cpus = CpuList::parse(&value, None).ok();
            let value = match cpus {
                Some(cpus) => rest(&cpus)?.to_string(),
                None => value,
            };
            Change::Property { unit, property, value }
        }
        other => other,
    })
}

/// Whether a file concerns one of these CPUs alone.
fn concerns_offline_only(knob: Option<&Knob>, path: &str, gone: &CpuList) -> bool {
    knob.and_then(|knob| knob.cpu_of(path)).is_some_and(|cpu| gone.contains(cpu))
}

// In which order changes are made.
//
// A value that is written too early is refused by the kernel, or overwritten by a driver or a
// daemon. A knob says at which rank it is set; `Rank` gives the reasons. Undo goes through it
// backwards, so the reasons must also hold backwards.

/// By what a change is sorted: its rank, within limits of frequency which is first, then names with
/// numbers as numbers.
type Key = (Rank, u8, Vec<Part>);

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

/// The position of a change in the order: the rank of its knob, else that of its kind.
fn key(facts: &Facts, change: &Change, knob: Option<&Knob>) -> Key {
    (
        knob.and_then(|knob| knob.rank).unwrap_or_else(|| change.nature().rank),
        limits_first(facts, change, knob),
        parts(&change.target()),
    )
}

/// Of the limits of a frequency: raising, the maximum is first; where the maximum goes below the
/// minimum of now, the minimum is.
fn limits_first(facts: &Facts, change: &Change, knob: Option<&Knob>) -> u8 {
    let (Change::Value { path, value, .. }, Some(knob)) = (change, knob) else { return 0 };
    let least_khz = || {
        let number = knob.cpu_of(path)?;
        let cpu = facts.cpus.cpus.iter().find(|cpu| cpu.id == number)?;
        cpu.freq.min_hz.value().map(|hz| hz / 1_000)
    };
    let is_below =
        || value.parse::<u64>().ok().zip(least_khz()).is_some_and(|(khz, least)| khz < least);
    match () {
        () if [power::MIN_FREQ, power::UNCORE_MIN_FREQ].contains(knob) => 1,
        () if *knob == power::MAX_FREQ && is_below() => 2,
        () => 0,
    }
}

/// A name in parts, so that `cpu10` comes after `cpu2`.
fn parts(name: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for char in name.chars() {
        match (parts.last_mut(), char.to_digit(10)) {
            (Some(Part::Number(number)), Some(digit)) => {
                *number = number.saturating_mul(10).saturating_add(digit.into());
            }
            (_, Some(digit)) => parts.push(Part::Number(digit.into())),
            (Some(Part::Text(text)), None) => text.push(char),
            (_, None) => parts.push(Part::Text(char.into())),
        }
    }
    parts
}

// What a plan is made of: steps and their reasons, words for the boot, what is left out.

/// One change, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub change: Change,
    #[serde(flatten)]
    pub reason: Reason,
}

/// Why something is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Checks whose findings ask for it.
    pub checks: Vec<String>,
    /// Why, in one line.
    pub why: String,
    /// How much latency it takes away, as a rule.
    pub impact: Impact,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trade_off: Option<String>,
    /// What can go wrong; such a change is made only when its check is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
}

impl Reason {
    /// One reason out of two.
    fn merged(mut self, other: Self) -> Self {
        self.merge(other);
        self
    }

    fn merge(&mut self, other: Self) {
        if other.checks.iter().all(|check| self.checks.contains(check)) {
            return;
        }
        self.checks.extend(other.checks);
        self.impact = self.impact.min(other.impact);
        join(&mut self.why, &other.why);
        for (text, more) in [(&mut self.trade_off, other.trade_off), (&mut self.risk, other.risk)] {
            match (text, more) {
                (Some(text), Some(more)) => join(text, &more),
                (text, more) => *text = text.take().or(more),
            }
        }
    }
}

/// Adds a text that is not there yet.
fn join(text: &mut String, more: &str) {
    if !text.contains(more) {
        text.push_str("; ");
        text.push_str(more);
    }
}

/// A word of the kernel's command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootWord {
    /// Parameter with its value, e.g. `isolcpus=managed_irq,domain,2-3`.
    pub parameter: String,
    /// Whether it takes the place of every word with the same name, or (`isolcpus=` with a wrong
    /// value) removes them: then the parameter is the name alone and nothing is added.
    #[serde(default)]
    pub removes: bool,
    #[serde(flatten)]
    pub reason: Reason,
}

/// Something for a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Instruction {
    pub text: String,
    /// Options of the kernel's build that it is about, as `NAME=value` without `CONFIG_`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_options: Vec<String>,
    #[serde(flatten)]
    pub reason: Reason,
}

/// A finding of which nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    pub check: String,
    pub why: String,
    /// Whether the need for a change is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
}

/// Two requests for one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    pub target: String,
    /// Checks, and what each wants.
    #[serde(rename = "wishes")]
    pub requests: Vec<(String, String)>,
}

// From a knob and a value to a change. All that differs between knobs is data of the knob.

/// The change that sets a knob at a path.
fn change(facts: &Facts, knob: &Knob, path: &str, value: &str) -> Change {
    if knob.kind == KnobKind::Irq
        && let Some(Ok(number)) = knob.part_of("*", path).map(str::parse)
        && let Ok(cpus) = CpuList::parse(value, None)
    {
        return Change::Irq { irq: irq_name(facts, number), cpus };
    }
    let (path, value) = (path.to_owned(), value.to_owned());
    if knob.kind == KnobKind::Hotplug {
        return Change::Hotplug { path, value };
    }
    let compare = compare(knob, &value);
    let couples = couples(facts, knob, &path);
    let value =
        if knob.rule == ValueRule::FirstWord { with_rest(facts, knob, value) } else { value };
    Change::Value { path, value, compare, couples }
}

/// The name of an interrupt as far as facts have it: its number in its controller is only known on
/// the machine (`Machine::named`).
fn irq_name(facts: &Facts, number: u32) -> IrqName {
    let irqs = facts.irqs.irqs.value().into_iter().flatten();
    let found = irqs.into_iter().find(|irq| irq.number == number);
    // /proc/interrupts has ", " between names, /sys/kernel/irq/N/actions a comma.
    let actions = found.map_or_else(String::new, |irq| irq.actions.replace(", ", ","));
    IrqName { number, actions, hwirq: String::new(), chip: String::new() }
}

fn compare(knob: &Knob, value: &str) -> Compare {
    let is_number = value.parse::<i64>().is_ok() || matches!(value, "Y" | "N");
    match knob.compare {
        Some(compare) => compare,
        None if matches!(knob.place, Place::Choice(_)) => Compare::Choice,
        None if is_number => Compare::Number,
        None => Compare::Text,
    }
}

/// The files of the knobs that move with this one.
fn couples(facts: &Facts, knob: &Knob, path: &str) -> Vec<String> {
    let files = knob.couples.iter().flat_map(|couple| {
        let known = facts.settings.get(*couple).into_iter().flat_map(|setting| &setting.values);
        let read: Vec<String> = known.map(|value| value.reading.path.clone()).collect();
        if !read.is_empty() {
            return read;
        }
        let other = knobs::all().find(|knob| knob.id == *couple);
        let patterns = other.into_iter().flat_map(Knob::patterns);
        // Without a value of it only a pattern that is a path can be named.
        let is_path = |pattern: &&str| !pattern.contains(['*', '{']);
        let path = patterns.filter(is_path).chain(Some(*couple).filter(|id| id.starts_with('/')));
        path.take(1).map(str::to_owned).collect()
    });
    files.filter(|file| file != path).collect()
}

/// The value with the other words that the file shows.
fn with_rest(facts: &Facts, knob: &Knob, value: String) -> String {
    let values = facts.settings.get(knob.id).map(|setting| setting.values.as_slice());
    let found = values.and_then(|values| values.first()?.reading.value());
    let rest: Vec<&str> = found.into_iter().flat_map(|text| text.split_whitespace()).collect();
    match rest.split_first() {
        Some((_, rest)) if !rest.is_empty() => format!("{value}\t{}", rest.join("\t")),
        _ => value,
    }
}
