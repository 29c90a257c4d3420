//! Spikes of a run as they come and are explained: what is asked, what is summed, what goes into
//! the record.

use std::collections::BTreeMap;

use rtproof_judge::causes::{self, Explanation, Table};
use rtproof_measure::{Slot, Spike, Started};
use rtproof_record::{
    SpikeTick,
    spikes::{self, EVENTS_MAX, SPIKES_MAX, Summary, Why},
};
use rtproof_trace::{How, WakeUp, Window};

/// Spikes explained in a second, at most; others are counted.
const ASKED_MAX: u32 = 2000;
const SECOND_NS: u64 = 1_000_000_000;

/// Spikes of a run.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// (thread id, CPU) by number.
    threads: Vec<(i32, u32)>,
    origin_ns: u64,
    table: Table,
    /// Came out of the measuring threads.
    came: u64,
    /// Found no room there.
    dropped: u64,
    listed: usize,
    /// Asked for and not answered yet, by thread id and due time, with the thread's number.
    waiting: BTreeMap<(i32, u64), (u32, Spike)>,
    /// Asked for in a second, and which one it is.
    asked: (u64, u32),
    tick: SpikeTick,
}

impl Sums {
    /// Who is measured, and since when.
    pub(super) fn begin(&mut self, started: &[Started], origin_ns: u64) {
        self.threads = started.iter().map(|s| (s.tid.cast_signed(), s.cpu)).collect();
        self.origin_ns = origin_ns;
    }

    /// Spikes that a thread could not hand over.
    pub(super) fn learn(&mut self, slot: &Slot) {
        self.dropped += slot.spikes_dropped;
    }

    /// A spike came: `ask` for its window, unless there were too many in this second. It says
    /// whether there will be an answer.
    pub(super) fn came(&mut self, thread: u32, spike: Spike, ask: impl FnOnce(WakeUp) -> bool) {
        self.came += 1;
        let second = spike.due_ns / SECOND_NS;
        if self.asked.0 != second {
            self.asked = (second, 0);
        }
        let wake = self.wake_up(thread, spike);
        if let Some(wake) = wake.filter(|_| self.asked.1 < ASKED_MAX) {
            self.asked.1 += 1;
            if ask(wake) {
                self.waiting.insert((wake.tid, wake.due_ns), (thread, spike));
                return;
            }
        }
        self.list(thread, spike, None);
    }

    fn wake_up(&self, thread: u32, spike: Spike) -> Option<WakeUp> {
        let &(tid, cpu) = self.threads.get(thread as usize)?;
        let ran_ns = spike.due_ns.saturating_add(spike.latency_ns);
        Some(WakeUp { tid, cpu, due_ns: spike.due_ns, ran_ns, how: How::Measured })
    }

    fn list(&mut self, thread: u32, spike: Spike, why: Option<Why>) {
        if self.listed >= SPIKES_MAX {
            return;
        }
        self.listed += 1;
        let due_ns = spike.due_ns.saturating_sub(self.origin_ns);
        let latency_ns = spike.latency_ns;
        self.tick.list.push(spikes::Spike { thread, due_ns, latency_ns, why });
    }

    /// An answer came. Returns the explanation; `None`: nobody had asked.
    pub(super) fn answered(&mut self, wake: &WakeUp, mut window: Window) -> Option<Explanation> {
        let (thread, spike) = self.waiting.remove(&(wake.tid, wake.due_ns))?;
        if window.events.len() > EVENTS_MAX {
            // What a record cannot hold is left out before it is explained: explained anew it says
            // the same. The last events are those nearest to the spike's end.
            window.events.drain(..window.events.len() - EVENTS_MAX);
            window.cut = true;
        }
        let explanation = causes::explain(wake, &window);
        let why = explanation.top().map(|top| Why {
            cause: top.cause.clone(),
            culprit: top.culprit.clone(),
            complete: explanation.incomplete.is_empty(),
        });
        self.list(thread, spike, why);
        let added = self.table.add(&explanation);
        if let Some(number) = added.drop {
            self.forget(number);
        }
        if let Some(number) = added.keep {
            let due_ns = spike.due_ns.saturating_sub(self.origin_ns);
            let latency_ns = spike.latency_ns;
            self.tick.kept.push(spikes::Kept { number, thread, due_ns, latency_ns, window });
        }
        Some(explanation)
    }

    /// A window that is no longer kept: it may not have been written yet.
    fn forget(&mut self, number: u32) {
        let before = self.tick.kept.len();
        self.tick.kept.retain(|kept| kept.number != number);
        if self.tick.kept.len() == before {
            self.tick.dropped.push(number);
        }
    }

    /// Whether answers are still to come.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// No more answers will come.
    pub(super) fn give_up(&mut self) {
        for (thread, spike) in std::mem::take(&mut self.waiting).into_values() {
            self.list(thread, spike, None);
        }
    }

    /// What came since the last call, with the numbers as they are now.
    pub(super) fn take(&mut self, mut summary: Summary) -> SpikeTick {
        summary.seen = self.came + self.dropped;
        summary.dropped = self.dropped;
        self.table.fill(&mut summary);
        self.tick.causes = self.table.take_changed();
        self.tick.summary = Some(summary);
        std::mem::take(&mut self.tick)
    }
}
