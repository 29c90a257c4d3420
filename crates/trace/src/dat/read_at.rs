//! Bytes at an offset: how a file of any size is read without this crate opening one.

use std::io;

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
pub(super) struct Stretch<'a, R: ?Sized> {
    pub(super) file: &'a R,
    pub(super) at: u64,
    pub(super) end: u64,
}

impl<R: ReadAt + ?Sized> io::Read for Stretch<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        let count = self.file.read_at(self.at, &mut into[..wanted])?;
        self.at += count as u64;
        Ok(count)
    }
}
