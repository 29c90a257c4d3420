//! What clock a trace is on, by what is in it: `trace-cmd extract` writes `local` for an instance,
//! whatever its clock was.

use std::io;

use crate::{Brief, Decoder, Page, Pages};

/// Pages of each CPU that are looked at.
const PAGES_MAX: usize = 64;
/// From the interrupt's reading of the clock to the time stamp of the event it is in.
const READING_NS: u64 = 20_000;

/// Whether the times of a trace are of CLOCK_MONOTONIC: those of timer interrupts follow the clock
/// as these read it. `None`: no such event is at the start of it.
pub fn is_monotonic(pages: &mut dyn Pages, decoder: &Decoder) -> io::Result<Option<bool>> {
    let mut nearest_ns: Option<u64> = None;
    let mut bytes = Vec::new();
    for cpu in pages.cpus().to_vec() {
        for index in 0..pages.count(cpu).min(PAGES_MAX) {
            pages.read(cpu, index, &mut bytes)?;
            let Ok(page) = Page::parse(decoder.layout(), &bytes) else { continue };
            for raw in page.records().map_while(Result::ok) {
                let Brief::TimerExpire { now_ns, .. } = decoder.brief(&raw) else { continue };
                // Timers of other clocks are far away.
                let off_ns = raw.at_ns.checked_sub(now_ns).unwrap_or(u64::MAX);
                nearest_ns = Some(nearest_ns.map_or(off_ns, |nearest| nearest.min(off_ns)));
            }
        }
    }
    Ok(nearest_ns.map(|nearest| nearest <= READING_NS))
}
