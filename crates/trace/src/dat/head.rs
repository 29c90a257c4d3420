//! What stands before the events, in both versions: formats, names, clock and where the pages are.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use super::DatError;
use crate::event::{Comm, HandlerName};
use crate::format::{ByteOrder, Formats};
use crate::{Event, Window};

/// The kernel's format texts in all; a present kernel with 100 systems has 2 MB.
const FORMATS_MAX: u64 = 8 << 20;

/// Names of tasks in all: 16 million of them do not fit a run.
const COMMS_MAX: u64 = 8 << 20;

/// The texts that events point at; a present kernel has 4 KB.
const STRINGS_MAX: u64 = 4 << 20;

/// The longest option that is read; CPU statistics of one CPU have 150 bytes.
pub(super) const OPTION_MAX: u64 = 1 << 20;

/// Formats that are not understood, listed one by one.
const REFUSED_REPORTED: u32 = 3;

/// More CPUs than Linux can have.
pub(super) const CPUS_MAX: u32 = 1 << 16;

/// Where the pages of one CPU are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuData {
    pub(super) cpu: u32,
    pub(super) at: u64,
    pub(super) size: u64,
}

/// One ring buffer of the file: the top one, or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the instance; empty: the top buffer.
    pub name: String,
    /// Clock of its time stamps as the file names it, e.g. `local`; see [`super::is_monotonic`].
    pub clock: String,
    /// Bytes of a page, header included.
    pub page_bytes: u32,
    pub(super) data: Vec<CpuData>,
    pub(super) compression: Compression,
}

/// What the file knows of a CPU's ring when the recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// Name of the buffer; empty: the top one.
    pub buffer: String,
    pub cpu: u32,
    /// Events overwritten before they were read.
    pub overrun: u64,
    /// Events dropped because the ring was full.
    pub dropped: u64,
}

/// How the counts of the x86-tsc clock become nanoseconds: `(count * multiplier) >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscScale {
    pub multiplier: u32,
    /// Bits to shift by.
    pub shift: u32,
}

impl TscScale {
    /// Makes the times of a window nanoseconds. Those inside events (`expires_ns`) already are.
    pub fn apply(&self, window: &mut Window) {
        for at in [&mut window.from_ns, &mut window.to_ns] {
            *at = self.ns(*at);
        }
        let times = window.events.iter_mut().map(|event: &mut Event| &mut event.at_ns);
        times.for_each(|at| *at = self.ns(*at));
        for lost in &mut window.lost {
            (lost.from_ns, lost.to_ns) = (self.ns(lost.from_ns), self.ns(lost.to_ns));
        }
    }

