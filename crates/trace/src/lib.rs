//! Kernel traces: bytes to events, events to what each CPU did, and out again for other tools.
//!
//! Floor 0. Pure: no I/O, no clock. The kernel's own `format` files say where a field is; nothing
//! is assumed of the kernel's version, word size or byte order.

pub mod context;
pub mod event;
pub mod pages;
pub mod text_value;
pub mod wakeup;
pub mod window;

pub use event::{Event, What};
pub use pages::Pages;
pub use text_value::Text;
pub use wakeup::{How, WakeUp};
pub use window::{Beside, IdleState, Lost, Policy, Task, Window};
