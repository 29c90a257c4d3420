//! Cost of one sample, hot: all that a measuring thread does between two sleeps but reading the
//! clock, and its slot alone (histogram, sums to the fourth power, extremes, largest samples),
//! beside hdrhistogram with three significant figures (histogram alone). And the memory of a
//! thread.

use std::{hint::black_box, io::Write, sync::atomic::AtomicBool, time::Instant};

use rtproof_measure::{
    Slot,
    cycle::{self, Cycle, SLOT_NS, SLOTS_MAX, Schedule},
    slot,
    thread::STACK_BYTES,
};

use crate::numbers::spread;

const SAMPLES: usize = 1_000_000;
const ROUNDS: usize = 15;
const PERIOD_NS: u64 = 1_000_000;
/// Later is late: one sample in a few million.
const BUDGET_NS: u64 = 100_000;
/// Later is a spike: some 170 of the million, less than their ring holds.
const SPIKE_NS: u64 = 30_000;

/// Latencies as wake-ups have them: a few microseconds, log-normal, from a fixed seed.
fn latencies() -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..SAMPLES)
        .map(|_| {
            let (u, v) = (uniform().max(1e-12), uniform());
            let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
            (5000.0 * (0.5 * normal).exp()) as u64
        })
        .collect()
}

/// A thread that is about to run: `SAMPLES` periods, all in one slot.
fn thread() -> (Cycle, slot::Inlet) {
    let (_, empty) = rtrb::RingBuffer::new(1);
    let (full, _) = rtrb::RingBuffer::new(1);
    let length_ns = SAMPLES as u64 * PERIOD_NS;
    let schedule = Schedule {
        first_ns: PERIOD_NS,
        period_ns: PERIOD_NS,
        end_ns: PERIOD_NS + length_ns,
        origin_ns: PERIOD_NS,
        slot_ns: length_ns,
        budget_ns: BUDGET_NS,
    };
    let (outlet, inlet) = slot::ring(SPIKE_NS);
    (Cycle::new(schedule, Box::default(), empty, full, outlet), inlet)
}

/// Nanoseconds a sample of the whole cycle, but for sleep and clock.
fn whole(latencies: &[u64]) -> f64 {
    let (mut cycle, _inlet) = thread();
    let stop = AtomicBool::new(false);
    let mut next = latencies.iter();
    let start = Instant::now();
    let reason = cycle.run(&stop, |due_ns| due_ns + next.next().copied().unwrap_or(0));
    let ns = start.elapsed().as_nanos() as f64 / SAMPLES as f64;
    black_box((reason, cycle.into_last_slot()));
    ns
}

/// Nanoseconds a sample of the slot.
fn slot_alone(slot: &mut Slot, latencies: &[u64]) -> f64 {
    slot.clear();
    let start = Instant::now();
    for (due_ns, &latency_ns) in (0..).step_by(PERIOD_NS as usize).zip(latencies) {
        black_box(slot.record_wake(due_ns, due_ns + latency_ns));
    }
    start.elapsed().as_nanos() as f64 / SAMPLES as f64
}

/// Nanoseconds a sample of hdrhistogram.
fn peer(hdr: &mut hdrhistogram::Histogram<u64>, latencies: &[u64]) -> anyhow::Result<f64> {
    hdr.reset();
    let start = Instant::now();
    for &latency_ns in latencies {
        black_box(&mut *hdr).record(latency_ns)?;
    }
    Ok(start.elapsed().as_nanos() as f64 / SAMPLES as f64)
}

/// Runs all in turn and prints nanoseconds a sample.
pub(crate) fn run(out: &mut impl Write) -> anyhow::Result<()> {
    let latencies = latencies();
    let mut slot = Slot::default();
    let mut hdr = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3)?;
    let mut rounds = Vec::new();
    // The first round is cold.
    for round in 0..=ROUNDS {
        let ns =
            [whole(&latencies), slot_alone(&mut slot, &latencies), peer(&mut hdr, &latencies)?];
        rounds.extend((round > 0).then_some(ns));
    }
    let column = |of: fn(&[f64; 3]) -> f64| {
        let values = rounds.iter().map(of).collect();
        spread(values).map_or(String::new(), |spread| spread.text(2))
    };
    writeln!(out, "One sample, hot, ns: median (quartiles; range) of {ROUNDS} rounds\n")?;
    writeln!(out, "| what | ns | ratio to hdrhistogram |\n|---|---|---|")?;
    writeln!(
        out,
        "| rtproof, whole cycle: schedule, slot, lateness, spikes, stop | {} | {} |",
        column(|ns| ns[0]),
        column(|ns| ns[0] / ns[2])
    )?;
    writeln!(
        out,
        "| rtproof, slot: histogram, power sums to the fourth, min, max, 64 largest | {} | {} |",
        column(|ns| ns[1]),
        column(|ns| ns[1] / ns[2])
    )?;
    writeln!(
        out,
        "| hdrhistogram 7.6, 3 figures: histogram alone | {} | 1 |\n",
        column(|ns| ns[2])
    )?;
    let kib = |bytes: usize| bytes as f64 / 1024.0;
    writeln!(
        out,
        "Memory of a measuring thread: {:.1} KiB with slots of a second, {:.1} KiB with the \
         shortest ones; its stack, {:.0} KiB, beside it\n",
        kib(cycle::bytes(cycle::slots(SLOT_NS))),
        kib(cycle::bytes(SLOTS_MAX)),
        kib(STACK_BYTES)
    )?;
    Ok(())
}
