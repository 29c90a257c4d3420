//! Work under way, as the terminal shows it.

pub(crate) mod cell;
pub(crate) mod making;
pub(crate) mod progress;
pub(crate) mod rows;
pub(crate) mod trying;
