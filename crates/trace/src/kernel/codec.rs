//! How one field of an event is read from a record, read from a text, and written.

use std::collections::BTreeMap;

use super::text::{TextSymbols, cpu_list, mask, pointer, value, word};
use crate::EventData;
use crate::event::{Comm, HandlerName};
use crate::format::{ByteOrder, EventFormat, Field, FieldShape};

/// A field on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue<'a> {
    Number(u64),
    /// Address of kernel code.
    Symbol(u64),
    /// Address of kernel code, stored as its offset from the kernel's first instruction.
    Offset(u64),
    Tid(i32),
    /// The CPU of the event.
    OwnCpu,
    Text(&'a [u8]),
    Mask(u64),
    Addresses(&'a [u64]),
}

/// A kind of field.
pub(super) trait Codec {
    type Out;
    const WANTED: FieldForm = FieldForm::Number;

    fn read(record: &Record<'_, '_>, place: FieldPlace) -> Option<Self::Out>;
    fn parse(text: &str, key: &str, symbols: &mut TextSymbols) -> Option<Self::Out>;
    fn write(out: &Self::Out) -> FieldValue<'_>;
}

/// Declares kinds of fields: type, shape, then how they are read, parsed and written.
macro_rules! codecs {
    ($($(#[$doc:meta])* $codec:ident -> $out:ty, $wanted:ident,
        |$record:ident, $place:ident| $read:expr,
        |$text:pat_param, $key:pat_param, $symbols:pat_param| $parse:expr,
        |$value:pat_param| $write:expr;)*) => {
        $($(#[$doc])*
        pub(super) struct $codec;

        impl Codec for $codec {
            type Out = $out;
            const WANTED: FieldForm = FieldForm::$wanted;

            #[inline]
            fn read($record: &Record<'_, '_>, $place: FieldPlace) -> Option<$out> {
                $read
            }

            fn parse($text: &str, $key: &str, $symbols: &mut TextSymbols) -> Option<$out> {
                $parse
            }

            fn write($value: &$out) -> FieldValue<'_> {
                $write
            }
        })*
    };
}

codecs! {
    /// A signed number of 32 bits.
    Int -> i32, Number,
        |record, place| record.int(place),
        |text, key, _| value(text, key),
        |value| FieldValue::Number(i64::from(*value).cast_unsigned());
    Tid -> i32, Number,
        |record, place| record.int(place),
        |text, key, _| value(text, key),
        |value| FieldValue::Tid(*value);
    /// A number of 32 bits.
    Uint -> u32, Number,
        |record, place| record.uint(place),
        |text, key, _| value(text, key),
        |value| FieldValue::Number(u64::from(*value));
    /// A number of 64 bits.
    Wide -> u64, Number,
        |record, place| record.get(place),
        |text, key, _| value(text, key),
        |value| FieldValue::Number(*value);
    /// `prev_state`. The bits from 0x100 on mean that the task was preempted (`TASK_REPORT_MAX`;
    /// other bits in kernels before 4.15): it is runnable.
    TaskState -> u64, Number,
        |record, place| Some(record.get(place)? & STATE_BITS),
        |text, key, _| value(text, key),
        |value| FieldValue::Number(*value);
    /// An address of data, in hexadecimal digits.
    Pointer -> u64, Number,
        |record, place| record.get(place),
        |text, key, _| pointer(word(text, key)?.trim_end_matches(':')),
        |value| FieldValue::Number(*value);
    /// An address of data, printed as a symbol by some kernels.
    Data -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(word(text, key)?)),
        |value| FieldValue::Number(*value);
    /// An address of code.
    Symbol -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(word(text, key)?)),
        |value| FieldValue::Symbol(*value);
    /// An address of code before the key.
    SymbolBefore -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(text.split_once(key)?.0.trim())),
        |value| FieldValue::Symbol(*value);
    /// An address of code in parentheses at the end.
    SymbolLast -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(text.rsplit_once(key)?.1.strip_suffix(')')?)),
        |value| FieldValue::Symbol(*value);
    /// An address of code, stored as an offset; 0: unknown.
    Caller -> u64, Number,
        |record, place| {
            let offset = i64::from(record.int(place)?);
            Some(record.origin.text_start.map_or(0, |start| start.wrapping_add_signed(offset)))
        },
        |text, key, symbols| Some(symbols.address(word(text, key)?)),
        |value| FieldValue::Offset(*value);
    /// Name of a task.
    TaskName -> Comm, Text,
        |record, place| record.bytes(place).map(Comm::of),
        |text, key, _| {
            let text = text.strip_prefix(key)?;
            Some(Comm::from(&text[..text.rfind(" pid=")?]))
        },
        |value| FieldValue::Text(value.as_bytes());
    /// A name up to the end of the text.
    NameLast -> HandlerName, Text,
        |record, place| record.name(place),
        |text, key, _| Some(HandlerName::from(text.split_once(key)?.1.trim())),
        |value| FieldValue::Text(value.as_bytes());
    /// A name in parentheses at the end.
    Reason -> HandlerName, Text,
        |record, place| record.name(place),
        |text, key, _| Some(HandlerName::from(text.split_once(key)?.1.strip_suffix(')')?)),
        |value| FieldValue::Text(value.as_bytes());
    /// A mask of CPUs, in hexadecimal digits.
    Mask -> u64, Mask,
        |record, place| record.mask(place),
        |text, key, _| mask(word(text, key)?),
        |value| FieldValue::Mask(*value);
    /// A mask of CPUs, as a list.
    CpuList -> u64, Mask,
        |record, place| record.mask(place),
        |text, key, _| cpu_list(word(text, key)?),
        |value| FieldValue::Mask(*value);
    Frames -> Box<[u64]>, Stack,
        |record, place| record.stack(place),
        |_, _, _| None,
        |value| FieldValue::Addresses(value);
}

