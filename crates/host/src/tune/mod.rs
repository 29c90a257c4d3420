//! Changing a machine: one [`Change`] at a time, written down before it is made, read back after,
//! and taken back exactly.
//!
//! What is to change and why is the judge's (`rtproof_judge::plan`); here is how. Everything that
//! rtproof ever writes to a machine goes through this module.

pub mod apply;
pub mod change;
mod compare;
pub mod drift;
mod engine;
mod file;
#[cfg(test)]
pub(crate) mod fuse;
pub(crate) mod gate;
mod grubenv;
mod hotplug;
mod irq;
pub mod journal;
mod lock;
pub mod machine;
pub mod mark;
mod side;
pub mod state;
pub mod status;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod trouble;
pub mod undo;
pub mod units;
mod value;
pub mod wake;

pub use apply::{Applied, ApplyError, Options, Progress, apply};
pub use change::{Change, Compare, IrqName, Scheduling, TaskName, UnitWish};
pub use drift::{Clue, Suspect, suspects};
pub use journal::{
    Journal, JournalError, Summary, Title,
    script::{Entry, Item, Stage},
};
pub use machine::{Machine, NotTunable};
pub use state::{Bytes, State};
pub use status::{Standing, Stands, status};
pub use tasks::Tasks;
pub use trouble::Trouble;
pub use undo::{Gone, Outcome, UndoError, Undone, undo};
pub use units::{Answer, Units};
