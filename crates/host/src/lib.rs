//! The machine: one [`Root`] through which every machine path is read, and the [`facts::Facts`]
//! read from it.
//!
//! Floor 1. Nothing else in the house opens a path under /proc, /sys, /etc or /boot. Parsers take
//! bytes; readers take a [`Root`]; what cannot be read stays unknown, with the path.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make the machines that they read")
)]

pub mod activity;
pub mod boot;
pub mod capture;
pub mod change;
pub mod counts;
pub mod cpu_list;
pub mod facts;
pub mod flatten;
mod grubenv;
pub mod harmless;
pub mod idle;
pub mod input;
pub mod knob;
pub mod knobs;
pub mod msr;
pub mod pm_qos;
pub mod program;
pub mod reading;
mod redact;
mod refusal;
pub mod root;
pub mod sample;
pub mod symbols;
mod take;
pub mod task;
#[cfg(test)]
mod testing;
mod text;
pub mod tracefs;
pub mod trusted;
pub mod tune;

pub use capture::Capture;
pub use cpu_list::CpuList;
pub use facts::Facts;
pub use flatten::{FactChange, FactRow, changes, condition_id};
pub use knob::Knob;
pub use reading::Reading;
pub use root::{Root, RootError};
pub use sample::{HostSampler, HostSecond, Placement};
