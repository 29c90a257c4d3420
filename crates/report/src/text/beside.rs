//! What was seen beside a measurement, as text: threads that were changed from outside, before and
//! after; idle states and frequencies.

use std::io;

use rtproof_judge::{
    beside::{Beside, Frequency, IdleUse, Segment},
    units::{self, grouped},
};

use crate::text::sheet::{DIM, Sheet, WARN, wrapped};

/// CPUs whose idle states are shown; the page has a table of all.
const CPUS_MAX: usize = 8;

/// What was changed from outside.
pub(super) fn changes(to: &mut Sheet, beside: &Beside) -> io::Result<()> {
    for segment in &beside.segments {
        wrapped(to, &format!("         {WARN}│{WARN:#} "), "           ", &of_segment(segment))?;
    }
    Ok(())
}

/// Idle states and frequencies.
pub(super) fn states(to: &mut Sheet, beside: &Beside) -> io::Result<()> {
    let mut cpus: Vec<u32> = beside.idle.iter().map(|of| of.cpu).collect();
    cpus.dedup();
    let idle = cpus.into_iter().take(CPUS_MAX).map(|cpu| idle(cpu, &beside.idle));
    let frequencies = beside.frequencies.iter().take(CPUS_MAX).map(frequency);
    let lines: Vec<String> = idle.chain(frequencies).collect();
    for line in lines {
        wrapped(to, &format!("         {DIM}"), "           ", &format!("{line}{DIM:#}"))?;
    }
    Ok(())
}

/// What a thread measured between two changes.
fn of_segment(segment: &Segment) -> String {
    let spread = segment.intervals.as_ref().unwrap_or(&segment.samples);
    let what = if segment.intervals.is_some() { "intervals" } else { "samples" };
    let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.3}", ns / 1000.0));
    let state: Vec<&str> =
        [&segment.policy, &segment.cpus].into_iter().filter_map(Option::as_deref).collect();
    format!(
        "CPU {} from {} to {} with {}: {} {what}, mean {}, sd {}, min {}, max {} µs, missed {}",
        segment.cpu,
        units::duration(segment.from_ns / 1_000_000 * 1_000_000),
        units::duration(segment.to_ns / 1_000_000 * 1_000_000),
        state.join(" on "),
        grouped(spread.n),
        us(spread.mean_ns),
        us(spread.sd_ns),
        us(spread.min_ns.map(|ns| ns as f64)),
        us(spread.max_ns.map(|ns| ns as f64)),
        grouped(segment.missed),
    )
}

fn idle(cpu: u32, all: &[IdleUse]) -> String {
    let used = all.iter().filter(|of| of.cpu == cpu && of.entered > 0);
    let states: Vec<String> = used
        .map(|of| format!("{} {:.1} % ({})", of.name, of.share * 100.0, units::times(of.entered)))
        .collect();
    match states.is_empty() {
        true => format!("CPU {cpu} was in no idle state"),
        false => format!("CPU {cpu} idle: {}", states.join(", ")),
    }
}

fn frequency(of: &Frequency) -> String {
    let ghz = |hz: u64| format!("{:.2}", hz as f64 / 1e9);
    format!(
        "CPU {} frequency: {} to {}, mean {} GHz",
        of.cpu,
        ghz(of.min_hz),
        ghz(of.max_hz),
        ghz(of.mean_hz)
    )
}
