//! The machine: facts, knobs, changes and their undo.
#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make the machines that they read")
)]

pub mod arch;
pub mod boot;
pub mod capture;
pub mod change;
pub mod child;
mod copies;
pub mod cpu_list;
pub mod door;
pub mod facts;
pub mod flatten;
pub mod idle;
pub mod knob;
pub mod knobs;
pub mod reading;
mod redact;
pub mod root;
pub mod sample;
pub mod symbols;
mod take;
pub mod task;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tracefs;
pub mod trusted;
pub mod tune;

pub use cpu_list::CpuList;
pub use facts::Facts;
pub use flatten::{FactChange, FactRow, changed_facts, condition_id};
pub use knob::Knob;
pub use reading::Reading;
pub use root::{Root, RootError};
pub use sample::{HostSampler, HostSecond, Placement};

pub use crate::capture::form::Capture;
