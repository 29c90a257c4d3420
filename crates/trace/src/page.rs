//! Sub-buffers ("pages") of the kernel's ring buffer: header, lost marks, records with their times.
//!
//! Bytes from anywhere are read without a panic and without allocation. The binary format is that
//! of kernel/trace/ring_buffer.c and include/linux/ring_buffer.h, since 2.6.30 the same but for
//! the absolute time stamp (4.17).

#[cfg(test)]
mod tests;

use std::io;

use thiserror::Error;

use crate::Event;
use crate::format::{ByteOrder, PageLayout};

/// Bit of the commit word: events were lost before this page.
const MISSED: u32 = 1 << 31;

/// Bit of the commit word: their number stands behind the data.
const MISSED_STORED: u32 = 1 << 30;

/// `type_len` up to here is the data's length in words; 0: the length stands in the next word.
const DATA_WORDS_MAX: u32 = 28;

const PADDING: u32 = 29;

const TIME_EXTEND: u32 = 30;

/// Bits of the time in the first word of a record.
const DELTA_BITS: u32 = 27;

/// Bits of an absolute time stamp.
const ABSOLUTE_BITS: u32 = 59;

/// Why a page cannot be read, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PageError {
    /// Too few bytes for the header.
    #[error("page of {bytes} bytes: too short for its header of {header} bytes")]
    Short {
        bytes: usize,
        /// Bytes of the header.
        header: usize,
    },
    /// More bytes committed than there are.
    #[error("page header: {commit} bytes committed, but only {bytes} are there")]
    Commit {
        /// Bytes according to the header.
        commit: usize,
        /// Bytes behind the header.
        bytes: usize,
    },
    /// A record that does not end in the page.
    #[error("page byte {at}: record of {bytes} bytes does not fit into the {left} that are left")]
    Record {
        /// Where it begins, from the start of the page.
        at: usize,
        bytes: usize,
        /// What is left of the page there.
        left: usize,
    },
    /// A record too short to have an event's number, or of a length that cannot be.
    #[error("page byte {at}: record of length {bytes}: too short")]
    Length {
        /// Where it begins, from the start of the page.
        at: usize,
        /// Length according to its header.
        bytes: usize,
    },
}

/// Events were lost before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedEvents {
    /// How many; `None`: the kernel does not say.
    pub count: Option<u64>,
}

/// One record: an event as the kernel wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// When, nanoseconds on the clock of the trace.
    pub at_ns: u64,
    /// Its number in the kernel's formats.
    pub id: u16,
    /// The record, from its common fields on; may have up to 7 bytes more than the event.
    pub data: &'a [u8],
}

/// A sub-buffer of the kernel's ring buffer.
#[derive(Clone, Copy, Debug)]
pub struct RingPage<'a> {
    /// Header and committed data.
    bytes: &'a [u8],
    walk: Walk,
    missed: Option<MissedEvents>,
}

impl PageLayout {
    /// Time stamp of a page, which is that of its first event; `None`: too short to have one.
    pub fn stamp_ns(&self, page: &[u8]) -> Option<u64> {
        let bytes = page.get(self.stamp_at..)?.first_chunk()?;
        Some(match self.order {
            ByteOrder::Little => u64::from_le_bytes(*bytes),
            ByteOrder::Big => u64::from_be_bytes(*bytes),
        })
    }

    /// A number of the kernel's `long`.
    fn long(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.get(..self.long_bytes)?;
        let value = bytes.iter().enumerate().fold(0, |value, (at, &byte)| {
            let place = match self.order {
                ByteOrder::Little => at,
                ByteOrder::Big => self.long_bytes - 1 - at,
            };
            value | u64::from(byte) << (8 * place)
        });
        Some(value)
    }
}

