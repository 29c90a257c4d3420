//! What differs between versions 6 and 7 of trace.dat.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufReader, Read},
};

use super::head::{
    Buffer, CPUS_MAX, Compression, CpuData, DatHead, NumberReader, OPTION_MAX, SymbolsAt,
    check_page_bytes, check_stretch, current_clock,
};
use super::{DatError, FileStretch, ReadAt};

// Version 6: one part after the other.

/// The part that could not be there in a file that was never finished.
const UNFINISHED: &str = "Its recording was killed before any event was saved: where the \
     trace.dat.cpu* files are left run `trace-cmd restore`, else record again";

type Part<'a, R> = NumberReader<BufReader<FileStretch<'a, R>>>;

/// Reads on at an offset.
fn seek<R: ReadAt + ?Sized>(file: &R, at: u64, is_big_endian: bool) -> Part<'_, R> {
    let stretch = FileStretch { file, at, end: file.len() };
    NumberReader::new(BufReader::with_capacity(4096, stretch), at, is_big_endian)
}

/// Past a text that is not needed here.
fn skip<'a, R: ReadAt + ?Sized>(
    file: &'a R,
    bytes: Part<'a, R>,
    head: &DatHead,
    size: u64,
    expected: &'static str,
) -> Result<Part<'a, R>, DatError> {
    let at = bytes.at().checked_add(size).filter(|&at| at <= file.len());
    let at = at.ok_or_else(|| DatError::torn(file.len(), expected))?;
    Ok(seek(file, at, head.is_big_endian))
}

/// What stands before the events; the reader is behind the version, byte order and long.
pub(super) fn read_v6<R: ReadAt + ?Sized>(
    file: &R,
    at: u64,
    mut head: DatHead,
) -> Result<DatHead, DatError> {
    let mut bytes = seek(file, at, head.is_big_endian);
    head.read_page_bytes(&mut bytes)?;
    head.read_headers(&mut bytes)?;
    head.read_ftrace(&mut bytes)?;
    head.read_events(&mut bytes)?;
    let size = u64::from(bytes.u32("the length of the symbols")?);
    if size > 0 {
        let at = bytes.at();
        let compression = Compression::None;
        head.symbols = Some(SymbolsAt { at, size, compression, has_length: false });
    }
    let mut bytes = skip(file, bytes, &head, size, "the symbols")?;
    head.read_strings(&mut bytes)?;
    head.read_comms(&mut bytes)?;
    let at = bytes.at();
    let count = bytes.u32("the number of CPUs");
    let count = count.map_err(|_| unfinished(at))?;
    if count > CPUS_MAX {
        return Err(DatError::damaged(at, format!("{count} CPUs"), "at most 65536"));
    }
    let mut part =
        bytes.take(10, 10, "\"options\" or \"flyrecord\"").map_err(|_| unfinished(at))?;
    let mut instances = Vec::new();
    if part == *b"options  \0" {
        instances = read_options(&mut bytes, &mut head)?;
        let at = bytes.at();
        part = bytes.take(10, 10, "\"flyrecord\"").map_err(|_| unfinished(at))?;
    }
    read_top(file, &mut bytes, &mut head, &part, count)?;
    for (name, at) in instances {
        let mut bytes = seek(file, at, head.is_big_endian);
        bytes.literal("flyrecord\0", "\"flyrecord\" of an instance")?;
        let clock = head.clock.clone();
        let buffer = read_buffer(file, &mut bytes, &head, name, count, &clock)?;
        head.buffers.push(buffer);
    }
    Ok(head)
}

fn unfinished(at: u64) -> DatError {
    let found = "the file ends before the table of CPUs".to_owned();
    DatError::Bad { at, found, expected: "\"flyrecord\" and where events are", next: UNFINISHED }
}

/// The options; gives the instances by name and where each is.
fn read_options(
    bytes: &mut NumberReader<impl Read>,
    head: &mut DatHead,
) -> Result<Vec<(String, u64)>, DatError> {
    let mut instances = Vec::new();
    loop {
        let id = bytes.u16("an option")?;
        if id == 0 {
            return Ok(instances);
        }
        let size = u64::from(bytes.u32("the length of an option")?);
        let at = bytes.at();
        let data = bytes.take(size, OPTION_MAX, "an option")?;
        if id == 3 {
            if instances.len() == 1000 {
                return Err(DatError::damaged(at, "more than 1000 instances", "at most 1000"));
            }
            let mut option = NumberReader::new(data.as_slice(), at, head.is_big_endian);
            let at = option.u64("where an instance is")?;
            instances.push((option.name(256, "the name of an instance")?, at));
        } else {
            head.take_option(id, &data);
        }
    }
}

