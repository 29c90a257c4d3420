//! The pages of one buffer of a trace.dat file, read when asked for: compressed ones a chunk at a
//! time, with the last few kept. What is kept does not grow with the file.

use std::io::{self, Read};

use super::head::{Buffer, Compression, CpuData, NumberReader};
use super::{DatError, FileStretch, ReadAt};
use crate::Pages;

/// Marks kept per CPU; with more chunks than that, every second, fourth ... has one.
const MARKS_MAX: usize = 1024;

/// The largest chunk that is read. trace-cmd writes ten pages.
const CHUNK_MAX: u32 = 8 << 20;

/// Unpacked bytes that are kept.
const CACHE_BYTES: usize = 8 << 20;

/// Where a chunk is: in the file and in the unpacked bytes of its CPU.
#[derive(Clone, Copy, Debug)]
struct Mark {
    in_file: u64,
    unpacked: u64,
}

#[derive(Debug)]
struct CpuPages {
    at: u64,
    end: u64,
    /// Unpacked bytes in all.
    bytes: u64,
    marks: Vec<Mark>,
    /// The chunk after the last that was read: pages are mostly read in order.
    next: Mark,
}

/// A chunk that is kept.
#[derive(Debug)]
struct Chunk {
    slot: usize,
    unpacked: u64,
    bytes: Vec<u8>,
    used: u64,
}

/// The pages of one buffer.
#[derive(Debug)]
pub struct DatPages<'a, R: ?Sized> {
    file: &'a R,
    is_big_endian: bool,
    compression: Compression,
    page_bytes: usize,
    cpus: Vec<u32>,
    data: Vec<CpuPages>,
    cache: Vec<Chunk>,
    uses: u64,
}

impl<'a, R: ReadAt + ?Sized> DatPages<'a, R> {
    pub(super) fn open(
        file: &'a R,
        buffer: &Buffer,
        is_big_endian: bool,
    ) -> Result<Self, DatError> {
        let mut of_cpus: Vec<CpuData> = buffer.data.clone();
        of_cpus.sort_by_key(|data| data.cpu);
        if let Some(twice) = of_cpus.windows(2).find(|pair| pair[0].cpu == pair[1].cpu) {
            let found = format!("two tables for CPU {}", twice[0].cpu);
            return Err(DatError::damaged(twice[1].at, found, "one for each CPU"));
        }
        let mut pages = Self {
            file,
            is_big_endian,
            compression: buffer.compression,
            page_bytes: buffer.page_bytes as usize,
            cpus: of_cpus.iter().map(|data| data.cpu).collect(),
            data: Vec::new(),
            cache: Vec::new(),
            uses: 0,
        };
        for data in of_cpus {
            let of_cpu = pages.survey(data)?;
            pages.data.push(of_cpu);
        }
        Ok(pages)
    }

    /// How many bytes there are, and a mark for some of the chunks.
    fn survey(&self, data: CpuData) -> Result<CpuPages, DatError> {
        // trace-cmd 3.1 leaves the number of chunks out of the size.
        let count_bytes = if self.compression == Compression::None { 0 } else { 4 };
        let end = (data.at + data.size + count_bytes).min(self.file.len());
        let mut mark = Mark { in_file: data.at, unpacked: 0 };
        let mut pages =
            CpuPages { at: data.at, end, bytes: data.size, marks: Vec::new(), next: mark };
        if self.compression == Compression::None {
            return Ok(pages);
        }
        let stretch = FileStretch { file: self.file, at: data.at, end };
        let count =
            NumberReader::new(stretch, data.at, self.is_big_endian).u32("the number of chunks")?;
        mark.in_file += 4;
        pages.next = mark;
        let mut every = 1;
        for number in 0..count {
            if number % every == 0 {
                if pages.marks.len() == MARKS_MAX {
                    every *= 2;
                    let mut is_odd = true;
                    pages.marks.retain(|_| {
                        is_odd = !is_odd;
                        !is_odd
                    });
                }
                if number % every == 0 {
                    pages.marks.push(mark);
                }
            }
            let (_, packed, unpacked) = self.chunk(mark.in_file, end)?;
            mark.in_file += 8 + packed;
            mark.unpacked += u64::from(unpacked);
        }
        pages.bytes = mark.unpacked;
        Ok(pages)
    }

    /// Where the bytes of the chunk at `at` begin, its packed and its unpacked length.
    fn chunk(&self, at: u64, end: u64) -> Result<(u64, u64, u32), DatError> {
        let mut bytes =
            NumberReader::new(FileStretch { file: self.file, at, end }, at, self.is_big_endian);
        let packed = u64::from(bytes.u32("a chunk of events")?);
        let unpacked = bytes.u32("a chunk of events")?;
        let start = bytes.at();
        if packed > end - start || unpacked > CHUNK_MAX || unpacked == 0 {
            let found = format!("a chunk of {packed} bytes that unpacks to {unpacked}");
            return Err(DatError::damaged(at, found, "a chunk inside the events of its CPU"));
        }
        Ok((start, packed, unpacked))
    }

