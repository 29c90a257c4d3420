//! The last sub-buffers of a running trace in memory, bounded: a spike is found after it happened,
//! and its events must still be there.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use crate::{
    Decoder, Event, Pages,
    carry::Carry,
    page::{Page, PageError},
};

/// What a kept page costs beside its bytes.
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
    #[must_use]
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
        let page = match Page::parse(self.decoder.layout(), bytes) {
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
    #[must_use]
    pub fn covered(&self, cpu: u32) -> Option<(u64, u64)> {
        self.cpus.get(&cpu)?.covered
    }

    /// Bytes that are kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pages that had to make room.
    #[must_use]
    pub const fn dropped_pages(&self) -> u64 {
        self.dropped_pages
    }

    /// The decoder of its records.
    #[must_use]
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
        if let Ok(page) = Page::parse(layout, &bytes) {
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
