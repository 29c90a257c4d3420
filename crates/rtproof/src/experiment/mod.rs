//! What changes of the machine do to latency, found out by trying them: shared by `tune apply
//! --prove` and `experiment`.
//!
//! A trial is a measured run during which knobs are switched on and off in slices of time. Knobs
//! (`knobs`) and options of measuring (`setting`) are switched by a [`Switch`], under the
//! journal of `tune`; `conduct` leads through the slices that a `course` names.

pub(crate) mod analyse;
pub(crate) mod boots;
pub(crate) mod conclude;
pub(crate) mod conduct;
pub(crate) mod course;
pub(crate) mod factors;
mod gather;
pub(crate) mod knobs;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod setting;
pub(crate) mod setup;
pub(crate) mod staged;
pub(crate) mod stand;
mod switch;

pub use self::{
    setting::Setting,
    switch::{Journaled, Switch},
};
