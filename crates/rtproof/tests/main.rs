//! The binary as a user runs it. One program holds all tests, so that `support` is built once.
//!
//! Tests that measure live are in a module `live`: `make test` runs one of them at a time, beside
//! tests that do not. What needs the machine for itself is in a module `alone`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests read and write their own files, start programs and name what they leave out"
)]

mod browser;
mod support;

/// Files in which every test has to have the machine for itself.
mod alone {
    mod locks;
    mod spikes;
    mod syscalls;
}

/// Files in which every test measures live.
mod live {
    mod docker;
    mod doors;
    mod faults;
    mod notebook;
    mod outputs;
    mod prove;
    mod report_browser;
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
