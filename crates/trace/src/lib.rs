//! Kernel traces: bytes to events, events to what each CPU did, and out again for other tools.
//!
//! Floor 0. Pure: no I/O, no clock. The kernel's own `format` files say where a field is; nothing
//! is assumed of the kernel's version, word size or byte order.
//!
//! [`Formats`] come from the kernel's texts; a [`page::RingPage`] is a sub-buffer of its ring, and has
//! records; a [`Decoder`] makes [`Event`]s of them. [`Pages`] are sub-buffers of several CPUs, in
//! memory ([`Store`]) or in a file; [`around::window`] takes a [`Window`] out of them.

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

pub use around::WindowSize;
pub use coverage::{Coverage, EventClass, Extent};
pub use decode::{Decoder, EventBrief};
pub use event::{Event, EventData};
pub use format::{ByteOrder, Formats};
pub use merge::Merge;
pub use page::{Pages, Raw, RingPage};
pub use scan::{Scanner, Subjects};
pub use store::Store;
pub use window::{
    LateTimer, Lost, Task, TaskPolicy, TracedSection, WakeUp, WakeUpBasis, Window, WindowIdleState,
    WindowSurroundings,
};

pub use crate::kernel::text::FixedText;
