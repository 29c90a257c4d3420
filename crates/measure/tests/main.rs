//! Real-time threads, the recorder and the statistics of the mark library, on this machine.
//!
//! Everything here that measures needs the machine for itself: module `alone`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests read and write their own files, start programs and name what they leave out"
)]

mod alone;
mod header;
mod tune;
