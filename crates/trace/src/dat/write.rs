//! Writes version 6, uncompressed: pages are copied as the kernel gave them, so that trace-cmd and
//! KernelShark see what rtproof saw.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write},
    ops::Range,
};

use super::{COMMON, ReadAt, StoredField, TraceDat};
use crate::format::{ByteOrder, Formats};
use crate::kernel::table::{self, FieldValue};
use crate::{Event, EventData, Pages, Window};

/// What stands before the pages of a file.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// The kernel's formats, and the layout of the pages.
    pub formats: &'a Formats,
    /// Bytes of a page, header included.
    pub page_bytes: u32,
    /// Names of the addresses in the events, `function+0x1f/0x80`, by address.
    pub symbols: Option<&'a BTreeMap<u64, String>>,
    /// Names of tasks by thread id.
    pub comms: BTreeMap<i32, String>,
    /// Clock of the time stamps, e.g. `mono`.
    pub clock: &'a str,
    pub uname: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Those of a file that was read.
    pub fn of<R: ReadAt>(dat: &'a TraceDat<R>, page_bytes: u32, clock: &'a str) -> Self {
        let comms = dat.comms().iter().map(|(&pid, comm)| (pid, comm.to_string())).collect();
        Self { formats: dat.formats(), page_bytes, symbols: None, comms, clock, uname: dat.uname() }
    }
}

/// Numbers in the byte order of the file.
struct Out {
    bytes: Vec<u8>,
    is_big_endian: bool,
}

