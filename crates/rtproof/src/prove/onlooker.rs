//! Somebody who looks on while something is measured: the progress line of `prove`, the rows of
//! `measure`. Called by the housekeeping thread, which must not wait.

use rtproof_record::{
    beside::Mark,
    run::{Second, ThreadInfo},
};

use super::progress::State;

/// Looks on.
pub(crate) trait Onlooker {
    /// The threads that measure, before the first second.
    fn started(&mut self, _: &[ThreadInfo]) {}

    /// A second of a thread; those of one thread in order.
    fn second(&mut self, _: &ThreadInfo, _: &Second) {}

    /// A thread was changed from outside; after the second in which it was.
    fn mark(&mut self, _: &ThreadInfo, _: &Mark) {}

    /// How far it is, once a second.
    fn progress(&mut self, _: &State<'_>) {}

    /// Nothing is measured any more; what is left of the last second may come after this.
    fn done(&mut self) {}
}
