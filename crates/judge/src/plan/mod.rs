//! From findings to a plan: the ordered list of changes, each with its reason, and what no program
//! can do.
//!
//! Pure: what the machine holds now, and what becomes of a change, is `rtproof_host::tune`'s.

use std::collections::BTreeMap;

use rtproof_host::Facts;
use rtproof_host::knobs::sched::{FAIR_SERVER, RT_RUNTIME};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Finding, Intent};

mod build;
mod files;
mod guard;
mod merge;
mod offline;
mod order;
mod request;
mod select;
mod step;
#[cfg(test)]
mod tests;
pub mod units;
mod value;
mod words;

pub use build::{BuildOption, build_options};
pub use rtproof_host::knobs::names::{LIMITS_FILE, SYSCTL_FILE};
pub use select::{Level, STANDARD, Selection};
pub use step::{BootWord, Conflict, Instruction, LeftOut, Reason, Step};

use request::Request;

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

/// The plan for what stands of `findings`. Pure, and the same for the same arguments.
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
    /// For each purpose that several knobs serve: the preferred one that a finding would set, and
    /// the check of the finding. Others wait, unless they are named.
    chosen: BTreeMap<&'static str, (u8, &'a str)>,
    plan: Plan,
}

impl<'a> Making<'a> {
    fn new(facts: &'a Facts, intent: &'a Intent, wanted: &'a Selection) -> Self {
        Self {
            facts,
            intent,
            wanted,
            chosen: BTreeMap::new(),
            changes: merge::Changes::default(),
            files: files::Files::default(),
            words: words::Words::default(),
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

    fn add_request(&mut self, finding: &Finding, request: Request) {
        let check = &finding.check;
        if let Some(why) = guard::refuses(self.facts, self.intent, &request) {
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
            Request::Change(change, knob) => self.changes.add(change, knob, reason),
            Request::Line { path, line } => self.files.add(path, &line, reason),
            Request::Word { parameter, removes } => self.words.add(parameter, removes, reason),
            Request::Human { text, build_options } => {
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
        let change = value::change(self.facts, &RT_RUNTIME, path, "-1");
        self.changes.add(change, Some(&RT_RUNTIME), reason);
    }

    fn finish(mut self) -> Plan {
        self.lift_the_limit();
        let gone = offline::gone(self.facts, self.changes.iter());
        if !gone.is_empty() {
            for check in self.changes.map(|one, knob| offline::without(one, knob, &gone)) {
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
