//! The interface of a cause.

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
pub trait Cause: Sync + std::fmt::Debug {
    /// Identifier, kebab-case, for ever.
    fn id(&self) -> &'static str;
    /// The kind, for the colour.
    fn kind(&self) -> Kind;
    /// In words, as the end of "late because of: ...".
    fn title(&self) -> &'static str;
    /// How it is recognised, and what it is told apart from.
    fn about(&self) -> &'static str;
    /// Where that is known from: kernel file, document, measurement.
    fn source(&self) -> &'static str;
    /// Checks whose knobs remove it.
    fn checks(&self) -> &'static [&'static str];
    /// Whether a moment is its doing. Causes are asked in the order of their list; the first that
    /// claims a moment has it.
    fn claims(&self, moment: &Moment<'_>) -> Option<Claim>;
}

/// A moment's cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Who; empty: nobody to name.
    pub culprit: String,
    /// Other causes that it may as well be.
    pub or: Vec<&'static str>,
    /// What more is known.
    pub detail: Vec<String>,
    /// Unit, driver or module.
    pub owner: Option<String>,
    /// What would remove it.
    pub remedies: Vec<Remedy>,
    /// The claim ends here; the rest of the moment is asked for again.
    pub until_ns: Option<u64>,
}

impl Claim {
    /// A claim with a culprit.
    #[must_use]
    pub fn by(culprit: impl Into<String>) -> Self {
        Self { culprit: culprit.into(), ..Self::default() }
    }

    /// It may as well be one of these.
    #[must_use]
    pub fn or(mut self, others: &[&'static str]) -> Self {
        self.or.extend_from_slice(others);
        self
    }

    /// More that is known.
    #[must_use]
    pub fn detail(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.detail.extend(lines);
        self
    }

    /// Whom it belongs to.
    #[must_use]
    pub fn owner(mut self, owner: Option<String>) -> Self {
        self.owner = owner;
        self
    }

    /// What would remove it.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// What only a human can do about it.
    #[must_use]
    pub fn manual(self, text: impl Into<String>) -> Self {
        self.remedy(Remedy::Manual { text: text.into() })
    }
}
