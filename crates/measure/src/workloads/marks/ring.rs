//! The ring of an application that marks its cycles, read while it is written.
//!
//! By read(2), not by mapping it: what another process shortens under a mapping is a crash. Layout
//! and order of writes: `marks/src/ring.rs`.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{Ordering, fence},
    time::Duration,
};

use crate::Failure;

/// Of the header and of each cycle, bytes.
const HEADER: usize = 64;

const CYCLE: usize = 32;

/// Number of reads of an incomplete ring, and the time between them.
const INCOMPLETE_TRIES: u32 = 100;

const MAKING_WAIT: Duration = Duration::from_millis(10);

const MAGIC: &[u8; 8] = b"RTPMARK1";

/// Cycles that a ring may hold.
const CAPACITY: std::ops::RangeInclusive<u64> = 2..=1 << 20;

/// Cycles read at once.
const BATCH: u64 = 128;

/// More new cycles than this since the last look, some milliseconds ago, were never marked.
const JUMP_MAX: u64 = 1 << 40;

/// A cycle longer than this is a torn one.
const LENGTH_MAX_NS: u64 = 3_600_000_000_000;

/// A ring, and how far it was read.
#[derive(Debug)]
pub(super) struct MarkRing {
    file: File,
    capacity: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Cycles that were read or lost.
    done: u64,
    /// Of the last cycle that was read.
    last_begin_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
}

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Cycles that were marked since the last look.
    pub(super) marked: u64,
    /// Of those overwritten before they could be read, or torn.
    pub(super) lost: u64,
}

/// The first bytes of a ring. Its name exists before they do: they are read so often.
fn header(file: &File, looks: u32) -> Option<[u8; HEADER]> {
    let mut header = [0; HEADER];
    for look in 0..looks {
        if look > 0 {
            std::thread::sleep(MAKING_WAIT);
        }
        match file.read_exact_at(&mut header, 0) {
            Ok(()) if header[..8] == *MAGIC => return Some(header),
            Ok(()) if header[..8] != [0; 8] => return None,
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return None,
            _ => {}
        }
    }
    None
}

