//! Late wake-ups of threads that are not measured, found in the events themselves as they come.
//!
//! The records of all CPUs are needed in order of time, and the rings are read one after the
//! other: what is later than the beginning of a look may not be all there yet and waits for the
//! next one.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use rtproof_host::symbols::Symbols;
use rtproof_trace::{
    Decoder, Page, Pages, WakeUp,
    merge::Merge,
    scan::{Preemption, Scanner, Subjects, Totals},
};

/// Functions of timers that threads sleep on: nanosleep and waits with a timeout, timer_create,
/// timerfd_create.
const SLEEPS: &[&str] = &["hrtimer_wakeup", "posix_timer_fn", "timerfd_tmrproc"];
/// Sub-buffers that may wait to be merged. More come at once only where the reader was kept from
/// running: then finding begins anew.
const BYTES_MAX: usize = 64 << 20;
/// A record is there for the reader when it is written to its end: that of a virtual CPU which the
/// hypervisor stops in the middle comes late. So long is waited for it.
const LATE_NS: u64 = 5_000_000;

#[derive(Debug)]
pub(super) struct Watch {
    scanner: Scanner,
    fresh: Fresh,
    /// Records up to here were seen.
    seen_ns: u64,
}

impl Watch {
    pub(super) fn new(
        subjects: &Subjects,
        threshold_ns: u64,
        symbols: Option<&Symbols>,
        decoder: &Decoder,
    ) -> Self {
        let layout = decoder.layout();
        let addresses = symbols.map(|symbols| symbols.addresses_of(SLEEPS)).unwrap_or_default();
        Self {
            scanner: Scanner::new(subjects, threshold_ns, true).with_sleep_functions(addresses),
            fresh: Fresh::new(layout.data_at + layout.data_bytes),
            seen_ns: 0,
        }
    }

    /// The next sub-buffer of a CPU.
    pub(super) fn push(&mut self, decoder: &Decoder, cpu: u32, page: &[u8]) {
        if self.fresh.bytes > BYTES_MAX {
            self.lost();
        }
        let Ok(parsed) = Page::parse(decoder.layout(), page) else {
            self.scanner.lost(cpu);
            return;
        };
        let used = parsed.used_bytes(decoder.layout());
        if !parsed.is_empty() {
            self.fresh.push(cpu, parsed.at_ns(), &page[..used.min(page.len())]);
        }
    }

    /// Nothing is known of what was before.
    pub(super) fn lost(&mut self) {
        let cpus = std::mem::take(&mut self.fresh.numbers);
        cpus.iter().for_each(|cpu| self.scanner.lost(*cpu));
        self.fresh = Fresh::new(self.fresh.page_bytes);
    }

    /// Late wake-ups up to shortly before a time up to which all CPUs are complete.
    pub(super) fn find(
        &mut self,
        decoder: &Decoder,
        complete_ns: u64,
        mut late: impl FnMut(WakeUp),
    ) {
        let until_ns = complete_ns.saturating_sub(LATE_NS);
        let mut merge = Merge::new(&mut self.fresh, decoder.layout());
        loop {
            match merge.next() {
                Ok(Some(merged)) if merged.raw.at_ns > until_ns => break,
                // The last sub-buffer of each CPU comes again: its end was not yet seen.
                Ok(Some(merged)) if merged.raw.at_ns <= self.seen_ns => {}
                Ok(Some(merged)) => {
                    self.scanner.feed_merged(decoder, &merged).for_each(&mut late);
                }
                Ok(None) => break,
                Err(error) => self.scanner.lost(error.cpu),
            }
        }
        drop(merge);
        self.fresh.forget(until_ns);
        self.seen_ns = self.seen_ns.max(until_ns);
    }

    /// Wake-ups since the last call, where they are kept.
    pub(super) fn take_kept(&mut self) -> Vec<WakeUp> {
        self.scanner.take_kept()
    }

    /// Follows these threads as well.
    pub(super) fn follow(&mut self, tids: &[i32]) {
        tids.iter().for_each(|tid| self.scanner.follow(*tid));
    }

    /// Who ran in the place of the threads.
    pub(super) fn preemptions(&self) -> Vec<Preemption> {
        self.scanner.preemptions().copied().collect()
    }

    /// What was counted of each thread.
    pub(super) fn totals(&self) -> Vec<Totals> {
        self.scanner.totals().copied().collect()
    }
}

/// Time stamp and bytes of a sub-buffer.
type Stamped = (u64, Box<[u8]>);

/// Sub-buffers that are not yet merged to their end.
#[derive(Debug)]
struct Fresh {
    numbers: Vec<u32>,
    cpus: BTreeMap<u32, VecDeque<Stamped>>,
    bytes: usize,
    page_bytes: usize,
}

impl Fresh {
    const fn new(page_bytes: usize) -> Self {
        Self { numbers: Vec::new(), cpus: BTreeMap::new(), bytes: 0, page_bytes }
    }

    fn push(&mut self, cpu: u32, at_ns: u64, page: &[u8]) {
        if let Err(at) = self.numbers.binary_search(&cpu) {
            self.numbers.insert(at, cpu);
        }
        self.bytes += page.len();
        self.cpus.entry(cpu).or_default().push_back((at_ns, page.into()));
    }

    /// Drops sub-buffers that end before a time: those whose successor begins before it.
    fn forget(&mut self, until_ns: u64) {
        for pages in self.cpus.values_mut() {
            while pages.get(1).is_some_and(|(at_ns, _)| *at_ns <= until_ns) {
                let gone = pages.pop_front().map_or(0, |(_, page)| page.len());
                self.bytes -= gone;
            }
        }
    }
}

impl Pages for Fresh {
    fn cpus(&self) -> &[u32] {
        &self.numbers
    }

    fn count(&self, cpu: u32) -> usize {
        self.cpus.get(&cpu).map_or(0, VecDeque::len)
    }

    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let page = self.cpus.get(&cpu).and_then(|pages| pages.get(index));
        let (_, page) = page.ok_or(io::ErrorKind::InvalidInput)?;
        into.clear();
        into.extend_from_slice(page);
        into.resize(self.page_bytes.max(page.len()), 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_buffers_stay_until_the_next_one_begins_in_time() {
        let mut fresh = Fresh::new(8);
        for (cpu, at_ns) in [(1, 10), (0, 12), (1, 20), (1, 30)] {
            fresh.push(cpu, at_ns, &[7; 4]);
        }
        assert_eq!((fresh.cpus(), fresh.bytes), (&[0, 1][..], 16));
        fresh.forget(19);
        assert_eq!((fresh.count(0), fresh.count(1)), (1, 3), "the next begins later");
        fresh.forget(20);
        assert_eq!((fresh.count(0), fresh.count(1)), (1, 2));
        fresh.forget(1_000);
        assert_eq!((fresh.count(0), fresh.count(1), fresh.bytes), (1, 1, 8), "its end is unseen");
        let mut page = Vec::new();
        fresh.read(1, 0, &mut page).unwrap();
        assert_eq!(page, [7, 7, 7, 7, 0, 0, 0, 0]);
        assert!(fresh.read(1, 1, &mut page).is_err() && fresh.read(2, 0, &mut page).is_err());
    }
}
