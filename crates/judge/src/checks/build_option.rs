//! Checks that are a row of a table: "the kernel is built with this option", or without it.
//!
//! A build says what a kernel can do, seldom what it does: each row may name what makes the
//! unwanted build harmless. An unreadable configuration is unknown, once for every row.

use rtproof_host::Facts;

use super::{Check, draft::Draft, machine};
use crate::{Evidence, Finding, Impact, Intent, Remedy, Status, When};

/// One row.
pub(super) struct BuildOption {
    /// The check's.
    pub id: &'static str,
    /// What it looks at, in one line.
    pub title: &'static str,
    /// Why a bad answer adds latency.
    pub why: &'static str,
    /// Where that is known from.
    pub source: &'static str,
    /// What the wanted value costs.
    pub trade_off: Option<&'static str>,
    /// How much latency a bad answer costs.
    pub impact: Impact,
    /// Options without `CONFIG_`.
    pub options: &'static [&'static str],
    /// What is wanted of them.
    pub want: fn(&Intent) -> Wish,
    /// Status of another build.
    pub otherwise: Status,
    /// Option without which the row concerns nobody.
    pub part_of: Option<&'static str>,
    /// What makes another build harmless on this machine, and how to say so.
    pub harmless: Option<fn(&Facts, &Intent) -> Harmless>,
    /// What helps without another kernel.
    pub remedy: Option<fn() -> Remedy>,
}

/// What shows that a build is harmless, and how to say so.
pub(super) type Harmless = Option<(Evidence, &'static str)>;

/// What is wanted of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// All of them.
    All,
    /// None of them.
    None,
    /// Either way: the finding tells the build.
    Told,
}

impl Check for BuildOption {
    super::texts_are_fields!(
        id: &'static str,
        title: &'static str,
        why: &'static str,
        source: &'static str,
        trade_off: Option<&'static str>,
        impact: Impact
    );

    fn when(&self) -> When {
        When::Kernel
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let wish = (self.want)(intent);
        let names = |options: &[&str]| {
            let names: Vec<String> = options.iter().map(|name| format!("CONFIG_{name}")).collect();
            names.join(", ")
        };
        let wanted = match wish {
            Wish::All => format!("{} set", names(self.options)),
            Wish::None => format!("{} not set", names(self.options)),
            Wish::Told => "known".into(),
        };
        let evidence: Vec<Evidence> =
            self.options.iter().map(|option| machine::option(facts, option)).collect();
        let texts: Vec<String> = evidence.iter().map(|one| one.value.clone()).collect();
        let config = &facts.kernel.config;
        let Some(found) = config.value() else {
            return Draft::of(self, wanted).blind(config);
        };
        let draft = Draft::of(self, wanted).saw(evidence);
        if let Some(option) = self.part_of
            && machine::built_with(facts, option) == Some(false)
        {
            let why = format!("this kernel is built without CONFIG_{option}");
            return draft.saw([machine::option(facts, option)]).not_applicable(why);
        }
        let is_set =
            |option: &&&str| matches!(found.get(**option).map(String::as_str), Some("y" | "m"));
        let wrong: Vec<&str> = match wish {
            Wish::All => self.options.iter().filter(|option| !is_set(option)).copied().collect(),
            Wish::None => self.options.iter().filter(is_set).copied().collect(),
            Wish::Told => Vec::new(),
        };
        if wrong.is_empty() {
            return draft.good(match (wish, texts.len()) {
                (_, ..=2) => texts.join(", "),
                (Wish::None, n) => format!("none of {n} options set"),
                (_, n) => format!("all of {n} options set"),
            });
        }
        let is = if wish == Wish::All { "not set" } else { "set" };
        let summary = format!("{}: {is}", names(&wrong));
        if let Some((evidence, why)) = self.harmless.and_then(|ask| ask(facts, intent)) {
            return draft.saw([evidence]).good(format!("{summary}; {why}"));
        }
        let value = if wish == Wish::All { "y" } else { "n" };
        let options = wrong.iter().map(|name| format!("{name}={value}")).collect();
        let remedies = self.remedy.map(|remedy| remedy()).into_iter();
        draft.remedies(remedies.chain([Remedy::Build { options }])).status(self.otherwise, summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::checks::testing::{good, good_stock, intent, set_config};
    use crate::checks::{kernel, platform};
    use crate::profile::Kind;
    use rtproof_host::Reading;

    fn rows() -> impl Iterator<Item = &'static BuildOption> {
        kernel::options::ALL.iter().chain(platform::options::ALL).copied()
    }

    /// A machine on which nothing makes another build harmless.
    fn machine(row: &BuildOption) -> Facts {
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
        for row in rows() {
            let mut intents = vec![intent()];
            intents.extend(Kind::ALL.map(|kind| Intent { profile: Profile::of(kind), ..intent() }));
            for intent in intents {
                let with = |value| {
                    let mut facts = machine(row);
                    row.options.iter().for_each(|option| set_config(&mut facts, option, value));
                    row.judge(&facts, &intent)
                };
                let (set, unset) = (with(Some("y")), with(None));
                let (right, wrong) = match (row.want)(&intent) {
                    Wish::All => (set, unset),
                    Wish::None => (unset, set),
                    Wish::Told => {
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
            let finding = row.judge(&facts, &intent());
            assert_eq!(finding.status, Status::Unknown, "{finding:#?}");
        }
    }

    #[test]
    fn a_part_of_what_is_not_built_concerns_nobody() {
        for row in rows() {
            let Some(option) = row.part_of else { continue };
            let mut facts = good();
            set_config(&mut facts, option, None);
            assert_eq!(row.judge(&facts, &intent()).status, Status::NotApplicable, "{}", row.id);
        }
    }
}
