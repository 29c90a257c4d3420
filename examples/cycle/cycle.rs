//! A periodic piece of work of your own, measured by rtproof:
//!
//! ```text
//! rustc -O cycle.rs
//! rtproof measure --workload 'exec:./cycle'
//! ```
//!
//! Each cycle writes `VALUE`: how long its work took, in nanoseconds. What it missed it says by
//! itself: `missed N`.

use std::io::Write;
use std::time::{Duration, Instant};

fn main() -> std::io::Result<()> {
    // What --period says.
    let period = std::env::var("RTPROOF_PERIOD_NS").ok().and_then(|text| text.parse().ok());
    let period = Duration::from_nanos(period.unwrap_or(1_000_000));
    let mut out = std::io::stdout().lock();
    let mut due = Instant::now() + period;
    let mut sum = 1_u64;
    loop {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let begin = Instant::now();
        for i in 0..1000 {
            // The work of the cycle.
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
        let took = begin.elapsed();
        // Ends with an error when rtproof has ended.
        writeln!(out, "{}", took.as_nanos())?;
        due += period;
        let missed = Instant::now().saturating_duration_since(due).as_nanos() / period.as_nanos();
        if missed > 0 {
            writeln!(out, "missed {missed}")?;
            due += period * u32::try_from(missed).unwrap_or(u32::MAX);
        }
        out.flush()?;
    }
}
