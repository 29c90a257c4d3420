//! The trace.dat files of trace-cmd and KernelShark, versions 6 and 7: read here without unpacking
//! more than is asked for, and written (version 6) so that those tools open what rtproof found.

mod bytes;
mod clock;
mod compress;
mod encode;
mod error;
mod head;
mod kinds;
mod pages;
mod read_at;
mod symbols;
mod v6;
mod v7;
mod write;

use std::{
    collections::BTreeMap,
    io::{BufReader, Read},
};

pub use clock::is_monotonic;
pub use compress::Compression;
pub use encode::write_window;
pub use error::DatError;
pub use head::{Buffer, CpuStat, TscScale};
pub use pages::DatPages;
pub use read_at::ReadAt;
pub use symbols::Symbols;
pub use write::{Parts, write};

use crate::{
    event::{Comm, Name},
    format::Formats,
};
use bytes::Bytes;
use head::Head;
use read_at::Stretch;

/// An open trace.dat file: what stands before its events.
#[derive(Debug)]
pub struct TraceDat<R> {
    file: R,
    head: Head,
    formats: Formats,
}

impl<R: ReadAt> TraceDat<R> {
    /// Reads what stands before the events.
    ///
    /// # Errors
    /// When the file is torn, damaged or of another kind: where, what was expected, what to do.
    pub fn open(file: R) -> Result<Self, DatError> {
        let mut begins = [0; 10];
        let mut stretch = Stretch { file: &file, at: 0, end: file.len() };
        let mut count = 0;
        while count < begins.len() {
            match stretch.read(&mut begins[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(source) => return Err(DatError::Io { at: count as u64, source }),
            }
        }
        let stretch = Stretch { file: &file, at: 0, end: file.len() };
        // Single bytes alone until the byte order is known.
        let mut bytes = Bytes::new(BufReader::with_capacity(64, stretch), 0, false);
        let head = Head::open(&mut bytes, &begins[..count])?;
        let at = bytes.at();
        let mut head = match head.version {
            6 => v6::read(&file, at, head)?,
            _ => v7::read(&file, at, head)?,
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
    pub const fn strings(&self) -> &BTreeMap<u64, Name> {
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

    /// The buffer with the most bytes: what a user means who names none.
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
    pub fn symbols(&self) -> Result<Symbols, DatError> {
        let Some(place) = self.head.symbols else { return Ok(Symbols::default()) };
        let is_big_endian = self.head.is_big_endian;
        let text = v7::unpack(&self.file, place.at, place.size, place.compression, is_big_endian)?;
        let mut bytes = Bytes::new(BufReader::new(text), place.at, is_big_endian);
        let length = if place.has_length {
            u64::from(bytes.u32("the length of the symbols")?)
        } else {
            place.size
        };
        Symbols::read(bytes.into_inner().take(length), place.at)
    }
}

impl Buffer {
    pub fn cpus(&self) -> Vec<u32> {
        self.data.iter().map(|data| data.cpu).collect()
    }
}

#[cfg(test)]
mod tests;
