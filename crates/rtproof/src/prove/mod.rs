//! The measurement behind `prove`: options, threads, loads, record, one file each.

mod collect;
mod conductor;
pub(crate) mod convert;
mod engine;
pub mod finish;
mod idle;
mod notes;
pub(crate) mod onlooker;
pub mod output;
pub(crate) mod progress;
pub mod resolve;
mod seconds;
pub(crate) mod signals;
mod spikes;
mod watch;
mod writer;

pub(crate) use collect::load_settings;
pub use conductor::Conductor;
pub(crate) use conductor::Nobody;
pub(crate) use engine::{Job, run};
pub use engine::{measure, measure_with};
