//! The lab: real Debian kernels, stock and PREEMPT_RT, x86-64 and ARM, under QEMU without KVM.
//!
//! A case boots a kernel on a made-up machine, runs the very rtproof binary inside, brings back its
//! record, output and exit code, and checks them; each case has mutations that must make it fail.
//! lab/README.md says how to add one and what emulation cannot show.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program talks to its caller")]

pub mod binaries;
#[cfg(test)]
mod bisected;
pub mod blame;
pub mod cache;
pub mod case;
pub mod cases;
pub mod deb;
pub mod disk;
pub mod emulator;
pub mod expect;
pub mod fetch;
#[cfg(test)]
mod from_source;
pub mod initramfs;
pub mod kernels;
pub mod machine;
pub mod module;
pub mod modules;
#[cfg(test)]
mod monitored;
#[cfg(test)]
mod old_kernels;
#[cfg(test)]
mod outside;
pub mod pins;
pub mod plants;
pub mod programs;
pub mod qmp;
pub mod run;
pub mod schedule;
pub mod seen;
pub mod shell;
pub mod snapshot;
pub mod state;
pub mod tables;
