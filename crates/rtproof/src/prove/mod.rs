//! The measurement behind `prove`: options, threads, loads, record, one file each.

mod collect;
mod conductor;
mod convert;
mod engine;
pub mod finish;
mod notes;
pub mod output;
mod progress;
pub mod resolve;
mod seconds;
pub(crate) mod signals;
mod spikes;
mod writer;

pub(crate) use collect::load_settings;
pub use conductor::Conductor;
pub use engine::{measure, measure_with};