/// Bits of `prev_state` that say what the task waits for.
pub(crate) const STATE_BITS: u64 = 0xff;

// Reading single fields of a record: numbers of any width and order, texts, masks, stacks.

/// Where a field lies in a record, and how it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldPlace {
    at: u16,
    /// Bytes of [`How::Here`], 0: to the end of the record. Of [`How::Stack`]: where the number
    /// of addresses lies.
    size: u16,
    how: How,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum How {
    /// The field is not read.
    #[default]
    Unread,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    Long,
    /// Bytes in the record, at the place of the field.
    Here,
    /// Bytes where a `__data_loc` points.
    Data,
    /// Bytes where a `__rel_loc` points.
    Relative,
    /// Addresses up to the end of the record.
    Stack,
}

/// What a field must be to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldForm {
    /// Only written, never read.
    Nothing,
    /// A number or pointer.
    Number,
    /// A text: in place, elsewhere in the record, or in the kernel.
    Text,
    /// A mask: in place, or elsewhere in the record.
    Mask,
    /// Return addresses, with their number in the field `size`.
    Stack,
}

impl FieldPlace {
    /// Where `name` lies. `None`: the event has no such field, or it has another shape.
    pub(crate) fn of(format: &EventFormat, name: &str, wanted: FieldForm) -> Option<Self> {
        if wanted == FieldForm::Nothing {
            return Some(Self::default());
        }
        let field = format.field(name)?;
        let at = u16::try_from(field.at).ok()?;
        let size = u16::try_from(field.size).ok()?;
        let how = match (wanted, field.shape) {
            (FieldForm::Number | FieldForm::Text, FieldShape::One) => number(field)?,
            (FieldForm::Text | FieldForm::Mask, FieldShape::Array) => How::Here,
            (FieldForm::Text | FieldForm::Mask, FieldShape::DataLoc) if size == 4 => How::Data,
            (FieldForm::Text | FieldForm::Mask, FieldShape::RelLoc) if size == 4 => How::Relative,
            (FieldForm::Stack, FieldShape::Array) => {
                let count = format.field("size").filter(|count| count.size == 4)?;
                return Some(Self { at, size: u16::try_from(count.at).ok()?, how: How::Stack });
            }
            _ => return None,
        };
        Some(Self { at, size, how })
    }
}

