//! The catalogue of checks, and what a machine is for.
#![doc = include_str!("../README.md")]

#[cfg(test)]
mod _template;
pub mod application;
#[cfg(test)]
mod blanks;
pub mod case;
pub mod check;
mod choice;
#[cfg(test)]
mod contract;
mod device;
pub mod draft;
mod first;
mod isolation;
mod kernel;
mod known;
mod machine;
mod memory;
mod platform;
mod power;
pub mod profile;
mod remedies;
mod sched;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;
pub mod trials;
pub mod value;

pub use check::{Check, Judge, Needs};
pub use choice::Proposal;
pub use first::{FirstSentence, first_sentence};
pub use profile::Profile;

use std::collections::BTreeMap;

use rtproof_host::{CpuList, Facts, facts::rights::Account};
use rtproof_record::Options;

pub use rtproof_model::{Evidence, Finding, Impact, Remedy, Status, When};
pub use rtproof_stats::samples::*;

pub use crate::platform::firmware::{ITEMS, version as firmware_version};

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
    let mut finding = known::fit(judge_online(check, facts, intent), facts);
    if finding.status == Status::Bad && !is_bad_for_all(check, facts, intent) {
        finding.status = Status::Doubtful;
    }
    finding.skipped = intent.skip.get(&finding.check).cloned();
    quote(&mut finding, facts);
    finding
}

/// Whether it is bad whichever CPUs are chosen: a machine is not to blame that it was not set up
/// for CPUs that nobody chose.
fn is_bad_for_all(check: &Check, facts: &Facts, intent: &Intent) -> bool {
    let Some(online) = facts.cpus.online.value().filter(|_| intent.proposed.is_some()) else {
        return true;
    };
    let all = Intent {
        rt_cpus: online.clone(),
        proposed: None,
        housekeeping: CpuList::default(),
        ..intent.clone()
    };
    check.judge(facts, &all).status == Status::Bad
}

/// Words of the evidence that only the whole machine decides: what the files say before what is
/// concluded from it, and what a copy lacks, which may have been there.
fn quote(finding: &mut Finding, facts: &Facts) {
    const NOT_THERE: &str = "not there";
    if facts.copy.is_some() {
        let values = finding.evidence.iter_mut().map(|evidence| &mut evidence.value);
        for text in values.chain([&mut finding.summary]) {
            if let Some(path) = text.strip_suffix(NOT_THERE) {
                *text = format!("{path}{}", rtproof_host::reading::NOT_IN_COPY);
            }
        }
    }
    let Some(quoted) = &facts.virt.hypervisor_quoted else { return };
    let path = &facts.virt.hypervisor.path;
    for evidence in finding.evidence.iter_mut().filter(|evidence| evidence.path == *path) {
        let concluded = match evidence.value.as_str() {
            "none" => "no hypervisor",
            value => value,
        };
        evidence.value = format!("{quoted}: {concluded}");
    }
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
    check.draft().wanted(found.wanted).cpus(&offline).missing_cpus(facts, &offline)
}

/// Intent of the machine: the part of the user's requirements that checks need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Real-time CPUs: where latency matters.
    pub rt_cpus: CpuList,
    /// Why these, where they are a proposal of rtproof; `None`: chosen, or kept free.
    pub proposed: Option<String>,
    /// The other online CPUs.
    pub housekeeping: CpuList,
    /// Priority of the real-time application (SCHED_FIFO).
    pub priority: u32,
    /// Period of its loop.
    pub period_ns: u64,
    pub budget_ns: Option<u64>,
    /// Kind of work, which decides where the sources disagree.
    pub profile: Profile,
    /// Checks that the user leaves out, with the reason.
    pub skip: BTreeMap<String, String>,
    /// The user whose rights count, where one is known; a record has none.
    pub user: Option<Account>,
}

impl Intent {
    /// The default real-time CPUs: those that the machine itself sets apart, else a proposal with
    /// its reasons; every online CPU where none can be kept free.
    pub fn default_rt_cpus(facts: &Facts) -> (CpuList, Option<String>) {
        match (Self::set_apart(facts), choice::propose(facts)) {
            (Some(cpus), _) => (cpus, None),
            (None, Ok(Proposal { cpus, why })) => (cpus, Some(why)),
            (None, Err(_)) => (facts.cpus.online.value().cloned().unwrap_or_default(), None),
        }
    }