impl<'a> RingPage<'a> {
    /// Reads the header and finds the bytes of the events.
    ///
    /// # Errors
    /// When the page is shorter than its header, or than what that says.
    pub fn parse(layout: &PageLayout, bytes: &'a [u8]) -> Result<Self, PageError> {
        let short = PageError::Short { bytes: bytes.len(), header: layout.data_at };
        let data = bytes.get(layout.data_at..).ok_or(short)?;
        let at_ns = layout.stamp_ns(bytes).ok_or(short)?;
        let commit = bytes.get(layout.commit_at..).and_then(|b| layout.long(b)).ok_or(short)?;
        // A `long` of 64 bits has nothing in its upper half.
        let commit = commit as u32;
        let used = (commit & !(MISSED | MISSED_STORED)) as usize;
        if used > data.len() {
            return Err(PageError::Commit { commit: used, bytes: data.len() });
        }
        let stored = commit & MISSED_STORED != 0;
        let count = stored.then(|| layout.long(&data[used..])).flatten();
        let end = layout.data_at + used;
        Ok(Self {
            bytes: &bytes[..end],
            walk: Walk { at: layout.data_at, end, at_ns, order: layout.order },
            missed: (commit & MISSED != 0).then_some(MissedEvents { count }),
        })
    }

    /// Its time stamp: that of its first event, nanoseconds.
    pub const fn at_ns(&self) -> u64 {
        self.walk.at_ns
    }

    /// Whether events were lost before it.
    pub const fn missed(&self) -> Option<MissedEvents> {
        self.missed
    }

    /// Whether it has neither records nor a lost mark.
    pub const fn is_empty(&self) -> bool {
        self.walk.at == self.walk.end && self.missed.is_none()
    }

    /// Bytes from its beginning that mean something: header, data, number of lost events.
    pub const fn used_bytes(&self, layout: &PageLayout) -> usize {
        match self.missed {
            Some(MissedEvents { count: Some(_) }) => self.bytes.len() + layout.long_bytes,
            _ => self.bytes.len(),
        }
    }

    pub const fn records(&self) -> Records<'a> {
        Records { bytes: self.bytes, walk: self.walk }
    }

    /// The place before the first record, for callers that keep the bytes elsewhere.
    pub(crate) const fn walk(&self) -> Walk {
        self.walk
    }
}

/// Iterator over the records of a page. After an error it ends.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    walk: Walk,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Raw<'a>, PageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.walk.next(self.bytes).transpose()
    }
}

/// A place between two records, apart from the page's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    at: usize,
    end: usize,
    at_ns: u64,
    order: ByteOrder,
}

impl Walk {
    /// At the end of a page.
    pub(crate) const END: Self = Self { at: 0, end: 0, at_ns: 0, order: ByteOrder::Little };

