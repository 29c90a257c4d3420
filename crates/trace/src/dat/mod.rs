//! The trace.dat files of trace-cmd and KernelShark, versions 6 and 7: read here without unpacking
//! more than is asked for, and written (version 6) so that those tools open what rtproof found.

mod head;
mod pages;
#[cfg(test)]
mod tests;
mod versions;
mod write;

pub use head::{Buffer, Compression, CpuStat, TscScale};
pub use pages::DatPages;
pub use write::{Parts, write, write_window};

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, BufRead, BufReader, Read},
};

use head::{DatHead, NumberReader};

use crate::event::{Comm, HandlerName};
use crate::format::Formats;
use crate::kernel::codec::EventField;
use crate::kernel::table::{self, EventKind};
use crate::{Decoder, EventBrief, Pages, RingPage};

/// An open trace.dat file: what stands before its events.
#[derive(Debug)]
pub struct TraceDat<R> {
    file: R,
    head: DatHead,
    formats: Formats,
}

impl<R: ReadAt> TraceDat<R> {
    /// Reads what stands before the events.
    ///
    /// # Errors
    /// When the file is torn, damaged or of another kind: where, what was expected, what to do.
    pub fn open(file: R) -> Result<Self, DatError> {
        let mut begins = [0; 10];
        let mut stretch = FileStretch { file: &file, at: 0, end: file.len() };
        let mut count = 0;
        while count < begins.len() {
            match stretch.read(&mut begins[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(source) => return Err(DatError::Io { at: count as u64, source }),
            }
        }
        let stretch = FileStretch { file: &file, at: 0, end: file.len() };
        // Single bytes alone until the byte order is known.
        let mut bytes = NumberReader::new(BufReader::with_capacity(64, stretch), 0, false);
        let head = DatHead::open(&mut bytes, &begins[..count])?;
        let at = bytes.at();
        let mut head = match head.version {
            6 => versions::read_v6(&file, at, head)?,
            _ => versions::read_v7(&file, at, head)?,
        };
        let Some(formats) = head.formats.take().filter(|all| all.events().next().is_some()) else {
            return Err(DatError::damaged(at, "no formats of events", "the kernel's formats"));
        };
        Ok(Self { file, head, formats })
    }

    /// 6 or 7.
    pub const fn version(&self) -> u32 {
        self.head.version
    }

    /// Whether the machine of the trace is big endian.
    pub const fn is_big_endian(&self) -> bool {
        self.head.is_big_endian
    }

    /// Bytes of `long` in programs of that machine; the kernel's is in the header of a page.
    pub const fn long_bytes(&self) -> u8 {
        self.head.long_bytes
    }

    /// The formats of all events that its kernel knew.
    pub const fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Names of tasks by thread id, as they were when the recording ended.
    pub const fn comms(&self) -> &BTreeMap<i32, Comm> {
        &self.head.comms
    }

    /// Texts that events point at, by address: for [`crate::Decoder::with_strings`].
    pub const fn strings(&self) -> &BTreeMap<u64, HandlerName> {
        &self.head.strings
    }

    /// Kernel and machine, where the file says.
    pub fn uname(&self) -> Option<&str> {
        self.head.uname.as_deref()
    }

    /// How counts of the x86-tsc clock become nanoseconds; `None`: times are nanoseconds.
    pub const fn tsc(&self) -> Option<TscScale> {
        self.head.tsc
    }

    /// What the file holds that is not used.
    pub fn notes(&self) -> &[String] {
        &self.head.notes
    }

    /// What was lost, by CPU.
    pub fn stats(&self) -> &[CpuStat] {
        &self.head.stats
    }

    /// The buffers: the top one and the instances.
    pub fn buffers(&self) -> &[Buffer] {
        &self.head.buffers
    }

    /// The buffer with the most bytes: the default.
    pub fn main_buffer(&self) -> Option<&Buffer> {
        let bytes = |buffer: &Buffer| buffer.data.iter().map(|data| data.size).sum::<u64>();
        // Of equals the first.
        let fullest = self.head.buffers.iter().rev().max_by_key(|buffer| bytes(buffer))?;
        (bytes(fullest) > 0).then_some(fullest)
    }

    /// The pages of a buffer.
    ///
    /// # Errors
    /// When its chunks cannot be followed to their end.
    pub fn pages(&self, buffer: &Buffer) -> Result<DatPages<'_, R>, DatError> {
        DatPages::open(&self.file, buffer, self.head.is_big_endian)
    }

