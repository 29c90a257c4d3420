//! Version 6: one part after the other.

use std::io::{BufReader, Read};

use super::{
    bytes::Bytes,
    compress::Compression,
    error::DatError,
    head::{Buffer, CPUS_MAX, CpuData, Head, OPTION_MAX, SymbolsAt, check_stretch, current_clock},
    read_at::{ReadAt, Stretch},
};

/// The part that could not be there in a file that was never finished.
const UNFINISHED: &str = "Its recording was killed before any event was saved: where the \
     trace.dat.cpu* files are left run `trace-cmd restore`, else record again";

type Part<'a, R> = Bytes<BufReader<Stretch<'a, R>>>;

/// Reads on at an offset.
fn seek<R: ReadAt + ?Sized>(file: &R, at: u64, is_big_endian: bool) -> Part<'_, R> {
    let stretch = Stretch { file, at, end: file.len() };
    Bytes::new(BufReader::with_capacity(4096, stretch), at, is_big_endian)
}

/// Past a text that is not needed here.
fn skip<'a, R: ReadAt + ?Sized>(
    file: &'a R,
    bytes: Part<'a, R>,
    head: &Head,
    size: u64,
    expected: &'static str,
) -> Result<Part<'a, R>, DatError> {
    let at = bytes.at().checked_add(size).filter(|&at| at <= file.len());
    let at = at.ok_or_else(|| DatError::torn(file.len(), expected))?;
    Ok(seek(file, at, head.is_big_endian))
}

/// What stands before the events; the reader is behind the version, byte order and long.
pub(super) fn read<R: ReadAt + ?Sized>(
    file: &R,
    at: u64,
    mut head: Head,
) -> Result<Head, DatError> {
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
    bytes: &mut Bytes<impl Read>,
    head: &mut Head,
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
            let mut option = Bytes::new(data.as_slice(), at, head.is_big_endian);
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
    head: &mut Head,
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
    head: &Head,
    name: String,
    count: u32,
    clock: &str,
) -> Result<Buffer, DatError> {
    let mut data = Vec::new();
    for cpu in 0..count {
        let told_at = bytes.at();
        let at = bytes.u64("where the events of a CPU are")?;
        let size = bytes.u64("the size of the events of a CPU")?;
        check_stretch(at, size, file.len(), told_at)?;
        if size > 0 {
            data.push(CpuData { cpu, at, size });
        }
    }
    // Old files end their table here, and events follow after zeros.
    let size = bytes.u64("the length of the clock").unwrap_or(0);
    let told = if (1..4096).contains(&size) {
        let text = bytes.text(size, 4096, "the clock").unwrap_or_default();
        current_clock(&text)
    } else {
        String::new()
    };
    let clock = if told.is_empty() { clock.to_owned() } else { told };
    let page_bytes = head.page_bytes;
    Ok(Buffer { name, clock, page_bytes, data, compression: Compression::None })
}
