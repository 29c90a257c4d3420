//! Random access to a trace's raw sub-buffers: what memory and files have in common, so that the
//! events round a spike are found the same way in both.

use std::io;

use crate::Event;

/// Raw sub-buffers ("pages") per CPU, each CPU's in order of time.
pub trait Pages {
    /// CPUs that there are pages of, ascending.
    fn cpus(&self) -> &[u32];

    /// Number of pages of a CPU; 0 for a CPU that is not there.
    fn count(&self, cpu: u32) -> usize;

    /// Replaces what is in `into` by a page as the kernel gave it: header, data, and zeros where
    /// its end was not kept. `index` counts from the oldest page of this CPU.
    ///
    /// # Errors
    /// When the file cannot be read, or there is no such page.
    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> io::Result<()>;

    /// The same for several pages at once, for who reads all in order: from `index` on up to
    /// `count` pages of one size, one behind the other. How many are in `into`, at least one.
    ///
    /// # Errors
    /// As [`Pages::read`], of the first.
    fn read_ahead(
        &mut self,
        cpu: u32,
        index: usize,
        count: usize,
        into: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let _ = count;
        self.read(cpu, index, into).map(|()| 1)
    }

    /// From when to when events of a CPU are complete but for marked losses, in nanoseconds of the
    /// trace's clock. `None`: as the pages themselves say.
    fn covered(&self, _cpu: u32) -> Option<(u64, u64)> {
        None
    }

    /// Events of a CPU from pages that are no longer kept, which tell what it was doing when the
    /// oldest kept page began. Empty where every page is kept.
    fn carried(&self, _cpu: u32) -> &[Event] {
        &[]
    }
}
