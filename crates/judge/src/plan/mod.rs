//! From findings to a plan: the ordered list of changes, each with its reason, and what no program
//! can do.
//!
//! Pure: what the machine holds now, and what becomes of a change, is `rtproof_host::tune`'s.

use rtproof_host::Facts;
use rtproof_host::tune::Change;
use serde::{Deserialize, Serialize};

use crate::{Finding, Impact, Intent};

mod files;
mod guard;
mod merge;
mod offline;
mod order;
mod risk;
mod select;
#[cfg(test)]
mod tests;
pub mod units;
mod value;
mod wish;
mod words;

pub use order::order;
pub use select::Selection;

/// What would be done to a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// One change, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The change.
    pub change: Change,
    /// What it is about.
    #[serde(flatten)]
    pub reason: Reason,
}

/// Why something is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// Checks whose findings ask for it.
    pub checks: Vec<String>,
    /// Why, in one line.
    pub why: String,
    /// How much latency it takes away, as a rule.
    pub impact: Impact,
    /// What it costs.
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

    /// Takes another in.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootWord {
    /// Parameter with its value, e.g. `isolcpus=managed_irq,domain,2-3`.
    pub parameter: String,
    /// Whether it takes the place of every word with the same name, or (`isolcpus=` with a wrong
    /// value) removes them: then the parameter is the name alone and nothing is added.
    #[serde(default)]
    pub removes: bool,
    /// What it is about.
    #[serde(flatten)]
    pub reason: Reason,
}

/// Something for a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Instruction {
    /// What to do.
    pub text: String,
    /// Options of the kernel's build that it is about, as `NAME=value` without `CONFIG_`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_options: Vec<String>,
    /// What it is about.
    #[serde(flatten)]
    pub reason: Reason,
}

/// A finding of which nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Its check.
    pub check: String,
    /// Why.
    pub why: String,
    /// Whether it cannot be told if something would have to be done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
}

/// Two wishes for one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conflict {
    /// The target.
    pub target: String,
    /// Checks, and what each wants.
    pub wishes: Vec<(String, String)>,
}

pub use crate::finding::{LIMITS_FILE, SYSCTL_FILE};

/// Checks that look at one thing from several sides, the one to prefer first: where one of them has
/// changes in the plan, those after it wait, unless they are named.
const ONE_IS_ENOUGH: &[&[&str]] =
    &[&["cpuidle-states", "pm-qos-resume", "cpu-dma-latency", "cstate-cmdline"]];

/// Checks that want what is in force to stay: what another check wants instead comes first.
const KEEPS: &[&str] = &["boot-persistence", "persistence-drift"];

/// The plan for what stands of `findings`. Pure, and the same for the same arguments.
#[must_use]
pub fn make(facts: &Facts, findings: &[Finding], intent: &Intent, wanted: &Selection) -> Plan {
    let mut making = Making::new(facts, intent, wanted);
    let taken: Vec<&Finding> =
        findings.iter().filter(|finding| wanted.takes(&finding.check)).collect();
    making.choose(&taken);
    for finding in taken {
        making.add(finding);
    }
    making.finish()
}

/// A plan in the making.
struct Making<'a> {
    facts: &'a Facts,
    intent: &'a Intent,
    wanted: &'a Selection,
    changes: merge::Changes,
    files: files::Files,
    words: words::Words,
    /// Of each line of [`ONE_IS_ENOUGH`] the check whose changes are planned.
    enough: Vec<&'static str>,
    plan: Plan,
}

impl<'a> Making<'a> {
    fn new(facts: &'a Facts, intent: &'a Intent, wanted: &'a Selection) -> Self {
        Self {
            facts,
            intent,
            wanted,
            enough: Vec::new(),
            changes: merge::Changes::default(),
            files: files::Files::default(),
            words: words::Words::default(),
            plan: Plan::default(),
        }
    }

    fn add(&mut self, finding: &Finding) {
        if let Some(left_out) = self.wanted.leaves_out(finding) {
            if self.wanted.tells(finding) {
                self.plan.left_out.push(left_out);
            }
            return;
        }
        if let Some(other) = self.is_done_by(&finding.check) {
            let why = format!("{other} does it; name this one to have both");
            self.leave_out(&finding.check, why);
            return;
        }
        for wish in wish::of(self.facts, finding, self.wanted) {
            self.add_wish(finding, wish);
        }
    }

    /// The check that is enough in place of this one.
    fn is_done_by(&self, check: &str) -> Option<&'static str> {
        let line = ONE_IS_ENOUGH.iter().find(|line| line.contains(&check))?;
        let other = line.iter().find(|other| self.enough.contains(other))?;
        (*other != check && !self.wanted.names(check)).then_some(other)
    }

    /// Of each line the first check that has something to change.
    fn choose(&mut self, findings: &[&Finding]) {
        let changes = |id: &&&str| {
            let found = findings.iter().find(|finding| finding.check == **id);
            let is_wanted = |finding: &&&Finding| self.wanted.leaves_out(finding).is_none();
            found.filter(is_wanted).is_some_and(|finding| wish::changes(&finding.remedies))
        };
        self.enough =
            ONE_IS_ENOUGH.iter().filter_map(|line| line.iter().find(changes).copied()).collect();
    }

    fn add_wish(&mut self, finding: &Finding, wish: wish::Wish) {
        let check = &finding.check;
        if let Some(why) = guard::refuses(self.facts, self.intent, &wish) {
            self.leave_out(check, why);
            return;
        }
        let risk = risk::of(&wish);
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
        match wish {
            wish::Wish::Change(change) => self.changes.add(change, reason),
            wish::Wish::Line { path, line } => self.files.add(path, &line, reason),
            wish::Wish::Word { parameter, removes } => self.words.add(parameter, removes, reason),
            wish::Wish::Human { text, build_options } => {
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
    /// seen on 6.12. The limit goes before ([`order`]).
    fn lift_the_limit(&mut self) {
        const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
        let sched = &self.facts.sched;
        let Some(limit) = sched.rt_runtime_us.value() else { return };
        let Some(period) = sched.rt_period_us.value() else { return };
        let is_written = self.changes.values(|path| path == LIMIT).next().is_some();
        if !(0..*period).contains(limit) || is_written {
            return;
        }
        let is_server = |path: &str| path.contains("/sched/fair_server/");
        let found = self.changes.values(is_server).find(|(value, _)| *value == "0");
        let Some(mut reason) = found.map(|(_, reason)| reason.clone()) else { return };
        reason.why.push_str("; the kernel lets go of the server only without this limit");
        self.changes.add(value::change(self.facts, LIMIT, "-1"), reason);
    }

    fn finish(mut self) -> Plan {
        self.lift_the_limit();
        let gone = offline::gone(self.facts, self.changes.iter());
        if !gone.is_empty() {
            for check in self.changes.map(|change| offline::without(change, &gone)) {
                let why = format!("{} go offline with this plan", crate::units::cpus(&gone));
                self.leave_out(&check, why);
            }
        }
        let (files, in_files) = self.files.finish(self.facts, &self.changes);
        for (change, reason) in files {
            self.changes.add(change, reason);
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
