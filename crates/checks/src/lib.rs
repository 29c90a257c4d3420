//! The checks, and what a machine is for. Pure: no I/O, no clock.
//!
//! One folder for each subsystem, with its list in the order of the report.
//!
//! A check is a [`Check`]: a pure function from facts and intent to a [`Finding`], with its texts.
//! Copy `_template.rs` to start one. `contract.rs` holds each to what every check promises: it is
//! never good without what it read, and says what that was.

use rtproof_host::Facts;

pub use check::{Check, Judge, Needs};
pub use intent::Intent;
pub use platform::{bios_profile::version as firmware_version, firmware_list::ITEMS};
pub use profile::Profile;
pub use rtproof_model::{Evidence, Finding, Impact, Remedy, Status, When};
pub use section::Section;

#[cfg(test)]
mod _template;
pub mod application;
#[cfg(test)]
mod blanks;
pub(crate) mod boot_params;
pub mod build;
pub mod case;
pub mod check;
#[cfg(test)]
mod contract;
mod device;
pub mod draft;
pub mod intent;
mod isolation;
mod kernel;
pub(crate) mod machine;
mod memory;
mod platform;
mod power;
pub mod profile;
pub mod quantity;
mod release;
pub(crate) mod remedies;
mod sched;
mod section;
mod setting;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub(crate) mod text;
mod time;
pub mod trials;
pub mod value;

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
pub const fn sections() -> &'static [Section] {
    SECTIONS
}

/// Every check, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    SECTIONS.iter().flat_map(|section| section.checks.iter().copied())
}

/// The check with an id.
pub fn by_id(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// Runs every check. Real-time CPUs that are offline are reported as such and judged no further.
pub fn judge_all(facts: &Facts, intent: &Intent) -> Vec<Finding> {
    all().map(|check| judge_one(check, facts, intent)).collect()
}

/// Runs one check; see [`judge_all`].
pub fn judge_one(check: &Check, facts: &Facts, intent: &Intent) -> Finding {
    let mut finding = judge_online(check, facts, intent);
    finding.skipped = intent.skip.get(&finding.check).cloned();
    finding
}

fn judge_online(check: &Check, facts: &Facts, intent: &Intent) -> Finding {
    let offline = machine::offline_rt(facts, intent);
    if offline.is_empty() || check.needs == Needs::OfflineCpus {
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
    check.draft().wants(found.wanted).cpus(&offline).gone(facts, &offline)
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