    /// The nanoseconds of a count.
    pub fn ns(&self, count: u64) -> u64 {
        let scaled = u128::from(count) * u128::from(self.multiplier);
        u64::try_from(scaled.checked_shr(self.shift).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

/// Where the list of symbols is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SymbolsAt {
    pub(super) at: u64,
    /// Bytes in the file.
    pub(super) size: u64,
    pub(super) compression: Compression,
    /// Whether its length stands before it in what is unpacked.
    pub(super) has_length: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DatHead {
    pub(super) version: u32,
    pub(super) is_big_endian: bool,
    pub(super) long_bytes: u8,
    pub(super) page_bytes: u32,
    pub(super) formats: Option<Formats>,
    pub(super) symbols: Option<SymbolsAt>,
    pub(super) comms: BTreeMap<i32, Comm>,
    pub(super) strings: BTreeMap<u64, HandlerName>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) stats: Vec<CpuStat>,
    pub(super) tsc: Option<TscScale>,
    pub(super) clock: String,
    pub(super) uname: Option<String>,
    pub(super) notes: Vec<String>,
    pub(super) cpu_count: Option<u32>,
    formats_bytes: u64,
    formats_refused: u32,
    stats_of: String,
}

impl DatHead {
    /// The start that both versions have.
    pub(super) fn open(
        bytes: &mut NumberReader<impl Read>,
        begins: &[u8],
    ) -> Result<Self, DatError> {
        if begins.len() < 10 || &begins[..10] != b"\x17\x08\x44tracing" {
            return Err(DatError::Foreign { begins: begins[..begins.len().min(10)].to_vec() });
        }
        bytes.take(10, 10, "the magic")?;
        let at = bytes.at();
        let version = bytes.name(8, "the version, e.g. \"6\"")?;
        let version = match version.as_str() {
            "6" => 6,
            "7" => 7,
            _ => {
                return Err(DatError::Bad {
                    at,
                    found: format!("version \"{}\"", version.escape_default()),
                    expected: "version 6 or 7",
                    next: "Convert it: trace-cmd convert --file-version 6 -i IN -o OUT",
                });
            }
        };
        let at = bytes.at();
        let is_big_endian = match bytes.u8("the byte order")? {
            0 => false,
            1 => true,
            other => {
                let found = format!("byte order {other}");
                return Err(DatError::damaged(at, found, "0 (little) or 1 (big endian)"));
            }
        };
        let long_bytes = bytes.u8("the size of long")?;
        if long_bytes != 4 && long_bytes != 8 {
            let found = format!("long of {long_bytes} bytes");
            return Err(DatError::damaged(at + 1, found, "4 or 8"));
        }
        Ok(Self { version, is_big_endian, long_bytes, ..Self::default() })
    }

    /// The size of a page, which is in the byte order of the file.
    pub(super) fn read_page_bytes(
        &mut self,
        bytes: &mut NumberReader<impl Read>,
    ) -> Result<(), DatError> {
        let at = bytes.at();
        self.page_bytes = check_page_bytes(bytes.u32("the size of a page")?, at)?;
        Ok(())
    }

    pub(super) fn read_headers(
        &mut self,
        bytes: &mut NumberReader<impl Read>,
    ) -> Result<(), DatError> {
        bytes.literal("header_page\0", "\"header_page\"")?;
        let size = bytes.u64("the length of header_page")?;
        let at = bytes.at();
        let text = bytes.text(size, 1 << 16, "the text of header_page")?;
        let order = if self.is_big_endian { ByteOrder::Big } else { ByteOrder::Little };
        let formats = Formats::new(&text, order);
        let mut formats = formats
            .map_err(|error| DatError::damaged(at, error.to_string(), "the header of a page"))?;
        bytes.literal("header_event\0", "\"header_event\"")?;
        let size = bytes.u64("the length of header_event")?;
        formats.set_header_event(&bytes.text(size, 1 << 16, "the text of header_event")?);
        self.formats = Some(formats);
        Ok(())
    }

    fn read_format(
        &mut self,
        bytes: &mut NumberReader<impl Read>,
        system: &str,
    ) -> Result<(), DatError> {
        let size = bytes.u64("the length of a format")?;
        let at = bytes.at();
        let text = bytes.text(size, FORMATS_MAX - self.formats_bytes, "the text of a format")?;
        self.formats_bytes += text.len() as u64;
        let formats = self.formats.as_mut();
        let formats =
            formats.ok_or_else(|| DatError::damaged(at, "formats", "the headers first"))?;
        // One that is not understood costs its event, not the file.
        if let Err(error) = formats.add(system, &text) {
            self.formats_refused += 1;
            if self.formats_refused <= REFUSED_REPORTED {
                self.notes.push(error.to_string());
            }
        }
        Ok(())
    }

    pub(super) fn read_ftrace(
        &mut self,
        bytes: &mut NumberReader<impl Read>,
    ) -> Result<(), DatError> {
        for _ in 0..bytes.u32("the number of ftrace formats")? {
            self.read_format(bytes, "ftrace")?;
        }
        Ok(())
    }

    pub(super) fn read_events(
        &mut self,
        bytes: &mut NumberReader<impl Read>,
    ) -> Result<(), DatError> {
        for _ in 0..bytes.u32("the number of event systems")? {
            let system = bytes.name(256, "the name of a system")?;
            for _ in 0..bytes.u32("the number of events of a system")? {
                self.read_format(bytes, &system)?;
            }
        }
        Ok(())
    }

    pub(super) fn read_comms(
        &mut self,
        bytes: &mut NumberReader<impl Read>,
    ) -> Result<(), DatError> {
        let size = bytes.u64("the length of the names of tasks")?;
        let text = bytes.take(size, COMMS_MAX, "the names of tasks")?;
        for line in text.split(|&byte| byte == b'\n') {
            let mut parts = line.splitn(2, |&byte| byte == b' ');
            let pid = parts.next().and_then(|pid| std::str::from_utf8(pid).ok()?.parse().ok());
            if let (Some(pid), Some(comm)) = (pid, parts.next()) {
                self.comms.insert(pid, Comm::of(comm));
            }
        }
        Ok(())
    }

    /// The texts that events only point at, such as the reasons of Arm's interrupts between CPUs.
    pub(super) fn read_strings(
        &mut self,
        bytes: &mut NumberReader<impl Read>,
    ) -> Result<(), DatError> {
        let size = u64::from(bytes.u32("the length of the printk formats")?);
        let text = bytes.text(size, STRINGS_MAX, "the printk formats")?;
        for line in text.lines() {
            let Some((address, text)) = line.split_once(':') else { continue };
            let address = address.trim().strip_prefix("0x");
            let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let text = text.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            if let (Some(address), Some(text)) = (address, text) {
                self.strings.insert(address, HandlerName::from(text));
            }
        }
        Ok(())
    }

    /// An option that both versions have.
    pub(super) fn take_option(&mut self, id: u16, data: &[u8]) {
        let text = || {
            let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
            String::from_utf8_lossy(&data[..end]).trim().to_owned()
        };
        match id {
            1 => self.note("a date offset (option DATE)"),
            2 => self.take_stat(&text()),
            4 if !text().is_empty() => self.clock = current_clock(&text()),
            5 => self.uname = Some(text()),
            7 => self.note("a fixed time offset (option OFFSET)"),
            8 => self.cpu_count = self.number(data),
            12 => self.note("the offset between a guest and its host (option TIME_SHIFT)"),
            14 if data.len() >= 8 => {
                let multiplier = self.number(&data[..4]).unwrap_or(0);
                let shift = self.number(&data[4..8]).unwrap_or(0);
                if multiplier != 0 {
                    self.tsc = Some(TscScale { multiplier, shift });
                }
            }
            _ => {}
        }
    }

    fn number(&self, data: &[u8]) -> Option<u32> {
        let bytes: [u8; 4] = data.get(..4)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn note(&mut self, what: &str) {
        let note = format!("{what} is not applied: times are those of the trace's own clock");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The statistics of one CPU, or the name of the buffer that the following ones belong to.
    fn take_stat(&mut self, text: &str) {
        if let Some(name) = text.strip_prefix("Buffer:") {
            name.trim().clone_into(&mut self.stats_of);
            return;
        }
        let mut stat = CpuStat { buffer: self.stats_of.clone(), ..CpuStat::default() };
        let mut is_one = false;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let Ok(value) = value.trim().parse::<u64>() else { continue };
            match key.trim() {
                "CPU" => {
                    stat.cpu = u32::try_from(value).unwrap_or(u32::MAX);
                    is_one = true;
                }
                "overrun" => stat.overrun = value,
                "dropped events" => stat.dropped = value,
                _ => {}
            }
        }
        if is_one && self.stats.len() < CPUS_MAX as usize {
            self.stats.push(stat);
        }
    }
}

/// A size that a page of the kernel's ring can have.
pub(super) fn check_page_bytes(bytes: u32, at: u64) -> Result<u32, DatError> {
    if !(256..=4 << 20).contains(&bytes) {
        let found = format!("pages of {bytes} bytes");
        return Err(DatError::damaged(at, found, "256 bytes to 4 MiB"));
    }
    Ok(bytes)
}

/// The chosen one of `local [mono] boot`.
pub(super) fn current_clock(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    chosen.unwrap_or(text).trim().to_owned()
}

/// The stretch of a CPU must be in the file.
pub(super) fn check_stretch(at: u64, size: u64, len: u64, stated_at: u64) -> Result<(), DatError> {
    if at.checked_add(size).is_none_or(|end| end > len) {
        return Err(DatError::Bad {
            at: stated_at,
            found: format!("{size} bytes of events at {at}, in a file of {len} bytes"),
            expected: "events inside the file",
            next: super::TORN,
        });
    }
    Ok(())
}

// Numbers and texts out of a stretch of a file or out of what was compressed in it.

/// A stream of the file's numbers in its byte order.
pub(super) struct NumberReader<R> {
    from: R,
    /// Where the next byte is: in the file, or for compressed sections where they begin plus how
    /// far they have been unpacked.
    at: u64,
    is_big_endian: bool,
}

impl<R: Read> NumberReader<R> {
    pub(super) const fn new(from: R, at: u64, is_big_endian: bool) -> Self {
        Self { from, at, is_big_endian }
    }

    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn into_inner(self) -> R {
        self.from
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], DatError> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).map_err(|error| self.error(error, expected))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn error(&self, error: io::Error, expected: &'static str) -> DatError {
        match DatError::reading(self.at, error) {
            DatError::Bad { next: super::TORN, .. } => DatError::torn(self.at, expected),
            other => other,
        }
    }

    pub(super) fn u8(&mut self, expected: &'static str) -> Result<u8, DatError> {
        Ok(self.array::<1>(expected)?[0])
    }

    pub(super) fn u16(&mut self, expected: &'static str) -> Result<u16, DatError> {
        let bytes = self.array(expected)?;
        Ok(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    pub(super) fn u32(&mut self, expected: &'static str) -> Result<u32, DatError> {
        let bytes = self.array(expected)?;
        Ok(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(super) fn u64(&mut self, expected: &'static str) -> Result<u64, DatError> {
        let bytes = self.array(expected)?;
        Ok(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// So many bytes, at most `limit`. Memory grows with what is there, not with what is claimed.
    pub(super) fn take(
        &mut self,
        count: u64,
        limit: u64,
        expected: &'static str,
    ) -> Result<Vec<u8>, DatError> {
        if count > limit {
            let found = format!("a length of {count} bytes, more than {limit}");
            return Err(DatError::damaged(self.at, found, expected));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.from).take(count).read_to_end(&mut bytes);
        read.map_err(|error| self.error(error, expected))?;
        if bytes.len() as u64 != count {
            return Err(DatError::torn(self.at + bytes.len() as u64, expected));
        }
        self.at += count;
        Ok(bytes)
    }

    /// A text of so many bytes.
    pub(super) fn text(
        &mut self,
        count: u64,
        limit: u64,
        expected: &'static str,
    ) -> Result<String, DatError> {
        let bytes = self.take(count, limit, expected)?;
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// A text up to its NUL.
    pub(super) fn name(
        &mut self,
        limit: usize,
        expected: &'static str,
    ) -> Result<String, DatError> {
        let mut bytes = Vec::new();
        loop {
            match self.u8(expected)? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                _ if bytes.len() == limit => {
                    let found = format!("a text of more than {limit} bytes");
                    return Err(DatError::damaged(self.at, found, expected));
                }
                byte => bytes.push(byte),
            }
        }
    }

    /// Consumes exactly the bytes of `text`, or fails.
    pub(super) fn literal(&mut self, text: &str, expected: &'static str) -> Result<(), DatError> {
        let at = self.at;
        let found = self.take(text.len() as u64, text.len() as u64, expected)?;
        if found != text.as_bytes() {
            let found = format!("\"{}\"", String::from_utf8_lossy(&found).escape_default());
            return Err(DatError::damaged(at, found, expected));
        }
        Ok(())
    }
}

// What version 7 compresses: sections whole, trace data in chunks.

/// The largest window of a frame: what unpacking may keep of what it has unpacked. trace-cmd writes
/// frames of known size, whose window is at most that; its largest is the list of symbols.
const WINDOW_MAX: u64 = 16 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    /// As zlib does it.
    Zlib,
    /// As zstd does it.
    Zstd,
}

impl Compression {
    /// By the name in the file, which is at `at`.
    pub(super) fn named(name: &str, at: u64) -> Result<Self, DatError> {
        match name {
            "none" => Ok(Self::None),
            "zlib" => Ok(Self::Zlib),
            "zstd" => Ok(Self::Zstd),
            _ => Err(DatError::Bad {
                at,
                found: format!("compression \"{}\"", name.escape_default()),
                expected: "none, zlib or zstd",
                next: "Convert it: trace-cmd convert --compression none -i IN -o OUT",
            }),
        }
    }

    /// The unpacked bytes of a stretch that begins at `at`.
    pub(super) fn unpack<'a>(
        self,
        packed: impl Read + 'a,
        at: u64,
    ) -> Result<Box<dyn Read + 'a>, DatError> {
        Ok(match self {
            Self::None => Box::new(packed),
            Self::Zlib => Box::new(flate2::read::ZlibDecoder::new(packed)),
            Self::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(
                    packed, WINDOW_MAX,
                );
                Box::new(decoder.map_err(|error| {
                    DatError::damaged(at, error.to_string(), "a zstd frame of at most 16 MiB")
                })?)
            }
        })
    }
}