    /// The place in the cache of the chunk that holds a byte.
    fn unpacked(&mut self, slot: usize, byte: u64) -> Result<usize, DatError> {
        self.uses += 1;
        let has = |chunk: &Chunk| {
            chunk.slot == slot
                && (chunk.unpacked..chunk.unpacked + chunk.bytes.len() as u64).contains(&byte)
        };
        if let Some(place) = self.cache.iter().position(has) {
            self.cache[place].used = self.uses;
            return Ok(place);
        }
        let of_cpu = &self.data[slot];
        let marked = of_cpu.marks.partition_point(|mark| mark.unpacked <= byte);
        let first = Mark { in_file: of_cpu.at + 4, unpacked: 0 };
        let mut mark = marked.checked_sub(1).map_or(first, |place| of_cpu.marks[place]);
        if (mark.unpacked..=byte).contains(&of_cpu.next.unpacked) {
            mark = of_cpu.next;
        }
        loop {
            let (start, packed, unpacked) = self.chunk(mark.in_file, of_cpu.end)?;
            let next =
                Mark { in_file: start + packed, unpacked: mark.unpacked + u64::from(unpacked) };
            if byte < next.unpacked {
                let bytes = self.unpack(start, packed, unpacked)?;
                self.data[slot].next = next;
                return Ok(self.keep(Chunk {
                    slot,
                    unpacked: mark.unpacked,
                    bytes,
                    used: self.uses,
                }));
            }
            mark = next;
        }
    }

    fn unpack(&self, at: u64, packed: u64, unpacked: u32) -> Result<Vec<u8>, DatError> {
        let stretch = FileStretch { file: self.file, at, end: at + packed };
        let mut bytes = Vec::new();
        let stream = self.compression.unpack(io::BufReader::new(stretch), at)?;
        let read = stream.take(u64::from(unpacked)).read_to_end(&mut bytes);
        read.map_err(|error| DatError::reading(at, error))?;
        if bytes.len() != unpacked as usize {
            let found = format!("{} unpacked bytes", bytes.len());
            return Err(DatError::damaged(at, found, "as many as the chunk says"));
        }
        Ok(bytes)
    }

    /// Keeps a chunk in the place of those not used for longest.
    fn keep(&mut self, chunk: Chunk) -> usize {
        let bytes = |cache: &[Chunk]| cache.iter().map(|chunk| chunk.bytes.len()).sum::<usize>();
        while bytes(&self.cache) + chunk.bytes.len() > CACHE_BYTES {
            let oldest = (0..self.cache.len()).min_by_key(|&place| self.cache[place].used);
            let Some(oldest) = oldest else { break };
            self.cache.swap_remove(oldest);
        }
        self.cache.push(chunk);
        self.cache.len() - 1
    }

    /// Fills `into` from a byte of a CPU on.
    fn fill(&mut self, slot: usize, byte: u64, into: &mut [u8]) -> Result<(), DatError> {
        let mut done = 0;
        while done < into.len() {
            let at = byte + done as u64;
            if self.compression == Compression::None {
                let at = self.data[slot].at + at;
                let read = self.file.read_at(at, &mut into[done..]);
                let count = read.map_err(|error| DatError::reading(at, error))?;
                if count == 0 {
                    return Err(DatError::torn(at, "a page of events"));
                }
                done += count;
            } else {
                let place = self.unpacked(slot, at)?;
                let chunk = &self.cache[place];
                let from = usize::try_from(at - chunk.unpacked).unwrap_or(usize::MAX);
                let rest = &chunk.bytes[from..];
                let count = rest.len().min(into.len() - done);
                into[done..done + count].copy_from_slice(&rest[..count]);
                done += count;
            }
        }
        Ok(())
    }
}

impl<R: ReadAt + ?Sized> Pages for DatPages<'_, R> {
    fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn count(&self, cpu: u32) -> usize {
        let slot = self.cpus.binary_search(&cpu);
        let bytes = slot.map_or(0, |slot| self.data[slot].bytes);
        usize::try_from(bytes.div_ceil(self.page_bytes as u64)).unwrap_or(usize::MAX)
    }

    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> io::Result<()> {
        self.read_pages(cpu, index, 1, into).map(|_| ())
    }

    fn read_ahead(
        &mut self,
        cpu: u32,
        index: usize,
        count: usize,
        into: &mut Vec<u8>,
    ) -> io::Result<usize> {
        // Whatever is wrong with a later page is reported when that page is read.
        self.read_pages(cpu, index, count, into).or_else(|_| self.read_pages(cpu, index, 1, into))
    }
}

impl<R: ReadAt + ?Sized> DatPages<'_, R> {
    /// Reads up to `count` pages, and says how many.
    fn read_pages(
        &mut self,
        cpu: u32,
        index: usize,
        count: usize,
        into: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let missing = || {
            let reason = format!("no page {index} of CPU {cpu} in the file");
            io::Error::new(io::ErrorKind::InvalidInput, reason)
        };
        let slot = self.cpus.binary_search(&cpu).map_err(|_| missing())?;
        let from = (index as u64).checked_mul(self.page_bytes as u64).ok_or_else(missing)?;
        let left = self.data[slot].bytes.checked_sub(from).filter(|&left| left > 0);
        let left = usize::try_from(left.ok_or_else(missing)?).unwrap_or(usize::MAX);
        let count = count.min(left.div_ceil(self.page_bytes));
        into.resize(count * self.page_bytes, 0);
        let (wanted, behind) = into.split_at_mut(left.min(count * self.page_bytes));
        behind.fill(0);
        self.fill(slot, from, wanted).map_err(io::Error::other)?;
        Ok(count)
    }
}
