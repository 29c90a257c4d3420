//! The measurement behind `prove`: options, threads, loads, record, one file each.

mod collect;
pub(crate) mod engine;
pub mod finish;
mod idle;
mod job;
mod notes;
pub mod observer;
pub mod output;
pub mod request;
pub mod resolve;
mod samples;
pub(crate) mod seconds;
pub mod signals;
pub(crate) mod snapshot;
pub(crate) mod spikes;
mod steps;
pub mod switcher;
mod watch;
pub(crate) mod writer;

pub use collect::load_settings;
pub use engine::{measure, run};
pub use job::Job;
pub use observer::Observer;
pub use request::Request;
pub use switcher::Switcher;
