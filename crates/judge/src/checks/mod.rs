//! The checks: one folder for each subsystem, with its files and its tables.
//!
//! A check is a pure function from facts and intent to a [`Finding`]. What needs thought is a file
//! of its own: copy `_template.rs`, fill it in, add one line to the subsystem's list. "This file
//! holds this value" is a row: a knob in `rtproof_host::knobs` and a [`rule::Rule`] in the
//! subsystem's `rules.rs`. `contract.rs` and `rule/tests.rs` then hold both to what every check
//! promises: it is never good without what it read, and says what that was.

use rtproof_host::{Facts, Knob};

use crate::{Finding, Impact, Intent, When};
use draft::Draft;

#[cfg(test)]
mod _template;
pub mod application;
#[cfg(test)]
mod blanks;
pub(crate) mod boot_params;
mod build_option;
#[cfg(test)]
mod contract;
mod device;
mod draft;
mod isolation;
mod kernel;
mod machine;
mod memory;
mod of_task;
mod platform;
mod power;
mod question;
pub mod rule;
mod sched;
#[doc(hidden)]
pub mod testing;
mod text;
mod time;

/// One check.
pub trait Check: Sync {
    /// Identifier: short, kebab-case, for ever.
    fn id(&self) -> &'static str;
    /// What it looks at, in one line.
    fn title(&self) -> &'static str;
    /// Why a bad answer adds latency.
    fn why(&self) -> &'static str;
    /// Where that is known from: documents, kernel files, measurements.
    fn source(&self) -> &'static str;
    /// What the wanted value costs, or where the sources disagree.
    fn trade_off(&self) -> Option<&'static str> {
        None
    }
    /// How much latency a bad answer costs, as a rule.
    fn impact(&self) -> Impact {
        Impact::Tens
    }
    /// What has to be done for a change to take effect.
    fn when(&self) -> When {
        When::Now
    }
    /// What can be set about it.
    fn knobs(&self) -> Vec<&'static Knob> {
        Vec::new()
    }
    /// Whether it judges real-time CPUs that are offline, too; others are asked about online ones.
    fn is_of_offline_cpus(&self) -> bool {
        false
    }
    /// The answer. Never `Good` when what it needs is unknown.
    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding;
}

/// The texts of a check that are fields of its type.
macro_rules! texts_are_fields {
    ($($text:ident: $type:ty),+) => {
        $(fn $text(&self) -> $type {
            self.$text
        })+
    };
}
pub(crate) use texts_are_fields;

/// The checks of one subsystem.
pub struct Section {
    /// Name of its folder.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Checks with a file of their own.
    pub checks: &'static [&'static dyn Check],
    /// Checks that are a row.
    pub rules: &'static [rule::Rule],
    /// Gives the good machine of the tests what the section's own checks read.
    #[doc(hidden)]
    pub fill: fn(&mut Facts),
}

impl Section {
    /// Every check of it, in the order of the report.
    pub fn all(&'static self) -> impl Iterator<Item = &'static dyn Check> {
        let rules = self.rules.iter().map(|rule| rule as &dyn Check);
        self.checks.iter().copied().chain(rules)
    }
}

/// The sections, in the order of the report.
const SECTIONS: &[Section] = &[
    kernel::SECTION,
    power::SECTION,
    sched::SECTION,
    isolation::SECTION,
    time::SECTION,
    memory::SECTION,
    device::SECTION,
    platform::SECTION,
];

/// Every section, in the order of the report.
#[must_use]
pub const fn sections() -> &'static [Section] {
    SECTIONS
}

/// Every check, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static dyn Check> {
    SECTIONS.iter().flat_map(Section::all)
}

/// The check with an id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static dyn Check> {
    all().find(|check| check.id() == id)
}

/// Runs every check. Of real-time CPUs that are offline nothing can be told but that they are.
#[must_use]
pub fn judge_all(facts: &Facts, intent: &Intent) -> Vec<Finding> {
    all().map(|check| judge_one(check, facts, intent)).collect()
}

/// Runs one check; see [`judge_all`].
#[must_use]
pub fn judge_one(check: &dyn Check, facts: &Facts, intent: &Intent) -> Finding {
    let mut finding = judge_online(check, facts, intent);
    finding.skipped = intent.skip.get(&finding.check).cloned();
    finding
}

fn judge_online(check: &dyn Check, facts: &Facts, intent: &Intent) -> Finding {
    let offline = machine::offline_rt(facts, intent);
    if offline.is_empty() || check.is_of_offline_cpus() {
        return check.judge(facts, intent);
    }
    let online = Intent { rt_cpus: intent.rt_cpus.difference(&offline), ..intent.clone() };
    if !online.rt_cpus.is_empty() {
        return check.judge(facts, &online);
    }
    let found = check.judge(facts, intent);
    if found.cpus.is_none() {
        return found;
    }
    Draft::of(check, found.wanted).cpus(&offline).gone(facts, &offline)
}

#[cfg(test)]
mod tests {
    use rtproof_host::Reading;

    use super::testing::{cpus, good, intent};
    use super::*;
    use crate::Status;

    /// The good machine with only these CPUs online.
    fn with_online(online: &[u32]) -> Facts {
        let mut facts = good();
        facts.cpus.online = Reading::known(facts.cpus.online.path.clone(), cpus(online));
        facts.cpus.cpus.retain(|cpu| online.contains(&cpu.id));
        facts
    }

    #[test]
    fn an_offline_cpu_is_named_once_and_the_others_are_judged() {
        for finding in judge_all(&with_online(&[0, 1, 2]), &intent()) {
            match finding.check.as_str() {
                "isolation" => {
                    assert_eq!(finding.status, Status::Doubtful);
                    assert!(finding.summary.contains("CPU 3 offline"), "{}", finding.summary);
                }
                _ => {
                    let settled = [Status::Good, Status::NotApplicable];
                    assert!(settled.contains(&finding.status), "{finding:#?}");
                    assert!(finding.cpus.is_none_or(|found| found == cpus(&[2])));
                }
            }
        }
    }

    #[test]
    fn nothing_is_said_of_cpus_that_are_all_offline() {
        for finding in judge_all(&with_online(&[0, 1]), &intent()) {
            if finding.cpus.is_some() && finding.check != "isolation" {
                assert_eq!(finding.status, Status::Unknown);
                assert_eq!(finding.summary, "CPUs 2-3: offline");
            }
        }
    }
}