    /// Names of kernel addresses: reads the whole list, a few megabytes.
    pub fn symbols(&self) -> Result<DatSymbols, DatError> {
        let Some(place) = self.head.symbols else { return Ok(DatSymbols::default()) };
        let is_big_endian = self.head.is_big_endian;
        let text =
            versions::unpack(&self.file, place.at, place.size, place.compression, is_big_endian)?;
        let mut bytes = NumberReader::new(BufReader::new(text), place.at, is_big_endian);
        let length = if place.has_length {
            u64::from(bytes.u32("the length of the symbols")?)
        } else {
            place.size
        };
        DatSymbols::read(bytes.into_inner().take(length), place.at)
    }
}

impl Buffer {
    pub fn cpus(&self) -> Vec<u32> {
        self.data.iter().map(|data| data.cpu).collect()
    }
}

// What clock a trace is on, by what is in it: `trace-cmd extract` writes `local` for an instance,
// whatever its clock was.

/// Pages of each CPU that are looked at.
const PAGES_MAX: usize = 64;

/// From the interrupt's reading of the clock to the time stamp of the event it is in.
const READING_NS: u64 = 20_000;

/// Whether the times of a trace are of CLOCK_MONOTONIC: those of timer interrupts follow the clock
/// as these read it. `None`: no such event is at the start of it.
pub fn is_monotonic(pages: &mut dyn Pages, decoder: &Decoder) -> io::Result<Option<bool>> {
    let mut nearest_ns: Option<u64> = None;
    let mut bytes = Vec::new();
    for cpu in pages.cpus().to_vec() {
        for index in 0..pages.count(cpu).min(PAGES_MAX) {
            pages.read(cpu, index, &mut bytes)?;
            let Ok(page) = RingPage::parse(decoder.layout(), &bytes) else { continue };
            for raw in page.records().map_while(Result::ok) {
                let EventBrief::TimerExpire { now_ns, .. } = decoder.brief(&raw) else { continue };
                // Timers of other clocks are far away.
                let off_ns = raw.at_ns.checked_sub(now_ns).unwrap_or(u64::MAX);
                nearest_ns = Some(nearest_ns.map_or(off_ns, |nearest| nearest.min(off_ns)));
            }
        }
    }
    Ok(nearest_ns.map(|nearest| nearest <= READING_NS))
}

/// What is wrong with a trace.dat file.
#[derive(Debug, thiserror::Error)]
pub enum DatError {
    /// It could not be read.
    #[error("offset {at}: {source}; try a copy of the file on this machine")]
    Io {
        /// Offset in the file, bytes.
        at: u64,
        source: io::Error,
    },
    /// It is another kind of file.
    #[error(
        "begins with {begins:02x?}; expected 17 08 44 \"tracing\": not a trace.dat file. \
         Record one with `trace-cmd record`"
    )]
    Foreign {
        /// The first bytes of the file.
        begins: Vec<u8>,
    },
    /// Something else is there than should be.
    #[error("offset {at}: {found}; expected {expected}. {next}")]
    Bad {
        /// Where in the file.
        at: u64,
        found: String,
        expected: &'static str,
        /// The next step to take.
        next: &'static str,
    },
}

/// The next step for a file that ends before its time.
const TORN: &str =
    "The file is torn: copy it again; after a killed `trace-cmd record` run `trace-cmd restore`";

/// The next step for a complete file.
const DAMAGED: &str =
    "The file is damaged: see whether `trace-cmd report` reads it, or record again";

impl DatError {
    fn damaged(at: u64, found: impl Into<String>, expected: &'static str) -> Self {
        Self::Bad { at, found: found.into(), expected, next: DAMAGED }
    }

    fn torn(at: u64, expected: &'static str) -> Self {
        Self::Bad { at, found: "the file ends".into(), expected, next: TORN }
    }

    /// What happened while the bytes of a section were read.
    fn reading(at: u64, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::torn(at, "more bytes"),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                Self::damaged(at, source.to_string(), "compressed bytes")
            }
            _ => Self::Io { at, source },
        }
    }
}

// The kernel events as a trace.dat of rtproof declares them, with names and fields as the kernel
// has them, so that readers take them for the kernel's.

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredField {
    /// A number of so many bytes.
    Number(u8),
    /// `char[16]`.
    Comm,
    /// `__data_loc char[]`: a text behind the fields.
    Text,
    /// `__data_loc cpumask_t`: a mask behind the fields.
    Mask,
    /// Addresses to the end of the record.
    Addresses,
}

/// Numbers that the kernel gives to events, not to its own entries.
const FIRST_ID: u16 = 100;

/// Bytes of the common fields.
const COMMON: usize = 8;

/// The number of an event.
fn id(kind: &EventKind) -> Option<u16> {
    let place = table::written().position(|other| other.name == kind.name)?;
    Some(FIRST_ID + u16::try_from(place).ok()?)
}