    /// The next record of `bytes`, which are those of the page that this is a place of.
    #[inline]
    pub(crate) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Raw<'a>>, PageError> {
        Ok(self.step(bytes)?.map(|found| found.raw(bytes)))
    }

    /// As [`Walk::next`], without borrowing.
    #[inline]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<Option<PageRecord>, PageError> {
        let is_big = matches!(self.order, ByteOrder::Big);
        while self.at < self.end {
            let (word, rest) = self.word(bytes, is_big)?;
            let (kind, delta) = if is_big {
                (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
            } else {
                (word & 0x1f, word >> 5)
            };
            if kind.wrapping_sub(1) < DATA_WORDS_MAX {
                self.at_ns = self.at_ns.wrapping_add(u64::from(delta));
                return self.record(rest, 4, kind as usize * 4, is_big).map(Some);
            }
            if kind == PADDING && delta == 0 {
                break;
            }
            let second = rest.first_chunk().map(|bytes| number(*bytes, is_big));
            let Some(second) = second else {
                return Err(self.fail(|at, left| PageError::Record { at, bytes: 8, left }));
            };
            match kind {
                0 => {
                    self.at_ns = self.at_ns.wrapping_add(u64::from(delta));
                    // The length counts its own word.
                    let Some(bytes) = (second as usize).checked_sub(4) else {
                        return Err(self.fail(|at, _| PageError::Length { at, bytes: 0 }));
                    };
                    return self.record(&rest[4..], 8, bytes, is_big).map(Some);
                }
                PADDING => {
                    // A discarded event. Later times count from its; the kernel makes 1 of a 0.
                    let delta = if delta == 1 { 0 } else { delta };
                    self.at_ns = self.at_ns.wrapping_add(u64::from(delta));
                    self.skip((second as usize).saturating_add(4))?;
                }
                TIME_EXTEND => {
                    let long = u64::from(second) << DELTA_BITS | u64::from(delta);
                    self.at_ns = self.at_ns.wrapping_add(long);
                    self.at += 8;
                }
                _ => {
                    let low = u64::from(second) << DELTA_BITS | u64::from(delta);
                    self.at_ns = absolute(low, self.at_ns);
                    self.at += 8;
                }
            }
        }
        self.at = self.end;
        Ok(None)
    }

    /// The word at this place and what is behind it.
    #[inline]
    fn word<'a>(&mut self, bytes: &'a [u8], is_big: bool) -> Result<(u32, &'a [u8]), PageError> {
        let left = bytes.get(self.at..self.end).unwrap_or_default();
        match left.split_first_chunk() {
            Some((word, rest)) => Ok((number(*word, is_big), rest)),
            None => Err(self.fail(|at, left| PageError::Record { at, bytes: 4, left })),
        }
    }

    /// A record whose data begins `rest` and is `len` long, behind `header` bytes.
    #[inline]
    fn record(
        &mut self,
        rest: &[u8],
        header: usize,
        len: usize,
        is_big: bool,
    ) -> Result<PageRecord, PageError> {
        if len > rest.len() {
            let bytes = len.saturating_add(header);
            return Err(self.fail(|at, left| PageError::Record { at, bytes, left }));
        }
        let Some(&id) = rest[..len].first_chunk() else {
            return Err(self.fail(|at, _| PageError::Length { at, bytes: len }));
        };
        let from = self.at + header;
        self.at = from + len.next_multiple_of(4);
        let id = if is_big { u16::from_be_bytes(id) } else { u16::from_le_bytes(id) };
        Ok(PageRecord { at_ns: self.at_ns, from, len, id })
    }

    fn skip(&mut self, bytes: usize) -> Result<(), PageError> {
        if bytes > self.end - self.at {
            return Err(self.fail(|at, left| PageError::Record { at, bytes, left }));
        }
        self.at += bytes.next_multiple_of(4);
        Ok(())
    }

    /// An error here; nothing follows it.
    #[cold]
    fn fail(&mut self, error: impl FnOnce(usize, usize) -> PageError) -> PageError {
        let error = error(self.at, self.end.saturating_sub(self.at));
        self.at = self.end;
        error
    }
}

/// Where a record lies in its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRecord {
    pub(crate) at_ns: u64,
    from: usize,
    len: usize,
    id: u16,
}

impl PageRecord {
    #[inline]
    pub(crate) fn raw(self, bytes: &[u8]) -> Raw<'_> {
        Raw { at_ns: self.at_ns, id: self.id, data: &bytes[self.from..self.from + self.len] }
    }
}

#[inline]
const fn number(bytes: [u8; 4], is_big: bool) -> u32 {
    if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// An absolute stamp has only the low bits; the others are those of the time before.
const fn absolute(low: u64, before_ns: u64) -> u64 {
    let low = low & ((1 << ABSOLUTE_BITS) - 1);
    let at_ns = low | before_ns >> ABSOLUTE_BITS << ABSOLUTE_BITS;
    // The low bits wrapped since. A small step back is no wrap.
    if before_ns.saturating_sub(at_ns) > 1 << (ABSOLUTE_BITS - 1) {
        at_ns.wrapping_add(1 << ABSOLUTE_BITS)
    } else {
        at_ns
    }
}

// Random access to a trace's raw sub-buffers: what memory and files have in common, so that the
// events round a spike are found the same way in both.

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

    /// The same for several pages at once, for sequential readers: from `index` on up to
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

    /// Events of a CPU from pages that are no longer kept, which give its state when the
    /// oldest kept page began. Empty where every page is kept.
    fn carried(&self, _cpu: u32) -> &[Event] {
        &[]
    }
}
