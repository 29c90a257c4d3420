//! Signals that stop a process. They go to its main thread, which may have to wait for a CPU: the
//! others stop that much later, and the signal is older than the window.

use std::io;

use super::reader::{Reader, Visit};
use crate::{Brief, Event, What};

/// So long before the window they are looked for.
const BEFORE_NS: u64 = 100_000_000;
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPS: [i32; 4] = [19, 20, 21, 22];

/// Those of all CPUs from shortly before a time.
pub(super) fn stops(reader: &mut Reader<'_>, before_ns: u64) -> io::Result<Vec<Event>> {
    let mut stops = Vec::new();
    let decoder = reader.decoder();
    let from_ns = before_ns.saturating_sub(BEFORE_NS);
    for cpu in reader.cpus() {
        let first = reader.page_at(cpu, from_ns)?;
        reader.visit(cpu, first, before_ns.saturating_sub(1), |visit| {
            if let Visit::Raw(raw) = visit
                && raw.at_ns >= from_ns
                && matches!(decoder.brief(raw), Brief::Across)
            {
                stops.extend(Some(decoder.event(cpu, raw)).filter(is_stop));
            }
            true
        })?;
    }
    Ok(stops)
}

/// Whether an event is such a signal.
pub(super) fn is_stop(event: &Event) -> bool {
    matches!(&event.what, What::Signal { number, .. } if STOPS.contains(number))
}

#[cfg(test)]
mod tests {
    use crate::{Around, Decoder, How, Store, WakeUp, around::window, testing::KERNELS};

    #[test]
    fn a_stop_is_found_that_is_older_than_the_window() {
        let kernel = KERNELS[0];
        let formats = kernel.formats();
        let mut store = Store::new(Decoder::new(&formats), 1 << 20);
        let signal = |number: i64| {
            let record = kernel.record(&formats, "signal:signal_generate").pid(7);
            record.set("sig", number).set("pid", 40).bytes("comm", b"app").data
        };
        let page = kernel.page(1_000);
        let page = page.event(2_000_000, &signal(19)).event(160_000_000, &signal(15));
        let page = page.event(170_000_000, &signal(19)).event(210_000_000, &signal(19)).done();
        store.push(0, &page).unwrap();
        store.note_read(0, 300_000_000);
        let wake = WakeUp {
            tid: 41,
            cpu: 1,
            due_ns: 205_000_000,
            ran_ns: 220_000_000,
            how: How::Measured,
        };
        let decoder = Decoder::new(&formats);
        let window = window(&mut store, &decoder, &wake, &Around::default()).unwrap();
        let times: Vec<u64> = window.events.iter().map(|event| event.at_ns).collect();
        // Not the first, long ago, and not SIGTERM; the last lies within.
        assert_eq!(times, [170_000_000, 210_000_000]);
    }
}