/// The top buffer, whose table stands at the end of the head.
fn read_top<R: ReadAt + ?Sized>(
    file: &R,
    bytes: &mut Part<'_, R>,
    head: &mut DatHead,
    part: &[u8],
    count: u32,
) -> Result<(), DatError> {
    let at = bytes.at() - 10;
    match part {
        b"flyrecord\0" => {}
        b"latency  \0" => {
            return Err(DatError::Bad {
                at,
                found: "the text of a latency tracer".into(),
                expected: "\"flyrecord\" and events",
                next: "Give its text: trace-cmd report FILE > trace.txt",
            });
        }
        other => {
            let found = format!("\"{}\"", String::from_utf8_lossy(other).escape_default());
            return Err(DatError::damaged(at, found, "\"flyrecord\""));
        }
    }
    let buffer = read_buffer(file, bytes, head, String::new(), count, "")?;
    if head.clock.is_empty() {
        buffer.clock.clone_into(&mut head.clock);
    }
    head.buffers.push(buffer);
    Ok(())
}

/// The table of a buffer: offset and size of each CPU, then the clock where one is written.
fn read_buffer<R: ReadAt + ?Sized>(
    file: &R,
    bytes: &mut Part<'_, R>,
    head: &DatHead,
    name: String,
    count: u32,
    clock: &str,
) -> Result<Buffer, DatError> {
    let mut data = Vec::new();
    for cpu in 0..count {
        let stated_at = bytes.at();
        let at = bytes.u64("where the events of a CPU are")?;
        let size = bytes.u64("the size of the events of a CPU")?;
        check_stretch(at, size, file.len(), stated_at)?;
        if size > 0 {
            data.push(CpuData { cpu, at, size });
        }
    }
    // Old files end their table here, and events follow after zeros.
    let size = bytes.u64("the length of the clock").unwrap_or(0);
    let recorded = if (1..4096).contains(&size) {
        let text = bytes.text(size, 4096, "the clock").unwrap_or_default();
        current_clock(&text)
    } else {
        String::new()
    };
    let clock = if recorded.is_empty() { clock.to_owned() } else { recorded };
    let page_bytes = head.page_bytes;
    Ok(Buffer { name, clock, page_bytes, data, compression: Compression::None })
}

// Version 7: sections that options point at, whole or compressed.

/// The bytes of a section's header.
const SECTION: u64 = 16;

/// More lists of options than any file has; each is read once.
const LISTS_MAX: usize = 1000;

/// A section, and where its bytes are.
struct Section {
    at: u64,
    size: u64,
    compression: Compression,
}

struct File<'a, R: ?Sized> {
    file: &'a R,
    compression: Compression,
    is_big_endian: bool,
}

/// What stands before the events; `at` is behind the version, byte order and long.
pub(super) fn read_v7<R: ReadAt + ?Sized>(
    file: &R,
    at: u64,
    mut head: DatHead,
) -> Result<DatHead, DatError> {
    let stretch = FileStretch { file, at, end: file.len() };
    let mut bytes =
        NumberReader::new(BufReader::with_capacity(256, stretch), at, head.is_big_endian);
    head.read_page_bytes(&mut bytes)?;
    let at = bytes.at();
    let name = bytes.name(64, "the name of the compression")?;
    let compression = Compression::named(&name, at)?;
    bytes.name(64, "the version of the compression")?;
    let stated_at = bytes.at();
    let mut at = bytes.u64("where the options are")?;
    if at == 0 {
        return Err(DatError::Bad {
            at: stated_at,
            found: "no options".into(),
            expected: "where they are",
            next: "Its recording was killed: where the trace.dat.cpu* files are left run \
                   `trace-cmd restore`, else record again",
        });
    }
    let file = File { file, compression, is_big_endian: head.is_big_endian };
    let mut been = BTreeSet::new();
    let mut sections = BTreeMap::new();
    while at != 0 {
        if !been.insert(at) || been.len() > LISTS_MAX {
            return Err(DatError::damaged(at, "options that were read before", "new ones"));
        }
        at = file.read_options(at, &mut head, &mut sections)?;
    }
    // By number, so that the headers come before the formats.
    for (id, at) in sections {
        match id {
            16 => head.read_headers(&mut file.open(at, id)?)?,
            17 => head.read_ftrace(&mut file.open(at, id)?)?,
            18 => head.read_events(&mut file.open(at, id)?)?,
            19 => {
                let Section { at, size, compression } = file.section(at, id)?;
                head.symbols = Some(SymbolsAt { at, size, compression, has_length: true });
            }
            20 => head.read_strings(&mut file.open(at, id)?)?,
            _ => head.read_comms(&mut file.open(at, id)?)?,
        }
    }
    Ok(head)
}

impl<'a, R: ReadAt + ?Sized> File<'a, R> {
    /// The section at `at`, which must be of this kind.
    fn section(&self, at: u64, id: u16) -> Result<Section, DatError> {
        let stretch = FileStretch { file: self.file, at, end: self.file.len() };
        let mut bytes = NumberReader::new(stretch, at, self.is_big_endian);
        let found = bytes.u16("a section")?;
        if found != id {
            return Err(DatError::damaged(at, format!("section {found}"), wanted(id)));
        }
        let is_packed = bytes.u16("the flags of a section")? & 1 != 0;
        bytes.u32("the name of a section")?;
        let size = bytes.u64("the length of a section")?;
        let start = at + SECTION;
        if start.checked_add(size).is_none_or(|end| end > self.file.len()) {
            return Err(DatError::torn(self.file.len(), wanted(id)));
        }
        let compression = if is_packed { self.compression } else { Compression::None };
        Ok(Section { at: start, size, compression })
    }