impl MarkRing {
    /// Opens a ring; what was marked before is not read.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Self::open_when_complete(path, 1)
    }

    /// The same for a file that may still be incomplete.
    pub(super) fn await_made(path: &Path) -> Result<Self, Failure> {
        Self::open_when_complete(path, INCOMPLETE_TRIES)
    }

    fn open_when_complete(path: &Path, looks: u32) -> Result<Self, Failure> {
        let at = |why: &str| Failure(format!("{}: {why}", path.display()));
        let file = rtproof_host::door::read(path).map_err(|error| at(&error.to_string()))?;
        let header = header(&file, looks).ok_or_else(|| {
            at("holds no ring of marks; expected one made by rtproof_mark.h or the crate \
                rtproof-mark")
        })?;
        let word = |index: usize| word(&header, index);
        let capacity = word(1);
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let is_whole = CAPACITY.contains(&capacity)
            && capacity.is_power_of_two()
            && length >= HEADER as u64 + capacity * CYCLE as u64;
        if !is_whole {
            return Err(at(&format!(
                "says it holds {capacity} cycles, and has {length} bytes; it was not made by \
                 rtproof_mark.h or the crate rtproof-mark"
            )));
        }
        let id = |word: u64| u32::try_from(word).unwrap_or(0);
        let (pid, tid) = (id(word(3)), id(word(4)));
        Ok(Self { file, capacity, pid, tid, done: word(2), last_begin_ns: 0 })
    }

    /// Whether a cycle was marked before it was opened.
    pub(super) const fn has_cycles(&self) -> bool {
        self.done > 0
    }

    /// Passes over what was marked until now.
    pub(super) fn skip(&mut self) -> Result<(), Failure> {
        self.done = self.head()?;
        Ok(())
    }

    /// Hands out what was marked since the last look, oldest first.
    pub(super) fn read(&mut self, mut take: impl FnMut(Marked)) -> Result<Found, Failure> {
        let head = self.head()?;
        let marked = head.checked_sub(self.done).filter(|&marked| marked <= JUMP_MAX);
        let marked = marked.ok_or_else(|| {
            format!("its count of cycles went from {} to {head}: another writer?", self.done)
        })?;
        let mut lost = 0;
        while self.done < head {
            // The oldest in the ring is the next to be overwritten: it may be just now.
            let oldest = head.saturating_sub(self.capacity - 1).max(self.done);
            lost += oldest - self.done;
            self.done = oldest;
            lost += self.batch(head, &mut take)?;
        }
        Ok(Found { marked, lost })
    }

    /// Reads cycles up to the end of the file or `head`; how many were overwritten or torn.
    fn batch(&mut self, head: u64, take: &mut impl FnMut(Marked)) -> Result<u64, Failure> {
        let place = self.done % self.capacity;
        let count = (head - self.done).min(self.capacity - place).min(BATCH);
        let mut bytes = [0; BATCH as usize * CYCLE];
        let bytes = &mut bytes[..count as usize * CYCLE];
        let at = HEADER as u64 + place * CYCLE as u64;
        // The count was read before them, and is read again after them.
        fence(Ordering::SeqCst);
        self.file.read_exact_at(bytes, at)?;
        fence(Ordering::SeqCst);
        let later = self.head()?;
        let mut lost = 0;
        for cycle in bytes.chunks_exact(CYCLE) {
            self.done += 1;
            let (begin_ns, end_ns) = (word(cycle, 1), word(cycle, 2));
            let is_there =
                word(cycle, 0) == self.done && later.saturating_sub(self.done) < self.capacity;
            let is_sane = end_ns.checked_sub(begin_ns).is_some_and(|ns| ns <= LENGTH_MAX_NS);
            // One thread marks one cycle after the other.
            if is_there && is_sane && begin_ns > self.last_begin_ns {
                self.last_begin_ns = begin_ns;
                take(Marked { begin_ns, end_ns });
            } else {
                lost += 1;
            }
        }
        Ok(lost)
    }

    fn head(&self) -> Result<u64, Failure> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, 16)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test's own file")]
mod tests {
    use super::*;

    /// A ring of 8 made by hand.
    struct Writer {
        file: File,
        head: u64,
        _dir: tempfile::TempDir,
        path: std::path::PathBuf,
    }

    impl Writer {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            let path = dir.path().join("ring");
            let file = File::create(&path).expect("a file");
            file.set_len((HEADER + 8 * CYCLE) as u64).expect("a size");
            let writer = Self { file, head: 0, _dir: dir, path };
            writer.put(0, &[u64::from_ne_bytes(*MAGIC), 8, 0, 41, 42]);
            writer
        }

