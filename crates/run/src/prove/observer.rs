//! Observes a run while it is measured: a progress line, rows. The housekeeping thread calls it.

use rtproof_record::{
    Tick,
    beside::Mark,
    run::{Second, ThreadInfo},
};

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress<'a> {
    /// Time since the first wake-up was due.
    pub at_ns: u64,
    /// Phase of the load.
    pub phase: &'a str,
    /// Worst latency, and its CPU.
    pub worst: Option<(u64, u32)>,
    pub missed: u64,
    /// Wake-ups above the budget; `None`: there is no budget.
    pub late: Option<u64>,
    /// The largest share of the spike that was explained last: title of its cause, culprit.
    pub last_cause: Option<(&'a str, &'a str)>,
}

/// What a user wants of a run that goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Loads that are to run from now on instead of those of the phases, as they are written.
    pub loads: Option<Vec<String>>,
    /// Moments to be marked, each with its words.
    pub marks: Vec<String>,
}

/// Observes a run. It must not wait: the thread that calls it empties the slots.
pub trait Observer {
    /// The threads that measure, before the first second.
    fn started(&mut self, _: &[ThreadInfo]) {}

    /// A second of a thread; those of one thread in order.
    fn second(&mut self, _: &ThreadInfo, _: &Second) {}

    /// A thread was changed from outside; after the second in which it was.
    fn mark(&mut self, _: &ThreadInfo, _: &Mark) {}

    /// All that a second brought, as it goes into the record.
    fn tick(&mut self, _: &Tick) {}

    /// What is requested of the run since the last call; asked each time the housekeeping thread
    /// wakes.
    fn requested(&mut self) -> Requested {
        Requested::default()
    }

    /// How far it is, once a second.
    fn progress(&mut self, _: &Progress<'_>) {}

    /// Nothing is measured any more; what is left of the last second may come after this.
    fn done(&mut self) {}
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {}
