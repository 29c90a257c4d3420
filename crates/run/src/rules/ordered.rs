//! The events of all CPUs in the order of their time, and how many are missing.

use rtproof_measure::program::Watch;
use rtproof_model::program::{Happening, What};

/// Events as they come, and those that others may still have to go before.
pub(crate) struct Ordered {
    pub(crate) watch: Watch,
    queue: Vec<Happening>,
    /// Everything before it was handed out.
    done_ns: u64,
    /// Events that were lost; `Some(0)`: an unknown number.
    pub(crate) lost: Option<u64>,
    /// Events that came after later ones had been handed out.
    pub(crate) late: u64,
}

impl Ordered {
    pub(crate) const fn new(watch: Watch) -> Self {
        Self { watch, queue: Vec::new(), done_ns: 0, lost: None, late: 0 }
    }

    /// Takes what has come.
    pub(crate) fn take(&mut self) {
        let Self { watch, queue, done_ns, lost, late } = self;
        watch.take(|event| match event.what {
            What::Lost(count) => *lost = Some(lost.unwrap_or(0) + count.unwrap_or(0)),
            _ => {
                *late += u64::from(event.time_ns < *done_ns);
                queue.push(event);
            }
        });
    }

    /// What happened before a time. An event is written some time after its stamp: ask for those of
    /// the look before.
    pub(crate) fn before(&mut self, before_ns: u64) -> Vec<Happening> {
        let mut all = std::mem::take(&mut self.queue);
        // Events of one CPU are in their order; the sort keeps that.
        all.sort_by_key(|event| event.time_ns);
        let rest = all.partition_point(|event| event.time_ns < before_ns);
        self.queue = all.split_off(rest);
        self.done_ns = all.last().map_or(self.done_ns, |event| event.time_ns.max(self.done_ns));
        all
    }

    /// Why not all events are there.
    pub(crate) fn unknown(&self) -> Vec<String> {
        let lost = self.lost.map(|lost| match lost {
            0 => "events were lost, an unknown number".into(),
            _ => format!("events were lost ({lost} counted, or some uncounted)"),
        });
        let late = format!("{} events came too late to be ordered", self.late);
        lost.into_iter().chain((self.late > 0).then_some(late)).collect()
    }
}
