//! Messages and answers with made-up times.

use std::collections::VecDeque;

use super::*;

/// A network: what becomes of each message, given its number.
struct Wire<F: Fn(u64) -> Fate> {
    now_ns: u64,
    fate: F,
    in_flight: VecDeque<ExchangeAnswer>,
    stop_at_ns: u64,
    /// The thread sleeps too long after this time, once.
    stall: Option<(u64, u64)>,
}

enum Fate {
    /// Answered after so long, so many times.
    After(u64, usize),
    Lost,
    NotSent,
}

impl<F: Fn(u64) -> Fate> Exchange for Wire<F> {
    fn send(&mut self, number: u64) -> Sending {
        let at_ns = self.now_ns;
        match (self.fate)(number) {
            Fate::NotSent => return Sending { at_ns, is_out: false },
            Fate::Lost => {}
            Fate::After(ns, times) => {
                let answer = ExchangeAnswer { number, at_ns: at_ns + ns };
                self.in_flight.extend(std::iter::repeat_n(answer, times));
                self.in_flight.make_contiguous().sort_by_key(|answer| answer.at_ns);
            }
        }
        Sending { at_ns, is_out: true }
    }

    fn answer(&mut self, until_ns: u64, stop: &AtomicBool) -> Option<ExchangeAnswer> {
        if self.now_ns >= self.stop_at_ns {
            stop.store(true, Ordering::Relaxed);
            return None;
        }
        if let Some(answer) = self.in_flight.pop_front_if(|answer| answer.at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(answer.at_ns);
            return Some(ExchangeAnswer { at_ns: self.now_ns, ..answer });
        }
        self.now_ns = self.now_ns.max(until_ns);
        if let Some((at_ns, ns)) = self.stall
            && self.now_ns >= at_ns
        {
            self.now_ns += ns;
            self.stall = None;
        }
        None
    }
}

fn wire<F: Fn(u64) -> Fate>(fate: F) -> Wire<F> {
    let in_flight = VecDeque::new();
    Wire { now_ns: SLOT_NS, fate, in_flight, stop_at_ns: u64::MAX, stall: None }
}

type Seen = (EndReason, u64, rtproof_stats::Totals, u64, usize);

fn go<F: Fn(u64) -> Fate>(mut wire: Wire<F>) -> Seen {
    let mut rig = rig();
    let mut in_flight = InFlight::new();
    let reason = rig.cycle.run_exchanges(&AtomicBool::new(false), &mut wire, &mut in_flight);
    let (scheduled, sum, _, spikes) = rig.end();
    assert_eq!(scheduled, sum.accounted());
    (reason, scheduled, sum, in_flight.lost(), spikes)
}

#[test]
fn every_message_is_answered_or_missed() {
    let (reason, scheduled, sum, lost, spikes) = go(wire(|number| match number {
        100 => Fate::Lost,
        200 => Fate::NotSent,
        // Twice, and beyond its period: the next ones are sent nevertheless.
        300 => Fate::After(5 * MS, 2),
        _ => Fate::After(200_000, 1),
    }));
    assert_eq!((reason, scheduled), (EndReason::Complete, 1500));
    assert_eq!((sum.missed, sum.wake.count(), lost), (2, 1498, 2));
    assert_eq!((sum.wake.min(), sum.wake.max(), spikes), (Some(200_000), Some(5 * MS), 1));
    // Those without an answer are late, whatever the budget.
    assert_eq!((sum.late_sampled, sum.late_missed), (1, 2));
}

#[test]
fn a_thread_that_sleeps_too_long_misses_what_was_due() {
    let at_ns = SLOT_NS + 500 * MS;
    let mut wire = wire(|_| Fate::After(200_000, 1));
    wire.stall = Some((at_ns, 10 * MS + 1));
    let (_, scheduled, sum, lost, _) = go(wire);
    assert_eq!((scheduled, sum.missed, lost), (1500, 10, 0));
    assert_eq!(sum.wake.max(), Some(200_000), "the answer itself was not slow");
}

#[test]
fn answers_that_come_after_the_last_message_count() {
    let (_, scheduled, sum, lost, _) = go(wire(|_| Fate::After(40 * MS, 1)));
    assert_eq!((scheduled, sum.wake.count(), lost), (1500, 1500, 0));
    assert_eq!(sum.wake.min(), Some(40 * MS));
    let (_, scheduled, sum, lost, _) = go(wire(|_| Fate::After(1000 * MS + 1, 1)));
    assert_eq!((scheduled, sum.missed, lost), (1500, 1500, 1500), "given up after a second");
    let (_, _, sum, lost, _) = go(wire(|_| Fate::After(1000 * MS, 1)));
    assert_eq!((sum.wake.count(), lost), (1500, 0), "and not before");
    let (_, scheduled, sum, lost, _) = go(wire(|_| Fate::Lost));
    assert_eq!((scheduled, sum.missed, lost), (1500, 1500, 1500));
}

#[test]
fn what_was_open_when_it_was_stopped_is_not_counted() {
    let mut wire = wire(|_| Fate::After(40 * MS, 1));
    wire.stop_at_ns = SLOT_NS + 300 * MS;
    let (reason, scheduled, sum, lost, _) = go(wire);
    assert_eq!((reason, lost, sum.missed), (EndReason::Stopped, 0, 0));
    assert!((255..=265).contains(&scheduled), "{scheduled}");
}

#[test]
fn answers_to_what_was_never_sent_are_none() {
    struct Liar(u64);
    impl Exchange for Liar {
        fn send(&mut self, _: u64) -> Sending {
            Sending { at_ns: self.0, is_out: true }
        }
        fn answer(&mut self, until_ns: u64, _: &AtomicBool) -> Option<ExchangeAnswer> {
            self.0 += 100_000;
            (self.0 < until_ns)
                .then_some(ExchangeAnswer { number: u64::MAX - self.0, at_ns: self.0 })
        }
    }
    let mut rig = rig();
    let mut liar = Liar(SLOT_NS);
    let mut in_flight = InFlight::new();
    rig.cycle.run_exchanges(&AtomicBool::new(false), &mut liar, &mut in_flight);
    let (scheduled, sum, _, _) = rig.end();
    assert_eq!((scheduled, sum.wake.count()), (sum.missed, 0));
}
