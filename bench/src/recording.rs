//! Cost of recording one sample, hot: our slot (histogram, sums, extremes, largest samples) beside
//! hdrhistogram with three significant figures (histogram alone).

use std::{hint::black_box, io::Write, time::Instant};

use rtproof_measure::Slot;

use crate::numbers::spread;

const SAMPLES: usize = 1_000_000;
const ROUNDS: usize = 15;

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

/// Runs both in turn and prints nanoseconds a sample.
pub(crate) fn run(out: &mut impl Write) -> anyhow::Result<()> {
    let latencies = latencies();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut slot = Slot::default();
    let mut hdr = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3)?;
    for _ in 0..ROUNDS {
        slot.clear();
        let start = Instant::now();
        for (due_ns, &latency_ns) in (0..).step_by(1_000_000).zip(&latencies) {
            black_box(slot.record_wake(due_ns, due_ns + latency_ns));
        }
        ours.push(start.elapsed().as_nanos() as f64 / SAMPLES as f64);
        hdr.reset();
        let start = Instant::now();
        for &latency_ns in &latencies {
            black_box(&mut hdr).saturating_record(latency_ns);
        }
        theirs.push(start.elapsed().as_nanos() as f64 / SAMPLES as f64);
    }
    let ratios = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    let text = |values: Vec<f64>| spread(values).map_or(String::new(), |s| s.text(2));
    writeln!(out, "Recording one sample, ns: median (quartiles; range) of {ROUNDS} rounds\n")?;
    writeln!(out, "| what | ns |\n|---|---|")?;
    writeln!(out, "| rtproof: histogram, power sums, min, max, 64 largest | {} |", text(ours))?;
    writeln!(out, "| hdrhistogram 7.6, 3 figures: histogram alone | {} |", text(theirs))?;
    writeln!(out, "| ratio | {} |\n", text(ratios))?;
    Ok(())
}
