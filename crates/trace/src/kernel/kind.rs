//! What is known of a kernel event: its names, its fields, and how it becomes a typed event.

use super::{
    binary::{Place, Record, Wanted},
    codec::Value,
    text::Symbols,
};
use crate::What;

/// An event has at most so many fields here.
pub(crate) const FIELDS_MAX: usize = 7;
/// Where the fields of an event lie, in the order of [`Kind::fields`].
pub(crate) type Places = [Place; FIELDS_MAX];

#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) fields: &'static [Field],
    /// The kernel's `print fmt`.
    pub(crate) print: &'static str,
    pub(crate) perfetto: Perfetto,
    pub(crate) read: fn(&Record<'_, '_>, &Places) -> Option<What>,
    /// `None`: a text does not show it as an event.
    pub(crate) parse: Option<fn(&str, &mut Symbols) -> Option<What>>,
    /// Values of the fields; `None`: it is another event.
    pub(crate) write: for<'a> fn(&'a What) -> Option<Vec<Value<'a>>>,
}

/// A field of a kernel event.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its declaration in C. It begins with a blank if only Perfetto has the field.
    pub(crate) declared: &'static str,
    pub(crate) wanted: Wanted,
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

impl Field {
    /// The kernel's name of it.
    pub(crate) fn name(&self) -> &'static str {
        let name = self.declared.rsplit(' ').next().unwrap_or_default();
        name.split('[').next().unwrap_or(name)
    }
}
