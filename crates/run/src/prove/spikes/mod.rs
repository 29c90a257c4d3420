//! Why wake-ups were late, while it is measured: spikes go from the measuring threads to the
//! recorder, windows come back, are explained, and go into the record.
//!
//! All of it is done by the housekeeping thread, which wakes every 50 ms for it where kernel events
//! are recorded: a spike must be asked for before its events are overwritten, seconds later at the
//! earliest. Without the recorder spikes are taken with the slots, once a second. The recorder has
//! a thread of its own for the rings, on the housekeeping CPUs as well.

mod recording;
mod sums;
mod threshold;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use rtproof_host::{Facts, Root};
use rtproof_measure::{Plan, Session, Slot, Started};
use rtproof_record::{Options, SpikeTick, run::Note, spikes::Summary};
use rtproof_trace::{WakeUp, Window};

pub(crate) use self::sums::Sums;
use self::{recording::Recording, threshold::Threshold};
use super::notes;

/// How often spikes are asked for while kernel events are recorded.
const POLL_NS: u64 = 50_000_000;
/// After so long explaining waits for the next poll: whose slots nobody empties ends its run.
const AT_ONCE: Duration = Duration::from_millis(100);
/// Longest wait for answers after the last wake-up.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Explains the spikes of a run.
#[derive(Debug)]
pub(super) struct Explainer {
    recording: Recording,
    threshold: Threshold,
    sums: Sums,
    /// Windows that are still to be explained.
    ready: VecDeque<(WakeUp, Window)>,
    notes: Vec<Note>,
}

impl Explainer {
    /// Starts the recorder and decides from when on a wake-up is a spike. `plan` gets that
    /// threshold.
    pub(super) fn start(
        root: &Root,
        facts: &Facts,
        options: &Options,
        floor_ns: u64,
        plan: &mut Plan,
    ) -> Self {
        let (recording, notes) = Recording::start(root, facts, options, plan);
        let threshold = Threshold::new(options.spike_ns, floor_ns, options.cpus.len());
        plan.spike_ns = Some(threshold.ns());
        Self { recording, threshold, sums: Sums::default(), ready: VecDeque::new(), notes }
    }

    pub(super) fn begin(&mut self, plan: &Plan, started: &[Started], origin_ns: u64) {
        self.sums.begin(plan, started, origin_ns);
    }

    /// When to poll next; `None`: with the slots.
    pub(super) fn next_poll_ns(&self, now_ns: u64) -> Option<u64> {
        self.recording.is_on().then_some(now_ns + POLL_NS)
    }

    /// Asks for what came and explains what was answered. `now_ns`: after the start.
    pub(super) fn poll(&mut self, session: &mut Session, now_ns: u64) {
        let threshold_ns = self.threshold.ns();
        session.spikes(|thread, spike| {
            self.sums.came(thread, spike, threshold_ns, |wake| self.recording.ask(wake));
        });
        self.answers(now_ns, AT_ONCE);
    }

    /// Explains what was answered, for so long. More is taken only when all is explained: the
    /// recorder holds so many answers and no more, which bounds the memory.
    fn answers(&mut self, now_ns: u64, longest: Duration) {
        let start = Instant::now();
        while start.elapsed() < longest {
            if self.ready.is_empty() {
                self.ready.extend(self.recording.take());
            }
            let Some((wake, window)) = self.ready.pop_front() else { return };
            self.answer(&wake, window, now_ns);
        }
    }

    fn answer(&mut self, wake: &WakeUp, window: Window, now_ns: u64) {
        let Some(explanation) = self.sums.answered(wake, window) else { return };
        if !explanation.wants_stacks() {
            return;
        }
        match self.recording.arm_stacks(now_ns) {
            Ok(true) => self.notes.push(notes::stacks(now_ns)),
            Ok(false) => {}
            Err(error) => self.notes.push(notes::no_stacks(now_ns, &error)),
        }
    }

    /// What a thread measured in a second.
    pub(super) fn learn(&mut self, slot: &Slot) {
        self.sums.learn(slot);
        self.threshold.learn(&slot.wake);
    }

    /// What a second brought; moves the threshold.
    pub(super) fn tick(&mut self, session: &Session) -> SpikeTick {
        if let Some(moved_ns) = self.threshold.tick() {
            session.set_spike_ns(moved_ns);
        }
        self.take()
    }

    fn take(&mut self) -> SpikeTick {
        self.sums.take(Summary {
            threshold_ns: self.threshold.ns(),
            adaptive: self.threshold.is_adaptive(),
            recorder: self.recording.info().clone(),
            ..Summary::default()
        })
    }

    /// Cause and culprit of the spike that was explained last.
    pub(super) fn last_cause(&self) -> Option<(&str, &str)> {
        self.sums.last_cause()
    }

    /// What the user must know since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// A spike that came out of a thread that has ended.
    pub(super) fn last(&mut self, thread: u32, spike: rtproof_measure::Spike) {
        let threshold_ns = self.threshold.ns();
        self.sums.came(thread, spike, threshold_ns, |wake| self.recording.ask(wake));
    }

    /// All threads have ended: waits for the answers that are still to come, ends the recorder, and
    /// hands out the rest.
    pub(super) fn finish(mut self, now_ns: u64) -> (SpikeTick, Vec<Note>) {
        let start = Instant::now();
        while self.sums.is_waiting() && start.elapsed() < LAST_ANSWERS {
            std::thread::sleep(Duration::from_millis(5));
            self.answers(now_ns, AT_ONCE);
        }
        self.notes.extend(self.recording.stop(now_ns));
        self.answers(now_ns, Duration::MAX);
        self.sums.give_up();
        let tick = self.take();
        if let (Some(summary), true) = (&tick.summary, self.recording.is_on()) {
            self.notes.extend(notes::of_spikes(
                now_ns,
                summary,
                self.sums.lost(),
                self.recording.info(),
            ));
        }
        (tick, self.notes)
    }
}