    /// What is isolated at boot, else by partitions of cgroup v2, else what is tickless, else what
    /// `isolcpus=`, `nohz_full=` or tuned's `tuned.non_isolcpus=` ask for, in force or not.
    ///
    /// OpenShift isolates with `isolcpus=managed_irq,LIST` and no `domain`: nothing counts as
    /// isolated then, and `nohz_full` names the real-time CPUs.
    fn set_apart(facts: &Facts) -> Option<CpuList> {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        // The kernel keeps CPUs isolated that are possible and not there.
        let there = |cpus: &CpuList| cpus.clone().within(facts.cpus.existing());
        let some = |cpus: Option<&CpuList>| cpus.map(there).filter(|cpus| !cpus.is_empty());
        let asked = |key: &str| {
            let asked = machine::requested_cpus(facts, key)?.intersection(&online);
            let is_all = online.difference(&asked).is_empty();
            Some(asked).filter(|asked| !asked.is_empty() && !is_all)
        };
        some(facts.cpus.isolated.value())
            .or_else(|| some(facts.isolation.partitioned.value()))
            .or_else(|| some(facts.cpus.nohz_full.value()))
            .or_else(|| asked("isolcpus"))
            .or_else(|| asked("nohz_full"))
            .or_else(|| not_housekeeping(facts, &online))
    }

    /// The intent behind a run.
    pub fn of(options: &Options, facts: &Facts) -> Self {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        Self {
            rt_cpus: options.cpus.clone(),
            proposed: None,
            housekeeping: online.difference(&options.cpus),
            priority: options.priority,
            period_ns: options.period_ns,
            budget_ns: options.requirement.budget_ns,
            profile: Profile::from_json(&options.profile),
            skip: options.skipped.clone(),
            user: None,
        }
    }
}

/// What tuned's profile cpu-partitioning leaves for the application: it boots with the mask of the
/// other CPUs and without isolcpus.
fn not_housekeeping(facts: &Facts, online: &CpuList) -> Option<CpuList> {
    let mask = facts.kernel.cmdline.value()?.last("tuned.non_isolcpus").flatten()?;
    let housekeeping = CpuList::parse_mask(mask).ok()?.intersection(online);
    let others = online.difference(&housekeeping);
    Some(others).filter(|others| !others.is_empty() && !housekeeping.is_empty())
}

/// `CPU 2` or `CPUs 2-3`.
pub fn cpus(cpus: &CpuList) -> String {
    cpus.phrase()
}

/// Whether the kernel is of this version or later.
pub(crate) fn since(facts: &Facts, version: (u32, u32)) -> Option<bool> {
    facts.kernel.version.value().map(|&found| found >= version)
}

/// The checks of one subsystem.
pub struct Section {
    /// Name of its folder.
    pub name: &'static str,
    pub title: &'static str,
    /// Its checks, in the order of the report.
    pub checks: &'static [&'static Check],
}

#[cfg(test)]
mod tests {
    use rtproof_host::Reading;

    use super::*;
    use crate::testing::{cpus, good, intent};

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
    fn offline_cpus_are_not_judged() {
        for finding in judge_all(&with_online(&[0, 1]), &intent()) {
            if finding.cpus.is_some() && finding.check != "isolation" {
                assert_eq!(finding.status, Status::Unknown);
                assert_eq!(finding.summary, "CPUs 2-3: offline");
            }
        }
    }
}

#[cfg(test)]
mod intent_tests {
    use rtproof_host::Reading;

    use super::*;
    use crate::testing::{cpus, good, set_cmdline};

    #[test]
    fn the_real_time_cpus_are_those_that_the_machine_sets_apart() {
        let mut facts = good();
        let set = |path: &str, set: &[u32]| Reading::known(path.to_owned(), cpus(set));
        let of = |facts: &Facts| {
            let (cpus, why) = Intent::default_rt_cpus(facts);
            if why.is_some() { "proposed".into() } else { cpus.to_string() }
        };
        facts.cpus.isolated = set("/sys/devices/system/cpu/isolated", &[3]);
        assert_eq!(of(&facts), "3");
        facts.cpus.isolated = set("/sys/devices/system/cpu/isolated", &[]);
        assert_eq!(of(&facts), "2-3", "tickless");
        facts.isolation.partitioned = set("/sys/fs/cgroup/cpuset.cpus.isolated", &[1]);
        assert_eq!(of(&facts), "1");
        facts.isolation.partitioned = Reading::absent("/sys/fs/cgroup/cpuset.cpus.isolated");
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        set_cmdline(&mut facts, "isolcpus=managed_irq,1-2,9");
        assert_eq!(of(&facts), "1-2");
        set_cmdline(&mut facts, "tuned.non_isolcpus=00000000,00000003");
        assert_eq!(of(&facts), "2-3");
        for none in [
            "quiet",
            "tuned.non_isolcpus=f",
            "tuned.non_isolcpus=x",
            "isolcpus=2-3n",
            "isolcpus=",
            "isolcpus=0-3",
            "isolcpus=8-9",
        ] {
            set_cmdline(&mut facts, none);
            assert_eq!(of(&facts), "proposed", "{none}");
        }
    }
}
