//! Kernel traces: bytes and text to events, windows and other tools' formats.
#![doc = include_str!("../README.md")]

pub mod around;
pub mod context;
pub mod coverage;
pub mod dat;
pub mod decode;
pub mod event;
pub mod format;
pub mod ftrace_text;
mod kernel;
pub mod merge;
pub mod page;
pub mod perfetto;
pub mod scan;
pub mod store;
#[cfg(test)]
mod testing;
pub mod window;

pub use around::Around;
pub use coverage::{Class, Coverage, Extent};
pub use decode::{Brief, Decoder};
pub use event::{Event, What};
pub use format::{ByteOrder, Formats};
pub use merge::Merge;
pub use page::{Page, Pages, Raw};
pub use scan::{Scanner, Subjects};
pub use store::Store;
pub use window::{Beside, How, IdleState, LateTimer, Lost, Policy, Section, Task, WakeUp, Window};

pub use crate::kernel::text::Text;
