//! A window as a trace.dat: its events become pages again, so that an old record's spike opens in
//! trace-cmd and KernelShark.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::{
    kinds::{self, COMMON, Stored},
    write::{Parts, write},
};
use crate::{
    Event, Pages, What, Window,
    format::{ByteOrder, Formats},
    kernel::{self, Value},
};

const PAGE: usize = 4096;
const PAGE_HEADER: usize = 16;
/// What a page may hold besides the number of lost events behind it.
const PAGE_ROOM: usize = PAGE - PAGE_HEADER - 8;
/// Bits of the time between two events.
const DELTA_BITS: u32 = 27;

/// Bits of a page's number of bytes: events were lost before it; their number stands behind it.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// Writes the events of a window as a trace.dat, version 6.
///
/// # Errors
/// As `into`.
pub fn write_window(window: &Window, clock: &str, into: &mut dyn Write) -> io::Result<()> {
    let mut formats = Formats::new(kinds::HEADER_PAGE, ByteOrder::Little).map_err(own)?;
    formats.set_header_event(kinds::HEADER_EVENT);
    for kind in kernel::written() {
        if let Some(id) = kinds::id(kind) {
            formats.add(kind.system, &kinds::format(id, kind)).map_err(own)?;
        }
    }
    let mut pages = Encoded::of(window);
    let ranges = pages.cpus.iter().map(|&cpu| (cpu, 0..pages.count(cpu))).collect();
    let mut symbols = window.symbols.clone();
    let text_start = text_start(window);
    if text_start != 0 {
        symbols.insert(text_start, "_stext".into());
    }
    let comms = window.tasks.iter().map(|(&tid, task)| (tid, task.comm.clone())).collect();
    let parts = Parts {
        formats: &formats,
        page_bytes: 4096,
        symbols: Some(&symbols),
        comms,
        clock,
        uname: None,
    };
    write(&parts, &mut pages, &ranges, into)
}

/// Our own texts are those that are read above; this is what the compiler cannot know.
fn own(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

/// An address that callers are counted from, as the kernel counts them from `_stext`: below them
/// all.
fn text_start(window: &Window) -> u64 {
    let callers = window.events.iter().filter_map(|event| match event.what {
        What::Irqs { caller, .. } | What::Preempt { caller, .. } if caller != 0 => Some(caller),
        _ => None,
    });
    callers.min().map_or(0, |first| first.saturating_sub(1 << 20) & !0xfff)
}

/// The events of a window as pages.
struct Encoded {
    cpus: Vec<u32>,
    pages: BTreeMap<u32, Vec<Vec<u8>>>,
}

impl Encoded {
    fn of(window: &Window) -> Self {
        let mut rings: BTreeMap<u32, Ring> = BTreeMap::new();
        let text_start = text_start(window);
        let mut lost = window.lost.iter().peekable();
        for event in &window.events {
            let ring =
                rings.entry(event.cpu).or_insert_with(|| Ring { text_start, ..Ring::default() });
            if event.cpu == window.cpu {
                while let Some(gap) = lost.next_if(|gap| gap.to_ns <= event.at_ns) {
                    ring.lose(gap.count);
                }
            }
            ring.push(event);
        }
        let mut pages = BTreeMap::new();
        for (cpu, ring) in rings {
            pages.insert(cpu, ring.finish());
        }
        Self { cpus: pages.keys().copied().collect(), pages }
    }
}

impl Pages for Encoded {
    fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn count(&self, cpu: u32) -> usize {
        self.pages.get(&cpu).map_or(0, Vec::len)
    }

    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let page = self.pages.get(&cpu).and_then(|pages| pages.get(index));
        let page = page.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        into.clone_from(page);
        Ok(())
    }
}

/// The pages of one CPU as they fill.
#[derive(Default)]
struct Ring {
    done: Vec<Vec<u8>>,
    /// Time stamp of the page, and its data so far.
    at_ns: u64,
    data: Vec<u8>,
    /// Time of the last event.
    last_ns: u64,
    /// What was lost before the page: how many, 0 when it is not known.
    lost: Option<u64>,
    /// What the callers of irq_disable and the like are counted from.
    text_start: u64,
}

impl Ring {
    /// Events were lost here.
    fn lose(&mut self, count: Option<u64>) {
        self.flush();
        self.lost = Some(self.lost.unwrap_or(0) + count.unwrap_or(0));
    }

