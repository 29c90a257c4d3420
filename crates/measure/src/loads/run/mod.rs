//! How a load runs: in a process of its own that ends with rtproof whatever happens.
//!
//! ```text
//! rtproof ── stdin ──> worker (own group, load CPUs, SCHED_OTHER) ── a built-in load's threads
//!         <─ lines ──         or, as subreaper, ── sh -c COMMAND / stress-ng ── their descendants
//! ```
//!
//! The pipe to the worker's stdin is what ties them: nothing is ever sent through it, and when
//! rtproof ends, even by SIGKILL, the kernel closes it and the worker ends itself and all below it.
//! Its lines (`wire`) say what it does, once a second how much, and at the end the total or what
//! went wrong. Because a worker is a group of its own, Ctrl-C in the terminal goes to rtproof
//! alone.

pub mod error;
mod own;
mod pipe;
pub(super) mod process;
pub mod runner;
pub(super) mod settings;
pub mod spec;
mod stress_ng;
mod text;
mod wire;
pub mod worker;
mod wrap;
