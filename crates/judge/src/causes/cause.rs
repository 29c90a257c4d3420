//! What a cause is, and what it says about a moment.

use super::scene::Moment;
use crate::Remedy;

/// The kind of a cause: the report gives all causes of one kind the same colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An interrupt, its handler or its thread.
    Interrupt,
    /// Deferred work of an interrupt.
    Softirq,
    /// Another thread ran, or the thread moved, stopped or waited for a stopper.
    Scheduling,
    /// The scheduler withheld the CPU because a quota was used up.
    Throttling,
    /// A lock, or kernel code that cannot be preempted or interrupted.
    Blocking,
    /// Hardware, firmware or a hypervisor stopped the CPU.
    Hardware,
    /// An idle state or a change of frequency.
    Power,
    /// The thread itself, or the normal path of every wake-up.
    Own,
    /// No cause is known.
    Unknown,
}

/// A cause of latency.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Identifier in kebab-case; it never changes.
    pub id: &'static str,
    /// The kind, for the colour.
    pub kind: Kind,
    /// In words, as the end of "late because of: ...".
    pub title: &'static str,
    /// Which events show it, and what distinguishes it from other causes.
    pub about: &'static str,
    /// The public source: kernel file, document, measurement.
    pub source: &'static str,
    /// Checks whose knobs remove it.
    pub checks: &'static [&'static str],
    /// Attributes a moment to this cause, if it caused it. The first cause of the list that
    /// attributes a moment decides.
    pub(super) attribute: fn(&Moment<'_>) -> Option<Attribution>,
}

/// Cause of one moment of a late wake-up: who, what else it may be, what removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The culprit; empty if unknown.
    pub culprit: String,
    /// Other causes that fit as well.
    pub or: Vec<&'static str>,
    /// What was not recorded and could contradict it.
    pub unseen: Vec<&'static str>,
    pub detail: Vec<String>,
    /// Unit, driver or module.
    pub owner: Option<String>,
    pub remedies: Vec<Remedy>,
    /// The end, if it covers only the first part; the rest of the moment is divided again.
    pub until_ns: Option<u64>,
}

impl Attribution {
    /// An attribution to a culprit.
    pub fn by(culprit: impl Into<String>) -> Self {
        Self { culprit: culprit.into(), ..Self::default() }
    }

    /// Adds other causes that fit as well.
    #[must_use]
    pub fn or(mut self, others: &[&'static str]) -> Self {
        self.or.extend_from_slice(others);
        self
    }

    /// Adds lines of evidence.
    #[must_use]
    pub fn detail(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.detail.extend(lines);
        self
    }

    /// Sets the unit, driver or module.
    #[must_use]
    pub fn owner(mut self, owner: Option<String>) -> Self {
        self.owner = owner;
        self
    }

    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// Adds a remedy that only a human can apply.
    #[must_use]
    pub fn manual(self, text: impl Into<String>) -> Self {
        self.remedy(Remedy::Manual { text: text.into() })
    }
}
