//! Builder of a finding: a check collects evidence first and sets the status last.
//!
//! One builder for all checks, so that none can forget its reason, its source or its own name, and
//! a good finding never carries a remedy.

use rtproof_host::{CpuList, Facts, Reading};

use crate::{Evidence, Finding, Remedy, Status, machine};

/// A finding without its status and summary.
#[derive(Clone)]
pub struct FindingBuilder(Finding);

impl FindingBuilder {
    /// A finding that collects evidence; its status and summary come last.
    pub(crate) const fn of(finding: Finding) -> Self {
        Self(finding)
    }

    /// What is wanted, where the check does not say it as a field.
    pub(crate) fn wanted(mut self, wanted: impl Into<String>) -> Self {
        self.0.wanted = wanted.into();
        self
    }

    /// The CPUs that it is about.
    pub(crate) fn cpus(mut self, cpus: &CpuList) -> Self {
        self.0.cpus = Some(cpus.clone());
        self
    }

    /// Adds what was seen.
    pub(crate) fn evidence(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.0.evidence.extend(evidence);
        self
    }

    /// Adds a number that a trial took.
    pub(crate) fn measured(self, what: impl Into<String>, value: impl Into<String>) -> Self {
        self.evidence([Evidence { path: what.into(), value: value.into() }])
    }

    /// Adds what was read, shown by `show`.
    pub(crate) fn read<T>(self, reading: &Reading<T>, show: impl FnOnce(&T) -> String) -> Self {
        self.evidence([Evidence::of(reading, show)])
    }

    /// Adds what would change it.
    pub(crate) fn remedies(mut self, remedies: impl IntoIterator<Item = Remedy>) -> Self {
        self.0.remedies.extend(remedies);
        self
    }

    pub(crate) fn good(self, summary: impl Into<String>) -> Finding {
        self.status(Status::Good, summary)
    }

    pub(crate) fn bad(self, summary: impl Into<String>) -> Finding {
        self.status(Status::Bad, summary)
    }

    pub(crate) fn doubtful(self, summary: impl Into<String>) -> Finding {
        self.status(Status::Doubtful, summary)
    }

    /// Unknown, for the reason in `summary`.
    pub(crate) fn unknown(self, summary: impl Into<String>) -> Finding {
        self.status(Status::Unknown, summary)
    }

    /// Unknown, because this reading has no value.
    pub(crate) fn unreadable<T>(self, reading: &Reading<T>) -> Finding {
        let why = reading.why_unknown().unwrap_or_else(|| "not enough to tell".into());
        let summary = format!("{}: {why}", reading.path);
        let is_cited = self.0.evidence.iter().any(|evidence| evidence.path == reading.path);
        let draft = if is_cited { self } else { self.read(reading, |_| "known".into()) };
        draft.unknown(summary)
    }

    /// Unknown, because no real-time CPUs are named, or the online ones are unknown.
    pub(crate) fn no_rt_cpus(self, facts: &Facts) -> Finding {
        let online = &facts.cpus.online;
        let draft = self.online(facts);
        match online.why_unknown() {
            None => draft.unknown("no real-time CPUs are named"),
            Some(why) => draft
                .unknown(format!("{}: {why}; name the real-time CPUs with --cpus", online.path)),
        }
    }

    /// Unknown, because these CPUs have no facts.
    pub(crate) fn missing_cpus(self, facts: &Facts, missing: &CpuList) -> Finding {
        self.online(facts).unknown(machine::why_missing(facts, missing))
    }

    /// Adds the CPUs that are online, once.
    fn online(self, facts: &Facts) -> Self {
        let online = &facts.cpus.online;
        let is_cited = self.0.evidence.iter().any(|evidence| evidence.path == online.path);
        if is_cited { self } else { self.read(online, CpuList::to_string) }
    }

    /// Unknown, because /sys lists no CPU.
    pub(crate) fn no_cpu_folder(self, facts: &Facts, why: String) -> Finding {
        self.read(&facts.cpus.possible, CpuList::to_string).unknown(why)
    }

    /// Does not concern this machine.
    pub(crate) fn not_applicable(self, summary: impl Into<String>) -> Finding {
        self.status(Status::NotApplicable, summary)
    }

    /// Does not apply: the kernel is built without an option.
    pub(crate) fn built_without(self, facts: &Facts, option: &str) -> Finding {
        let why = format!("this kernel is built without CONFIG_{option}");
        self.evidence([machine::option(facts, option)]).not_applicable(why)
    }

    /// With a status that was worked out. What is good or does not apply needs no remedy.
    pub(crate) fn status(mut self, status: Status, summary: impl Into<String>) -> Finding {
        if matches!(status, Status::Good | Status::NotApplicable) {
            self.0.remedies.clear();
        }
        self.0.status = status;
        self.0.summary = summary.into();
        self.0
    }
}