/// How a 64-bit kernel stores a field, and whether it is signed; `None`: it is not stored.
fn stored(field: &EventField) -> Option<(StoredField, bool)> {
    let (declared, _) = field.declared.rsplit_once(' ')?;
    let is_signed = matches!(declared, "int" | "pid_t" | "long" | "s32" | "s64");
    let stored = match declared {
        "" => return None,
        "char" => StoredField::Comm,
        "__data_loc char[]" => StoredField::Text,
        "__data_loc cpumask_t" => StoredField::Mask,
        _ if field.declared.ends_with(']') => StoredField::Addresses,
        "void *" | "long" | "unsigned long" | "s64" | "u64" => StoredField::Number(8),
        _ => StoredField::Number(4),
    };
    Some((stored, is_signed))
}

impl StoredField {
    const fn align(self) -> usize {
        match self {
            Self::Number(bytes) => bytes as usize,
            Self::Comm => 1,
            Self::Text | Self::Mask => 4,
            Self::Addresses => 8,
        }
    }

    const fn size(self) -> usize {
        match self {
            Self::Number(bytes) => bytes as usize,
            Self::Comm => 16,
            Self::Text | Self::Mask => 4,
            // As the kernel declares it; there may be fewer, or more.
            Self::Addresses => 64,
        }
    }
}

/// The format of an event in the form of the kernel's files.
fn format(id: u16, kind: &EventKind) -> String {
    let mut text = format!(
        "name: {}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
        kind.name
    );
    let mut at = COMMON;
    for field in kind.fields {
        let Some((stored, is_signed)) = stored(field) else { continue };
        let declared = field.declared;
        at = at.next_multiple_of(stored.align());
        let _ = writeln!(
            text,
            "\tfield:{declared};\toffset:{at};\tsize:{};\tsigned:{};",
            stored.size(),
            u8::from(is_signed)
        );
        at += stored.size();
    }
    let _ = write!(text, "\nprint fmt: {}\n", kind.print);
    text
}

/// The header of a page as 64-bit kernels have it.
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
     \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
     \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
     \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// The header of an event.
const HEADER_EVENT: &str = "# compressed entry header\n\
     \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
     \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
     \tdata max type_len  == 28\n";

// Bytes at an offset: how a file of any size is read without this crate opening one.

/// Something that has bytes at offsets: a file, or bytes in memory.
pub trait ReadAt {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Reads from `at` on into `into` and says how many bytes; 0: nothing is there.
    ///
    /// # Errors
    /// As the file.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Whether there is nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ReadAt for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(<[u8]>::len(self));
        let count = into.len().min(<[u8]>::len(self) - from);
        into[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(at, into)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(at, into)
    }
}

/// A stretch of it as a stream.
struct FileStretch<'a, R: ?Sized> {
    file: &'a R,
    at: u64,
    end: u64,
}

impl<R: ReadAt + ?Sized> Read for FileStretch<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        let count = self.file.read_at(self.at, &mut into[..wanted])?;
        self.at += count as u64;
        Ok(count)
    }
}

// Names of kernel addresses: the list of a trace, read once and kept small.

/// All names in all; a present kernel with modules has 5 MB of functions.
const NAMES_MAX: usize = 24 << 20;

/// The longest line of /proc/kallsyms: a name of 511 bytes (`KSYM_NAME_LEN`) and what is round it.
const LINE_MAX: u64 = 1024;

/// Functions by address. An address is written as the kernel does, `function+0x1f/0x80`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatSymbols {
    /// Sorted; with where each name begins in `names`.
    addresses: Vec<u64>,
    begins: Vec<u32>,
    /// One after the other, each with a NUL behind it.
    names: Vec<u8>,
    text_start: Option<u64>,
}

