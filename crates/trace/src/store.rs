//! The last sub-buffers of a running trace in memory, bounded: a spike is found after it happened,
//! and its events must still be there.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use crate::merge::Carry;
use crate::page::{PageError, RingPage};
use crate::{Decoder, Event, Pages};

/// Overhead of a kept page besides its bytes.
const PAGE_COST_BYTES: usize = 64;

/// Raw sub-buffers per CPU, oldest out first.
#[derive(Clone, Debug)]
pub struct Store {
    decoder: Decoder,
    page_bytes: usize,
    bytes_max: usize,
    bytes: usize,
    cpu_numbers: Vec<u32>,
    cpus: BTreeMap<u32, Cpu>,
    /// CPU of each page, in the order they came.
    order: VecDeque<u32>,
    dropped_pages: u64,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    pages: VecDeque<Box<[u8]>>,
    /// Complete from here to there.
    covered: Option<(u64, u64)>,
    carry: Carry,
    carried: Vec<Event>,
}

impl Store {
    /// For pages whose records the decoder knows; keeps at most `bytes_max` of them.
    pub fn new(decoder: Decoder, bytes_max: usize) -> Self {
        let layout = decoder.layout();
        let page_bytes = layout.data_at + layout.data_bytes;
        Self {
            decoder,
            page_bytes,
            bytes_max,
            bytes: 0,
            cpu_numbers: Vec::new(),
            cpus: BTreeMap::new(),
            order: VecDeque::new(),
            dropped_pages: 0,
        }
    }

    /// Keeps the next page of a CPU, as it came from the kernel. One without events is not kept.
    ///
    /// # Errors
    /// When its header cannot be; the page is not kept then, and what the CPU did since the page
    /// before is not known: its events no longer count as complete.
    pub fn push(&mut self, cpu: u32, bytes: &[u8]) -> Result<(), PageError> {
        let page = match RingPage::parse(self.decoder.layout(), bytes) {
            Ok(page) => page,
            Err(error) => {
                self.forget(cpu);
                return Err(error);
            }
        };
        if page.is_empty() {
            return Ok(());
        }
        let at_ns = page.at_ns();
        let last_ns = page.records().map_while(Result::ok).last().map_or(at_ns, |raw| raw.at_ns);
        let kept = &bytes[..page.used_bytes(self.decoder.layout()).min(bytes.len())];
        self.bytes += kept.len() + PAGE_COST_BYTES;
        let kept = kept.into();
        let entry = self.cpu(cpu);
        entry.pages.push_back(kept);
        let (from_ns, to_ns) = entry.covered.unwrap_or((at_ns, last_ns));
        entry.covered = Some((from_ns, to_ns.max(last_ns)));
        self.order.push_back(cpu);
        while self.bytes > self.bytes_max && self.order.len() > 1 {
            self.drop_oldest();
        }
        Ok(())
    }

    /// The kernel's buffer of a CPU was found empty at this time: its events are complete up to
    /// then. The first call of all also says that they are complete from then on.
    pub fn note_read(&mut self, cpu: u32, now_ns: u64) {
        let entry = self.cpu(cpu);
        let (from_ns, to_ns) = entry.covered.unwrap_or((now_ns, now_ns));
        entry.covered = Some((from_ns, to_ns.max(now_ns)));
    }

    /// From when to when the events of a CPU are complete, but for marked losses. `None`: nothing
    /// is known of it.
    pub fn covered(&self, cpu: u32) -> Option<(u64, u64)> {
        self.cpus.get(&cpu)?.covered
    }

    /// Bytes that are kept.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of pages dropped to make room.
    pub const fn dropped_pages(&self) -> u64 {
        self.dropped_pages
    }

    /// The decoder of its records.
    pub const fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        if let Err(at) = self.cpu_numbers.binary_search(&cpu) {
            self.cpu_numbers.insert(at, cpu);
        }
        self.cpus.entry(cpu).or_default()
    }

    /// Drops all of a CPU: what came next cannot be read.
    fn forget(&mut self, cpu: u32) {
        let Some(entry) = self.cpus.get_mut(&cpu) else { return };
        let bytes: usize = entry.pages.iter().map(|page| page.len() + PAGE_COST_BYTES).sum();
        *entry = Cpu::default();
        self.bytes -= bytes;
        self.order.retain(|&of| of != cpu);
    }

    fn drop_oldest(&mut self) {
        let Some(number) = self.order.pop_front() else { return };
        let Some(cpu) = self.cpus.get_mut(&number) else { return };
        let Some(bytes) = cpu.pages.pop_front() else { return };
        self.bytes -= bytes.len() + PAGE_COST_BYTES;
        self.dropped_pages += 1;
        let layout = self.decoder.layout();
        if let Ok(page) = RingPage::parse(layout, &bytes) {
            if page.missed().is_some() {
                cpu.carry.clear();
            }
            for record in page.records() {
                match record {
                    Ok(raw) => cpu.carry.feed(&self.decoder, number, &raw),
                    Err(_) => cpu.carry.clear(),
                }
            }
        }
        cpu.carried = cpu.carry.events();
        if let Some((from_ns, to_ns)) = &mut cpu.covered {
            let next = cpu.pages.front().and_then(|page| layout.stamp_ns(page));
            *from_ns = next.unwrap_or(*to_ns).max(*from_ns);
        }
    }
}

impl Pages for Store {
    fn cpus(&self) -> &[u32] {
        &self.cpu_numbers
    }