impl Out {
    fn u16(&mut self, value: u16) {
        self.bytes.extend(if self.is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
    }

    fn u32(&mut self, value: usize) -> io::Result<()> {
        let value = u32::try_from(value).map_err(|_| io::Error::other("a part has over 4 GiB"))?;
        self.bytes.extend(if self.is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
        Ok(())
    }

    fn u64(&mut self, value: u64) {
        self.bytes.extend(if self.is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
    }

    fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn option(&mut self, id: u16, data: &[u8]) -> io::Result<()> {
        self.u16(id);
        self.u32(data.len())?;
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

/// Writes a file: for each CPU the pages of a range, oldest first.
///
/// # Errors
/// As `pages` and `into`; when a CPU's range has a page that is not there.
pub fn write(
    parts: &Parts<'_>,
    pages: &mut dyn Pages,
    ranges: &BTreeMap<u32, Range<usize>>,
    into: &mut dyn Write,
) -> io::Result<()> {
    let mut out = head(parts)?;
    let count = ranges.keys().next_back().map_or(1, |&last| last as usize + 1);
    out.u32(count)?;
    let clock = format!("[{}]", parts.clock);
    out.bytes.extend_from_slice(b"options  \0");
    out.option(4, clock.as_bytes())?;
    if let Some(uname) = parts.uname {
        out.option(5, format!("{uname}\0").as_bytes())?;
    }
    out.u16(0);
    out.bytes.extend_from_slice(b"flyrecord\0");
    let page = u64::from(parts.page_bytes.max(1));
    let table_end = out.bytes.len() as u64 + 16 * count as u64 + 8 + clock.len() as u64;
    let start = table_end.div_ceil(page) * page;
    let mut at = start;
    for cpu in 0..count {
        let range = u32::try_from(cpu).ok().and_then(|cpu| ranges.get(&cpu));
        let size = range.map_or(0, |range| range.len() as u64 * page);
        out.u64(at);
        out.u64(size);
        at += size;
    }
    out.text(&clock);
    out.bytes.resize(usize::try_from(start).unwrap_or(usize::MAX), 0);
    into.write_all(&out.bytes)?;
    let mut bytes = Vec::new();
    for (&cpu, range) in ranges {
        for index in range.clone() {
            pages.read(cpu, index, &mut bytes)?;
            bytes.resize(parts.page_bytes as usize, 0);
            into.write_all(&bytes)?;
        }
    }
    Ok(())
}

/// Everything before the number of CPUs.
fn head(parts: &Parts<'_>) -> io::Result<Out> {
    let layout = parts.formats.layout();
    let is_big_endian = layout.order == ByteOrder::Big;
    let mut out = Out { bytes: Vec::new(), is_big_endian };
    out.bytes.extend_from_slice(b"\x17\x08\x44tracing6\0");
    out.bytes.push(u8::from(is_big_endian));
    out.bytes.push(if layout.long_bytes == 4 { 4 } else { 8 });
    out.u32(parts.page_bytes as usize)?;
    out.bytes.extend_from_slice(b"header_page\0");
    out.text(parts.formats.header_page());
    out.bytes.extend_from_slice(b"header_event\0");
    out.text(parts.formats.header_event());
    let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for format in parts.formats.events() {
        systems.entry(&format.system).or_default().push(&format.text);
    }
    let ftrace = systems.remove("ftrace").unwrap_or_default();
    out.u32(ftrace.len())?;
    ftrace.into_iter().for_each(|text| out.text(text));
    out.u32(systems.len())?;
    for (system, texts) in systems {
        out.bytes.extend_from_slice(system.as_bytes());
        out.bytes.push(0);
        out.u32(texts.len())?;
        texts.into_iter().for_each(|text| out.text(text));
    }
    let symbols = parts.symbols.map(symbol_list).unwrap_or_default();
    out.u32(symbols.len())?;
    out.bytes.extend_from_slice(symbols.as_bytes());
    // No printk formats.
    out.u32(0)?;
    let mut comms = String::new();
    for (pid, comm) in &parts.comms {
        let _ = writeln!(comms, "{pid} {}", comm.replace(['\n', '\0'], " "));
    }
    out.text(&comms);
    Ok(out)
}

/// A list in the form of /proc/kallsyms of only the functions that the addresses lie in. Readers
/// take everything up to the next function for part of one, so each has its end marked.
fn symbol_list(symbols: &BTreeMap<u64, String>) -> String {
    let mut marks: BTreeMap<u64, &str> = BTreeMap::new();
    for (&address, text) in symbols {
        let (name, rest) = text.split_once('+').unwrap_or((text, ""));
        // A module follows its symbol.
        let place = rest.split(' ').next().unwrap_or(rest);
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let (offset, size) = place.split_once('/').unwrap_or((place, ""));
        let start = address.wrapping_sub(number(offset).unwrap_or(0));
        let end = start.checked_add(number(size).unwrap_or(0)).filter(|&end| end > address);
        let end = end.unwrap_or_else(|| address.saturating_add(1));
        marks.insert(start, name);
        marks.entry(end).or_insert("not_in_this_file");
    }
    let mut list = String::new();
    for (address, name) in marks {
        let name = name.replace(|letter: char| letter.is_whitespace() || letter == '\0', "_");
        let _ = writeln!(list, "{address:016x} T {name}");
    }
    list
}

// A window as a trace.dat: its events become pages again, so that an old record's spike opens in
// trace-cmd and KernelShark.

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
    let mut formats = Formats::new(super::HEADER_PAGE, ByteOrder::Little).map_err(own)?;
    formats.set_header_event(super::HEADER_EVENT);
    for kind in table::written() {
        if let Some(id) = super::id(kind) {
            formats.add(kind.system, &super::format(id, kind)).map_err(own)?;
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
        EventData::Irqs { caller, .. } | EventData::Preempt { caller, .. } if caller != 0 => {
            Some(caller)
        }
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
    let (kind, values) = table::event_values(&event.what)?;
    let mut bytes = Vec::with_capacity(64);
    bytes.extend(super::id(kind)?.to_le_bytes());
    bytes.extend([event.flags, event.preempt]);
    bytes.extend(event.pid.to_le_bytes());
    debug_assert_eq!(bytes.len(), COMMON);
    // Data behind the fields, and where its place stands.
    let mut behind: Vec<(usize, Vec<u8>)> = Vec::new();
    for (field, value) in kind.fields.iter().zip(values) {
        let Some((stored, _)) = super::stored(field) else { continue };
        bytes.resize(bytes.len().next_multiple_of(stored.align()), 0);
        let number = match value {
            FieldValue::Number(value) | FieldValue::Symbol(value) => value,
            FieldValue::Tid(tid) => i64::from(tid).cast_unsigned(),
            FieldValue::Offset(caller) => caller.wrapping_sub(text_start),
            FieldValue::OwnCpu => u64::from(event.cpu),
            FieldValue::Text(text) if stored == StoredField::Comm => {
                let end = bytes.len() + 16;
                // The kernel's array ends with NUL.
                bytes.extend(&text[..text.len().min(15)]);
                bytes.resize(end, 0);
                continue;
            }
            FieldValue::Text(text) => {
                behind.push((bytes.len(), [text, &[0]].concat()));
                0
            }
            FieldValue::Mask(mask) => {
                behind.push((bytes.len(), mask.to_le_bytes().to_vec()));
                0
            }
            FieldValue::Addresses(addresses) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_in_the_list_has_its_end() {
        let symbols = BTreeMap::from([
            (0x1010, "first+0x10/0x40".to_owned()),
            (0x1020, "first+0x20/0x40".to_owned()),
            (0x1048, "second+0x8/0x10 [module]".to_owned()),
            (0x2000, "bare".to_owned()),
        ]);
        assert_eq!(
            symbol_list(&symbols),
            "0000000000001000 T first\n0000000000001040 T second\n\
             0000000000001050 T not_in_this_file\n0000000000002000 T bare\n\
             0000000000002001 T not_in_this_file\n"
        );
    }
}
