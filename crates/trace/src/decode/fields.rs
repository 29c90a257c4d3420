//! Reading single fields of a record: numbers of any width and order, texts, masks, stacks.

use crate::format::{ByteOrder, Field, Format, Shape};

/// A number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Num {
    at: u16,
    width: Width,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    Long,
}

/// A text, or another run of bytes, in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// In place; size 0: to the end of the record.
    Here { at: u16, size: u16 },
    /// Where a `__data_loc` says.
    Data { at: u16 },
    /// Where a `__rel_loc` says.
    Relative { at: u16 },
    /// Elsewhere in the kernel: only its address is here.
    Pointer(Num),
}

/// The fields of one event by name; `None` where it has none of that name, or not of that shape.
pub(super) struct Fields<'a>(pub(super) &'a Format);

impl Fields<'_> {
    /// A number or pointer.
    pub(super) fn num(&self, name: &str) -> Option<Num> {
        let field = self.0.field(name).filter(|field| field.shape == Shape::One)?;
        num(field)
    }

    /// A text in place, elsewhere in the record, or in the kernel.
    pub(super) fn bytes(&self, name: &str) -> Option<Bytes> {
        let field = self.0.field(name)?;
        let at = u16::try_from(field.at).ok()?;
        Some(match field.shape {
            Shape::Array => Bytes::Here { at, size: u16::try_from(field.size).ok()? },
            Shape::DataLoc if field.size == 4 => Bytes::Data { at },
            Shape::RelLoc if field.size == 4 => Bytes::Relative { at },
            Shape::One => Bytes::Pointer(num(field)?),
            Shape::DataLoc | Shape::RelLoc => return None,
        })
    }

    /// Where an array begins.
    pub(super) fn start(&self, name: &str) -> Option<u16> {
        let field = self.0.field(name).filter(|field| field.shape == Shape::Array)?;
        u16::try_from(field.at).ok()
    }
}

fn num(field: &Field) -> Option<Num> {
    let width = match (field.size, field.signed) {
        (1, false) => Width::U8,
        (1, true) => Width::I8,
        (2, false) => Width::U16,
        (2, true) => Width::I16,
        (4, false) => Width::U32,
        (4, true) => Width::I32,
        (8, _) => Width::Long,
        _ => return None,
    };
    Some(Num { at: u16::try_from(field.at).ok()?, width })
}

/// A record and the order of its bytes.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) data: &'a [u8],
    pub(super) order: ByteOrder,
}

impl<'a> Record<'a> {
    /// A number, its sign extended; `None`: the record is too short.
    #[inline]
    pub(super) fn get(&self, num: Num) -> Option<u64> {
        let bytes = self.data.get(usize::from(num.at)..)?;
        Some(match num.width {
            Width::U8 => u64::from(*bytes.first()?),
            Width::I8 => i64::from(bytes.first()?.cast_signed()).cast_unsigned(),
            Width::U16 => u64::from(self.u16(bytes)?),
            Width::I16 => i64::from(self.u16(bytes)?.cast_signed()).cast_unsigned(),
            Width::U32 => u64::from(self.u32(bytes)?),
            Width::I32 => i64::from(self.u32(bytes)?.cast_signed()).cast_unsigned(),
            Width::Long => self.u64(bytes)?,
        })
    }

    /// A number of 32 bits, signed.
    #[inline]
    pub(super) fn int(&self, num: Num) -> Option<i32> {
        self.get(num).map(|value| (value as u32).cast_signed())
    }

    /// A number of 32 bits.
    #[inline]
    pub(super) fn uint(&self, num: Num) -> Option<u32> {
        self.get(num).map(|value| value as u32)
    }

    /// A number of 8 bits.
    #[inline]
    pub(super) fn byte(&self, num: Num) -> Option<u8> {
        self.get(num).map(|value| value as u8)
    }

    /// Bytes of the record; `None` for those elsewhere in the kernel.
    #[inline]
    pub(super) fn bytes(&self, bytes: Bytes) -> Option<&'a [u8]> {
        let (from, size) = match bytes {
            Bytes::Here { at, size: 0 } => return self.data.get(usize::from(at)..),
            Bytes::Here { at, size } => (usize::from(at), usize::from(size)),
            Bytes::Data { at } => self.located(at, 0)?,
            Bytes::Relative { at } => self.located(at, usize::from(at) + 4)?,
            Bytes::Pointer(_) => return None,
        };
        self.data.get(from..)?.get(..size)
    }

    /// What a `__data_loc` or `__rel_loc` says: where from, how many.
    fn located(&self, at: u16, base: usize) -> Option<(usize, usize)> {
        let place = self.u32(self.data.get(usize::from(at)..)?)?;
        Some((base + (place & 0xffff) as usize, (place >> 16) as usize))
    }

    /// The first 64 bits of a mask of `long`s.
    pub(super) fn mask(&self, bytes: Bytes, long_bytes: usize) -> Option<u64> {
        let bytes = self.bytes(bytes)?;
        if long_bytes == 8 {
            return self.u64(bytes);
        }
        let high = bytes.get(4..).and_then(|bytes| self.u32(bytes)).unwrap_or(0);
        Some(u64::from(self.u32(bytes)?) | u64::from(high) << 32)
    }

    /// `count` addresses from `at` on, as many as there are.
    pub(super) fn longs(
        &self,
        at: u16,
        count: usize,
        long_bytes: usize,
    ) -> impl Iterator<Item = u64> + use<'a> {
        let record = *self;
        let data = self.data.get(usize::from(at)..).unwrap_or_default();
        data.chunks_exact(long_bytes).take(count).map_while(move |long| {
            if long_bytes == 8 { record.u64(long) } else { record.u32(long).map(u64::from) }
        })
    }

    #[inline]
    fn u16(&self, bytes: &[u8]) -> Option<u16> {
        let bytes = *bytes.first_chunk()?;
        Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    #[inline]
    fn u32(&self, bytes: &[u8]) -> Option<u32> {
        let bytes = *bytes.first_chunk()?;
        Some(match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    #[inline]
    fn u64(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = *bytes.first_chunk()?;
        Some(match self.order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }
}
