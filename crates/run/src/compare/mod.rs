//! What `compare` does before it compares: files opened, runs named and grouped.

mod load;
mod names;
mod reference;

pub use load::{Loader, Named};
pub use names::{common, short};
pub use reference::folder;