    /// Opens the bytes of a section, unpacked.
    fn open(
        &self,
        at: u64,
        id: u16,
    ) -> Result<NumberReader<BufReader<Box<dyn Read + 'a>>>, DatError> {
        let section = self.section(at, id)?;
        let unpacked =
            unpack(self.file, section.at, section.size, section.compression, self.is_big_endian)?;
        Ok(NumberReader::new(
            BufReader::with_capacity(4096, unpacked),
            section.at,
            self.is_big_endian,
        ))
    }

    /// One list of options; gives where the next is, 0: there is none.
    fn read_options(
        &self,
        at: u64,
        head: &mut DatHead,
        sections: &mut BTreeMap<u16, u64>,
    ) -> Result<u64, DatError> {
        let mut bytes = self.open(at, 0)?;
        loop {
            let id = bytes.u16("an option")?;
            let size = u64::from(bytes.u32("the length of an option")?);
            let at = bytes.at();
            let data = bytes.take(size, OPTION_MAX, "an option")?;
            let mut option = NumberReader::new(data.as_slice(), at, self.is_big_endian);
            match id {
                0 => return option.u64("where the next options are"),
                3 => {
                    let buffer = self.read_buffer(&mut option, size, head.page_bytes)?;
                    if head.buffers.len() == LISTS_MAX {
                        return Err(DatError::damaged(at, "more than 1000 buffers", "fewer"));
                    }
                    head.buffers.push(buffer);
                }
                16..=21 => {
                    sections.insert(id, option.u64(WHERE)?);
                }
                22 => head.notes.push("the text of a latency tracer in it is not read".into()),
                _ => head.take_option(id, &data),
            }
        }
    }

    fn read_buffer(
        &self,
        option: &mut NumberReader<&[u8]>,
        size: u64,
        page_bytes: u32,
    ) -> Result<Buffer, DatError> {
        let began = option.at();
        let section = option.u64(WHERE)?;
        let name = option.name(256, "the name of a buffer")?;
        let clock = option.name(256, "the clock of a buffer")?;
        let at = option.at();
        // trace-cmd 3.0 did not write the size of a page.
        let left = size - (at - began);
        let has_page = left % 20 == 8;
        let page_bytes = if has_page {
            check_page_bytes(option.u32("the size of a page")?, at)?
        } else {
            page_bytes
        };
        let count = option.u32("the number of CPUs")?;
        if count > CPUS_MAX {
            return Err(DatError::damaged(at, format!("{count} CPUs"), "at most 65536"));
        }
        let mut data = Vec::new();
        for _ in 0..count {
            let stated_at = option.at();
            let cpu = option.u32("a CPU")?;
            let at = option.u64("where the events of a CPU are")?;
            let size = option.u64("the size of the events of a CPU")?;
            check_stretch(at, size, self.file.len(), stated_at)?;
            if size > 0 {
                data.push(CpuData { cpu, at, size });
            }
        }
        let compression =
            if data.is_empty() { Compression::None } else { self.section(section, 3)?.compression };
        Ok(Buffer { name, clock, page_bytes, data, compression })
    }
}

const WHERE: &str = "where a section is";

const fn wanted(id: u16) -> &'static str {
    match id {
        0 => "options (section 0)",
        3 => "events (section 3)",
        16 => "headers (section 16)",
        17 => "ftrace formats (section 17)",
        18 => "event formats (section 18)",
        19 => "symbols (section 19)",
        20 => "printk formats (section 20)",
        _ => "names of tasks (section 21)",
    }
}

/// A stretch of the file, unpacked: compressed ones begin with both lengths.
pub(super) fn unpack<'a, R: ReadAt + ?Sized>(
    file: &'a R,
    at: u64,
    size: u64,
    compression: Compression,
    is_big_endian: bool,
) -> Result<Box<dyn Read + 'a>, DatError> {
    let end = at + size;
    if compression == Compression::None {
        return Ok(Box::new(FileStretch { file, at, end }));
    }
    let mut bytes = NumberReader::new(FileStretch { file, at, end }, at, is_big_endian);
    let packed = u64::from(bytes.u32("the packed length")?);
    let unpacked = u64::from(bytes.u32("the unpacked length")?);
    let at = bytes.at();
    if packed > end - at {
        let found = format!("{packed} packed bytes in a section of {size}");
        return Err(DatError::damaged(at, found, "no more than the section has"));
    }
    let stretch = BufReader::with_capacity(1 << 14, FileStretch { file, at, end: at + packed });
    Ok(Box::new(compression.unpack(stretch, at)?.take(unpacked)))
}
