//! One run as one file: what was asked, what the machine was, what was measured, what was judged.
//!
//! Floor 2. A record is an SQLite file that is written once a second and sealed at the end. All
//! that is shown of a run is computed from [`run::Run`], so a report made next year says the same.
//!
//! The way of a record: [`Writer::create`] before the first wake-up, [`Writer::append`] once a
//! second, [`Writer::finish`], then [`read()`] it back, judge it, [`Finished::store_judgement`],
//! [`Finished::seal`]. A record that stops anywhere on this way can be read, and says so.

#[cfg(test)]
extern crate self as rtproof_record; // tests/common serves unit tests as well

pub mod beside;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod db;
pub mod effects;
mod error;
pub mod export;
mod file;
mod finished;
pub mod import;
mod imported;
pub mod limits;
pub mod moving;
pub mod options;
mod pairs;
mod read;
mod rows;
pub mod run;
pub mod schema;
mod seal;
pub mod spikes;
pub mod tick;
mod write;

pub use beside::{Beside, BesideTick};
pub use effects::{EffectTick, Effects};
pub use error::{ReadError, WriteError};
pub use finished::Finished;
pub use options::{Class, Options, Requirement, Start};
pub use read::follow::{Follower, News};
pub use read::{Opened, read, read_shown, read_shown_with};
pub use rtproof_model::run::Clock;
pub use run::{Judgement, Run};
pub use seal::SealState;
pub use spikes::{SpikeTick, Spikes};
pub use tick::{Head, Origin, Snapshot, TOP_MAX, Tail, ThreadTick, Tick};
pub use write::Writer;
