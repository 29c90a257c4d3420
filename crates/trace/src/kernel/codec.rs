//! How one field of an event is read from a record, read from a text, and written.

use super::{
    binary::{Place, Record, Wanted},
    text::{Symbols, cpu_list, mask, pointer, value, word},
};
use crate::event::{Comm, Name};

/// A field on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    /// Address of kernel code.
    Symbol(u64),
    /// Address of kernel code, stored as its offset from the kernel's first instruction.
    Offset(u64),
    /// A thread id.
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
    const WANTED: Wanted = Wanted::Number;

    fn read(record: &Record<'_, '_>, place: Place) -> Option<Self::Out>;
    fn parse(text: &str, key: &str, symbols: &mut Symbols) -> Option<Self::Out>;
    fn write(out: &Self::Out) -> Value<'_>;
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
            const WANTED: Wanted = Wanted::$wanted;

            #[inline]
            fn read($record: &Record<'_, '_>, $place: Place) -> Option<$out> {
                $read
            }

            fn parse($text: &str, $key: &str, $symbols: &mut Symbols) -> Option<$out> {
                $parse
            }

            fn write($value: &$out) -> Value<'_> {
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
        |value| Value::Number(i64::from(*value).cast_unsigned());
    Tid -> i32, Number,
        |record, place| record.int(place),
        |text, key, _| value(text, key),
        |value| Value::Tid(*value);
    /// A number of 32 bits.
    Uint -> u32, Number,
        |record, place| record.uint(place),
        |text, key, _| value(text, key),
        |value| Value::Number(u64::from(*value));
    /// A number of 64 bits.
    Wide -> u64, Number,
        |record, place| record.get(place),
        |text, key, _| value(text, key),
        |value| Value::Number(*value);
    /// `prev_state`. The bits from 0x100 on mean that the task was preempted (`TASK_REPORT_MAX`;
    /// other bits in kernels before 4.15): it is runnable.
    TaskState -> u64, Number,
        |record, place| Some(record.get(place)? & STATE_BITS),
        |text, key, _| value(text, key),
        |value| Value::Number(*value);
    /// An address of data, in hexadecimal digits.
    Pointer -> u64, Number,
        |record, place| record.get(place),
        |text, key, _| pointer(word(text, key)?.trim_end_matches(':')),
        |value| Value::Number(*value);
    /// An address of data, printed as a symbol by some kernels.
    Data -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(word(text, key)?)),
        |value| Value::Number(*value);
    /// An address of code.
    Symbol -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(word(text, key)?)),
        |value| Value::Symbol(*value);
    /// An address of code before the key.
    SymbolBefore -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(text.split_once(key)?.0.trim())),
        |value| Value::Symbol(*value);
    /// An address of code in parentheses at the end.
    SymbolLast -> u64, Number,
        |record, place| record.get(place),
        |text, key, symbols| Some(symbols.address(text.rsplit_once(key)?.1.strip_suffix(')')?)),
        |value| Value::Symbol(*value);
    /// An address of code, stored as an offset; 0: unknown.
    Caller -> u64, Number,
        |record, place| {
            let offset = i64::from(record.int(place)?);
            Some(record.origin.text_start.map_or(0, |start| start.wrapping_add_signed(offset)))
        },
        |text, key, symbols| Some(symbols.address(word(text, key)?)),
        |value| Value::Offset(*value);
    /// Name of a task.
    TaskName -> Comm, Text,
        |record, place| record.bytes(place).map(Comm::of),
        |text, key, _| {
            let text = text.strip_prefix(key)?;
            Some(Comm::from(&text[..text.rfind(" pid=")?]))
        },
        |value| Value::Text(value.as_bytes());
    /// A name up to the end of the text.
    NameLast -> Name, Text,
        |record, place| record.name(place),
        |text, key, _| Some(Name::from(text.split_once(key)?.1.trim())),
        |value| Value::Text(value.as_bytes());
    /// A name in parentheses at the end.
    Reason -> Name, Text,
        |record, place| record.name(place),
        |text, key, _| Some(Name::from(text.split_once(key)?.1.strip_suffix(')')?)),
        |value| Value::Text(value.as_bytes());
    /// A mask of CPUs, in hexadecimal digits.
    Mask -> u64, Mask,
        |record, place| record.mask(place),
        |text, key, _| mask(word(text, key)?),
        |value| Value::Mask(*value);
    /// A mask of CPUs, as a list.
    CpuList -> u64, Mask,
        |record, place| record.mask(place),
        |text, key, _| cpu_list(word(text, key)?),
        |value| Value::Mask(*value);
    Frames -> Box<[u64]>, Stack,
        |record, place| record.stack(place),
        |_, _, _| None,
        |value| Value::Addresses(value);
}

/// Bits of `prev_state` that say what the task waits for.
pub(crate) const STATE_BITS: u64 = 0xff;
