//! What is seen of a cell while it is measured: a progress line, or rows.

use rtproof_record::{
    beside::Mark,
    run::{Second, ThreadInfo},
};

use super::rows::Rows;
use crate::prove::{
    onlooker::Onlooker,
    progress::{Progress, State},
};

/// Shows a cell.
#[derive(Debug)]
pub(super) enum Show {
    /// A line that is rewritten.
    Bar(Progress),
    /// A row a second.
    Rows(Rows),
}

impl Show {
    /// The sums of rows; after all seconds.
    pub(super) fn end(self) {
        if let Self::Rows(rows) = self {
            rows.end();
        }
    }
}

impl Onlooker for Show {
    fn started(&mut self, threads: &[ThreadInfo]) {
        if let Self::Rows(rows) = self {
            rows.begin(threads);
        }
    }

    fn second(&mut self, info: &ThreadInfo, second: &Second) {
        if let Self::Rows(rows) = self {
            rows.second(info, second);
        }
    }

    fn mark(&mut self, info: &ThreadInfo, mark: &Mark) {
        if let Self::Rows(rows) = self {
            rows.mark(info, mark);
        }
    }

    fn progress(&mut self, state: &State<'_>) {
        if let Self::Bar(bar) = self {
            bar.progress(state);
        }
    }

    fn done(&mut self) {
        if let Self::Bar(bar) = self {
            bar.done();
        }
    }
}
