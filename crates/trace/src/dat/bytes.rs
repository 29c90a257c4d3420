//! Numbers and texts out of a stretch of a file or out of what was compressed in it.

use std::io::{self, Read};

use super::error::DatError;

/// A stream of the file's numbers in its byte order.
pub(super) struct Bytes<R> {
    from: R,
    /// Where the next byte is: in the file, or for compressed sections where they begin plus how
    /// far they have been unpacked.
    at: u64,
    is_big_endian: bool,
}

impl<R: Read> Bytes<R> {
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
            DatError::Bad { next: super::error::TORN, .. } => DatError::torn(self.at, expected),
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

    /// Exactly these bytes.
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
