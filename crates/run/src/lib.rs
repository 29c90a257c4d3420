//! Conducting: prove, measure, experiment, tune and explain as library calls. Options go in,
//! results come out, progress is reported to the caller. Nothing is printed here.
//!
//! `examples/prove.rs` proves a machine in thirty lines.

pub mod bisect;
mod clock;
pub mod compare;
pub mod cpus;
pub mod experiment;
pub mod explain;
pub mod file;
pub mod intent;
pub mod kernel;
pub mod launch;
pub mod load_worker;
pub mod measure;
pub mod new;
pub mod opened;
pub mod parse;
pub mod prove;
pub mod rules;
pub mod tick;
pub mod trace;
pub mod tune;
pub mod usage;
pub mod watch;
