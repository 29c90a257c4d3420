//! Loads: what disturbs the machine while the measured threads are measured. One file each, one
//! list.
//!
//! A latency without a load is a latency of an idle machine and proves nothing. A load runs in a
//! process of its own, so that its page faults, its `mmap_lock` and its TLB shootdowns do not touch
//! the measuring process; it has the normal scheduling policy, keeps within a budget of memory and
//! disk, says how much work it did, and ends with rtproof whatever happens to rtproof. How that is
//! done is in [`run`]. To add a load: copy `built_in/_template.rs`,
//! fill it in, add one line to [`LOADS`].

mod built_in;
mod flood;
mod load;
mod place;
pub mod run;
mod tree;

pub use crate::failure::Failure;
pub use built_in::{
    LOADS, find,
    named::{NAMED, Named},
};
pub use load::{Before, Context, Counter, Load, Parameter, Prepare};
pub(crate) use place::sacrifice;
pub use run::error::LoadError;
pub use run::runner::{Outcome, Runner, Running};
pub use run::settings::Settings;
pub use run::spec::{LoadSet, LoadSpec, SpecError};
