//! Changing a machine: one [`Change`] at a time, written down before it is made, read back after,
//! and undone exactly.
//!
//! What is to change and why is decided by `rtproof_judge::plan`; this module does it. Everything
//! that rtproof ever writes to a machine goes through it.

mod account_task;
mod accounts;
pub mod apply;
mod apt;
mod compare;
pub mod confirmation;
pub mod drift;
mod error;
#[cfg(test)]
pub(crate) mod faults;
pub mod journal;
mod kind;
mod kinds;
mod machine;
mod outcome;
mod packages;
mod placing;
mod staging;
mod state;
mod status;
mod systemctl;
#[cfg(test)]
mod tests;
mod text;
mod three;
mod ticks;
mod tree;
mod undo;
mod units;
pub mod wake;
pub(crate) mod writes;

pub use account_task::may_change_groups;
pub use accounts::Accounts;
pub use apply::{Applied, ApplyError, Options, Progress, apply};
pub use drift::{Clue, Suspect, suspects};
pub use error::ChangeError;
pub use journal::{
    Journal, JournalError, Summary,
    script::{Entry, Item, Stage},
};
pub use kind::{Nature, Pace, Part};
pub use machine::{FOLDER, Machine, NotTunable, Tasks};
pub use outcome::{Gone, Outcome};
pub use staging::Staging;
pub use state::{PackageState, State};
pub use status::{Standing, Stands, UNNOTED, status};
pub use systemctl::{Answer, Systemctl, Units};
pub use ticks::write_ticks;
pub use tree::TreeFile;
pub use undo::{UndoError, Undone, undo};

pub use crate::change::places::{INITRD_PROGRAMS, STAGING};
pub use crate::change::{
    AddedPackage, Bytes, Change, Compare, IrqName, PackageManager, Scheduling, TaskName, UnitState,
};
