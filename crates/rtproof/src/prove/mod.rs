//! The measurement behind `prove`: options, threads, loads, record, one file each.

mod collect;
mod convert;
mod engine;
pub mod finish;
mod notes;
pub mod output;
mod progress;
pub mod resolve;
pub(crate) mod signals;
mod spikes;
mod writer;

pub use engine::measure;
