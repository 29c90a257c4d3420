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

pub use around::WindowSize;
pub use coverage::{Coverage, EventClass, Extent};
pub use decode::{Decoder, EventBrief};
pub use event::{Event, EventData, FixedText};
pub use format::{ByteOrder, Formats};
pub use merge::Merge;
pub use page::{Pages, Raw, RingPage};
pub use scan::{Scanner, Subjects};
pub use store::Store;
pub use window::{
    LateTimer, Lost, Task, TaskPolicy, TracedSection, WakeUp, WakeUpBasis, Window, WindowIdleState,
    WindowSurroundings,
};