        fn put(&self, at: u64, words: &[u64]) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            self.file.write_all_at(&bytes, at).expect("written");
        }

        fn cycle(&self, number: u64, words: &[u64]) {
            self.put(HEADER as u64 + (number - 1) % 8 * CYCLE as u64, words);
        }

        fn mark(&mut self, cycles: u64) {
            for _ in 0..cycles {
                self.head += 1;
                self.cycle(self.head, &[self.head, self.head * 100, self.head * 100 + 7]);
                self.put(16, &[self.head]);
            }
        }
    }

    fn read(ring: &mut MarkRing) -> (Vec<u64>, Found) {
        let mut numbers = Vec::new();
        let found = ring.read(|marked| {
            assert_eq!(marked.end_ns - marked.begin_ns, 7);
            numbers.push(marked.begin_ns / 100);
        });
        (numbers, found.expect("a ring"))
    }

    #[test]
    fn cycles_are_read_once() {
        let mut writer = Writer::new();
        writer.mark(2);
        let mut ring = MarkRing::open(&writer.path).expect("a ring");
        assert_eq!((ring.pid, ring.tid), (41, 42));
        assert_eq!(read(&mut ring), (vec![], Found::default()), "those from before are not read");
        writer.mark(5);
        assert_eq!(read(&mut ring), (vec![3, 4, 5, 6, 7], Found { marked: 5, lost: 0 }));
        writer.mark(3);
        assert_eq!(read(&mut ring).0, [8, 9, 10], "round the end of the ring");
        writer.mark(2);
        ring.skip().expect("a ring");
        assert_eq!(read(&mut ring).1, Found::default());
    }

    #[test]
    fn what_was_overwritten_is_counted() {
        let mut writer = Writer::new();
        let mut ring = MarkRing::open(&writer.path).expect("a ring");
        writer.mark(20);
        // Of the 8 in the ring the oldest may be overwritten just now.
        let (numbers, found) = read(&mut ring);
        assert_eq!((numbers, found), ((14..=20).collect(), Found { marked: 20, lost: 13 }));
    }

    #[test]
    fn torn_cycles_are_counted_and_not_taken() {
        let mut writer = Writer::new();
        let mut ring = MarkRing::open(&writer.path).expect("a ring");
        writer.mark(6);
        writer.cycle(2, &[0, 1, 2]);
        writer.cycle(3, &[3, 500, 400]);
        writer.cycle(4, &[99]);
        writer.cycle(5, &[5, 0, 7]);
        assert_eq!(read(&mut ring), (vec![1, 6], Found { marked: 6, lost: 4 }));
        // The same cycle twice, and one from before.
        writer.mark(3);
        writer.cycle(8, &[8, 700, 707]);
        writer.cycle(9, &[9, 100, 107]);
        assert_eq!(read(&mut ring), (vec![7], Found { marked: 3, lost: 2 }));
        // Killed during a cycle: it was never counted.
        writer.cycle(10, &[0, 12_345]);
        assert_eq!(read(&mut ring).1, Found::default());
    }

    #[test]
    fn a_count_that_cannot_be_is_an_error() {
        let mut writer = Writer::new();
        writer.mark(3);
        let mut ring = MarkRing::open(&writer.path).expect("a ring");
        for head in [1, u64::MAX, 1 << 60] {
            writer.put(16, &[head]);
            let error = ring.read(|_| {}).expect_err("no such count");
            assert!(error.0.contains("another writer?"), "{error}");
        }
    }

    #[test]
    fn what_is_no_ring_is_refused() {
        let open = |writer: &Writer| MarkRing::open(&writer.path).expect_err("no ring");
        let writer = Writer::new();
        for capacity in [0, 7, 16, 1 << 30, u64::MAX] {
            writer.put(8, &[capacity]);
            let error = open(&writer);
            assert!(error.0.contains(&format!("says it holds {capacity} cycles")), "{error}");
        }
        writer.put(0, &[1]);
        assert!(open(&writer).0.contains("holds no ring of marks"));
        writer.file.set_len(10).expect("shorter");
        assert!(open(&writer).0.contains("holds no ring of marks"));
        let pipe = writer.path.with_file_name("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).expect("a pipe");
        assert!(MarkRing::open(&pipe).expect_err("no ring").0.contains("no regular file"));
        assert!(
            MarkRing::open(Path::new("/no/such/ring")).expect_err("none").0.contains("/no/such")
        );
        // One that is being made is waited for.
        let writer = Writer::new();
        writer.put(0, &[0]);
        let path = writer.path.clone();
        let open = std::thread::spawn(move || MarkRing::await_made(&path));
        std::thread::sleep(3 * MAKING_WAIT);
        writer.put(0, &[u64::from_le_bytes(*MAGIC)]);
        open.join().expect("no panic").expect("a ring");
        // Shortened while it is read.
        let mut writer = Writer::new();
        let mut ring = MarkRing::open(&writer.path).expect("a ring");
        writer.mark(3);
        writer.file.set_len(HEADER as u64).expect("shorter");
        assert!(ring.read(|_| {}).is_err());
    }
}
