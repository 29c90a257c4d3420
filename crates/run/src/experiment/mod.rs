//! What changes of the machine do to latency, found out by trying them: shared by `tune apply
//! --prove` and `experiment`.
//!
//! A trial is a measured run during which knobs are switched on and off in slices of time. Knobs
//! (`knobs`) and options of measuring (`setting`) are switched by a [`Switch`], under the
//! journal of `tune`; `conduct` leads through the slices that a `schedule` names.

pub mod analyse;
pub mod boots;
pub mod conduct;
pub mod events;
pub mod factors;
mod gather;
pub mod knobs;
pub mod plan;
pub mod profile;
pub mod results;
pub mod run;
pub mod schedule;
pub mod screening;
pub mod setting;
pub mod setup;
pub mod staged;
mod switch;

pub use self::{
    setting::Setting,
    switch::{Journaled, Switch},
};
