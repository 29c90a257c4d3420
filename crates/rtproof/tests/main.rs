//! The binary as a user runs it. One program holds all tests, so that `support` is built once.
//!
//! Tests that measure live are in a module `alone`: `make test` runs each of them with no other test
//! beside it.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests read and write their own files, start programs and name what they leave out"
)]

mod browser;
mod support;

/// Files in which every test measures live.
mod alone {
    mod docker;
    mod faults;
    mod locks;
    mod notebook;
    mod outputs;
    mod prove;
    mod report_browser;
    mod spikes;
    mod syscalls;
    mod tune_prove_command;
}

mod application;
mod bad_input;
mod browser_selftest;
mod compare;
mod coverage;
mod experiment;
mod experiment_boots;
mod explain;
mod export;
mod golden;
mod hints;
mod import;
mod kernel;
mod kernel_bisect;
mod kernel_bisect_boots;
mod kernel_boot;
mod machines;
mod measure;
mod missing;
mod new;
mod owners;
mod proof;
mod rules;
mod run;
mod servers;
mod trace;
mod tune;
mod tune_boot;
mod tune_confirm;
mod tune_kernel;
mod tune_kill;
mod tune_prove;
mod tune_undo;
mod units;
mod users;
mod variants;
mod watch;
mod words;