impl DatSymbols {
    /// Reads a text in the form of /proc/kallsyms, line by line. Only functions are kept: the
    /// addresses of events lie in code.
    ///
    /// # Errors
    /// As the text, or when it has more names than any kernel.
    pub fn read(text: impl Read, at: u64) -> Result<Self, DatError> {
        let mut text = BufReader::with_capacity(1 << 14, text);
        let mut found: Vec<(u64, u32)> = Vec::new();
        let mut names = Vec::new();
        let mut line = Vec::new();
        let mut text_start = None;
        loop {
            line.clear();
            let count = (&mut text).take(LINE_MAX).read_until(b'\n', &mut line);
            if count.map_err(|error| DatError::reading(at, error))? == 0 {
                break;
            }
            let Some((address, name)) = function(&line) else { continue };
            if name == b"_stext" {
                text_start = Some(address);
            }
            let begin = u32::try_from(names.len()).unwrap_or(u32::MAX);
            names.extend_from_slice(name);
            names.push(0);
            found.push((address, begin));
            if names.len() + 16 * found.len() > NAMES_MAX {
                let found = format!("more than {} bytes of names", names.len());
                return Err(DatError::damaged(at, found, "the functions of one kernel"));
            }
        }
        found.sort_by_key(|&(address, _)| address);
        // Aliases: the first name of an address is the one that the kernel prints.
        found.dedup_by_key(|&mut (address, _)| address);
        let (addresses, begins) = found.into_iter().unzip();
        names.shrink_to_fit();
        Ok(Self { addresses, begins, names, text_start })
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there is none: `kptr_restrict` hides them all.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The name of an address: `function+0x1f/0x80`.
    pub fn name(&self, address: u64) -> Option<String> {
        let place = self.addresses.partition_point(|&start| start <= address).checked_sub(1)?;
        let (start, name) = (self.addresses[place], self.name_at(place));
        // The last function has no end; nothing lies far behind it.
        let size = self.addresses.get(place + 1).map_or(0x1_0000, |next| next - start);
        let offset = address - start;
        if offset >= size.max(1) || offset > 0x0100_0000 {
            return None;
        }
        let (function, module) = name.split_once('\t').map_or((name.as_ref(), ""), |both| both);
        let module = if module.is_empty() { String::new() } else { format!(" {module}") };
        Some(format!("{function}+{offset:#x}/{size:#x}{module}"))
    }

    /// The address of a function, the first of that name.
    pub fn address(&self, function: &str) -> Option<u64> {
        let place = (0..self.len())
            .find(|&place| self.name_at(place).split('\t').next() == Some(function))?;
        self.addresses.get(place).copied()
    }

    fn name_at(&self, place: usize) -> std::borrow::Cow<'_, str> {
        let rest = &self.names[self.begins[place] as usize..];
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end])
    }

    /// Where the kernel's code begins (`_stext`): what the decoder takes as its start of text.
    pub const fn text_start(&self) -> Option<u64> {
        self.text_start
    }
}

/// Address and name (with its module behind a tab) of a line that is a function.
fn function(line: &[u8]) -> Option<(u64, &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let address = u64::from_str_radix(std::str::from_utf8(parts.next()?).ok()?, 16).ok()?;
    let kind = parts.next()?;
    let name = parts.next()?;
    let is_function = matches!(kind, b"t" | b"T" | b"w" | b"W");
    // The linker's marks share an address with a function, and are not one.
    let is_mark = name.first() == Some(&b'$') || name.contains(&0);
    (is_function && !is_mark && address != 0 && !name.is_empty()).then_some((address, name))
}

#[cfg(test)]
mod kinds_tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_fields_lie_where_the_kernel_has_them() {
        let names: BTreeSet<_> = table::written().map(|kind| kind.name).collect();
        assert_eq!(names.len(), table::written().count());
        let switch = table::find_event("sched", "sched_switch").expect("a kind");
        let text = format(id(switch).expect("a number"), switch);
        for line in [
            "field:char prev_comm[16];\toffset:8;\tsize:16;",
            "field:long prev_state;\toffset:32;\tsize:8;\tsigned:1;",
            "field:int next_prio;\toffset:60;\tsize:4;",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}

#[cfg(test)]
mod symbols_tests {
    use super::*;

    const LIST: &str = "0000000000000000 A fixed_percpu_data\n\
        ffffffff81000040 T second\nffffffff81000000 T first\nffffffff81000000 T _stext\n\
        ffffffff81000050 d data\nffffffffc0000000 t igb_poll\t[igb]\n";

    #[test]
    fn an_address_lies_in_the_function_before_it() {
        let symbols = DatSymbols::read(LIST.as_bytes(), 0).expect("a list");
        assert_eq!(symbols.len(), 3);
        assert_eq!(symbols.name(0xffff_ffff_8100_001f).as_deref(), Some("first+0x1f/0x40"));
        assert_eq!(
            symbols.name(0xffff_ffff_c000_0004).as_deref(),
            Some("igb_poll+0x4/0x10000 [igb]")
        );
        assert_eq!(symbols.name(0xffff_ffff_80ff_ffff), None);
        assert_eq!(symbols.name(0xffff_ffff_c001_0000), None, "behind the last");
        assert_eq!(symbols.name(0xffff_ffff_b000_0000), None, "far from any");
        assert_eq!(symbols.text_start(), Some(0xffff_ffff_8100_0000));
    }

    #[test]
    fn a_list_of_zeros_has_no_names() {
        let hidden = "0000000000000000 T first\n0000000000000000 T second\n";
        assert!(DatSymbols::read(hidden.as_bytes(), 0).expect("a list").is_empty());
        let endless = vec![b'f'; 1 << 20];
        assert!(DatSymbols::read(endless.as_slice(), 0).expect("no lines").is_empty());
    }
}
