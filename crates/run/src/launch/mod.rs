//! `rtproof run`: starts a program as a real-time application, accompanies it, and undoes
//! everything at its end.
//!
//! [`plan`] decides and changes nothing; [`start`] sets what was planned, starts the program
//! ([`child`] sets itself up and becomes it), waits, and says what the program got. What is changed
//! of the machine is in a journal of `tune`, and a guard undoes it when this process is killed.

mod changes;
pub mod child;
mod core;
mod error;
mod file;
mod got;
mod numa;
mod options;
mod place;
mod plan;
mod record;
mod run_record;
mod service;
mod setup;
mod start;
mod user;
mod wait;

pub use error::LaunchError;
pub use options::{Class, Latency, Memory, Options, Place};
pub use plan::{Planned, plan};
pub use run_record::{Proved, Wanted};
pub use start::{Got, Observer, recover, start};

use crate::clock::now_ns;
