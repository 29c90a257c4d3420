//! Walking one CPU's pages from a place found by time, decoding only those that are needed.

use std::io;

use crate::{
    Brief, Decoder, Event, Lost, Pages,
    page::{Page, Raw},
};

/// What a walk meets.
pub(super) enum Visit<'a> {
    Raw(&'a Raw<'a>),
    /// A stretch in which events were lost, or could not be read. From 0: from nobody knows when.
    Lost(Lost),
}

/// Pages and the buffer for one of them.
pub(super) struct Reader<'a> {
    pages: &'a mut dyn Pages,
    decoder: &'a Decoder,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(pages: &'a mut dyn Pages, decoder: &'a Decoder) -> Self {
        Self { pages, decoder, buffer: Vec::new() }
    }

    pub(super) fn cpus(&self) -> Vec<u32> {
        self.pages.cpus().to_vec()
    }

    pub(super) const fn decoder(&self) -> &'a Decoder {
        self.decoder
    }

    pub(super) fn carried(&self, cpu: u32) -> &[Event] {
        self.pages.carried(cpu)
    }

    /// From when to when the events of a CPU are complete. Where nobody noted it: from its first
    /// page to the last event of the trace, looked for only if it is before `to_ns`.
    pub(super) fn covered(&mut self, cpu: u32, to_ns: u64) -> io::Result<(u64, u64)> {
        if let Some(covered) = self.pages.covered(cpu) {
            return Ok(covered);
        }
        if self.pages.count(cpu) == 0 {
            return Ok((u64::MAX, 0));
        }
        let from_ns = self.stamp(cpu, 0)?;
        let mut last_ns = self.last(cpu)?;
        for other in self.cpus() {
            if last_ns >= to_ns {
                break;
            }
            last_ns = last_ns.max(self.last(other)?);
        }
        Ok((from_ns, last_ns))
    }

    /// The last page that begins before a time, or the first.
    pub(super) fn page_at(&mut self, cpu: u32, at_ns: u64) -> io::Result<usize> {
        let (mut low, mut high) = (0, self.pages.count(cpu));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.stamp(cpu, middle)? < at_ns {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.saturating_sub(1))
    }

    /// Of a page: whether a task was switched to in it before a time, and whether events were lost
    /// just before it.
    pub(super) fn look(
        &mut self,
        cpu: u32,
        index: usize,
        before_ns: u64,
    ) -> io::Result<(bool, bool)> {
        self.pages.read(cpu, index, &mut self.buffer)?;
        let Ok(page) = Page::parse(self.decoder.layout(), &self.buffer) else {
            return Ok((false, true));
        };
        let mut records = page.records().map_while(Result::ok);
        let has_switch = records.any(|raw| {
            raw.at_ns < before_ns && matches!(self.decoder.brief(&raw), Brief::Switch { .. })
        });
        Ok((has_switch, page.missed().is_some()))
    }

    /// Visits what is in the pages from `first` on up to a time, until it returns `false`.
    pub(super) fn visit(
        &mut self,
        cpu: u32,
        first: usize,
        to_ns: u64,
        mut visit: impl FnMut(Visit<'_>) -> bool,
    ) -> io::Result<()> {
        let mut last_ns = 0;
        let mut is_broken = false;
        for index in first..self.pages.count(cpu) {
            self.pages.read(cpu, index, &mut self.buffer)?;
            let Ok(page) = Page::parse(self.decoder.layout(), &self.buffer) else {
                is_broken = true;
                continue;
            };
            let missed = page.missed();
            if is_broken || missed.is_some() {
                let count = missed.and_then(|missed| missed.count).filter(|_| !is_broken);
                let lost = Lost { from_ns: last_ns, to_ns: page.at_ns(), count };
                if !visit(Visit::Lost(lost)) {
                    return Ok(());
                }
                is_broken = false;
            }
            if page.at_ns() > to_ns {
                return Ok(());
            }
            for record in page.records() {
                let Ok(raw) = record else {
                    is_broken = true;
                    break;
                };
                if raw.at_ns > to_ns || !visit(Visit::Raw(&raw)) {
                    return Ok(());
                }
                last_ns = raw.at_ns;
            }
        }
        if is_broken {
            visit(Visit::Lost(Lost { from_ns: last_ns, to_ns: to_ns.max(last_ns), count: None }));
        }
        Ok(())
    }

    pub(super) fn count(&self, cpu: u32) -> usize {
        self.pages.count(cpu)
    }

    /// When a page begins; one too short to say begins when the one before does.
    fn stamp(&mut self, cpu: u32, index: usize) -> io::Result<u64> {
        for index in (0..=index).rev() {
            self.pages.read(cpu, index, &mut self.buffer)?;
            if let Some(at_ns) = self.decoder.layout().stamp_ns(&self.buffer) {
                return Ok(at_ns);
            }
        }
        Ok(0)
    }

    /// When the last event of a CPU was, 0: it has none.
    fn last(&mut self, cpu: u32) -> io::Result<u64> {
        let Some(index) = self.pages.count(cpu).checked_sub(1) else { return Ok(0) };
        self.pages.read(cpu, index, &mut self.buffer)?;
        let Ok(page) = Page::parse(self.decoder.layout(), &self.buffer) else {
            return Ok(0);
        };
        let last = page.records().map_while(Result::ok).last();
        Ok(last.map_or(page.at_ns(), |raw| raw.at_ns))
    }
}
