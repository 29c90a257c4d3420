//! Checks that say "the kernel is built with this option", or without it.
//!
//! A build says what a kernel can do, seldom what it does. So a check may name what makes another
//! build harmless. An unreadable configuration is unknown.

use rtproof_host::Facts;

use super::{draft::Draft, machine};
use crate::{Evidence, Finding, Intent, Remedy, Status};

/// What is wanted of options of the kernel's build.
pub struct Build {
    /// Options without `CONFIG_`.
    pub options: &'static [&'static str],
    /// What is wanted of them.
    pub want: fn(&Intent) -> Built,
    /// Status of another build.
    pub otherwise: Status,
    /// Option without which the check does not apply.
    pub part_of: Option<&'static str>,
    /// What makes another build harmless on this machine, and how to say so.
    pub harmless: Option<fn(&Facts, &Intent) -> Harmless>,
    /// What helps without another kernel.
    pub remedy: Option<fn() -> Remedy>,
}

/// What shows that a build is harmless, and how to say so.
pub type Harmless = Option<(Evidence, &'static str)>;

/// What is wanted of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Built {
    /// All of them.
    With,
    /// None of them.
    Without,
    /// Either: the finding shows the build.
    Either,
}

impl Build {
    /// Without the options, else doubtful.
    pub const NEW: Self = Self {
        options: &[],
        want: |_| Built::Without,
        otherwise: Status::Doubtful,
        part_of: None,
        harmless: None,
        remedy: None,
    };

    /// Whether neither way is wanted.
    pub fn is_open(&self, intent: &Intent) -> bool {
        (self.want)(intent) == Built::Either
    }

    pub(super) fn judge(&self, draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
        let want = (self.want)(intent);
        let names = |options: &[&str]| {
            let names: Vec<String> = options.iter().map(|name| format!("CONFIG_{name}")).collect();
            names.join(", ")
        };
        let wanted = match want {
            Built::With => format!("{} set", names(self.options)),
            Built::Without => format!("{} not set", names(self.options)),
            Built::Either => "known".into(),
        };
        let draft = draft.wants(wanted);
        let evidence: Vec<Evidence> =
            self.options.iter().map(|option| machine::option(facts, option)).collect();
        let texts: Vec<String> = evidence.iter().map(|one| one.value.clone()).collect();
        let config = &facts.kernel.config;
        let Some(found) = config.value() else {
            return draft.blind(config);
        };
        let draft = draft.saw(evidence);
        if let Some(option) = self.part_of
            && machine::built_with(facts, option) == Some(false)
        {
            return draft.without(facts, option);
        }
        let is_set =
            |option: &&&str| matches!(found.get(**option).map(String::as_str), Some("y" | "m"));
        let wrong: Vec<&str> = match want {
            Built::With => self.options.iter().filter(|option| !is_set(option)).copied().collect(),
            Built::Without => self.options.iter().filter(is_set).copied().collect(),
            Built::Either => Vec::new(),
        };
        if wrong.is_empty() {
            return draft.good(match (want, texts.len()) {
                (_, ..=2) => texts.join(", "),
                (Built::Without, n) => format!("none of {n} options set"),
                (_, n) => format!("all of {n} options set"),
            });
        }
        let is = if want == Built::With { "not set" } else { "set" };
        let summary = format!("{}: {is}", names(&wrong));
        if let Some((evidence, why)) = self.harmless.and_then(|ask| ask(facts, intent)) {
            return draft.saw([evidence]).good(format!("{summary}; {why}"));
        }
        let value = if want == Built::With { "y" } else { "n" };
        let options = wrong.iter().map(|name| format!("{name}={value}")).collect();
        let remedies = self.remedy.map(|remedy| remedy()).into_iter();
        draft.remedies(remedies.chain([Remedy::Build { options }])).status(self.otherwise, summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::profile::Kind;
    use crate::testing::{good, good_stock, intent, set_config};
    use crate::{Check, Judge, all};
    use rtproof_host::Reading;

    fn rows() -> impl Iterator<Item = (&'static Check, &'static Build)> {
        all().filter_map(|check| match &check.judge {
            Judge::Build(build) => Some((check, build)),
            _ => None,
        })
    }

    /// A machine on which nothing makes another build harmless.
    fn machine(row: &Build) -> Facts {
        let mut facts = good_stock();
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        facts.settings.clear();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.governor = Reading::known("/sys/x", "schedutil".to_owned());
        }
        if let Some(option) = row.part_of {
            set_config(&mut facts, option, Some("y"));
        }
        set_config(&mut facts, "PREEMPT_RCU", Some("y"));
        facts
    }

    #[test]
    fn every_row_has_a_good_another_and_unknown_cases() {
        for (check, row) in rows() {
            let mut intents = vec![intent()];
            intents.extend(Kind::ALL.map(|kind| Intent { profile: Profile::of(kind), ..intent() }));
            for intent in intents {
                let with = |value| {
                    let mut facts = machine(row);
                    row.options.iter().for_each(|option| set_config(&mut facts, option, value));
                    check.judge(&facts, &intent)
                };
                let (set, unset) = (with(Some("y")), with(None));
                let (right, wrong) = match (row.want)(&intent) {
                    Built::With => (set, unset),
                    Built::Without => (unset, set),
                    Built::Either => {
                        assert_eq!((set.status, unset.status), (Status::Good, Status::Good));
                        continue;
                    }
                };
                assert_eq!(right.status, Status::Good, "{right:#?}");
                assert_eq!(wrong.status, row.otherwise, "{wrong:#?}");
                assert!(!wrong.remedies.is_empty());
            }
            let mut facts = good();
            facts.kernel.config = Reading::denied("/proc/config.gz", "EACCES");
            let finding = check.judge(&facts, &intent());
            assert_eq!(finding.status, Status::Unknown, "{finding:#?}");
        }
    }

    #[test]
    fn a_part_of_what_is_not_built_concerns_nobody() {
        for (check, row) in rows() {
            let Some(option) = row.part_of else { continue };
            let mut facts = good();
            set_config(&mut facts, option, None);
            assert_eq!(
                check.judge(&facts, &intent()).status,
                Status::NotApplicable,
                "{}",
                check.id
            );
        }
    }
}
