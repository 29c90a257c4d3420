//! How a check writes its answer down: evidence is collected on the way, the status comes last.
//!
//! One builder for all checks, so that none can forget its reason, its source or its own name, and
//! a good finding never carries a remedy.

use rtproof_host::{CpuList, Facts, Reading};

use super::{Check, machine};
use crate::{Evidence, Finding, Remedy, Status};

/// A finding without its status and summary.
pub(super) struct Draft(Finding);

impl Draft {
    /// An answer of `check`, which wants `wanted`.
    pub(super) fn of(check: &dyn Check, wanted: impl Into<String>) -> Self {
        Self(Finding {
            check: check.id().into(),
            status: Status::Unknown,
            summary: String::new(),
            wanted: wanted.into(),
            cpus: None,
            evidence: Vec::new(),
            why: check.why().into(),
            source: check.source().into(),
            remedies: Vec::new(),
            when: check.when(),
            impact: check.impact(),
            trade_off: check.trade_off().map(Into::into),
            skipped: None,
        })
    }

    /// An answer without status, summary and evidence.
    pub(super) const fn blank(finding: Finding) -> Self {
        Self(finding)
    }

    /// The CPUs that it is about.
    pub(super) fn cpus(mut self, cpus: &CpuList) -> Self {
        self.0.cpus = Some(cpus.clone());
        self
    }

    /// Adds what was seen.
    pub(super) fn saw(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.0.evidence.extend(evidence);
        self
    }

    /// Adds what was read, shown by `show`.
    pub(super) fn read<T>(self, reading: &Reading<T>, show: impl FnOnce(&T) -> String) -> Self {
        self.saw([Evidence::of(reading, show)])
    }

    /// Adds what would change it.
    pub(super) fn remedies(mut self, remedies: impl IntoIterator<Item = Remedy>) -> Self {
        self.0.remedies.extend(remedies);
        self
    }

    /// As wanted.
    pub(super) fn good(mut self, summary: impl Into<String>) -> Finding {
        self.0.remedies.clear();
        self.status(Status::Good, summary)
    }

    /// Adds latency.
    pub(super) fn bad(self, summary: impl Into<String>) -> Finding {
        self.status(Status::Bad, summary)
    }

    /// May add latency.
    pub(super) fn doubtful(self, summary: impl Into<String>) -> Finding {
        self.status(Status::Doubtful, summary)
    }

    /// Cannot be told, for the reason in `summary`.
    pub(super) fn unknown(self, summary: impl Into<String>) -> Finding {
        self.status(Status::Unknown, summary)
    }

    /// Cannot be told, because this reading has no value.
    pub(super) fn blind<T>(self, reading: &Reading<T>) -> Finding {
        let why = reading.why_unknown().unwrap_or_else(|| "not enough to tell".into());
        let summary = format!("{}: {why}", reading.path);
        let is_cited = self.0.evidence.iter().any(|evidence| evidence.path == reading.path);
        let draft = if is_cited { self } else { self.read(reading, |_| "known".into()) };
        draft.unknown(summary)
    }

    /// Cannot be told, because nobody said which CPUs are meant, or which there are.
    pub(super) fn no_rt_cpus(self, facts: &Facts) -> Finding {
        let online = &facts.cpus.online;
        let draft = self.online(facts);
        match online.why_unknown() {
            None => draft.unknown("no real-time CPUs are named"),
            Some(why) => draft
                .unknown(format!("{}: {why}; name the real-time CPUs with --cpus", online.path)),
        }
    }

    /// Cannot be told, because these CPUs have no facts.
    pub(super) fn gone(self, facts: &Facts, missing: &CpuList) -> Finding {
        self.online(facts).unknown(machine::why_missing(facts, missing))
    }

    /// Adds the CPUs that are online, once.
    fn online(self, facts: &Facts) -> Self {
        let online = &facts.cpus.online;
        let is_cited = self.0.evidence.iter().any(|evidence| evidence.path == online.path);
        if is_cited { self } else { self.read(online, CpuList::to_string) }
    }

    /// Cannot be told, because /sys says nothing of any CPU.
    pub(super) fn no_cpu_folder(self, facts: &Facts, why: String) -> Finding {
        self.read(&facts.cpus.possible, CpuList::to_string).unknown(why)
    }

    /// Does not concern this machine.
    pub(super) fn not_applicable(mut self, summary: impl Into<String>) -> Finding {
        self.0.remedies.clear();
        self.status(Status::NotApplicable, summary)
    }

    /// With a status that was worked out.
    pub(super) fn status(mut self, status: Status, summary: impl Into<String>) -> Finding {
        self.0.status = status;
        self.0.summary = summary.into();
        self.0
    }
}