    fn push(&mut self, event: &Event) {
        let Some(record) = record(event, self.text_start) else { return };
        // Times of one CPU ascend; one that does not would wrap.
        let at_ns = event.at_ns.max(self.last_ns);
        let mut bytes = Vec::with_capacity(record.len() + 16);
        let mut delta = if self.data.is_empty() { 0 } else { at_ns - self.last_ns };
        if delta >> DELTA_BITS != 0 {
            let low = (delta & ((1 << DELTA_BITS) - 1)) as u32;
            bytes.extend((30 | low << 5).to_le_bytes());
            bytes.extend(((delta >> DELTA_BITS) as u32).to_le_bytes());
            delta = 0;
        }
        let words = record.len() / 4;
        let kind = if words <= 28 { words as u32 } else { 0 };
        bytes.extend((kind | (delta as u32) << 5).to_le_bytes());
        if kind == 0 {
            bytes.extend((record.len() as u32 + 4).to_le_bytes());
        }
        bytes.extend(record);
        if bytes.len() > PAGE_ROOM {
            return;
        }
        let is_far = delta_is_far(self.last_ns, at_ns);
        if !self.data.is_empty() && (self.data.len() + bytes.len() > PAGE_ROOM || is_far) {
            self.flush();
            return self.push(event);
        }
        if self.data.is_empty() {
            self.at_ns = at_ns;
        }
        self.data.extend(bytes);
        self.last_ns = at_ns;
    }

    fn flush(&mut self) {
        if self.data.is_empty() {
            return;
        }
        let mut page = Vec::with_capacity(PAGE);
        let mut commit = self.data.len() as u64;
        let lost = self.lost.take();
        if let Some(count) = lost {
            commit |= if count > 0 { MISSED | MISSED_STORED } else { MISSED };
        }
        page.extend(self.at_ns.to_le_bytes());
        page.extend(commit.to_le_bytes());
        page.append(&mut self.data);
        if let Some(count) = lost.filter(|&count| count > 0) {
            page.extend(count.to_le_bytes());
        }
        page.resize(PAGE, 0);
        self.done.push(page);
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        self.flush();
        self.done
    }
}

/// Whether two times are too far apart for one page: 59 bits, 18 years.
const fn delta_is_far(from_ns: u64, to_ns: u64) -> bool {
    (to_ns - from_ns) >> (DELTA_BITS + 32) != 0
}

/// The record of an event, a whole number of words. `None`: there is no format for it.
fn record(event: &Event, text_start: u64) -> Option<Vec<u8>> {
    let (kind, values) = kernel::values(&event.what)?;
    let mut bytes = Vec::with_capacity(64);
    bytes.extend(kinds::id(kind)?.to_le_bytes());
    bytes.extend([event.flags, event.preempt]);
    bytes.extend(event.pid.to_le_bytes());
    debug_assert_eq!(bytes.len(), COMMON);
    // Data behind the fields, and where its place stands.
    let mut behind: Vec<(usize, Vec<u8>)> = Vec::new();
    for (field, value) in kind.fields.iter().zip(values) {
        let Some((stored, _)) = kinds::stored(field) else { continue };
        bytes.resize(bytes.len().next_multiple_of(stored.align()), 0);
        let number = match value {
            Value::Number(value) | Value::Symbol(value) => value,
            Value::Tid(tid) => i64::from(tid).cast_unsigned(),
            Value::Offset(caller) => caller.wrapping_sub(text_start),
            Value::OwnCpu => u64::from(event.cpu),
            Value::Text(text) if stored == Stored::Comm => {
                let end = bytes.len() + 16;
                // The kernel's array ends with NUL.
                bytes.extend(&text[..text.len().min(15)]);
                bytes.resize(end, 0);
                continue;
            }
            Value::Text(text) => {
                behind.push((bytes.len(), [text, &[0]].concat()));
                0
            }
            Value::Mask(mask) => {
                behind.push((bytes.len(), mask.to_le_bytes().to_vec()));
                0
            }
            Value::Addresses(addresses) => {
                bytes.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
                continue;
            }
        };
        bytes.extend(&number.to_le_bytes()[..stored.size()]);
    }
    for (at, data) in behind {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let place = (data.len() << 16 | bytes.len()) as u32;
        bytes[at..at + 4].copy_from_slice(&place.to_le_bytes());
        bytes.extend(data);
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Some(bytes)
}