    fn count(&self, cpu: u32) -> usize {
        self.cpus.get(&cpu).map_or(0, |cpu| cpu.pages.len())
    }

    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let page = self.cpus.get(&cpu).and_then(|cpu| cpu.pages.get(index));
        let page = page.ok_or_else(|| {
            let kind = io::ErrorKind::InvalidInput;
            io::Error::new(kind, format!("page {index} of CPU {cpu} is not kept"))
        })?;
        into.clear();
        into.extend_from_slice(page);
        into.resize(self.page_bytes.max(page.len()), 0);
        Ok(())
    }

    fn covered(&self, cpu: u32) -> Option<(u64, u64)> {
        Self::covered(self, cpu)
    }

    fn carried(&self, cpu: u32) -> &[Event] {
        self.cpus.get(&cpu).map_or(&[], |cpu| &cpu.carried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Machine;

    fn store(machine: &Machine, bytes_max: usize) -> Store {
        Store::new(Decoder::new(&machine.formats), bytes_max)
    }

    #[test]
    fn pages_come_back_as_they_came_but_for_what_means_nothing() {
        let m = Machine::new();
        let mut store = store(&m, 1 << 20);
        let first = m.page(&[m.switch(10, 1, 2)]);
        let second = m.builder(&[m.switch(30, 2, 1)]).missed(Some(5)).done();
        store.push(3, &first).expect("a page");
        store.push(3, &second).expect("a page");
        store.push(0, &first).expect("a page");
        assert_eq!(store.cpus(), [0, 3]);
        assert_eq!((store.count(3), store.count(0), store.count(9)), (2, 1, 0));
        let mut into = vec![1; 9];
        store.read(3, 1, &mut into).expect("a page");
        assert_eq!(into, second);
        let error = store.read(3, 2, &mut into).expect_err("no page");
        assert_eq!(error.to_string(), "page 2 of CPU 3 is not kept");
        // Three pages of few events take little.
        assert!(store.bytes() < 600, "{}", store.bytes());
    }

    #[test]
    fn empty_pages_are_not_kept() {
        let m = Machine::new();
        let mut store = store(&m, 1 << 20);
        store.push(0, &m.page(&[])).expect("a page");
        assert_eq!((store.count(0), store.bytes(), store.covered(0)), (0, 0, None));
        store.push(0, &m.builder(&[]).missed(None).done()).expect("a page");
        assert_eq!(store.count(0), 1);
    }

    #[test]
    fn the_oldest_of_all_goes_first() {
        let m = Machine::new();
        let page = |at_ns| m.page(&[m.switch(at_ns, 1, 2), m.plain(at_ns + 5, "mine:thing")]);
        let mut store = store(&m, 1);
        store.push(0, &page(10)).expect("a page");
        let one = store.bytes();
        // The last one stays, however little room there is.
        assert_eq!(store.count(0), 1);
        store.bytes_max = 3 * one;
        for (cpu, at_ns) in [(1, 20), (1, 30), (0, 40), (1, 50)] {
            store.push(cpu, &page(at_ns)).expect("a page");
        }
        assert_eq!((store.count(0), store.count(1), store.dropped_pages()), (1, 2, 2));
        assert_eq!((store.covered(0), store.covered(1)), (Some((40, 45)), Some((30, 55))));
        assert_eq!(store.bytes(), 3 * one);
        assert!(store.carried(0).len() == 1 && store.carried(0)[0].at_ns == 10);
    }

    #[test]
    fn completeness_begins_with_the_first_reading_and_ends_with_the_last() {
        let m = Machine::new();
        let mut store = store(&m, 1 << 20);
        assert_eq!(store.covered(0), None);
        store.note_read(0, 5);
        assert_eq!(store.covered(0), Some((5, 5)));
        store.push(0, &m.page(&[m.switch(10, 1, 2), m.switch(90, 2, 1)])).expect("a page");
        assert_eq!(store.covered(0), Some((5, 90)));
        store.note_read(0, 80);
        assert_eq!(store.covered(0), Some((5, 90)));
        store.note_read(0, 100);
        assert_eq!(store.covered(0), Some((5, 100)));
    }

    #[test]
    fn behind_a_page_that_cannot_be_nothing_before_counts() {
        let m = Machine::new();
        let mut store = store(&m, 1 << 20);
        store.push(0, &m.page(&[m.switch(10, 1, 2)])).expect("a page");
        store.push(1, &m.page(&[m.switch(10, 1, 2)])).expect("a page");
        let one = store.bytes() / 2;
        assert_eq!(store.push(0, &[0; 3]), Err(PageError::Short { bytes: 3, header: 16 }));
        assert_eq!((store.count(0), store.covered(0), store.bytes()), (0, None, one));
        store.push(0, &m.page(&[m.switch(50, 1, 2)])).expect("a page");
        assert_eq!((store.covered(0), store.count(1)), (Some((50, 50)), 1));
    }

    #[test]
    fn a_loss_in_what_was_dropped_leaves_nothing_to_carry() {
        let m = Machine::new();
        let mut store = store(&m, 1);
        store.push(0, &m.page(&[m.switch(10, 1, 2)])).expect("a page");
        let lost = m.builder(&[m.plain(20, "mine:thing")]).missed(None).done();
        store.push(0, &lost).expect("a page");
        assert_eq!(store.carried(0).len(), 1);
        store.push(0, &m.page(&[m.plain(30, "mine:thing")])).expect("a page");
        assert!(store.carried(0).is_empty());
    }
}
