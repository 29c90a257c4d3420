//! Writes version 6, uncompressed: pages are copied as the kernel gave them, so that trace-cmd and
//! KernelShark see what rtproof saw.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write},
    ops::Range,
};

use super::{ReadAt, TraceDat};
use crate::{
    Pages,
    format::{ByteOrder, Formats},
};

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
