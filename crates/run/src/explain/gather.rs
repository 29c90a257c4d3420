//! Explains late wake-ups as they come, and keeps the worst of each cause with their windows.

use rtproof_judge::{
    causes::{Explanation, Recorder, Spike, Table, explain},
    spikes::gathered,
};
use rtproof_record::spikes::Summary;
use rtproof_trace::{WakeUp, Window};

use super::Explained;

#[derive(Default)]
pub struct Gather {
    table: Table,
    kept: Vec<(Spike, Window)>,
    seen: u64,
}

impl Gather {
    /// A late wake-up that is explained. Times in the answer count from `origin_ns`. Returns
    /// whether a stack at the timer interrupt would tell more.
    pub fn add(&mut self, wake: &WakeUp, window: Window, origin_ns: u64) -> bool {
        let explanation = explain(wake, &window);
        self.explained(wake, window, explanation, origin_ns)
    }

    /// The same, explained already.
    pub fn explained(
        &mut self,
        wake: &WakeUp,
        window: Window,
        explanation: Explanation,
        origin_ns: u64,
    ) -> bool {
        self.seen += 1;
        let wants_stacks = explanation.wants_stacks();
        let added = self.table.add(&explanation);
        if let Some(number) = added.drop {
            self.kept.retain(|(spike, _)| spike.number != number);
        }
        if let Some(number) = added.keep {
            let at_ns = wake.due_ns.saturating_sub(origin_ns);
            self.kept.push((Spike { number, at_ns, phase: String::new(), explanation }, window));
        }
        wants_stacks
    }

    /// Late wake-ups of which there is no window.
    pub fn unexamined(&mut self, count: u64) {
        self.seen += count;
    }

    /// All of it. Numbers are given anew: 1 is the worst.
    pub fn finish(mut self, threshold_ns: u64, recorder: Recorder, about: String) -> Explained {
        self.kept.sort_by_key(|(spike, _)| {
            (std::cmp::Reverse(spike.explanation.wake.latency_ns()), spike.at_ns)
        });
        let (mut worst, mut windows) = (Vec::<Spike>::new(), Vec::new());
        for (number, (mut spike, window)) in (1..).zip(self.kept) {
            spike.number = number;
            worst.push(spike);
            windows.push((number, window));
        }
        // What a tracer kept counts however short it is.
        let least_ns = worst.iter().map(|spike| spike.explanation.wake.latency_ns()).min();
        let threshold_ns = least_ns
            .map_or(threshold_ns, |ns| threshold_ns.min(ns.saturating_sub(1) / 1_000 * 1_000));
        let summary = Summary { threshold_ns, seen: self.seen, ..Summary::default() };
        let spikes = gathered(&mut self.table, summary, recorder, worst);
        Explained {
            about,
            spikes,
            windows,
            notes: Vec::new(),
            saw_none: false,
            gaps: Vec::new(),
            doubts: Vec::new(),
            locks: None,
            report: None,
        }
    }
}