fn number(field: &Field) -> Option<How> {
    Some(match (field.size, field.signed) {
        (1, false) => How::U8,
        (1, true) => How::I8,
        (2, false) => How::U16,
        (2, true) => How::I16,
        (4, false) => How::U32,
        (4, true) => How::I32,
        (8, _) => How::Long,
        _ => return None,
    })
}

/// What reading a record requires to know of the kernel that wrote it.
#[derive(Clone, Debug)]
pub(crate) struct KernelOrigin {
    pub(crate) order: ByteOrder,
    pub(crate) long_bytes: usize,
    /// Address of `_stext`.
    pub(crate) text_start: Option<u64>,
    /// Texts of the kernel by their addresses.
    pub(crate) strings: BTreeMap<u64, HandlerName>,
}

/// A record of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a, 'o> {
    pub(crate) data: &'a [u8],
    pub(crate) origin: &'o KernelOrigin,
}

impl<'a> Record<'a, '_> {
    /// A number, its sign extended; `None`: the record is too short.
    #[inline]
    pub(crate) fn get(&self, place: FieldPlace) -> Option<u64> {
        let bytes = self.data.get(usize::from(place.at)..)?;
        Some(match place.how {
            How::U8 => u64::from(*bytes.first()?),
            How::I8 => i64::from(bytes.first()?.cast_signed()).cast_unsigned(),
            How::U16 => u64::from(self.u16(bytes)?),
            How::I16 => i64::from(self.u16(bytes)?.cast_signed()).cast_unsigned(),
            How::U32 => u64::from(self.u32(bytes)?),
            How::I32 => i64::from(self.u32(bytes)?.cast_signed()).cast_unsigned(),
            How::Long => self.u64(bytes)?,
            _ => return None,
        })
    }

    /// A number of 32 bits, signed.
    #[inline]
    pub(crate) fn int(&self, place: FieldPlace) -> Option<i32> {
        self.get(place).map(|value| (value as u32).cast_signed())
    }

    /// A number of 32 bits.
    #[inline]
    pub(crate) fn uint(&self, place: FieldPlace) -> Option<u32> {
        self.get(place).map(|value| value as u32)
    }

    /// A number of 8 bits.
    #[inline]
    pub(crate) fn byte(&self, place: FieldPlace) -> Option<u8> {
        self.get(place).map(|value| value as u8)
    }

    /// Bytes of the record; `None` for those elsewhere in the kernel.
    #[inline]
    pub(crate) fn bytes(&self, FieldPlace { at, size, how }: FieldPlace) -> Option<&'a [u8]> {
        let at = usize::from(at);
        let (from, size) = match how {
            How::Here if size == 0 => return self.data.get(at..),
            How::Here => (at, usize::from(size)),
            How::Data => self.located(at, 0)?,
            How::Relative => self.located(at, at + 4)?,
            _ => return None,
        };
        self.data.get(from..)?.get(..size)
    }

    /// Start and size from a `__data_loc` or `__rel_loc`.
    fn located(&self, at: usize, base: usize) -> Option<(usize, usize)> {
        let place = self.u32(self.data.get(at..)?)?;
        Some((base + (place & 0xffff) as usize, (place >> 16) as usize))
    }

    /// A text of the record, or one that it points at; empty: unknown.
    pub(crate) fn name(&self, place: FieldPlace) -> Option<HandlerName> {
        match place.how {
            How::Here | How::Data | How::Relative => self.bytes(place).map(HandlerName::of),
            _ => Some(self.origin.strings.get(&self.get(place)?).copied().unwrap_or_default()),
        }
    }

    /// The first 64 bits of a mask of `long`s.
    pub(crate) fn mask(&self, place: FieldPlace) -> Option<u64> {
        let bytes = self.bytes(place)?;
        if self.origin.long_bytes == 8 {
            return self.u64(bytes);
        }
        let high = bytes.get(4..).and_then(|bytes| self.u32(bytes)).unwrap_or(0);
        Some(u64::from(self.u32(bytes)?) | u64::from(high) << 32)
    }

    /// Return addresses up to the first 0 or -1. What lies behind is left from earlier records.
    pub(crate) fn stack(&self, place: FieldPlace) -> Option<Box<[u64]>> {
        let count = self.u32(self.data.get(usize::from(place.size)..)?)?.cast_signed();
        let count = usize::try_from(count).unwrap_or(0);
        let data = self.data.get(usize::from(place.at)..).unwrap_or_default();
        let is_wide = self.origin.long_bytes == 8;
        let end = if is_wide { u64::MAX } else { u64::from(u32::MAX) };
        let frames = data.chunks_exact(self.origin.long_bytes).take(count);
        let frames = frames
            .map_while(|long| if is_wide { self.u64(long) } else { self.u32(long).map(u64::from) });
        Some(frames.take_while(|&frame| frame != 0 && frame != end).collect())
    }

    #[inline]
    fn u16(&self, bytes: &[u8]) -> Option<u16> {
        let bytes = *bytes.first_chunk()?;
        Some(match self.origin.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    #[inline]
    fn u32(&self, bytes: &[u8]) -> Option<u32> {
        let bytes = *bytes.first_chunk()?;
        Some(match self.origin.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    #[inline]
    fn u64(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = *bytes.first_chunk()?;
        Some(match self.origin.order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }
}

// Description of a kernel event: names, fields, and conversion to a typed event.

/// An event has at most so many fields here.
pub(crate) const FIELDS_MAX: usize = 7;

/// Where the fields of an event lie, in the order of [`EventKind::fields`].
pub(crate) type Places = [FieldPlace; FIELDS_MAX];

#[derive(Debug)]
pub(crate) struct EventKind {
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) fields: &'static [EventField],
    /// The kernel's `print fmt`.
    pub(crate) print: &'static str,
    pub(crate) perfetto: Perfetto,
    pub(crate) read: fn(&Record<'_, '_>, &Places) -> Option<EventData>,
    /// `None`: a text does not show it as an event.
    pub(crate) parse: Option<fn(&str, &mut TextSymbols) -> Option<EventData>>,
    /// Values of the fields; `None`: it is another event.
    pub(crate) write: for<'a> fn(&'a EventData) -> Option<Vec<FieldValue<'a>>>,
}

/// A field of a kernel event.
#[derive(Debug)]
pub(crate) struct EventField {
    /// Its declaration in C. It begins with a blank if only Perfetto has the field.
    pub(crate) declared: &'static str,
    pub(crate) wanted: FieldForm,
    /// Number of the field in Perfetto, 0: not shown there.
    pub(crate) number: u64,
}

/// How Perfetto shows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Perfetto {
    /// As the message of this field of `FtraceEvent`.
    Message(u64),
    /// As a `GenericFtraceEvent`, with the kernel's names.
    Generic,
    /// Otherwise, or not at all.
    Apart,
}

/// What the scan of a trace does with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// It changes the state of its CPU: see `carry`.
    State,
    /// It may concern another CPU than its own.
    Across,
    /// These have a brief form of their own.
    Switch,
    Waking,
    Wakeup,
    TimerStart,
    TimerExpire,
    TimerExpired,
}

impl Role {
    /// Whether such an event changes the state of its CPU.
    pub(crate) const fn is_state(self) -> bool {
        matches!(self, Self::State | Self::Switch | Self::TimerExpire | Self::TimerExpired)
    }

    /// Whether such an event has a brief form.
    pub(crate) const fn has_brief(self) -> bool {
        !matches!(self, Self::Plain | Self::State)
    }
}

impl EventField {
    /// The kernel's name of it.
    pub(crate) fn name(&self) -> &'static str {
        let name = self.declared.rsplit(' ').next().unwrap_or_default();
        name.split('[').next().unwrap_or(name)
    }
}
